"""Delivers messages from moto's queues to the real handlers, in place of Lambda.

moto runs no functions. `Driver` reads each queue that is an event source, calls the function's
handler with the batch, in the environment that the template defines, and deletes the messages that
were handled.
"""

import json
import os
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from functools import cached_property
from io import BytesIO, StringIO
from math import ceil
from typing import TYPE_CHECKING, TypeAlias, cast
from urllib.parse import unquote

import boto3
from botocore.awsrequest import AWSResponse
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.sqs.models import sqs_backends

from roundsman_testing.faults import FunctionExits
from roundsman_testing.stack.calls import AwsCall, AwsCalls, Killed
from roundsman_testing.stack.environment import circuits_known, forget_circuits, new_session
from roundsman_testing.stack.functions import Context, Event, FunctionInstance
from roundsman_testing.stack.resources import EventSource, StackOnMoto

if TYPE_CHECKING:
    from moto.dynamodb.models.table import Table
    from moto.sqs.models import Message, Queue, SQSBackend
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

    Contents: TypeAlias = tuple[
        Mapping[str, tuple[list[Message], set[Message]]],
        Mapping[str, Mapping[object, dict[object, object]]],
    ]
    """Messages and pending messages by queue, and items by table."""


class Driver:
    """Runs the functions of a stack, each loaded anew, so none has another stack's settings."""

    def __init__(self, stack: StackOnMoto) -> None:
        self.stack = stack
        self.aws = AwsCalls()
        self._instances: dict[str, FunctionInstance] = {}
        self._circuits: dict[str, frozenset[str]] = {}
        # The handlers' clients use the default session; a new one has no hooks of earlier tests.
        session = new_session()
        self.aws.listen(session)
        session.events.register_first(
            "before-call.lambda.Invoke",
            self._invoked,  # type: ignore[arg-type]  # it answers
        )

    def _invoked(self, params: Mapping[str, object], **_rest: object) -> tuple[AWSResponse, Event]:
        """Answer a call of Lambda's Invoke with the handler's result; moto runs no functions."""
        name = str(params["url_path"]).split("/")[-2]
        event: Event = json.loads(cast("bytes", params["body"]))
        answer: Event = {"StatusCode": 200}
        try:
            with redirect_stdout(StringIO()):  # its log is not printed where it is called
                result = self.invoke(self.stack.logical_id(unquote(name)), event)
        except Exception as error:  # noqa: BLE001  # the caller gets every failure as an answer
            answer["FunctionError"] = "Unhandled"
            result = {"errorType": type(error).__name__, "errorMessage": str(error)}
        answer["Payload"] = BytesIO(json.dumps(result).encode())
        raw = BytesIO()
        return AWSResponse("", 200, {}, raw), answer  # type: ignore[arg-type]  # as in AwsCalls

    @property
    def calls(self) -> list[AwsCall]:
        """Every call that a function has made to AWS so far."""
        return self.aws.calls

    @property
    def running(self) -> str:
        """The function that is being called now; empty while the test itself acts."""
        return self.aws.running

    @cached_property
    def sqs(self) -> "SQSClient":
        """The client of the driver itself. Its calls are not recorded and get no faults."""
        client: SQSClient = boto3.client("sqs")
        return client

    def invoke(self, function: str, event: Event, context: Context | None = None) -> object:
        """Call the handler of a function, in the environment of that function.

        Raises what the handler raises, Killed if an injected fault kills its process, FunctionExits
        if it calls sys.exit, and ValueError if the template has no such function.
        """
        if function not in self.stack.functions:
            known = ", ".join(self.stack.functions)
            raise ValueError(f"the template has no function {function}, but {known}")
        instance = self._instances.setdefault(
            function, FunctionInstance(function, self.stack.functions[function])
        )
        context = context or Context(self.stack.function_timeouts[function])
        known_before = circuits_known()
        with self._environment_of(function):
            try:
                return instance.call(event, context)
            except Killed:
                self.start_afresh(function)
                raise
            except SystemExit as ended:
                raise FunctionExits(function, ended) from ended
            finally:
                new = circuits_known() - known_before
                self._circuits[function] = self._circuits.get(function, frozenset()) | new

    def start_afresh(self, function: str) -> None:
        """Discard the instance of a function; its next invocation starts a new one."""
        self._instances.pop(function, None)
        forget_circuits(self._circuits.pop(function, frozenset()))

    def redeploy(self) -> None:
        """Discard the instances of all functions; the next invocations load the code again."""
        for function in self.stack.functions:
            self.start_afresh(function)

    @contextmanager
    def _environment_of(self, function: str) -> Iterator[None]:
        before = dict(os.environ)
        os.environ.update(self.stack.function_environments[function])
        self.aws.running = function
        try:
            yield
        finally:
            self.aws.running = ""
            # What the function has left as it was stays: each write encodes the name and the value.
            after = dict(os.environ)
            for name in after.keys() - before.keys():
                del os.environ[name]
            os.environ.update(
                {name: value for name, value in before.items() if after.get(name) != value}
            )

    # ---- queues -----------------------------------------------------------------------------

    def run_until_idle(self, *, most_rounds: int = 100) -> None:
        """Handle messages until no queue has a visible one. Delayed messages stay in the queue.

        Raises AssertionError after `most_rounds` rounds through all queues, since messages then
        cause each other without end.
        """
        for _ in range(most_rounds):
            worked_off = [self.work_off(source) for source in self.stack.mappings]
            if not any(worked_off):
                return
        raise AssertionError(f"still busy after {most_rounds} rounds")

    def work_off(self, source: EventSource) -> bool:
        """Read one batch of a queue and have it handled. Returns False if there was none.

        If an injected fault kills the function or makes it fail, the batch stays hidden for the
        visibility timeout of its queue, as on AWS. Any other exception of the handler is raised.
        """
        if not self._queue(source.queue_url).messages:
            return False  # reading moto's own state is a hundred times faster than a client call
        messages = self.sqs.receive_message(
            QueueUrl=source.queue_url,
            MaxNumberOfMessages=source.batch_size,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        ).get("Messages", [])
        if not messages:  # all were received too often and moved to the dead-letter queue
            return False
        event: Event = {"Records": [_record(each, source.queue_arn) for each in messages]}
        failed = self._survived(source.function, event)
        for message in messages:
            if failed is not None and message["MessageId"] not in failed:
                self._queue(source.queue_url).delete_message(message["ReceiptHandle"])
        return True

    def _survived(self, function: str, event: Event) -> set[str] | None:
        """Invoke the function. Returns the ids of the messages to redeliver.

        None means all of them, because the invocation failed.
        """
        struck = self.aws.struck
        try:
            return _failed(self.invoke(function, event))
        except Killed:
            return None
        except Exception:
            if self.aws.struck == struck:
                raise
            return None

    def next_message_at(self) -> int | None:
        """When the next hidden or delayed message becomes visible, in epoch ms; None if none."""
        return min(
            (
                _readable_at(message)
                for source in self.stack.mappings
                for message in self._queue(source.queue_url)._messages
            ),
            default=None,
        )

    def stuck(self) -> dict[str, int]:
        """The number of messages in each event source and dead-letter queue, without empty queues.

        Hidden messages are counted. Delayed messages are not: an Inspect that was sent ahead waits
        for its time.
        """
        queues = [self._queue(source.queue_url) for source in self.stack.mappings]
        dead = [queue.dead_letter_queue for queue in queues if queue.dead_letter_queue]
        held = {
            queue.name: sum(not message.delayed for message in queue._messages)
            for queue in (*queues, *dead)
        }
        return {name: count for name, count in held.items() if count}

    def bodies(self, queue_url: str) -> list[str]:
        """Take every visible message of a queue. Returns the bodies."""
        queue = self._queue(queue_url)
        found = queue.messages
        queue._messages = [message for message in queue._messages if message not in found]
        return [str(message.body) for message in found]

    def empty(self) -> None:
        """Remove all messages of all queues and all items of all tables."""
        for queue in self._sqs.queues.values():
            queue._messages.clear()
            queue._pending_messages.clear()
        for table in self._tables.values():
            table.items.clear()

    def contents(self) -> "Contents":
        """A copy of the messages of all queues and the items of all tables, for `put_back`."""
        queues = {
            name: (queue._messages, queue._pending_messages)
            for name, queue in self._sqs.queues.items()
        }
        items = {name: dict(table.items) for name, table in self._tables.items()}
        return deepcopy((queues, items))

    def put_back(self, contents: "Contents") -> None:
        """Replace all messages and all items by those that were there at that time."""
        self.empty()
        queues, tables = deepcopy(contents)
        for name, (messages, pending) in queues.items():
            self._sqs.queues[name]._messages.extend(messages)
            self._sqs.queues[name]._pending_messages.update(pending)
        for name, items in tables.items():
            self._tables[name].items.update(items)

    def _queue(self, url: str) -> "Queue":
        queue: Queue = self._sqs.queues[url.rpartition("/")[2]]
        return queue

    @cached_property
    def _sqs(self) -> "SQSBackend":
        backend: SQSBackend = sqs_backends[DEFAULT_ACCOUNT_ID][self._region]
        return backend

    @property
    def _tables(self) -> "Mapping[str, Table]":
        tables: Mapping[str, Table] = dynamodb_backends[DEFAULT_ACCOUNT_ID][self._region].tables
        return tables

    @cached_property
    def _region(self) -> str:
        return self.sqs.meta.region_name


def _readable_at(message: "Message") -> int:
    """When moto lets a message be read, in epoch ms.

    moto hides a message through the instant `visible_at`, but delays it only until it.
    """
    return max(ceil(message.visible_at) + 1, ceil(message.delayed_until))


def _record(message: "MessageTypeDef", arn: str) -> Event:
    """A message in the form in which Lambda passes it to a function."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message.get("Attributes", {})),
        "messageAttributes": _attributes(message),
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": arn.split(":")[3],
    }


def _attributes(message: "MessageTypeDef") -> Event:
    """The attributes of a message in the form in which Lambda passes them to a function."""
    found: Event = {}
    for name, value in message.get("MessageAttributes", {}).items():
        binary = value.get("BinaryValue")
        data = {"binaryValue": b64encode(binary).decode()} if binary is not None else {}
        text = {"stringValue": value["StringValue"]} if "StringValue" in value else {}
        found[name] = {**text, **data, "dataType": value["DataType"]}
    return found


def _failed(answer: object) -> set[str]:
    """The ids of the failed messages in a partial batch response."""
    match answer:
        case {"batchItemFailures": list(failures)}:
            return {str(failure["itemIdentifier"]) for failure in failures}
        case _:
            raise AssertionError(f"not a partial batch response: {answer}")
