"""The Lambda function of the scheduler: parses and handles each message, and logs the result."""

import random
import secrets
from collections.abc import Callable
from functools import cache

from roundsman.aws.clock import now
from roundsman.aws.cold_start import ends_the_start
from roundsman.aws.handlers.wiring import report_owed, scheduler_parts
from roundsman.aws.observability import count, count_by_workflow, log_keys, logger, observed
from roundsman.aws.settings import SchedulerSettings
from roundsman.aws.sqs.batch import Message, handle_batch
from roundsman.aws.sqs.dead_letters import DeadLetters
from roundsman.model.events import Outcome, attempt_of
from roundsman.scheduler.scheduler import Handled, Scheduler, newly_held, outcome_of
from roundsman.wire.commands import read_command
from roundsman.wire.messages import read_reply


def scheduler_handler() -> Callable[[dict[str, object], object], object]:
    """Return the entry point of the Lambda function. Its first call reads the environment.

    It handles a batch of commands or replies, and returns a partial batch response that lists the
    messages to deliver again.
    """
    made = cache(lambda: batch_handler(SchedulerSettings.from_env()))

    @observed
    def handler(event: dict[str, object], _context: object) -> object:
        return made()(event)

    return handler


@ends_the_start
def batch_handler(settings: SchedulerSettings) -> Callable[[dict[str, object]], object]:
    """Create the handler of batches from the SchedulerQueue and the agents' reply queues."""
    parts = scheduler_parts(settings)
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
    )
    commands = settings.scheduler_queue_url.rpartition("/")[2]

    def handle(message: Message) -> None:
        if message.queue == commands:
            command = read_command(message.body)
            with log_keys(task_id=command.task_id):
                _report(command.kind, scheduler.command(command, message.message_id))
        else:
            reply = read_reply(message.body)
            attempt = attempt_of(reply.lock)
            with log_keys(task_id=reply.task_id, step=reply.step, attempt=attempt):
                said = None if reply.outcome is Outcome.SUCCEEDED else f"reply {reply.outcome}"
                _report(said, scheduler.reply(reply, message.message_id))

    dead_letters = DeadLetters(parts.sqs)
    return lambda event: handle_batch(
        event,
        handle=handle,
        outbox=parts.outbox,
        send_buffer=parts.outbox.send_buffer,
        sqs=parts.sqs,
        queue_url_beside=settings.scheduler_queue_url,
        dead_letters=dead_letters,
    )


def _report(event: str | None, handled: Handled) -> None:
    """Log a result and add its metrics. `event` is None for a reply that an attempt succeeded."""
    task = handled.task
    named = {"event": event} if event else {}
    logger().info("decided", extra={**named, **outcome_of(handled)})
    report_owed(handled.delivered)
    if handled.unnoted is not None:
        logger().warning(
            "an undone order was not counted in its failure group",
            extra={"reason": handled.unnoted},
        )
    for _ in newly_held(handled):
        count("StepsHeld")
    if task is not None and handled.before is not None and task.ended and not handled.before.ended:
        count(f"Tasks{task.state}")
        # One value per ended task, for the cost of each workflow's orders: `roundsman cost`.
        count_by_workflow("TaskDecisions", task.workflow, task.version)
