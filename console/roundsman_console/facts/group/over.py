"""What a failure group was that is over, by the bulk runs that were over it.

The stack forgets a group once it is over. A bulk run is kept for 90 days, with its orders, and each
of them has in its history why it had failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from roundsman.errors import UnreadableRecord
from roundsman.model.bulk_run import BulkRecord
from roundsman.model.failure import NO_STEP
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import NotFound
from roundsman_console.facts.agent.reading import AgentNow
from roundsman_console.facts.course.course import time_of_day
from roundsman_console.facts.group.reading import GroupNow
from roundsman_console.facts.order.lookup import find_shown
from roundsman_console.facts.orders.counts import Count

LOOKED_FOR = 3
"""The number of orders of a run that are read to find one that still has its history."""


@dataclass(frozen=True, slots=True)
class CauseInHistory:
    """What an incident was that is over, as one of its orders has it in its history."""

    order: str
    workflow: str
    step: str
    agent: str
    """Empty if it is not known."""
    why: str
    at: int
    """When this order failed, in epoch ms."""


@dataclass(frozen=True, slots=True)
class FailuresInHistories:
    """What the orders of the bulk runs over a group tell of it."""

    read: Sequence[CauseInHistory] = ()
    """Of the orders whose histories were read: those at both ends of the plans."""
    planned: frozenset[str] = frozenset()
    """The orders of the plans, as far as they were read."""


def read_failures(
    stack: DeployedStack, runs: Sequence[BulkRecord], most: int
) -> FailuresInHistories:
    """Read when orders of these runs had failed, of at most `most` orders of each run.

    A plan lists the orders of a group from the first that failed to the last, so those at both ends
    have the first and the last failure.
    """
    read, planned = list[CauseInHistory](), set[str]()
    for record in runs:
        run, half = record.run, most // 2
        try:
            begin = stack.bulk_runs.orders(run, 0, run.chunk)
            last = (run.selected - 1) // run.chunk * run.chunk
            end = stack.bulk_runs.orders(run, last, run.chunk) if last > 0 else begin
        except UnreadableRecord:
            continue
        planned.update(one.order for one in (*begin, *end))
        for order in dict.fromkeys(one.order for one in (*begin[:half], *end[-half:])):
            found = _cause_of(stack, order, run.started_at)
            read += [] if found is None else [found]
    return FailuresInHistories(read, frozenset(planned))


def read_cause(stack: DeployedStack, runs: Sequence[BulkRecord]) -> CauseInHistory | None:
    """Return what the group was over which these runs were; None if no order of them tells it."""
    store = stack.bulk_runs
    for record in runs:
        try:
            planned = store.orders(record.run, 0, LOOKED_FOR)
        except UnreadableRecord:
            continue
        for one in planned:
            found = _cause_of(stack, one.order, record.run.started_at)
            if found is not None:
                return found
    return None


def _cause_of(stack: DeployedStack, order: str, before: int) -> CauseInHistory | None:
    """Return why the order had failed before this instant (epoch ms)."""
    try:
        facts = find_shown(stack, order)
    except (NotFound, UnreadableRecord):
        return None
    failed = [
        row for row in facts.history if row.kind in ("failed", "undo failed") and row.at <= before
    ]
    if not failed:
        return None
    last = failed[-1]
    step = facts.step(last.step or "")
    agent = step.step.agent if step.step else ""
    return CauseInHistory(order, facts.task.workflow, step.name, agent, last.reason, last.at)


def as_group(cause: CauseInHistory, group: str, at: int) -> GroupNow:
    """Return a group that is over as one without orders, to draw what was done meanwhile.

    `at` is now, in epoch ms.
    """
    return GroupNow(
        id=group,
        workflow=cause.workflow,
        step=cause.step or NO_STEP,
        how="",
        error_type="",
        message=cause.why,
        count=Count(0),
        counted_at=at,
        first_at=cause.at,
        last_at=cause.at,
        agent=AgentNow(cause.agent) if cause.agent else None,
    )


def failed_words(cause: CauseInHistory, at: int) -> str:
    """Return in a sentence when the order failed that tells the cause; `at` is now (epoch ms)."""
    when = time_of_day(cause.at, at)
    return f"{cause.order} failed at {when} UTC. Each other order has it in its history."
