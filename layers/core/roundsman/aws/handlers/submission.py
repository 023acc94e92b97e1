"""The Lambda function of submission; the application defines what an order is (`ReadEvent`)."""

from collections.abc import Callable

from roundsman.aws.clock import now
from roundsman.aws.cold_start import ends_the_start
from roundsman.aws.handlers.wiring import report_owed, submission_parts
from roundsman.aws.observability import count, log_keys, logger
from roundsman.aws.settings import SubmissionSettings
from roundsman.aws.sqs.batch import Message, handle_batch
from roundsman.aws.sqs.dead_letters import DeadLetters
from roundsman.errors import RejectedOrder, TryAgain
from roundsman.submission.reply_queues import usable_reply_queue
from roundsman.submission.submission import CancelAsked, NewOrder, Submission
from roundsman.wire.messages import rejected_status_body

ReadEvent = Callable[[str, int, Callable[[str], str | None]], NewOrder | CancelAsked]
"""Parses an event's body into an order or a cancellation.

Its arguments are the body, the current time (epoch ms), and a function that takes the URL of a
reply queue and returns what is wrong with it, or None. Raises RejectedOrder, or another
InvalidMessage, if the body is neither an order nor a cancellation."""


@ends_the_start
def submission_handler(
    settings: SubmissionSettings, read: ReadEvent
) -> Callable[[dict[str, object]], object]:
    """Create the handler of batches from the SubmissionQueue."""
    parts = submission_parts(settings)
    submission = Submission(
        tasks=parts.store,
        plans=parts.plans,
        outbox=parts.outbox,
        clock=now,
        shards=settings.due_shards,
    )

    def problem_of(url: str) -> str | None:
        return usable_reply_queue(url, settings.scheduler_queue_url, settings.reply_queue_prefix)

    def handle(message: Message) -> None:
        try:
            asked = read(message.body, now(), problem_of)
            with log_keys(task_id=asked.order_id):
                if isinstance(asked, NewOrder):
                    _submit(asked)
                else:
                    _cancel(asked, message)
        except RejectedOrder as rejected:
            _tell_rejected(rejected)
            raise

    def _submit(order: NewOrder) -> None:
        submitted = submission.submit(order)
        count("OrdersAccepted" if submitted.created else "OrdersRepeated")
        logger().info("order", extra={"reason": submitted.reason})
        report_owed(submitted.delivered)

    def _cancel(asked: CancelAsked, message: Message) -> None:
        submitted = submission.cancel(asked, message.message_id)
        count("CancellationsPassedOn")
        logger().info("cancellation", extra={"reason": submitted.reason})

    def _tell_rejected(rejected: RejectedOrder) -> None:
        if rejected.reply_to is None:
            return
        try:
            parts.outbox.send_status(rejected.reply_to, rejected_status_body(rejected, now()))
        except TryAgain:
            logger().warning("rejected status not sent", extra={"order_id": rejected.order_id})

    dead_letters = DeadLetters(parts.sqs)
    return lambda event: handle_batch(
        event,
        handle=handle,
        outbox=parts.outbox,
        mailbag=parts.outbox.mailbag,
        sqs=parts.sqs,
        queue_url_beside=settings.scheduler_queue_url,
        dead_letters=dead_letters,
    )
