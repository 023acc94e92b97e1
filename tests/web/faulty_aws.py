"""An AWS that hangs, refuses or finds nothing, by service, on a port of this machine.

It is asked through botocore itself, so its timeouts and repeated tries are the real ones.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from roundsman_console.aws.stack import DeployedStack
from roundsman_console.inspector import Inspector

OUTPUTS = {
    **{f"{name}TableName": f"shop-{name}" for name in ("Tasks", "Orders", "History", "Control")},
    **{
        f"{name}QueueUrl": f"https://sqs.us-east-1.amazonaws.com/1/shop-{name}Queue"
        for name in (
            *("Submission", "Scheduler", "Rejected", "PaymentRequest", "PaymentUrgentRequest"),
            *("PaymentReply", "MailRequest", "MailUrgentRequest", "MailReply"),
        )
    },
    "AlertTopicArn": "arn:aws:sns:us-east-1:1:shop-AlertTopic",
    "ReplyQueuePrefix": "https://sqs.us-east-1.amazonaws.com/1/shop_",
}

HANGS = "hangs"
FINDS_NOTHING = "finds nothing"
EXPIRED = "ExpiredTokenException"
"""What a service does; any other word is the code of the error that it answers."""

NOTHING = json.dumps(
    {
        "Count": 0,
        "ScannedCount": 0,
        "Items": [],
        "Table": {},
        "TimeToLiveDescription": {},
        "ContinuousBackupsDescription": {},
    }
)
"""What DynamoDB answers to every call if nothing is in the tables."""

_SERVICE = re.compile(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request")


@dataclass
class FaultyAws:
    """What each service does now, and how often it was asked."""

    does: Mapping[str, str]
    """By the service's name in signatures; `other` for all others."""
    asked: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)

    def behaviour(self, service: str) -> str:
        with self.lock:
            self.asked[service] += 1
        return self.does.get(service) or self.does["other"]


@contextmanager
def faulty_aws(**does: str) -> Iterator[tuple[FaultyAws, str]]:
    """The AWS, and its address."""
    aws = FaultyAws(does)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            signed = _SERVICE.search(self.headers.get("Authorization", ""))
            what = aws.behaviour(signed[1] if signed else "none")
            if what == HANGS:
                aws.over.wait()
                return
            query = "urlencoded" in self.headers.get("Content-Type", "")
            status, body = (200, NOTHING) if what == FINDS_NOTHING else error(what, query=query)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield aws, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        aws.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def error(code: str, *, query: bool) -> tuple[int, str]:
    """The status and the body of an error, in the format that the request wants."""
    if query:
        inner = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error>"
        return 400, f"<ErrorResponse>{inner}</ErrorResponse>"
    return 400, json.dumps({"__type": code, "message": "no"})


def shop() -> Inspector:
    """The inspector of a stack that is known, whatever AWS does now."""
    return Inspector(DeployedStack("shop", OUTPUTS, {"DueShards": "2"}, arn="arn:shop"))
