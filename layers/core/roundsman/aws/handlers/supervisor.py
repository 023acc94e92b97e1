"""The Lambda function of the supervisor: makes passes over the due index for one minute."""

import random
import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from roundsman.aws.clients import Invocation, begin_invocation
from roundsman.aws.clock import now, sleep
from roundsman.aws.cold_start import ends_the_start
from roundsman.aws.dynamodb.bulk_list import listed_work
from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.aws.dynamodb.item_reader import ReportOnce
from roundsman.aws.dynamodb.wakes import DynamoWakes
from roundsman.aws.handlers.wiring import (
    Adapters,
    log_unreadable,
    parts_of,
    report_owed,
)
from roundsman.aws.observability import count, log_keys, logger, measure, observed, where
from roundsman.aws.settings import SupervisorSettings
from roundsman.errors import CallRefused
from roundsman.model.instants import MINUTE
from roundsman.supervisor.supervisor import (
    PassReport,
    Supervisor,
    SupervisorConfig,
    VisitTimes,
    keep_passing,
)
from roundsman.supervisor.wakes import WakePorts, WakeReport, Wakes

if TYPE_CHECKING:
    from roundsman.supervisor.bulk_runs import BulkReport, BulkRuns
    from roundsman.supervisor.stack_watch import StackWatch, WatchReport

MARGIN = 5_000
"""ms reserved at the end of an invocation, to finish the work that is under way."""


def supervisor_handler() -> Callable[[object, Invocation], None]:
    """Return the entry point of the Lambda function. Its first call reads the environment.

    It makes the passes that belong to one tick of the timer.
    """
    made = cache(lambda: tick_handler(SupervisorSettings.from_env()))

    @observed
    def handler(_event: object, context: Invocation) -> None:
        begin_invocation(context)
        made()(context.get_remaining_time_in_millis())

    return handler


@ends_the_start
def tick_handler(settings: SupervisorSettings) -> Callable[[int], None]:
    """Create the handler of timer ticks; its argument is the remaining time in ms.

    While a bulk run is open, an invocation lasts until shortly before the next one. After its
    passes the handler raises CallRefused if AWS refused any of their calls; where the supervisor
    watches the stack, also if an alert could not be published, due tasks could not be read or the
    leases could not be stored. The invocation then fails, and an alarm reports it. Nothing is lost
    until the cause is repaired.
    """
    parts = parts_of(settings)
    instance = secrets.token_hex(4)
    bulk = cache(lambda: _bulk_runs(settings, parts, instance))
    watch = _stack_watch(settings, parts)
    supervisor = Supervisor(
        tasks=parts.store,
        plans=parts.plans,
        board=parts.board,
        groups=parts.groups,
        outbox=parts.outbox,
        clock=now,
        jitter=random.random,
        config=SupervisorConfig(
            leases=parts.leases,
            instance=instance,
            shards=settings.due_shards,
            interval=settings.interval,
            undone_count=settings.undone_count,
        ),
        limits=parts.limits,
        on_trouble=_log_trouble,
    )

    wakes = Wakes(
        _wake_ports(settings, parts),
        shards=settings.due_shards,
        look=lambda task_id, shard: _report_looks(supervisor.look_at(task_id, shard)),
    )

    def tick(time_left: int) -> None:
        refused: list[str] = []
        ends_at = now() + time_left - MARGIN // 2

        def report(each: PassReport) -> None:
            _report(each)
            parts.tracer.send()
            if each.refused is not None:
                refused.append(each.refused)
            if watch is not None:
                refused.extend(_watched(watch, each, lambda: now() < ends_at))

        def visit(times: VisitTimes) -> bool:
            found = wakes.visit(times)
            _report_wakes(found)
            if found.refused is not None:
                refused.append(found.refused)
            return visit_bulk(times) or found.going

        def visit_bulk(times: VisitTimes) -> bool:
            work = listed_work(parts.dynamodb, settings.control_table)
            if work.queues:
                refused.extend(_visit_queues(settings, parts, work.queues, times.stop_at))
            if not work.open_runs:
                return False
            found = bulk().visit(times)
            _report_bulk(found)
            if found.refused is not None:
                refused.append(found.refused)
            return found.open > 0

        keep_passing(
            supervisor,
            interval=settings.interval,
            passes=max(1, MINUTE // settings.interval),
            stop_at=now() + time_left - MARGIN,
            clock=now,
            sleep=sleep,
            report=report,
            visit=visit,
        )
        if refused:
            raise CallRefused(refused[0])

    return tick


def _wake_ports(settings: SupervisorSettings, parts: Adapters) -> WakePorts:
    return WakePorts(
        holds=DynamoHolds(parts.dynamodb, control_table=settings.control_table, clock=now),
        wakes=DynamoWakes(parts.dynamodb, control_table=settings.control_table),
        tasks=parts.store,
        leases=parts.leases,
        outbox=parts.outbox,
        clock=now,
    )


def _stack_watch(settings: SupervisorSettings, parts: Adapters) -> "StackWatch | None":
    """What watches the stack where few alarms do; None where alarms do.

    Imported only where it is needed, since most stacks have alarms.
    """
    if settings.backlog_after is None:
        return None
    from roundsman.aws.dynamodb.stack_faults import DynamoStackFaults
    from roundsman.aws.sqs.stack_queues import SqsStackQueues
    from roundsman.supervisor.stack_watch import StackWatch, WatchConfig

    return StackWatch(
        queues=SqsStackQueues(parts.sqs, scheduler_queue=settings.scheduler_queue_url),
        faults=DynamoStackFaults(
            parts.dynamodb,
            control_table=settings.control_table,
            on_unreadable=ReportOnce(log_unreadable),
        ),
        publish=parts.outbox.publish,
        clock=now,
        config=WatchConfig(
            backlog_after=settings.backlog_after,
            interval=settings.interval,
            urgent_queues=settings.urgent_queues,
        ),
    )


def _watched(watch: "StackWatch", made: PassReport, go_on: Callable[[], bool]) -> Iterator[str]:
    """Look at the stack after a pass, and yield why the invocation has to fail, if it has to."""
    from roundsman.supervisor.stack_watch import PassFacts

    # No other alarm watches these: alerts that are not published, due tasks that are not seen, and
    # leases that are not stored, as then no alert would be either.
    yield from (problem for _, problem in made.groups.problems)
    yield from (problem for problem in (made.unread, made.unleased) if problem is not None)
    found = watch.look(PassFacts(made.lag, made.behind, worked=made.looked_at > 0), go_on)
    if found is not None:
        _report_watch(found)
        if found.refused is not None:
            yield found.refused


def _report_watch(report: "WatchReport") -> None:
    for fault, news in report.alerted:
        count("AlertsTold")
        logger().info("alerted", extra={"group": fault, "news": news, "reason": "seen by a look"})
    for problem in report.problems:
        count("AlertsFailed")
        logger().warning("the stack was not looked at whole", extra={"reason": problem})


def _bulk_runs(settings: SupervisorSettings, parts: Adapters, instance: str) -> "BulkRuns":
    """What carries out bulk runs; imported when there is one, since most instances have none."""
    from roundsman.aws.dynamodb.bulk_runs import DynamoBulkRuns
    from roundsman.supervisor.bulk_runs import BulkPorts, BulkRuns

    client, table = parts.dynamodb, settings.control_table
    ports = BulkPorts(
        runs=DynamoBulkRuns(client, control_table=table, clock=now),
        tasks=parts.store,
        orders=parts.store,
        plans=parts.plans,
        holds=DynamoHolds(client, control_table=table, clock=now),
        outbox=parts.outbox,
        clock=now,
    )
    return BulkRuns(ports, instance=instance, on_trouble=_log_bulk_trouble)


def _visit_queues(
    settings: SupervisorSettings, parts: Adapters, marks: Mapping[str, int], stop_at: int
) -> Iterator[str]:
    """Begin the orders of schedules that wait, and yield a call that AWS refused."""
    from roundsman.aws.dynamodb.schedules import DynamoSchedules
    from roundsman.supervisor.recurring import ScheduleQueues

    schedules = DynamoSchedules(parts.dynamodb, control_table=settings.control_table)
    report = ScheduleQueues(schedules, parts.store, parts.outbox, now).visit(marks, stop_at)
    for schedule, order in report.begun:
        logger().info("queued run begun", extra={"schedule": schedule, "order_id": order})
    for schedule, reason in report.problems:
        extra = {"schedule": schedule, "reason": reason}
        logger().warning("the queue of a schedule is left to the next pass", extra=extra)
    if report.refused is not None:
        yield report.refused


def _log_trouble(task_id: str, problem: Exception) -> None:
    with log_keys(task_id=task_id):
        if isinstance(problem, CallRefused):
            logger().error("AWS refused a call", extra={"reason": str(problem), **where(problem)})
        else:
            logger().error("a task record could not be handled", extra=where(problem))


def _log_bulk_trouble(run_id: str, problem: Exception) -> None:
    logger().error(
        "a bulk run could not be carried on",
        extra={"run": run_id, "reason": str(problem), **where(problem)},
    )


def _report_bulk(report: "BulkReport") -> None:
    for run_id, why in report.moved:
        logger().info("bulk run", extra={"run": run_id, "reason": why})
    if report.sent or report.checked:
        logger().info(
            "bulk runs visited",
            extra={"open": report.open, "sent": report.sent, "checked": report.checked},
        )


def _report_wakes(report: WakeReport) -> None:
    for target, orders in report.woken:
        count("OrdersWoken", orders)
        logger().info("woken", extra={"target": target, "orders": orders})
    for agent in report.tried:
        logger().info("circuit tried", extra={"agent": agent})
    if report.problem is not None:
        logger().warning("orders were not woken now", extra={"reason": report.problem})


def _report_looks(report: PassReport) -> None:
    if report.recovered:
        count("TasksRecovered", report.recovered)
    for task_id, reason in report.reasons:
        with log_keys(task_id=task_id):
            logger().info("inspected", extra={"reason": reason})


def _report(report: PassReport) -> None:
    # A metric costs by the hours in which it has a value, also if that is 0.
    if report.recovered:
        count("TasksRecovered", report.recovered)
    if report.archived:
        count("TasksArchived", report.archived)
    if report.troubled:
        count("TasksTroubled", report.troubled)
    if report.lag:
        measure("SupervisorLagMs", report.lag)
    if report.behind:
        measure("SchedulerBehindMs", report.behind)
    for task_id, reason in report.reasons:
        with log_keys(task_id=task_id):
            logger().info("inspected", extra={"reason": reason})
    for task_id, delivered in report.delivered:
        with log_keys(task_id=task_id):
            report_owed(delivered)
    for group, news, reason in report.groups.alerted:
        count("AlertsTold")
        logger().info("alerted", extra={"group": group, "news": news, "reason": reason})
    for group, problem in report.groups.problems:
        count("AlertsFailed")
        logger().warning(
            "failure group left to the next pass", extra={"group": group, "reason": problem}
        )
    if report.unleased is not None:
        logger().warning("pass made without leases", extra={"reason": report.unleased})
    logger().info(
        "pass done",
        extra={
            "looked_at": report.looked_at,
            "ahead": report.ahead,
            "left_to_others": report.left_to_others,
            "recovered": report.recovered,
            "archived": report.archived,
            "rearmed": report.rearmed,
            "superseded": report.superseded,
            "troubled": report.troubled,
            "groups": report.groups.open,
            "groups_counted": report.groups.looked_at,
            "deferred": report.deferred,
            "lag_ms": report.lag,
            "finished": report.finished,
            **({"behind_ms": report.behind} if report.behind else {}),
        },
    )
