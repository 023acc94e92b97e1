"""Carries messages from moto's queues through the real handlers, as Lambda would.

moto runs no functions. `Driver` reads each queue that wakes a function, hands the batch to that
function's handler in the environment that the template gives it, and deletes what was handled.
It notes every call that a handler makes to AWS, so a test can hold them against the roles.
"""

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import boto3

from tests.template_stack import TEMPLATE, EventSource, StackOnMoto

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

Event: TypeAlias = dict[str, object]
Handler: TypeAlias = Callable[[Event, "Context"], object]

FUNCTIONS = TEMPLATE.parent / "functions"
CODE = {
    "SubmissionFunction": FUNCTIONS / "submission",
    "SchedulerFunction": FUNCTIONS / "scheduler",
    "SupervisorFunction": FUNCTIONS / "supervisor",
    "InventoryFunction": FUNCTIONS / "agents" / "inventory",
    "PaymentFunction": FUNCTIONS / "agents" / "payment",
    "ShippingFunction": FUNCTIONS / "agents" / "shipping",
    "MailFunction": FUNCTIONS / "agents" / "mail",
}


@dataclass(frozen=True)
class Context:
    """What a handler may ask of Lambda's context."""

    time_left: int = 30_000

    def get_remaining_time_in_millis(self) -> int:
        return self.time_left


@dataclass(frozen=True)
class Call:
    """One call to AWS: by which function, what, and with which parameters."""

    function: str
    service: str
    operation: str
    parameters: Mapping[str, object]


@dataclass
class Driver:
    """The stack's functions, each loaded afresh, so that none keeps another stack's settings."""

    stack: StackOnMoto
    calls: list[Call] = field(default_factory=list)
    _handlers: dict[str, Handler] = field(default_factory=dict)
    _running: str = ""

    def __post_init__(self) -> None:
        # The handlers' clients come from the default session; a new one forgets earlier tests.
        boto3.setup_default_session()
        session = boto3.DEFAULT_SESSION
        assert session is not None
        session.events.register("provide-client-params.*.*", self._note)

    def _note(self, params: Mapping[str, object], event_name: str, **_rest: object) -> None:
        if self._running:
            _, service, operation = event_name.split(".")
            self.calls.append(Call(self._running, service, operation, dict(params)))

    def invoke(self, function: str, event: Event, context: Context | None = None) -> object:
        """Call a function's handler, in its own environment."""
        with self._environment_of(function):
            if function not in self._handlers:
                self._handlers[function] = _load(CODE[function])
            return self._handlers[function](event, context or Context())

    def start_afresh(self, function: str) -> None:
        """Let the next call of a function be a new instance's, which remembers nothing."""
        self._handlers.pop(function, None)

    @contextmanager
    def _environment_of(self, function: str) -> Iterator[None]:
        before = dict(os.environ)
        os.environ.update(self.stack.function_environments[function])
        self._running = function
        try:
            yield
        finally:
            self._running = ""
            os.environ.clear()
            os.environ.update(before)

    def run_until_idle(self, *, most_rounds: int = 100) -> None:
        """Work off every queue until nothing is to be read; delayed messages are left waiting."""
        for _ in range(most_rounds):
            worked_off = [self.work_off(source) for source in self.stack.mappings]
            if not any(worked_off):
                return
        raise AssertionError(f"still busy after {most_rounds} rounds")

    @cached_property
    def sqs(self) -> "SQSClient":
        """Of the driver itself, not of a function."""
        client: SQSClient = boto3.client("sqs")
        return client

    def work_off(self, source: EventSource) -> bool:
        """Read one batch of a queue and have it handled; False where there was none."""
        messages = self.sqs.receive_message(
            QueueUrl=source.queue_url,
            MaxNumberOfMessages=source.batch_size,
            MessageSystemAttributeNames=["All"],
        ).get("Messages", [])
        if not messages:
            return False
        arn = self._arn_of(source.queue_url)
        answer = self.invoke(source.function, {"Records": [_record(m, arn) for m in messages]})
        failed = _failed(answer)
        for message in messages:
            if message["MessageId"] not in failed:
                receipt = message["ReceiptHandle"]
                self.sqs.delete_message(QueueUrl=source.queue_url, ReceiptHandle=receipt)
        return True

    def _arn_of(self, queue_url: str) -> str:
        attributes = self.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])
        return attributes["Attributes"]["QueueArn"]


def _record(message: "MessageTypeDef", arn: str) -> Event:
    """A message as Lambda hands it to a function."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message.get("Attributes", {})),
        "messageAttributes": {},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": arn.split(":")[3],
    }


def _failed(answer: object) -> set[str]:
    """The ids of the messages that a partial batch response asks to have again."""
    match answer:
        case {"batchItemFailures": list(failures)}:
            return {str(failure["itemIdentifier"]) for failure in failures}
        case _:
            raise AssertionError(f"not a partial batch response: {answer}")


def _load(code: Path) -> Handler:
    """The handler of a function's app.py, imported anew."""
    name = f"app_of_{code.name}"
    spec = importlib.util.spec_from_file_location(name, code / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Handler = module.handler
    return handler
