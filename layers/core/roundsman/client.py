"""What an application calls: submit an order, cancel it, send it a signal, answer a callback, and
read its status.

    client = Client.of_stack("shop")
    client.submit({"orderId": "ord-1001", "lines": [...]})
    client.status("ord-1001")
    match client.wait("ord-1001", timeout=timedelta(minutes=5)):
        case OrderEnded(status): ...
        case OrderRejected(problems=problems): ...

The client sends messages to the stack's queues, and reads its tables; it stores nothing itself.
What it needs is the right to send to the SubmissionQueue (to submit, cancel and signal), to send to
an agent's reply queue (to answer), and to read TasksTable (for a status); to wait for an order,
also to read the ids in OrdersTable and the rejections in ControlTable; to answer a step of an order
without a token, also to read the plans in ControlTable.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, overload
from uuid import uuid4

import boto3

from roundsman.agents.callbacks import failed_reply, succeeded_reply, token_of_wait
from roundsman.aws.clients import CONFIG
from roundsman.aws.clock import now
from roundsman.aws.dynamodb.control import DynamoPlans
from roundsman.aws.dynamodb.rejections import DynamoRejections
from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.aws.errors import aws_errors
from roundsman.aws.outputs import describe_stack, nested_settings, reply_queue_of
from roundsman.definition.plan import StepPlan
from roundsman.errors import (
    CallRefused,
    InvalidToken,
    NotWaiting,
    PayloadError,
    PermanentError,
    Problem,
    RoundsmanError,
    SchemaTooNew,
    TransientError,
    TryAgain,
    UnreadableRecord,
)
from roundsman.model.checks import NAME
from roundsman.model.credit import credited_now
from roundsman.model.json import Json, canonical_json, parse_json, size_in_bytes
from roundsman.model.record_limits import LARGEST_SIGNAL
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import TASK_ID
from roundsman.wire.commands import SIGNAL_ID, SIGNAL_ID_WORDS
from roundsman.wire.limits import MESSAGE_LIMIT, wire_text
from roundsman.wire.messages import read_reply

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

__all__ = [
    "CallRefused",
    "Client",
    "InvalidCall",
    "InvalidToken",
    "OrderEnded",
    "OrderOpen",
    "OrderRejected",
    "OrderRemoved",
    "OrderStatus",
    "OrderUnknown",
    "PermanentError",
    "Problem",
    "SchemaTooNew",
    "TransientError",
    "TryAgain",
    "UnreadableRecord",
    "WaitResult",
]

LONGEST_REASON = 500  # characters of a cancellation's reason

FIRST_LOOK_AFTER = 0.25  # seconds; an order without slow steps ends within one or two
LONGEST_BETWEEN_LOOKS = 15.0  # seconds; an order that takes hours is read 240 times an hour
GROWTH = 1.5
"""By how much longer each interval between two looks is than the one before."""

MOST_SENT = 1_000
"""How many orders a client remembers to have sent, to know their rejections from earlier ones."""


class InvalidCall(RoundsmanError):
    """A call that cannot be made with these arguments or this configuration. Nothing was sent.

    The message gives the reason.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderStatus:
    """The state of an order. Instants are epoch ms."""

    order_id: str
    workflow: str
    state: TaskState
    reason: str | None
    """Why the task was archived, undone or cancelled; None for any other task."""
    steps: Mapping[str, ProcessState] = field(default_factory=dict)
    """The state of each step that has begun, by its name."""
    submitted_at: int
    complete_by: int
    """When the order must be complete, as known now. While a step is parked or awaits its result,
    it moves with the time."""
    ended_at: int | None
    """When the task ended; None while it is open."""
    version: int
    """The number of times that the record was stored. It rises with each change."""

    @property
    def ended(self) -> bool:
        """Whether the task is Completed, Undone, Cancelled or Archived."""
        return self.ended_at is not None


@dataclass(frozen=True, slots=True)
class OrderEnded:
    """The order has ended: its task is Completed, Undone, Cancelled or Archived."""

    status: OrderStatus


@dataclass(frozen=True, slots=True)
class OrderRemoved:
    """The order has ended, and the record of its task was removed after its retention.

    How it ended is not kept. To learn it, give the workflow a `retain_for`, or read statuses.
    """

    order_id: str


@dataclass(frozen=True, slots=True)
class OrderRejected:
    """Submission has rejected the event: there is no such order. The event is in the RejectedQueue.

    Submission keeps a rejection for a day.
    """

    order_id: str
    problems: tuple[Problem, ...]
    """What was wrong with the event, by its field; without a value of it."""
    rejected_at: int
    """Epoch ms."""


@dataclass(frozen=True, slots=True)
class OrderOpen:
    """The time is over, and the order has not ended. `status` is what was read last."""

    status: OrderStatus


@dataclass(frozen=True, slots=True)
class OrderUnknown:
    """The time is over, and the stack has neither the order nor a rejection of it.

    Its event may never have been sent, or may still wait in the SubmissionQueue.
    """

    order_id: str


WaitResult: TypeAlias = OrderEnded | OrderRemoved | OrderRejected | OrderOpen | OrderUnknown


class Client:
    """Calls one deployed stack.

    `outputs` are the outputs of the stack, by name: those that a method needs are enough. Clients
    of boto3 are made when they are needed, from the environment, unless they are passed.
    """

    def __init__(
        self,
        outputs: Mapping[str, str],
        *,
        sqs: "SQSClient | None" = None,
        dynamodb: "DynamoDBClient | None" = None,
        s3: "S3Client | None" = None,
    ) -> None:
        self.outputs: Mapping[str, str] = dict(outputs)
        self._sqs = sqs
        self._dynamodb = dynamodb
        self._s3 = s3
        self._sent: dict[str, str] = {}
        """The message of the last event of each order that this client has sent."""

    @classmethod
    def of_stack(cls, name: str) -> "Client":
        """Return a client of the stack with this name, in the account and region in force.

        Raises InvalidCall if there is no such stack, and TryAgain or CallRefused if CloudFormation
        cannot be asked.
        """
        with _aws_errors(f"reading the outputs of {name}"):
            found = describe_stack(boto3.client("cloudformation", config=CONFIG), name)
        if found is None:
            raise InvalidCall(f"There is no stack {name} in this account and region.")
        return cls(found.outputs)

    def submit(self, event: Mapping[str, Json]) -> str:
        """Send an order event to the SubmissionQueue, and return its order id.

        The event is described in docs/reference/messages.md. Submission validates it: an event that
        is invalid for its workflow goes to the RejectedQueue. An event that is sent twice is
        submitted once. Raises InvalidCall if the event has no usable `orderId`, is not JSON or is
        too large for SQS; TryAgain if it may not have been sent; CallRefused if AWS refuses it.
        """
        order_id = _checked_id(event.get("orderId"))
        try:
            body = canonical_json(event)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidCall(
                f"The event of {order_id} is not JSON: use text, finite numbers, True, False, "
                "None, lists and dicts, none of them in itself."
            ) from error
        try:
            parse_json(body)
        except ValueError as error:
            raise InvalidCall(f"The event of {order_id} is not JSON: {error}.") from error
        self._sent.pop(order_id, None)
        self._sent[order_id] = self.submit_text(body)
        if len(self._sent) > MOST_SENT:
            del self._sent[next(iter(self._sent))]
        return order_id

    def upload(self, order_id: str, data: bytes | BinaryIO) -> dict[str, Json]:
        """Store up to 50 MB for the order in the PayloadBucket, and return the reference to it.

        The event of the order, a signal to it, and an answer to one of its steps may have the
        reference in place of the data. A file is read from where it stands, piece by piece, and S3
        checks the hash of what it stores. The same data may be stored again: it has the same
        reference. Raises InvalidCall if the order id is invalid, the data is too large or text, or
        the stack has no bucket; TryAgain; CallRefused, also if the bucket is gone.
        """
        # Only an application with large data needs these modules.
        from roundsman.agents.payloads import uploaded
        from roundsman.aws.payloads import S3Payloads
        from roundsman.model.payloads import NO_BUCKET

        bucket = nested_settings(self.outputs).get("PayloadBucketName")
        if not bucket:
            raise InvalidCall(f"{NO_BUCKET}.")
        try:
            return uploaded(data, _checked_id(order_id), S3Payloads(bucket, self._s3))
        except PayloadError as error:
            raise InvalidCall(f"The data cannot be stored: {error}.") from error

    def submit_text(self, body: str) -> str:
        """Send a text to the SubmissionQueue as it is, and return the message id.

        Raises as `submit`, and InvalidCall for a text that is empty or too large for SQS.
        """
        size = len(body.encode("utf-8", "surrogatepass"))
        if not body.strip() or size > MESSAGE_LIMIT:
            raise InvalidCall(f"The event has {size} bytes; SQS accepts 1 to {MESSAGE_LIMIT}.")
        return self._send(self._output("SubmissionQueueUrl"), body, "sending the order event")

    def cancel(self, order_id: str, *, reason: str = "", undo: bool = True) -> None:
        """Ask to cancel the order: the task ends Cancelled.

        If `undo` is true, every effect that may have happened is undone first. The reason (at most
        500 characters) is shown in the task's history, so it must not name a customer. Raises
        InvalidCall if the order id is invalid or the reason is too long, TryAgain and CallRefused.
        """
        _checked_id(order_id)
        if len(reason) > LONGEST_REASON:
            raise InvalidCall(
                f"The reason has {len(reason)} characters; it may have at most {LONGEST_REASON}."
            )
        asked: dict[str, Json] = {"undo": undo} | ({"reason": reason} if reason else {})
        body = canonical_json({"orderId": order_id, "cancel": asked})
        self._send(self._output("SubmissionQueueUrl"), wire_text(body), "sending the cancellation")

    def signal(
        self, order_id: str, name: str, data: Json = None, *, signal_id: str | None = None
    ) -> str:
        """Send a signal to the order: the step that waits for one with this name is done.

        Returns the id of the signal.

        `data` (at most 4 KiB of JSON) is the result of the step. A signal may come before its step:
        it is kept for it. `signal_id` (1 to 64 ASCII characters without spaces), such as the id of
        a payment, makes it harmless to send the signal twice; None for a new one, and two signals
        with new ids are two, also if their data is the same. A signal that no step of the order can
        take, or can take any more, goes to the RejectedQueue.

        Raises InvalidCall if an argument is wrong, and TryAgain and CallRefused.
        """
        _checked_id(order_id)
        if not NAME.fullmatch(name):
            raise InvalidCall(
                "The name of a signal must be 1 to 40 characters of a-z, 0-9 and _, beginning with "
                "a letter."
            )
        if signal_id is not None and not SIGNAL_ID.fullmatch(signal_id):
            raise InvalidCall(f"The id of a signal must be {SIGNAL_ID_WORDS}.")
        given_id = str(uuid4()) if signal_id is None else signal_id
        signal: dict[str, Json] = {"name": name, "id": given_id, "data": data}
        try:
            body = canonical_json({"orderId": order_id, "signal": signal})
            parse_json(body)
            size = size_in_bytes(data)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidCall(f"The data of the signal to {order_id} is not JSON.") from error
        if size > LARGEST_SIGNAL:
            raise InvalidCall(
                f"The data of the signal has {size} bytes; it may have at most {LARGEST_SIGNAL}."
            )
        self._send(self._output("SubmissionQueueUrl"), wire_text(body), "sending the signal")
        return given_id

    @overload
    def answer(self, token: str, result: Json = None) -> None: ...
    @overload
    def answer(self, *, order_id: str, step: str, result: Json = None) -> bool: ...
    def answer(
        self,
        token: str | None = None,
        result: Json = None,
        *,
        order_id: str | None = None,
        step: str | None = None,
    ) -> bool | None:
        """Answer a callback: the step that waits for it is done, with this result.

        The wait is named by the callback token, or by the order and its step. With a token, nothing
        is read, and None is returned. With an order, the result is whether the step still waited,
        as read just before sending; False if the wait was ended with its order: the answer is
        stored, and counts if the order is resubmitted.

        Answering twice is harmless. Raises InvalidToken, InvalidCall if the result is not JSON or
        too long (with an order, longer than its plan allows), the step does not wait or the stack
        has no such agent, TryAgain, CallRefused, and as `status`.
        """
        token, waits, planned = self._wait(token, order_id, step)
        try:
            body = succeeded_reply(token, result, clock=now)
        except ValueError as error:
            raise InvalidCall(f"The result cannot be sent: {str(error).rstrip('.')}.") from error
        why = None if planned is None else planned.too_long(size_in_bytes(read_reply(body).result))
        if why is not None:
            raise InvalidCall(f"The result cannot be sent: {why}.")
        self._reply(body)
        return waits

    @overload
    def fail(self, token: str, error: PermanentError | TransientError) -> None: ...
    @overload
    def fail(self, *, order_id: str, step: str, error: PermanentError | TransientError) -> None: ...
    def fail(
        self,
        token: str | None = None,
        error: PermanentError | TransientError | None = None,
        *,
        order_id: str | None = None,
        step: str | None = None,
    ) -> None:
        """Answer a callback: the step that waits for it has failed.

        The wait is named as in `answer`. After a PermanentError the step fails for good; after a
        TransientError it is retried. Raises InvalidToken, InvalidCall if the step does not wait, as
        read just before sending, or the stack has no such agent, TypeError without an error,
        TryAgain, CallRefused, and as `status`.
        """
        if error is None:
            raise TypeError("an error must be given")
        token, waits, _ = self._wait(token, order_id, step)
        if waits is False:
            raise InvalidCall(
                f"The wait of {step} of {order_id} was ended, as read just before sending: it has "
                "failed."
            )
        self._reply(failed_reply(token, error, clock=now))

    def status(self, order_id: str) -> OrderStatus | None:
        """Return the state of the order; None if it has no task.

        An order has no task until submission has read its event, if its event was rejected, and
        after its retention is over. Raises InvalidCall if the order id is invalid, TryAgain,
        CallRefused, SchemaTooNew if a newer release wrote the record, and UnreadableRecord if it is
        not a task.
        """
        _checked_id(order_id)
        at = now()
        task = self._store().load(order_id, at)
        if task is None:
            return None
        return OrderStatus(
            order_id=order_id,
            workflow=task.workflow,
            state=task.state,
            reason=task.ending.why if task.ending else None,
            steps={name: record.process_state for name, record in task.steps.items()},
            submitted_at=task.created_at,
            complete_by=credited_now(task, at).complete_by,
            ended_at=task.ended_at,
            version=task.version,
        )

    def wait(
        self,
        order_id: str,
        *,
        timeout: timedelta,
        message_id: str | None = None,
        on_change: Callable[[OrderStatus], object] = lambda _status: None,
        sleep: Callable[[float], object] = time.sleep,
        moment: Callable[[], float] = time.monotonic,
    ) -> WaitResult:
        """Wait for at most `timeout` until it is known what became of the order, and return it.

        That is OrderEnded with its state; OrderRemoved if it has ended and its record is gone;
        OrderRejected if its event was rejected and no order has its id. When the time is over:
        OrderOpen with the state that was read last, or OrderUnknown if nothing is known of the
        order.

        `message_id` is the message of the event, as `submit_text` returns it: only a rejection of
        that message counts. If it is None, it is that of the last event of the order that this
        client has sent by `submit`; if there is none, every rejection of the last day counts.

        The records are read at growing intervals, from a quarter of a second to 15 s. `on_change`
        is called with each state that differs from the one before. `sleep` takes seconds, and
        `moment` is a monotonic clock in seconds.

        Raises TypeError if `timeout` is not a timedelta, ValueError if it is negative, InvalidCall
        if the outputs lack a table, and as `status`; TryAgain only if the last read of the waiting
        time has failed so.
        """
        if not isinstance(timeout, timedelta):
            raise TypeError(f"timeout must be a timedelta, not {timeout!r}")
        if timeout < timedelta(0):
            raise ValueError(f"timeout must not be negative: {timeout}")
        end, interval = moment() + timeout.total_seconds(), FIRST_LOOK_AFTER
        message_id = message_id or self._sent.get(order_id)
        seen: OrderStatus | None = None
        while True:
            left = end - moment()
            try:
                found = self._found(order_id, message_id, seen)
            except TryAgain:
                if left <= 0:
                    raise
                found = seen
            status = found.status if isinstance(found, OrderEnded) else found
            if isinstance(status, OrderStatus) and (seen is None or status.version != seen.version):
                on_change(status)
            if isinstance(found, OrderEnded | OrderRemoved | OrderRejected):
                return found
            if left <= 0:
                return OrderUnknown(order_id) if found is None else OrderOpen(found)
            seen = found
            sleep(min(interval, left))
            interval = min(interval * GROWTH, LONGEST_BETWEEN_LOOKS)

    def _found(
        self, order_id: str, message_id: str | None, seen: OrderStatus | None
    ) -> OrderEnded | OrderRemoved | OrderRejected | OrderStatus | None:
        """What is known of the order now: its end, or the state of the open task; None if nothing.

        `seen` is its state as it was read before. An order counts before a rejection.
        """
        status = self.status(order_id)
        if status is None and seen is None:
            rejected = self._rejection(order_id, message_id)
            self._output("OrdersTableName")  # raises InvalidCall
            if not self._store().has_order(order_id):
                return rejected
            status = self.status(order_id)  # order and task are stored together: perhaps just now
        if status is None:
            return OrderRemoved(order_id)
        return OrderEnded(status) if status.ended else status

    def _rejection(self, order_id: str, message_id: str | None) -> OrderRejected | None:
        rejections = DynamoRejections(
            self._tables(), control_table=self._output("ControlTableName")
        )
        found = (
            rejections.of_order(order_id, now())
            if message_id is None
            else rejections.of_message(message_id, now())
        )
        return None if found is None else OrderRejected(order_id, found.problems, found.rejected_at)

    def _wait(
        self, token: str | None, order_id: str | None, step: str | None
    ) -> tuple[str, bool | None, StepPlan | None]:
        """Return a token of the wait, whether the step waits, and the step in the task's plan.

        The last two are None if nothing was read.
        """
        if token is not None and order_id is None and step is None:
            return token, None, None
        if token is not None or order_id is None or step is None:
            raise InvalidCall("Give either a token, or an order id and a step.")
        task = self._store().load(_checked_id(order_id), now())
        if task is None:
            raise InvalidCall(f"There is no order {order_id}.")
        plan = self._plans().plan(task.plan)
        try:
            found = token_of_wait(task, plan, step)
        except NotWaiting as error:
            raise InvalidCall(f"{error}, as read just before sending.") from error
        planned = None if plan is None else plan.for_task(task).steps.get(step)
        return found, task.step(step).waiting, planned

    def _reply(self, body: str) -> None:
        agent = read_reply(body).agent
        queue = reply_queue_of(self.outputs, agent)
        if queue is None:
            raise InvalidCall(f"The stack has no reply queue of the agent {agent[:50]!r}.")
        self._send(queue, wire_text(body), "sending the answer")

    def _send(self, queue: str, body: str, doing: str) -> str:
        with _aws_errors(doing):
            if self._sqs is None:
                self._sqs = boto3.client("sqs", config=CONFIG)
            return self._sqs.send_message(QueueUrl=queue, MessageBody=body)["MessageId"]

    def _tables(self) -> "DynamoDBClient":
        if self._dynamodb is None:
            with _aws_errors("connecting to DynamoDB"):
                self._dynamodb = boto3.client("dynamodb", config=CONFIG)
        return self._dynamodb

    def _plans(self) -> DynamoPlans:
        return DynamoPlans(
            self._tables(), control_table=self._output("ControlTableName"), clock=now
        )

    def _store(self) -> DynamoStore:
        return DynamoStore(
            self._tables(),
            tasks_table=self._output("TasksTableName"),
            orders_table=self.outputs.get("OrdersTableName", ""),
            history_table=self.outputs.get("HistoryTableName", ""),
        )

    def _output(self, name: str) -> str:
        try:
            return self.outputs[name]
        except KeyError:
            raise InvalidCall(
                f"The outputs have no {name}. Are they the outputs of a stack of Roundsman?"
            ) from None


def _checked_id(order_id: object) -> str:
    """Return the order id. Raises InvalidCall if it is not one."""
    if not isinstance(order_id, str) or not TASK_ID.fullmatch(order_id):
        raise InvalidCall("orderId must be 1 to 128 characters of A-Z, a-z, 0-9 and . _ ~ -")
    return order_id


@contextmanager
def _aws_errors(doing: str) -> Iterator[None]:
    """Translate errors as `aws_errors`, and an invalid endpoint or region to InvalidCall.

    boto3 raises ValueError for an endpoint that is not a URL.
    """
    with aws_errors(doing):
        try:
            yield
        except ValueError as error:
            raise InvalidCall(f"{doing}: {str(error).rstrip('.')}.") from error
