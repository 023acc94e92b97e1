"""Creates each function's adapters from its settings, and logs the results of owed messages."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from roundsman.aws.clients import Clients
from roundsman.aws.clock import now
from roundsman.aws.dynamodb.control import DynamoAgentBoard, DynamoLeases, DynamoPlans
from roundsman.aws.dynamodb.groups import DynamoGroups
from roundsman.aws.dynamodb.item_reader import ReportOnce
from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.aws.handlers.tracing import tracer_of
from roundsman.aws.observability import count, logger
from roundsman.aws.settings import SchedulerSettings, SubmissionSettings, SupervisorSettings
from roundsman.aws.sqs.outbox import AwsOutbox
from roundsman.aws.tracing import OFF, Tracer
from roundsman.errors import UnreadableRecord
from roundsman.model.scheduler_queues import QueueDepth
from roundsman.model.task import REJECTION
from roundsman.scheduler.owed import OwedResult

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True, slots=True)
class Adapters:
    """The adapters of one function."""

    store: DynamoStore
    """For both orders and tasks."""
    plans: DynamoPlans
    board: DynamoAgentBoard
    leases: DynamoLeases
    groups: DynamoGroups
    outbox: AwsOutbox
    sqs: "SQSClient"
    dynamodb: "DynamoDBClient"
    tracer: Tracer


def submission_parts(settings: SubmissionSettings) -> Adapters:
    """The adapters of submission, which writes no history and publishes no alerts."""
    clients, tracer = Clients(), tracer_of(settings.tracing_percent)
    return _parts(
        clients,
        settings,
        tracer,
        history_table=None,
        outbox=AwsOutbox(
            clients.sqs,
            scheduler_queue=settings.scheduler_queue_url,
            reply_prefix=settings.reply_queue_prefix,
            tracer=tracer,
            rejected_queue=settings.rejected_queue_url,
        ),
    )


def scheduler_parts(settings: SchedulerSettings) -> Adapters:
    """The adapters of the scheduler, the only function that sends requests."""
    clients, tracer = Clients(), tracer_of(settings.tracing_percent)
    return _parts(
        clients,
        settings,
        tracer,
        history_table=settings.history_table,
        outbox=AwsOutbox(
            clients.sqs,
            lambda: clients.sns,
            scheduler_queue=settings.scheduler_queue_url,
            reply_prefix=settings.reply_queue_prefix,
            tracer=tracer,
            rejected_queue=settings.rejected_queue_url,
            alert_topic=settings.alert_topic_arn,
            urgent_queues=settings.urgent_queues,
        ),
        urgent_queues=settings.urgent_queues,
    )


def supervisor_parts(settings: SupervisorSettings) -> Adapters:
    """The adapters of the supervisor. It reads no queue, and rejects only signals of records."""
    clients, tracer = Clients(), tracer_of(settings.tracing_percent)
    return _parts(
        clients,
        settings,
        tracer,
        history_table=settings.history_table,
        outbox=AwsOutbox(
            clients.sqs,
            lambda: clients.sns,
            scheduler_queue=settings.scheduler_queue_url,
            reply_prefix=settings.reply_queue_prefix,
            tracer=tracer,
            rejected_queue=settings.rejected_queue_url,
            alert_topic=settings.alert_topic_arn,
        ),
        urgent_queues=settings.urgent_queues,
    )


def _parts(
    clients: Clients,
    settings: SubmissionSettings | SchedulerSettings | SupervisorSettings,
    tracer: Tracer,
    *,
    history_table: str | None,
    outbox: AwsOutbox,
    urgent_queues: bool = True,
) -> Adapters:
    client, table, report = clients.dynamodb, settings.control_table, ReportOnce(log_unreadable)
    return Adapters(
        store=_store(clients, settings, history_table, tracer),
        plans=DynamoPlans(client, control_table=table, clock=now),
        board=DynamoAgentBoard(
            client,
            control_table=table,
            clock=now,
            on_unreadable=report,
            depth_of=partial(_depth_of, clients, settings.scheduler_queue_url),
            urgent_queues=urgent_queues,
        ),
        leases=DynamoLeases(client, control_table=table, on_unreadable=report),
        groups=DynamoGroups(client, control_table=table, on_unreadable=report),
        outbox=outbox,
        sqs=clients.sqs,
        dynamodb=client,
        tracer=tracer,
    )


def _depth_of(clients: Clients, scheduler_queue: str, key: str) -> QueueDepth:
    """Count the messages of a queue. Imported at the first call, since most instances make none."""
    from roundsman.aws.sqs.depths import QueueDepths

    return QueueDepths(clients.sqs, scheduler_queue=scheduler_queue).depth_of(key)


def _store(
    clients: Clients,
    settings: SubmissionSettings | SchedulerSettings | SupervisorSettings,
    history_table: str | None,
    tracer: Tracer,
) -> DynamoStore:
    if tracer is not OFF:
        from roundsman.aws.dynamodb.traced import TracedStore

        return TracedStore(
            clients.dynamodb,
            orders_table=settings.orders_table,
            tasks_table=settings.tasks_table,
            history_table=history_table,
            order_retention=settings.order_retention,
            tracer=tracer,
        )
    return DynamoStore(
        clients.dynamodb,
        orders_table=settings.orders_table,
        tasks_table=settings.tasks_table,
        history_table=history_table,
        order_retention=settings.order_retention,
    )


def log_unreadable(problem: UnreadableRecord) -> None:
    """Count and log an attribute of ControlTable that cannot be read and was ignored.

    `roundsman doctor` lists them.
    """
    count("ControlUnreadable")
    logger().error("an attribute of ControlTable cannot be read", extra={"reason": str(problem)})


def report_owed(delivered: OwedResult) -> None:
    """Log and count rejected signals, statuses given up and alerts not published; log what is
    still owed."""
    for sent in delivered.sent:
        if sent.kind == REJECTION:
            count("RejectedMessages")
            extra = {"reason": f"it has ended no step: {sent.detail}", "signal": sent.name}
            logger().warning("a signal that was accepted is rejected", extra=extra)
    for given_up in delivered.given_up:
        count("StatusesGivenUp")
        logger().warning(
            "status discarded: the reply queue does not exist", extra={"status": given_up.name}
        )
    for owed in delivered.still_owed:
        logger().warning("message not sent yet; still owed", extra={"owed": owed.name})
    for reason in delivered.unpublished:
        count("AlertsFailed")
        logger().error(
            "alert not published; the supervisor will publish it", extra={"reason": reason}
        )
