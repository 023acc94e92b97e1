"""The Lambda function of a task on Step Functions, which calls a remote service.

It does the minimum: it keeps a connection open, sends an idempotency key, and logs one line. It
does not retry. It imports nothing from this project, because only this file is deployed.
"""

import json
import os
from collections.abc import Mapping
from http.client import HTTPConnection
from urllib.parse import urlsplit

RESOURCE = os.environ.get("RESOURCE", "")
SERVICE = urlsplit(os.environ.get("SERVICE_URL", ""))

connection = HTTPConnection(SERVICE.hostname or "", SERVICE.port, timeout=30)


def handler(event: Mapping[str, object], _context: object) -> object:
    """Call the service with the data of the order, and return the response.

    Raises RuntimeError if the service does not accept the call.
    """
    order_id = event["orderId"]
    bodies: dict[str, dict[str, object]] = {
        "reservations": {"lines": event["lines"]},
        "charges": {
            "amount": "39.80",
            "currency": event["currency"],
            "token": event["paymentToken"],
        },
        "shipments": {"address": event["shippingAddress"], "lines": event["lines"]},
        "messages": {"template": "order_confirmed"},
    }
    headers = {"Content-Type": "application/json", "Idempotency-Key": f"{order_id}/{RESOURCE}"}
    content = json.dumps({"orderId": order_id, **bodies[RESOURCE]})
    connection.request("POST", f"{SERVICE.path}/{RESOURCE}", content, headers)
    answer = connection.getresponse()
    body = answer.read()
    print(json.dumps({"order": order_id, "call": RESOURCE, "status": answer.status}))
    if answer.status not in (201, 202):
        raise RuntimeError(f"{RESOURCE} answered {answer.status}")
    result: object = json.loads(body) if body else {}
    return result
