"""Creates each function's adapters from its settings, and logs the results of owed messages."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from roundsman.aws.clients import Clients
from roundsman.aws.clock import now
from roundsman.aws.dynamodb.control import DynamoAgentBoard, DynamoLeases, DynamoPlans
from roundsman.aws.dynamodb.groups import DynamoGroups
from roundsman.aws.dynamodb.item_reader import ReportOnce
from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.aws.handlers.tracing import tracer_of
from roundsman.aws.observability import count, logger
from roundsman.aws.settings import DecidingSettings, EngineSettings
from roundsman.aws.sqs.outbox import AwsOutbox
from roundsman.aws.tracing import OFF, Tracer
from roundsman.errors import UnreadableRecord
from roundsman.model.scheduler_queues import QueueDepth
from roundsman.model.task import REJECTION
from roundsman.ports import LimitStore
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
    search_secret: Callable[[], bytes]
    limits: Callable[[], LimitStore]
    sqs: "SQSClient"
    dynamodb: "DynamoDBClient"
    tracer: Tracer


def parts_of(settings: EngineSettings) -> Adapters:
    """The adapters of a function. Submission writes no history and publishes no alerts."""
    clients, tracer = Clients(), tracer_of(settings.tracing_percent)
    client, table, report = clients.dynamodb, settings.control_table, ReportOnce(log_unreadable)
    decides = settings if isinstance(settings, DecidingSettings) else None
    urgent_queues = decides is None or decides.urgent_queues
    return Adapters(
        store=_store(client, settings, decides.history_table if decides else None, tracer),
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
        outbox=AwsOutbox(
            clients.sqs,
            lambda: clients.sns,
            scheduler_queue=settings.scheduler_queue_url,
            reply_prefix=settings.reply_queue_prefix,
            rejected_queue=settings.rejected_queue_url,
            alert_topic=decides.alert_topic_arn if decides else None,
            tracer=tracer,
            urgent_queues=urgent_queues,
        ),
        search_secret=_search_secret(client, table),
        limits=cache(partial(_limits, client, table)),
        sqs=clients.sqs,
        dynamodb=client,
        tracer=tracer,
    )


def _depth_of(clients: Clients, scheduler_queue: str, key: str) -> QueueDepth:
    """Count the messages of a queue. Imported at the first call, since most instances make none."""
    from roundsman.aws.sqs.depths import QueueDepths

    return QueueDepths(clients.sqs, scheduler_queue=scheduler_queue).depth_of(key)


def _limits(client: "DynamoDBClient", table: str) -> LimitStore:
    """Where turns are stored. Imported at the first call: few workflows have a limit."""
    from roundsman.aws.dynamodb.order_limits import DynamoOrderLimits

    return DynamoOrderLimits(client, control_table=table)


def _search_secret(client: "DynamoDBClient", table: str) -> Callable[[], bytes]:
    """What reads the secret of search. Imported at the first call: most instances need none."""

    @cache
    def made() -> Callable[[], bytes]:
        from roundsman.aws.dynamodb.search import DynamoSearchSecret

        return DynamoSearchSecret(client, control_table=table, clock=now)

    def secret() -> bytes:
        return made()()

    return secret


def _store(
    client: "DynamoDBClient", settings: EngineSettings, history_table: str | None, tracer: Tracer
) -> DynamoStore:
    make: Callable[..., DynamoStore] = DynamoStore
    if tracer is not OFF:
        from roundsman.aws.dynamodb.traced import TracedStore

        make = partial(TracedStore, tracer=tracer)
    return make(
        client,
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
