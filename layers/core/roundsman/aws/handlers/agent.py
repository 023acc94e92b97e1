"""The Lambda function of an agent: passes it each request, and sends its replies."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from logging import WARNING
from typing import TYPE_CHECKING, Protocol

import boto3
from botocore.config import Config

from roundsman.agents.agent import (
    NO_HANDLER,
    Agent,
    Answer,
    Handler,
    LambdaContext,
    NoReply,
    Reminded,
    answer_again,
    attempt_ends_at,
)
from roundsman.agents.call_notes import NO_NOTES, CallNotes
from roundsman.agents.guard import Guard, NoGuard
from roundsman.aws.clients import CONFIG, Clients, begin_invocation
from roundsman.aws.clock import now, sleep
from roundsman.aws.cold_start import ends_the_start
from roundsman.aws.dynamodb.call_notes import DynamoCallNotes
from roundsman.aws.dynamodb.control import DynamoReadNotes
from roundsman.aws.guard.guard import guard_of
from roundsman.aws.handlers.tracing import tracer_of
from roundsman.aws.observability import (
    count,
    log_keys,
    log_measured,
    logger,
    observed,
    step_keys,
    where,
)
from roundsman.aws.settings import AgentSettings
from roundsman.aws.sqs.batch import Message, handle_batch, one_by_one
from roundsman.aws.sqs.dead_letters import DeadLetters
from roundsman.aws.sqs.outbox import AwsOutbox
from roundsman.aws.sqs.outgoing import OutgoingMessage, raise_most_retryable, send_messages
from roundsman.aws.sqs.send_buffer import SendBuffer, why_sent_first
from roundsman.aws.tracing import OFF, Tracer
from roundsman.model.events import Outcome, attempt_of
from roundsman.model.instants import SECOND
from roundsman.model.priority import Priority
from roundsman.model.queue_lag import ReadNotes
from roundsman.model.task import PERFORM
from roundsman.ports import Clock, Outbox, PayloadStore
from roundsman.wire.alert import Alert
from roundsman.wire.limits import wire_text
from roundsman.wire.messages import AgentRequest, Reply, read_reply, read_request

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# Notes are written and the guard is asked before the remote call, in the time of the call: a
# missing note, or an unguarded call, is better than a late call. Alerts are published between two
# requests, in the time of the second.
HASTY_CONFIG = CONFIG.merge(
    Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 1})
)


def handler_of(agent: Agent) -> Handler:
    """The entry point of an agent's Lambda function. Its first call reads the environment."""
    made = cache(lambda: _function_of(agent, AgentSettings.from_env()))

    @observed
    def handler(event: dict[str, object], context: LambdaContext) -> dict[str, object]:
        begin_invocation(context)
        return made().handle(event, context.get_remaining_time_in_millis())

    return handler


@ends_the_start
def _function_of(agent: Agent, settings: AgentSettings) -> "AgentFunction":
    sqs, tracer = Clients().sqs, tracer_of(settings.tracing_percent)
    # An agent sends no commands and no statuses, so it has no queues for them.
    outbox = AwsOutbox(
        sqs, scheduler_queue="", reply_prefix="", rejected_queue=settings.rejected_queue_url
    )
    control = boto3.client("dynamodb", config=HASTY_CONFIG)
    notes = DynamoReadNotes(control, control_table=settings.control_table, clock=now)

    def publish(alert: Alert) -> None:
        made.send_replies()  # an alert must not delay a step
        AwsOutbox(
            sqs,
            lambda: boto3.client("sns", config=HASTY_CONFIG),
            scheduler_queue="",
            reply_prefix="",
            alert_topic=settings.alert_topic_arn,
        ).publish(alert)

    guard = guard_of(agent.name, control, settings, publish=publish, clock=now, sleep=sleep)
    table = settings.control_table
    made = AgentFunction(
        agent,
        sqs,
        settings.reply_queue_url,
        outbox,
        notes,
        guard,
        call_notes=DynamoCallNotes(agent.name, control, control_table=table, clock=now),
        payloads=_payloads_in(settings.payload_bucket),
        tracer=tracer,
    )
    return made


def _payloads_in(bucket: str | None) -> PayloadStore | None:
    """The store of payloads in this bucket; None without a bucket."""
    if bucket is None:
        return None
    from roundsman.aws.payloads import S3Payloads  # late: most stacks have no bucket

    return S3Payloads(bucket)


class AlertingGuard(Guard, Protocol):
    """A guard that publishes alerts."""

    def publish_alerts(self) -> None:
        """Publish the pending alerts. Call it when no step waits for it. It does not raise."""


@dataclass(frozen=True)
class AgentFunction:
    """One agent with its queues."""

    agent: Agent
    sqs: "SQSClient"
    reply_queue_url: str
    outbox: Outbox
    """Only for rejected messages: requests that no agent can ever answer."""
    notes: ReadNotes
    guard: AlertingGuard | None = None
    """The guard of the agent's service, for all instances; None lets every call pass."""
    clock: Clock = now
    sleep: Callable[[int], None] = sleep
    """Its argument is in ms."""
    call_notes: CallNotes = NO_NOTES
    payloads: PayloadStore | None = None
    tracer: Tracer = OFF

    def handle(self, event: dict[str, object], time_left: int) -> dict[str, object]:
        """Answer each request of an SQS event, and return the messages to redeliver.

        `time_left` is the remaining time of the invocation in ms. It is divided among the
        requests, so that a call that hangs leaves time for the others. If a reply cannot be sent,
        its request is redelivered and answered again; the idempotency key is the same, so there is
        no second effect. Replies are buffered during later attempts if `why_sent_first` permits.
        """
        ends_at = self.clock() + time_left
        records = event.get("Records")
        waiting = len(records) if isinstance(records, list) else 0

        def handle_message(message: Message) -> None:
            nonlocal waiting
            arrived = self.clock()
            share = (ends_at - arrived) // max(1, waiting)
            waiting -= 1
            self._handle(message, function_ends_at=arrived + share, is_last=waiting < 1)

        failures = handle_batch(
            event,
            handle=one_by_one(handle_message),
            outbox=self.outbox,
            send_buffer=self._send_buffer,
            queue_url_beside=self.reply_queue_url,
            dead_letters=self._dead_letters,
            tracer=self.tracer,
        )
        return {**failures}

    def send_replies(self) -> None:
        """Send the buffered replies."""
        self._send_buffer.flush()

    @cached_property
    def _send_buffer(self) -> SendBuffer:
        return SendBuffer(self.sqs, clock=self.clock, late=self._log_late_reply)

    @cached_property
    def _dead_letters(self) -> DeadLetters:
        return DeadLetters(self.sqs, self.clock)

    def _handle(self, message: Message, *, function_ends_at: int, is_last: bool) -> None:
        request = read_request(message.body)
        self._trace(request)
        self._send_what_cannot_wait(request, function_ends_at)

        def attempt(asked: AgentRequest) -> Answer:
            return self.agent.answer(
                asked,
                clock=self.clock,
                function_ends_at=function_ends_at,
                report=_log_unexpected,
                guard=self.guard or NoGuard(),
                send_now=self._show,
                sleep=lambda seconds: self.sleep(round(seconds * SECOND)),
                jitter=random.random,
                call_notes=self.call_notes,
                payloads=self.payloads,
            )

        of_step = step_keys(request.step)
        with log_keys(task_id=request.task_id, **of_step, attempt=request.attempt):
            read_at = self.clock()
            self._note_read(message.queue, request)
            try:
                again = message.redelivered
                answer = answer_again(request, attempt) if again else attempt(request)
                _log(request, answer, read_at, self.clock())
                self.tracer.note("outcome", _outcome_of(answer))
                if isinstance(answer, Reply):
                    self._reply(answer, request)
                # A step with heartbeats is overdue at its next heartbeat, long before complete-by.
                if is_last or request.heartbeat_by is not None:
                    self.send_replies()
            finally:
                if self.guard is not None:
                    self.guard.publish_alerts()

    def _send_what_cannot_wait(self, request: AgentRequest, function_ends_at: int) -> None:
        """Send the buffered replies that must not wait until the attempt of this request ends."""
        since, until, now = self._send_buffer.oldest, self._send_buffer.wanted_by, self.clock()
        if since is None or until is None:
            return
        ends_at = attempt_ends_at(request, now, function_ends_at, self.agent.time_of(request))
        if why := why_sent_first(since=since, until=until, attempt_ends_at=ends_at, now=now):
            logger().debug("buffered replies sent before the attempt", extra={"reason": why})
            self.send_replies()

    def _show(self, sign: Reply) -> None:
        """Send a progress reply at once. Its note is logged, and is not in the reply.

        An attempt that reports progress takes long, so the buffered replies are sent first.
        """
        logger().info("progress", extra={"lock": sign.lock, "note": sign.result})
        self.send_replies()
        outcomes = send_messages(
            self.sqs, self.reply_queue_url, [_post(sign, trace=self.tracer.header())]
        )
        raise_most_retryable([failure for failure in outcomes if failure is not None])

    def _reply(self, reply: Reply, request: AgentRequest) -> None:
        wanted_by = self.agent.asked_at(request)
        trace = self.tracer.header()
        post = _post(reply, until=request.complete_by, wanted_by=wanted_by, trace=trace)
        self._send_buffer.send(self.reply_queue_url, [post])

    def _trace(self, request: AgentRequest) -> None:
        notes: dict[str, str | int] = {
            "workflow": request.workflow,
            "step": request.step,
            "agent": self.agent.name,
            "attempt": request.attempt,
            "operation": request.operation,
        }
        self.tracer.request(request.task_id, notes)

    def _log_late_reply(self, post: OutgoingMessage) -> None:
        """Log a reply that was not sent in time. The outcome of its attempt is logged already."""
        reply, now = read_reply(post.body), self.clock()
        of_step = step_keys(reply.step)
        with log_keys(task_id=reply.task_id, **of_step, attempt=attempt_of(reply.lock)):
            count("SilencedReplies")
            extra: dict[str, object] = {
                "operation": reply.operation,
                "lock": reply.lock,
                "lateness_ms": now - (post.until or now),
                "outcome": "silent",
                "reason": "the reply waited in its batch until complete-by; not sent",
            }
            logger().warning("silent", extra=extra)

    def _note_read(self, queue: str, request: AgentRequest) -> None:
        try:
            priority = _priority_of(queue)
            self.notes.note_read(self.agent.name, priority, request.sent_at, request.lock)
        except Exception as error:  # noqa: BLE001  # an agent works without read marks
            count("MarksFailed")
            logger().warning("the read mark of the queue could not be stored", extra=where(error))


def _post(
    reply: Reply,
    *,
    until: int | None = None,
    wanted_by: int | None = None,
    trace: str | None = None,
) -> OutgoingMessage:
    body = wire_text(reply.body())
    return OutgoingMessage(body, until=until, wanted_by=wanted_by, trace=trace)


def _outcome_of(answer: Answer) -> str:
    if isinstance(answer, Reminded):
        return "reminded" if answer.error is None else "not reminded"
    return "silent" if isinstance(answer, NoReply) else answer.outcome.value


def _priority_of(queue: str) -> Priority:
    """The priority of a request queue, from the name that the template gives it."""
    return Priority.URGENT if "UrgentRequestQueue" in queue else Priority.NORMAL


def _log_unexpected(error: Exception) -> None:
    logger().error("unexpected error in the agent's function", extra=where(error))


def _log(request: AgentRequest, answer: Answer, read_at: int, ended_at: int) -> None:
    """Log one line per attempt, without the order, the result or an error's text.

    It is also the attempt's metrics: see the metric filters in stacks/agent.yaml. Of an ordinary
    attempt the operation `perform`, the outcome `succeeded` and the lock are not logged: nearly all
    attempts have them, and each byte of a log costs money.
    """
    queued, took = max(0, read_at - request.sent_at), ended_at - read_at
    fields: dict[str, object] = {"queued_ms": queued, "took_ms": took}
    if request.operation != PERFORM:
        fields["operation"] = request.operation
    if ended_at > request.complete_by:
        fields["lateness_ms"] = ended_at - request.complete_by
    if isinstance(answer, Reminded):
        _log_reminder(request, answer, {**fields, "lock": request.lock})
        return
    if isinstance(answer, NoReply):
        count("SilencedReplies")
        fields |= {"lock": request.lock, "outcome": "silent", "reason": answer.reason}
        log_measured("silent", fields, level=WARNING)
        return
    if answer.outcome is not Outcome.SUCCEEDED:
        count(f"StepAttempts{answer.outcome.capitalize()}")
        fields |= {"lock": request.lock, "outcome": answer.outcome.value}
    if answer.error is not None:
        fields |= {"error_type": answer.error.type, "retry_after_ms": answer.retry_after}
        if answer.error.type == NO_HANDLER:
            count("StepsWithoutHandler")
    log_measured("attempted", fields)


def _log_reminder(request: AgentRequest, answer: Reminded, fields: dict[str, object]) -> None:
    fields["reminder"] = request.reminder
    if answer.error is None:
        log_measured("reminded", fields)
        return
    count("RemindersFailed")
    if answer.error.type == NO_HANDLER:
        count("StepsWithoutHandler")
    log_measured("not reminded", {**fields, "error_type": answer.error.type}, level=WARNING)
