"""The first event of each function, and a server that answers its calls to AWS as before.

A cold start is over when the function has handled its first message, not when it has been imported.
An order is carried once in this process; of each function, its first event is kept, and what
DynamoDB answered. The server then gives the same answers to a new interpreter, and takes no
processor time of it.
"""

import base64
import io
import json
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

import boto3

from benchmarks.harness.orders import order
from benchmarks.harness.stack import SERVICES, TEMPLATE
from roundsman.model.instants import DAY
from roundsman.testing.remote_services import RemoteServices
from roundsman.testing.stack import Clock, Context, Stack, deployed

if TYPE_CHECKING:
    from botocore.model import OperationModel


@dataclass
class FirstEvent:
    """The first event of a function, and the answers of DynamoDB to its calls, by operation."""

    event: dict[str, object]
    answers: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True)
class Recorded:
    """What a cold start needs of the stack that was deployed for the recording."""

    stack: Stack
    events: Mapping[str, FirstEvent]
    """By function; the supervisor has none."""


@contextmanager
def recorded() -> Iterator[Recorded]:
    """Yield the first events of an order; the remote services answer until the end.

    The order is of tomorrow, so that no time limit in it is over when an event is handled again.
    """
    clock = Clock(now=time.time_ns() // 1_000_000 + DAY)
    with RemoteServices(clock=clock.at_the_services) as services:
        values = dict.fromkeys(SERVICES, services.url)
        with deployed(TEMPLATE, values, services=services, clock=clock) as stack:
            found = _carried(stack)
            yield Recorded(stack, found)


def _carried(stack: Stack) -> dict[str, FirstEvent]:
    found: dict[str, FirstEvent] = {}
    seen: set[str] = set()
    invoke = stack.invoke

    def invoked(function: str, event: dict[str, object], context: Context | None = None) -> object:
        if function not in found:
            found[function] = FirstEvent(event)
        try:
            return invoke(function, event, context)
        finally:
            seen.add(function)

    def answered(parsed: Mapping[str, object], model: "OperationModel", **_rest: object) -> None:
        if stack.running in found and stack.running not in seen and "Error" not in parsed:
            said = {name: each for name, each in parsed.items() if name != "ResponseMetadata"}
            found[stack.running].answers[model.name].append(json.dumps(said, default=_base64))

    session = boto3.DEFAULT_SESSION
    if session is None:
        raise ValueError("the stack is not deployed yet")
    session.events.register("after-call.dynamodb.*", answered)
    with patch.object(stack, "invoke", invoked), redirect_stdout(io.StringIO()):
        stack.submit(order("ord-cold"))
        stack.run_until_idle()
    return found


def _base64(value: object) -> str:
    if not isinstance(value, bytes):
        raise TypeError(f"DynamoDB answered with a {type(value).__name__}")
    return base64.b64encode(value).decode()


class Aws:
    """Answers calls to DynamoDB and SQS with what was recorded; `endpoint` is its URL."""

    def __init__(self) -> None:
        self._answers: dict[str, deque[str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Aws":
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def begin(self, first: FirstEvent | None) -> None:
        """Give these answers from now on; None for empty ones."""
        answers = first.answers if first is not None else {}
        self._answers = {name: deque(each) for name, each in answers.items()}

    def answer(self, target: str, body: bytes) -> str:
        """Return the answer to a call. `target` is `AmazonSQS.SendMessage` or the like."""
        service, _, operation = target.partition(".")
        if service == "AmazonSQS":
            asked = cast("dict[str, str]", json.loads(body))
            text = asked.get("MessageBody", "").encode()
            digest = md5(text, usedforsecurity=False).hexdigest()
            return json.dumps({"MessageId": "m", "MD5OfMessageBody": digest})
        left = self._answers.get(operation)
        return left.popleft() if left else "{}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        aws = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                said = aws.answer(self.headers["X-Amz-Target"], body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_arguments: object) -> None:
                """Log nothing."""

        return Handler
