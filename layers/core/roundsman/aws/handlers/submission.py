"""The Lambda function of submission: stores an order and its task for each order event."""

import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, cast

from roundsman.aws.clients import Invocation, begin_invocation
from roundsman.aws.clock import now
from roundsman.aws.cold_start import ends_the_start
from roundsman.aws.handlers.wiring import Adapters, parts_of, report_owed
from roundsman.aws.observability import count, log_keys, log_measured, logger, observed, where
from roundsman.aws.settings import SubmissionSettings
from roundsman.aws.sqs.batch import Message, handle_batch, one_by_one
from roundsman.aws.sqs.dead_letters import DeadLetters
from roundsman.aws.sqs.throttled import ThrottledMessages
from roundsman.definition.workflow import Workflow
from roundsman.errors import CallRefused, RejectedOrder, TryAgain, rejected_together
from roundsman.model.json import Json
from roundsman.ports import EventSources, PlanStore, ScheduleStore
from roundsman.submission.events import Asked, EventReader
from roundsman.submission.reply_queues import usable_reply_queue
from roundsman.submission.submission import (
    CancelAsked,
    EventOfOrder,
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

    It handles a batch of order events, cancel events and signals, also of those that SNS, S3 and
    EventBridge deliver in envelopes, and returns a partial batch response that lists the messages
    to deliver again. Invoked directly, it answers which plan a workflow has
    (`roundsman.wire.newest_plan`). `workflows` are those that an order may run, by name; an order
    that names none runs the first.
    """

    @cache
    def made() -> Callable[[dict[str, object]], object]:
        settings = SubmissionSettings.from_env()
        events = EventReader(workflows, has_bucket=settings.payload_bucket is not None)
        return batch_handler(settings, events)

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
    parts = parts_of(settings)
    handler = _MessageHandler(settings, events, parts)
    dead_letters = DeadLetters(parts.sqs, gives_up_after=settings.most_receives)
    throttled = ThrottledMessages(parts.sqs, settings.visibility, random.random)

    def handle_event(event: dict[str, object]) -> object:
        if "Records" not in event:
            return _answer(event, events, parts.plans)
        return handle_batch(
            event,
            handle=one_by_one(handler.handle),
            outbox=parts.outbox,
            send_buffer=parts.outbox.send_buffer,
            queue_url_beside=settings.scheduler_queue_url,
            dead_letters=dead_letters,
            tracer=parts.tracer,
            throttled=throttled,
        )

    return handle_event


class _MessageHandler:
    """Handles one message of the SubmissionQueue, with each event in it."""

    def __init__(self, settings: SubmissionSettings, events: EventReader, parts: Adapters) -> None:
        self._settings = settings
        self._events = events
        self._parts = parts
        self._submission = Submission(
            tasks=parts.store,
            plans=parts.plans,
            outbox=parts.outbox,
            clock=now,
            shards=settings.due_shards,
            search_secret=parts.search_secret,
            schedules=cache(self._schedules_of),
            order_retention=settings.order_retention,
        )
        self._sources = cache(self._sources_of)

    def handle(self, message: Message) -> None:
        """Handle a message. Raises RejectedOrder if it, or an event in it, is rejected."""
        try:
            found = self._events.read_message(
                message.body, now(), self._problem_of, lambda: self._sources(message.queue)
            )
        except RejectedOrder as rejected:
            found = [rejected]
        if not found:
            logger().info("test event of S3 dropped", extra={"message_id": message.message_id})
        if rejections := [one for each in found if (one := self._handled(each, message))]:
            raise rejected_together(rejections)

    def _schedules_of(self) -> ScheduleStore:
        # Only an application with recurring orders needs this module.
        from roundsman.aws.dynamodb.schedules import DynamoSchedules

        table = self._settings.control_table
        return DynamoSchedules(self._parts.dynamodb, control_table=table)

    def _sources_of(self, queue: str) -> EventSources:
        # Only an application with events of services needs this module.
        from roundsman.aws.sqs.event_sources import SourcesOfQueue

        beside = self._settings.scheduler_queue_url.rpartition("/")[0]
        return SourcesOfQueue(self._parts.sqs, f"{beside}/{queue}")

    def _problem_of(self, url: str) -> str | None:
        settings = self._settings
        return usable_reply_queue(url, settings.scheduler_queue_url, settings.reply_queue_prefix)

    def _handled(self, asked: Asked | RejectedOrder, message: Message) -> RejectedOrder | None:
        """Do what an event asks for. Returns why it is rejected, or None if it is not."""
        try:
            if isinstance(asked, RejectedOrder):
                raise asked
            with log_keys(task_id=asked.order_id):
                if isinstance(asked, ValidOrder):
                    self._submit(asked)
                else:
                    outcome = _pass_on(self._submission, asked, message)
                    self._parts.tracer.note("outcome", outcome)
        except RejectedOrder as rejected:
            self._send_rejected_status(rejected)
            table = self._settings.control_table
            _keep_rejection(rejected, message.message_id, self._parts.dynamodb, table)
            return rejected
        return None

    def _submit(self, order: ValidOrder) -> None:
        submitted = self._submission.submit(order)
        self._parts.tracer.note("outcome", _outcome(submitted))
        _log_order(submitted)
        report_owed(submitted.delivered)

    def _send_rejected_status(self, rejected: RejectedOrder) -> None:
        if rejected.reply_to is None:
            return
        try:
            body = rejected_status_body(rejected, now())
            self._parts.outbox.send_status(rejected.reply_to, body)
        except TryAgain:
            logger().warning("rejected status not sent", extra={"order_id": rejected.order_id})


def _pass_on(
    submission: Submission, asked: CancelAsked | SignalSent | EventOfOrder, message: Message
) -> str:
    """Pass a cancellation or a signal on to the scheduler; returns what was done, in words.

    An event may begin the order to which it is a signal.
    """
    since = message.sent_at if message.redelivered else None
    if isinstance(asked, CancelAsked):
        submitted = submission.cancel(asked, message.message_id, message.sender, waited_since=since)
        count("CancellationsPassedOn")
        logger().info("cancellation", extra={"reason": submitted.reason})
        return "cancellation passed on"
    if isinstance(asked, EventOfOrder):
        submitted = submission.begin_or_signal(
            asked, message.message_id, message.sender, waited_since=since
        )
        if submitted.created:
            _log_order(submitted)
            report_owed(submitted.delivered)
            count("SignalsPassedOn")
            return "accepted"
        asked = asked.signal
    else:
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


def _outcome(submitted: Submitted) -> str:
    return "accepted" if submitted.created else "skipped" if submitted.skipped else "repeated"


def _log_order(submitted: Submitted) -> None:
    if submitted.created:  # the metric OrdersAccepted: see stacks/engine.yaml
        log_measured("order", {"reason": submitted.reason})
    elif submitted.skipped:
        count("RunsSkipped")
        logger().info("order", extra={"reason": submitted.reason})
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
