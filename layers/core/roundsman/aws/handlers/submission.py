"""The Lambda function of submission: stores an order and its task for each order event."""

import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, cast

from roundsman.aws.clients import Invocation, begin_invocation
from roundsman.aws.clock import now
from roundsman.aws.cold_start import ends_the_start
from roundsman.aws.handlers.wiring import report_owed, submission_parts
from roundsman.aws.observability import count, log_keys, log_measured, logger, observed, where
from roundsman.aws.settings import SubmissionSettings
from roundsman.aws.sqs.batch import Message, handle_batch, one_by_one
from roundsman.aws.sqs.dead_letters import DeadLetters
from roundsman.aws.sqs.throttled import ThrottledMessages
from roundsman.definition.workflow import Workflow
from roundsman.errors import CallRefused, RejectedOrder, TryAgain
from roundsman.model.json import Json
from roundsman.ports import PlanStore
from roundsman.submission.events import EventReader
from roundsman.submission.reply_queues import usable_reply_queue
from roundsman.submission.submission import (
    CancelAsked,
    SignalSent,
    Submission,
    Submitted,
    ValidOrder,
)
from roundsman.wire.messages import rejected_status_body

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def submission_handler(
    workflows: Mapping[str, Workflow],
) -> Callable[[dict[str, object], Invocation], object]:
    """Return the entry point of the Lambda function. Its first call reads the environment.

    It handles a batch of order events, cancel events and signals, and returns a partial batch
    response that lists the messages to deliver again. Invoked directly, it answers which plan a
    workflow has (`roundsman.wire.newest_plan`). `workflows` are those that an order may run, by
    name; an order that names none runs the first.
    """
    made = cache(lambda: batch_handler(SubmissionSettings.from_env(), EventReader(workflows)))

    @observed
    def handler(event: dict[str, object], context: Invocation) -> object:
        begin_invocation(context)
        return made()(event)

    return handler


@ends_the_start
def batch_handler(
    settings: SubmissionSettings, events: EventReader
) -> Callable[[dict[str, object]], object]:
    """Create the handler of batches from the SubmissionQueue."""
    parts = submission_parts(settings)
    submission = Submission(
        tasks=parts.store,
        plans=parts.plans,
        outbox=parts.outbox,
        clock=now,
        shards=settings.due_shards,
        order_retention=settings.order_retention,
    )

    def problem_of(url: str) -> str | None:
        return usable_reply_queue(url, settings.scheduler_queue_url, settings.reply_queue_prefix)

    def handle(message: Message) -> None:
        try:
            asked = events.read(message.body, now(), problem_of)
            with log_keys(task_id=asked.order_id):
                if isinstance(asked, ValidOrder):
                    _submit(asked)
                else:
                    parts.tracer.note("outcome", _pass_on(submission, asked, message))
        except RejectedOrder as rejected:
            _send_rejected_status(rejected)
            _keep_rejection(rejected, message.message_id, parts.dynamodb, settings.control_table)
            raise

    def _submit(order: ValidOrder) -> None:
        submitted = submission.submit(order)
        parts.tracer.note("outcome", "accepted" if submitted.created else "repeated")
        _log_order(submitted)
        report_owed(submitted.delivered)

    def _send_rejected_status(rejected: RejectedOrder) -> None:
        if rejected.reply_to is None:
            return
        try:
            parts.outbox.send_status(rejected.reply_to, rejected_status_body(rejected, now()))
        except TryAgain:
            logger().warning("rejected status not sent", extra={"order_id": rejected.order_id})

    dead_letters = DeadLetters(parts.sqs, gives_up_after=settings.most_receives)
    throttled = ThrottledMessages(parts.sqs, settings.visibility, random.random)

    def handle_event(event: dict[str, object]) -> object:
        if "Records" not in event:
            return _answer(event, events, parts.plans)
        return handle_batch(
            event,
            handle=one_by_one(handle),
            outbox=parts.outbox,
            send_buffer=parts.outbox.send_buffer,
            queue_url_beside=settings.scheduler_queue_url,
            dead_letters=dead_letters,
            tracer=parts.tracer,
            throttled=throttled,
        )

    return handle_event


def _pass_on(submission: Submission, asked: CancelAsked | SignalSent, message: Message) -> str:
    """Pass a cancellation or a signal on to the scheduler; returns what was done, in words."""
    since = message.sent_at if message.redelivered else None
    if isinstance(asked, CancelAsked):
        submitted = submission.cancel(asked, message.message_id, message.sender, waited_since=since)
        count("CancellationsPassedOn")
        logger().info("cancellation", extra={"reason": submitted.reason})
        return "cancellation passed on"
    submitted = submission.signal(asked, message.message_id, message.sender, waited_since=since)
    count("SignalsPassedOn")
    if asked.id is None:
        count("SignalsWithoutId")
    logger().info("signal", extra={"reason": submitted.reason, "has_id": asked.id is not None})
    return "signal passed on"


def _keep_rejection(
    rejected: RejectedOrder, message_id: str, dynamodb: "DynamoDBClient", control_table: str
) -> None:
    """Keep it for whoever waits for the order. Best effort: the rejected message has it all."""
    if rejected.order_id is None or not rejected.is_order:
        return
    # Only a rejection needs these modules: they must not make a cold start longer.
    from roundsman.aws.dynamodb.rejections import DynamoRejections
    from roundsman.submission.rejections import Rejection

    rejection = Rejection(rejected.order_id, message_id, now(), rejected.problems)
    try:
        DynamoRejections(dynamodb, control_table=control_table).keep(rejection)
    except (TryAgain, CallRefused) as error:
        logger().warning("rejection not kept", extra=where(error))


def _log_order(submitted: Submitted) -> None:
    if submitted.created:  # the metric OrdersAccepted: see stacks/engine.yaml
        log_measured("order", {"reason": submitted.reason})
    else:
        count("OrdersRepeated")
        logger().info("order", extra={"reason": submitted.reason})


def _answer(event: dict[str, object], events: EventReader, plans: PlanStore) -> dict[str, Json]:
    """Answer an operator who invoked the function. Raises InvalidMessage for any other event."""
    # Only an operator needs these modules: they must not make a cold start longer.
    from roundsman.submission.newest_plan import answer_question
    from roundsman.wire.newest_plan import QUESTION, read_question

    question = read_question(cast("Json", event.get(QUESTION)))
    found = answer_question(question, events.workflows, plans)
    extra = {"reason": f"the newest plan of {question.workflow} is {found.plan}"}
    logger().info("newest plan", extra=extra)
    return found.document()
