"""The course of the orders of a failure group: since when they fail, and whether it is over."""

from collections.abc import Iterable, Sequence

from roundsman.model.bulk_run import Run
from roundsman.model.holds import EVERY_WORKFLOW, Hold
from roundsman.model.instants import MINUTE
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.course.course import SPANS, USUAL, OrdersOverTime
from roundsman_console.facts.course.marks import (
    EventMark,
    deployment_marks,
    group_of,
    hold_marks,
    read_runs,
    read_versions_of,
    run_marks,
    within,
)
from roundsman_console.facts.course.reading import Measured, group_course, read_steps
from roundsman_console.facts.group.reading import GroupNow


def read_group_course(stack: DeployedStack, group: GroupNow, at: int) -> OrdersOverTime:
    """Read the course of the group in the shortest of SPANS that has its first failure.

    Raises TryAgain or CallRefused, and the errors of boto3.
    """
    span = SPANS[span_since(group.first_at, at)]
    measured = read_steps(stack, group.workflow, group.step, at, span)
    runs = [one for one in read_runs(stack, measured.since, at + 1) if isinstance(one, Run)]
    marks = [
        *hold_marks(holds_about(group, stack.holds.stored()), at),
        *run_marks(one for one in runs if group_of(one) == group.id),
    ]
    if group.agent is not None:
        marks += deployment_marks(read_versions_of(stack, group.agent.name))
    return course_of(group, measured, marks, at)


def course_of(
    group: GroupNow, measured: Measured, marks: Sequence[EventMark], at: int
) -> OrdersOverTime:
    """Return the course of the group at `at` (epoch ms), with those of the marks in its time."""
    return group_course(
        measured,
        within(marks, measured.since, at + 1),
        step=group.step,
        failed_at=group.failed_at,
        first_at=group.first_at,
        last_at=group.last_at,
        since_is_known=group.row is not None,
        more=group.count.more,
        at=at,
    )


def span_since(first: int | None, at: int) -> str:
    """Return the shortest of SPANS that has the instant `first` (epoch ms); the longest if none.

    USUAL if there is no instant.
    """
    if first is None:
        return USUAL
    fits = (name for name, span in SPANS.items() if at - first < span - MINUTE)
    return next(fits, [*SPANS][-1])


def holds_about(group: GroupNow, stored: Iterable[Hold]) -> list[Hold]:
    """Return the holds on the agent of the group, on orders of its workflow and on all orders."""
    agent = group.agent.name if group.agent else ""
    return [
        hold
        for hold in stored
        if (
            hold.agent == agent if hold.agent else hold.workflow in (EVERY_WORKFLOW, group.workflow)
        )
    ]
