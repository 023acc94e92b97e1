"""A small client of the remote services, on the standard library's own HTTP client."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

# Only ever reached when something is broken: a test must end, not hang.
PATIENCE_SECONDS = 20.0
MOST_QUESTIONS = 20_000


@dataclass(frozen=True)
class Got:
    """An answer as it came off the wire."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        """The body, which must be a JSON object."""
        body = json.loads(self.raw)
        assert isinstance(body, dict)
        return body

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The body, which must be a JSON list."""
        rows = json.loads(self.raw)
        assert isinstance(rows, list)
        return rows

    @property
    def error(self) -> str:
        """The type of the error that the body names."""
        return str(self.body["error"])


class Client:
    """Calls in the contract's words. Each call has a connection of its own unless kept open."""

    def __init__(self, url: str, timeout: float = PATIENCE_SECONDS) -> None:
        self.address = urlsplit(url).netloc
        self.timeout = timeout

    def send(self, method: str, path: str, body: object = None, key: str | None = None) -> Got:
        """Send one request; `body` is sent as JSON, or as it is where it is bytes."""
        connection = http.client.HTTPConnection(self.address, timeout=self.timeout)
        try:
            return send_on(connection, method, path, body, key)
        finally:
            connection.close()

    def charge(self, key: str, order: str = "ord-1", **changes: object) -> Got:
        return self.send("POST", "/charges", {**charge_body(order), **changes}, key)

    def charged(self, charge_key: str) -> Got:
        return self.send("GET", f"/charges/{quote(charge_key, safe='')}")

    def refund(self, charge_key: str, key: str) -> Got:
        return self.send("POST", "/refunds", {"chargeKey": charge_key}, key)

    def reserve(self, key: str, order: str = "ord-1", sku: str = "KB-101") -> Got:
        body = {"orderId": order, "lines": [{"sku": sku, "quantity": 2}]}
        return self.send("POST", "/reservations", body, key)

    def ship(self, key: str, order: str = "ord-1", country: str = "BE") -> Got:
        return self.send("POST", "/shipments", shipment_body(order, country), key)

    def message(self, key: str, order: str = "ord-1") -> Got:
        return self.send("POST", "/messages", {"orderId": order, "template": "confirmed"}, key)

    def remove(self, resource: str, perform_key: str, key: str) -> Got:
        return self.send("DELETE", f"/{resource}/{quote(perform_key, safe='')}", None, key)

    def set_faults(self, *rules: dict[str, object]) -> Got:
        return self.send("PUT", "/_faults", {"rules": list(rules)})

    def ledger(self, query: str = "") -> list[dict[str, Any]]:
        return self.send("GET", f"/_ledger{query}").rows

    def entry(self, key: str) -> dict[str, Any]:
        """The only entry of the ledger under a key."""
        (found,) = [entry for entry in self.ledger() if entry["key"] == key]
        return found

    def wait_until(self, count: str, wanted: int) -> None:
        """Ask until so many requests wait; that it happens is the test's matter, not how soon."""
        for _ in range(MOST_QUESTIONS):
            if self.send("GET", "/_faults").body[count] == wanted:
                return
        raise AssertionError(f"{count} never became {wanted}")


def send_on(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: object = None,
    key: str | None = None,
) -> Got:
    """Send one request on an open connection and read its answer."""
    payload = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
    connection.request(method, path, payload, {} if key is None else {"Idempotency-Key": key})
    response = connection.getresponse()
    return Got(response.status, dict(response.getheaders()), response.read())


def charge_body(order: str = "ord-1") -> dict[str, object]:
    return {"orderId": order, "amount": "39.80", "currency": "EUR", "token": "tok_visa"}


def shipment_body(order: str = "ord-1", country: str = "BE") -> dict[str, object]:
    return {
        "orderId": order,
        "address": {
            "name": "A. Reader",
            "street": "1 Main St",
            "city": "Ghent",
            "postalCode": "9000",
            "country": country,
        },
        "lines": [{"sku": "KB-101", "quantity": 2}],
    }
