"""Handles the SQS messages of one invocation; the failure of one does not affect the others.

The messages that they send are buffered and sent together (`roundsman.aws.sqs.send_buffer`). An
incoming message is done once SQS has accepted all messages that it caused. A message that can never
be handled is a rejected message: it goes to the RejectedQueue with its problems, and is
acknowledged. A message that may succeed later is reported as failed and redelivered.

Messages about one thing are handled together: those of one task are stored by one write. What they
send is attributed to all of them.

A poison message, which kills the process, also loses the batch response, so that every message of
the batch is redelivered. On a redelivery of several messages, what each message caused is sent, and
the message is deleted, as soon as it is handled. Redeliveries go through the batch forwards and
backwards in turn. After one in each direction, all messages before and after the poison message are
done, and it goes to its dead-letter queue alone. On a redelivery each message is handled by itself.

A message that failed its last delivery is sent to its dead-letter queue with the reason, and then
acknowledged (`roundsman.aws.sqs.dead_letters`). A message that failed because AWS throttled a call
comes again later than others (`roundsman.aws.sqs.throttled`).
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from roundsman.aws.errors import aws_errors
from roundsman.aws.observability import count, logger, where
from roundsman.aws.sqs.dead_letters import DeadLetters
from roundsman.aws.sqs.records import SqsRecord, entries_of, id_of, read_record
from roundsman.aws.sqs.send_buffer import SendBuffer
from roundsman.aws.sqs.throttled import ThrottledMessages
from roundsman.aws.tracing import OFF, Tracer
from roundsman.errors import CallRefused, InvalidMessage, Throttled, TryAgain
from roundsman.model.instants import SECOND
from roundsman.ports import Outbox

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BatchAnswer: TypeAlias = dict[str, list[dict[str, str]]]
"""Lambda's partial batch response: the messages to redeliver. Lambda deletes all others."""

LONGEST_WAIT = SECOND
"""ms that messages may stay in the send buffer while the next ones are handled. A batch normally
takes less. If a store hangs, it delays only what was decided within this time."""


@dataclass(frozen=True, slots=True)
class Message:
    """One SQS message, as it is passed to a handler."""

    body: str
    message_id: str
    """Stays the same on a redelivery."""
    queue: str
    """The queue's name."""
    redelivered: bool = False
    """The message was received before. The result of the earlier delivery is unknown."""
    sender: str | None = None
    """The principal that sent it, as AWS authenticated it; None if it is not known."""
    sent_at: int | None = None
    """When it was sent, in epoch ms; None if it is not known."""


Finish: TypeAlias = Callable[[], None]
"""Ends the handling of one message, for example by logging it. It raises InvalidMessage for a
message that can never be handled, and any other exception for one that may succeed later."""

HandleTogether: TypeAlias = Callable[[Sequence[Message]], Sequence[Finish]]
"""Handles messages about one thing, in the order in which they came, and returns the end of each.
If it raises, it has handled none of them."""


def one_by_one(handle: Callable[[Message], None]) -> HandleTogether:
    """Return what handles each message alone, by calling `handle`."""
    return lambda messages: [partial(handle, message) for message in messages]


def handle_batch(
    event: Mapping[str, object],
    *,
    handle: HandleTogether,
    outbox: Outbox,
    send_buffer: SendBuffer,
    queue_url_beside: str,
    dead_letters: DeadLetters,
    about: Callable[[Message], str | None] = lambda _: None,
    tracer: Tracer = OFF,
    throttled: ThrottledMessages | None = None,
) -> BatchAnswer:
    """Handle each message, and return which of them must be redelivered.

    `about` returns the id of what a message is about, or None for one that is handled alone. So is
    one for which it raises. Messages with the same id are handled together, at the place of the
    first, unless one of the batch was received before. `queue_url_beside` is the URL of any queue
    in the same account and region: the URL of a message's own queue follows from it and from the
    queue's name. Without `throttled`, a message that AWS throttled comes again as any other.
    """
    entries = entries_of(event)
    if not entries:
        logger().warning("the event has no messages")
        return {"batchItemFailures": []}
    read = [(entry, read_record(entry)) for entry in entries]
    records = [record for _, record in read if record is not None]
    came_before = max((record.receives for record in records), default=1)
    crashed = came_before > 1 and len(entries) > 1
    if crashed:
        records.sort(key=lambda record: record.message_id, reverse=came_before % 2 == 1)
    batch = _Batch(
        together=handle,
        outbox=outbox,
        send_buffer=send_buffer,
        dead_letters=dead_letters,
        delete=partial(_delete, dead_letters.sqs) if crashed else None,
        beside=queue_url_beside.rpartition("/")[0],
        tracer=tracer,
    )
    groups = [[record] for record in records] if came_before > 1 else _groups(records, about)
    with send_buffer.opened():
        for group in groups:
            batch.handle(group)
            if crashed:
                batch.finish()
        batch.finish()
    if throttled is not None and batch.throttled:
        queue = batch.throttled[0].queue  # all messages of an event are of one queue
        throttled.hide(batch.throttled, f"{batch.beside}/{queue}")
    tracer.send()
    failed = batch.failed + _never_made([entry for entry, record in read if record is None])
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _groups(
    records: Sequence[SqsRecord], about: Callable[[Message], str | None]
) -> list[list[SqsRecord]]:
    """The messages in groups that are handled together."""
    if len(records) == 1:
        return [list(records)]
    groups = dict[str | int, list[SqsRecord]]()
    for number, record in enumerate(records):
        try:
            found = about(_message(record))
        except Exception:  # noqa: BLE001  # when it is handled, the message raises the same
            found = None
        groups.setdefault(number if found is None else found, []).append(record)
    return list(groups.values())


@dataclass(kw_only=True, eq=False)
class _Batch:
    """The state of a batch while it is handled.

    `_handled` contains the messages that were handled but whose outgoing messages are not yet
    sent, each with its exception or None. `delete` is set if each message must be deleted as soon
    as it is handled.
    """

    together: HandleTogether
    outbox: Outbox
    send_buffer: SendBuffer
    dead_letters: DeadLetters
    delete: Callable[[str, SqsRecord], None] | None
    beside: str
    tracer: Tracer
    failed: list[str] = field(default_factory=list, init=False)
    throttled: list[SqsRecord] = field(default_factory=list, init=False)
    _handled: list[tuple[SqsRecord, Exception | None]] = field(default_factory=list, init=False)

    def handle(self, records: Sequence[SqsRecord]) -> None:
        """Handle messages about one thing; the trace of the first one shows what was done.

        Raises no Exception; it records the failures instead.
        """
        self.send_buffer.flush_what_waited(LONGEST_WAIT)
        self.send_buffer.attribute_to(*(record.message_id for record in records))
        ends = deque[Finish]()

        def handle_all() -> None:
            ends.extend(self.together([_message(record) for record in records]))
            ends.popleft()()

        def not_handled() -> None:
            raise problem or TryAgain("the messages that came with it were not handled")

        self._handle_by(records[0], handle_all)
        problem = self._handled[-1][1]
        for record in records[1:]:
            self._handle_by(record, ends.popleft() if ends else not_handled)

    def _handle_by(self, record: SqsRecord, handle: Callable[[], None]) -> None:
        """Handle one message by calling `handle`. Raises no Exception."""
        try:
            self._handle_or_reject(record, handle)
        except Exception as problem:  # noqa: BLE001  # it must not affect the other messages
            _log_failure(record, problem)
            self._handled.append((record, problem))
        else:
            self._handled.append((record, None))

    def finish(self) -> None:
        """Send all buffered messages; every handled message is then done or has failed."""
        self.send_buffer.flush()
        for record, problem in self._handled:
            unsent = self.send_buffer.problem_of(record.message_id)
            if problem is None and unsent is not None:
                _log_failure(record, unsent)
            self._finish_one(record, problem or unsent)
        self._handled.clear()

    def _handle_or_reject(self, record: SqsRecord, handle: Callable[[], None]) -> None:
        try:
            with self.tracer.message(record.queue, record.message_id, record.trace):
                handle()
        except InvalidMessage as problem:
            self.outbox.reject(record.queue, record.body, problem.problems)
            count("RejectedMessages")
            # Only the number: the problems, and even the names of fields, quote the input.
            extra = {**_which(record), "problems": len(problem.problems)}
            logger().warning("message rejected", extra=extra)

    def _finish_one(self, record: SqsRecord, problem: Exception | None) -> None:
        url = f"{self.beside}/{record.queue}"
        if problem is not None and not self._is_put_aside(record, url, problem):
            self.failed.append(record.message_id)
            if isinstance(problem, Throttled):
                self.throttled.append(record)
        elif self.delete is not None:
            self.delete(url, record)

    def _is_put_aside(self, record: SqsRecord, url: str, problem: Exception) -> bool:
        try:
            return self.dead_letters.take(record, url, problem)
        except Exception as odd:  # noqa: BLE001  # SQS still moves it; the others are not affected
            _log_failure(record, odd)
            return False


def _message(record: SqsRecord) -> Message:
    return Message(
        record.body,
        record.message_id,
        record.queue,
        record.receives > 1,
        record.sender,
        record.number("SentTimestamp", 0) or None,
    )


def _log_failure(record: SqsRecord, problem: Exception) -> None:
    if isinstance(problem, TryAgain):
        extra = {**_which(record), "why": str(problem)}
        logger().warning("message not handled; it will be redelivered", extra=extra)
        return
    count("HandlerErrors")
    found = {**_which(record), **where(problem)}
    logger().error("handler failed; the message will be redelivered", extra=found)


def _delete(sqs: "SQSClient", url: str, record: SqsRecord) -> None:
    """Delete a handled message. If this fails, the batch response still acknowledges it."""
    try:
        with aws_errors("deleting a handled message"):
            sqs.delete_message(QueueUrl=url, ReceiptHandle=record.receipt_handle)
    except (TryAgain, CallRefused) as problem:
        logger().warning(
            "handled message not deleted early", extra={**_which(record), "why": str(problem)}
        )


def _never_made(broken: list[object]) -> list[str]:
    """The ids of the entries that are not SQS messages; entries without an id are left out."""
    if broken:
        count("HandlerErrors", len(broken))
        logger().error(
            "the event has entries that are not SQS messages", extra={"how_many": len(broken)}
        )
    return [message_id for entry in broken if (message_id := id_of(entry)) is not None]


def _which(record: SqsRecord) -> dict[str, str]:
    return {"queue": record.queue, "message_id": record.message_id}
