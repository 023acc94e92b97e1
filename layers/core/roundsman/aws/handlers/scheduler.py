"""The Lambda function of the scheduler: parses and handles each message, and logs the result."""

import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType

from roundsman.aws.clients import READ_TIMEOUT, Invocation, begin_invocation
from roundsman.aws.clock import now
from roundsman.aws.cold_start import ends_the_start
from roundsman.aws.handlers.wiring import parts_of, report_owed
from roundsman.aws.observability import (
    count,
    log_keys,
    log_measured,
    logger,
    observed,
    step_keys,
)
from roundsman.aws.settings import SchedulerSettings
from roundsman.aws.sqs.batch import Finish, Message, handle_batch
from roundsman.aws.sqs.dead_letters import DeadLetters
from roundsman.aws.sqs.throttled import ThrottledMessages
from roundsman.aws.tracing import Tracer
from roundsman.engine.newly_owed import PARTLY_UNDONE, end_status
from roundsman.engine.restored import decisions_on
from roundsman.model.events import Outcome, attempt_of
from roundsman.model.states import TaskState
from roundsman.model.task import PERFORM
from roundsman.ports import PayloadStore
from roundsman.scheduler.arrived import Arrived, SchedulerMessage, is_by_operator
from roundsman.scheduler.scheduler import Handled, Scheduler, newly_held, outcome_of
from roundsman.scheduler.sender_check import SenderCheck
from roundsman.wire.commands import START, Command, read_command
from roundsman.wire.messages import Reply, read_reply

NO_TIMES: Mapping[str, int] = MappingProxyType({})
_TIMES = {Outcome.SUCCEEDED: "ms", Outcome.TRANSIENT: "failed_ms", Outcome.PERMANENT: "failed_ms"}


def scheduler_handler() -> Callable[[dict[str, object], Invocation], object]:
    """Return the entry point of the Lambda function. Its first call reads the environment.

    It handles a batch of commands or replies, and returns a partial batch response that lists the
    messages to deliver again.
    """
    made = cache(lambda: batch_handler(SchedulerSettings.from_env()))

    @observed
    def handler(event: dict[str, object], context: Invocation) -> object:
        begin_invocation(context)
        return made()(event)

    return handler


@ends_the_start
def batch_handler(settings: SchedulerSettings) -> Callable[[dict[str, object]], object]:
    """Create the handler of batches from the SchedulerQueue and the agents' reply queues."""
    parts = parts_of(settings)
    scheduler = Scheduler(
        tasks=parts.store,
        orders=parts.store,
        plans=parts.plans,
        board=parts.board,
        groups=parts.groups,
        outbox=parts.outbox,
        clock=now,
        jitter=random.random,
        instance=secrets.token_hex(2),
        search_secret=parts.search_secret,
        limits=parts.limits,
        payloads=_payloads_in(settings.payload_bucket),
    )
    senders = SenderCheck(settings.senders, outbox=parts.outbox, clock=now)
    commands = settings.scheduler_queue_url.rpartition("/")[2]

    def read(message: Message) -> SchedulerMessage:
        return read_command(message.body) if message.queue == commands else read_reply(message.body)

    def about(message: Message) -> str | None:
        found = read(message)
        return None if is_by_operator(found) else found.task_id

    def arrived(message: Message) -> Arrived:
        found = read(message)
        if isinstance(found, Command):
            found, foreign = senders.checked(found, message.sender)
            if foreign:
                count("ForeignCommands")
                extra = {"event": found.kind, "sender": message.sender, "task_id": found.task_id}
                logger().warning("a foreign principal sent the command", extra=extra)
        return Arrived(found, message.message_id, message.sender, message.sent_at)

    def handle(messages: Sequence[Message]) -> list[Finish]:
        each = [arrived(message) for message in messages]
        with log_keys(**_keys(*(one.message for one in each))):
            results = scheduler.handle(each)
        ends = zip(each, results, strict=True)
        return [partial(_finish, parts.tracer, one.message, result) for one, result in ends]

    dead_letters = DeadLetters(parts.sqs, gives_up_after=settings.most_receives)
    throttled = ThrottledMessages(parts.sqs, settings.visibility, random.random)
    return lambda event: handle_batch(
        event,
        handle=handle,
        about=about,
        outbox=parts.outbox,
        send_buffer=parts.outbox.send_buffer,
        queue_url_beside=settings.scheduler_queue_url,
        dead_letters=dead_letters,
        tracer=parts.tracer,
        throttled=throttled,
    )


def _payloads_in(bucket: str | None) -> PayloadStore | None:
    """The store of payloads in this bucket; None without a bucket."""
    if bucket is None:
        return None
    from roundsman.aws.payloads import S3Payloads  # late: most stacks have no bucket

    return S3Payloads(bucket, read_timeout=READ_TIMEOUT)


def _keys(*messages: SchedulerMessage) -> dict[str, str | int | None]:
    """The fields of each line that is logged while these messages about one task are handled."""
    first = messages[0]
    keys: dict[str, str | int | None] = {"task_id": first.task_id}
    if len(messages) == 1 and isinstance(first, Reply):
        keys |= {**step_keys(first.step), "attempt": attempt_of(first.lock)}
    return keys


def _finish(tracer: Tracer, message: SchedulerMessage, result: Handled | Exception) -> None:
    """Log what became of a message, and add its metrics. Raises the exception that it raised."""
    if isinstance(message, Command):
        tracer.note("command", message.kind)
        if isinstance(result, Exception):
            raise result
        with log_keys(**_keys(message)):
            _report(message.kind, result)
    else:
        _finish_reply(tracer, message, result)


def _finish_reply(tracer: Tracer, reply: Reply, result: Handled | Exception) -> None:
    if isinstance(result, Handled) and result.task is not None:
        task = result.task
        tracer.order(task.task_id, task.created_at, task.workflow)
        tracer.note("state", task.state.value)
    for name, value in (
        ("step", reply.step),
        ("agent", reply.agent),
        ("attempt", attempt_of(reply.lock)),
        ("operation", reply.operation),
        ("outcome", reply.outcome.value),
    ):
        tracer.note(name, value)
    if isinstance(result, Exception):
        raise result
    with log_keys(**_keys(reply)):
        outcome = None if reply.outcome is Outcome.SUCCEEDED else f"reply {reply.outcome}"
        _report(outcome, result, _times(reply, result, now()))


def _times(reply: Reply, handled: Handled, at: int) -> dict[str, int]:
    """The time in ms from the request of an attempt to its reply, as a field for the log.

    It is `ms` for an attempt that succeeded and `failed_ms` for one that failed. Empty for every
    other reply: one that ends no attempt, one to an attempt that was over, and one of an undo.
    """
    name, before = _TIMES.get(reply.outcome), handled.before
    if name is None or before is None or reply.operation != PERFORM:
        return {}
    record = before.step(reply.step)
    if not record.under_way or record.locked_by != reply.lock or record.started_at is None:
        return {}
    return {name: max(0, at - record.started_at)}


def _report(event: str | None, handled: Handled, times: Mapping[str, int] = NO_TIMES) -> None:
    """Log a result, whose fields are metrics: see the metric filters in stacks/engine.yaml.

    `event` is None for a reply that an attempt succeeded.
    """
    task = handled.task
    fields: dict[str, object] = {"event": event} if event else {}
    is_ordinary = event in (None, START)
    fields |= outcome_of(handled, with_locks=not is_ordinary)
    ended = (
        task is not None and handled.before is not None and task.ended and not handled.before.ended
    )
    if task is not None and (times or ended):
        fields |= {"workflow": task.workflow, **times}
        if ended and end_status(task) == PARTLY_UNDONE:
            count("TasksPartlyUndone")  # its completion was counted before
        elif ended:
            # One value per ended task, for the cost of each workflow's orders: `roundsman cost`.
            fields["decisions"] = decisions_on(task)
            if task.state is not TaskState.COMPLETED:
                count(f"Tasks{task.state}")
        log_measured("decided", fields, with_service=ended)
    else:
        logger().info("decided", extra=fields)
    report_owed(handled.delivered)
    if handled.unnoted is not None:
        logger().warning(
            "an undone order was not counted in its failure group",
            extra={"reason": handled.unnoted},
        )
    for _ in newly_held(handled):
        count("StepsHeld")
