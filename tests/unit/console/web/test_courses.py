"""The course of orders as a page shows it: what is read again, drawn, and not known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from roundsman.errors import CallRefused
from roundsman.model.bulk_run import ListedRun
from roundsman.model.failure import NO_STEP
from roundsman.model.holds import EVERY_WORKFLOW, OPERATOR, Hold
from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.versions import Published
from roundsman_console.faces.web.readings import cache, courses
from roundsman_console.faces.web.readings.courses import (
    ShownCourse,
    course_of_group,
    course_of_stack,
)
from roundsman_console.facts.agent.reading import AgentNow
from roundsman_console.facts.course.course import SPANS, Counts, Series
from roundsman_console.facts.course.reading import LOCAL, Measured
from roundsman_console.facts.group.reading import GroupNow
from roundsman_console.facts.orders.counts import Count
from roundsman_console.inspector import Inspector
from tests.console.step_samples import AT

GROUP = GroupNow(
    id="f-1a2b3c4d",
    workflow="story",
    step="charge",
    how="archived",
    error_type="CardDeclined",
    message="no",
    count=Count(1),
    counted_at=AT,
    first_at=AT - 30 * MINUTE,
    last_at=AT - 20 * MINUTE,
    agent=AgentNow("payment"),
)


def series(name: str, counts: Counts, missing: str | None = None) -> Series:
    return Series(name=name, label=name, source="a metric", missing=missing, counts=counts)


@dataclass
class Stack:
    """What CloudWatch, Lambda and the tables have, and what was asked of them."""

    inspector: Inspector = field(default_factory=lambda: Inspector(DeployedStack("shop", {}, {})))
    at: int = AT
    counts: Counts | None = None
    """Of each minute; None for 1 in each."""
    missing: str | None = None
    of_stack: tuple[str, ...] = ("accepted", "completed", "failed", "cancelled")
    of_step: tuple[str, ...] = ("accepted", "completed", "stepSucceeded", "stepFailed")
    ends: dict[TaskState, Counts] = field(default_factory=dict)
    asked: list[tuple[object, ...]] = field(default_factory=list)
    """The spans, workflows and steps that CloudWatch was asked for, and the agents of versions."""
    published: Callable[[], list[Published]] = list
    holds: list[Hold] = field(default_factory=list)
    runs: list[ListedRun] = field(default_factory=list)

    def measured(self, names: Sequence[str], at: int, span: int) -> Measured:
        """Three minutes before `at` CloudWatch has everything."""
        since, until = at - span, at
        counts = self.counts or (1,) * (span // MINUTE)
        parts = {state.value: found for state, found in self.ends.items()}
        return Measured(
            since,
            until,
            until - 3 * MINUTE,
            [series(name, counts, self.missing) for name in names],
            parts,
        )


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Stack:
    found = Stack()

    def read_stack(_stack: DeployedStack, at: int, span: int) -> Measured:
        found.asked.append((span // MINUTE,))
        return found.measured(found.of_stack, at, span)

    def read_steps(_stack: DeployedStack, workflow: str, step: str, at: int, span: int) -> Measured:
        found.asked.append((span // MINUTE, workflow, step))
        return found.measured(found.of_step if step != NO_STEP else found.of_step[:2], at, span)

    def read_versions_of(_stack: DeployedStack, agent: str) -> list[Published]:
        found.asked.append((agent,))
        return found.published()

    for module in (courses, cache):
        monkeypatch.setattr(module, "now", lambda: found.at)
    monkeypatch.setattr(courses, "read_stack", read_stack)
    monkeypatch.setattr(courses, "read_steps", read_steps)
    monkeypatch.setattr(courses, "read_versions_of", read_versions_of)
    found.inspector.stack.__dict__.update(
        holds=SimpleNamespace(stored=lambda: found.holds),
        bulk_runs=SimpleNamespace(listed=lambda: found.runs),
    )
    return found


def of_stack(
    stack: Stack, period: str = "1h", published: Sequence[Published] | None = ()
) -> ShownCourse:
    return course_of_stack(stack.inspector, period, published)


def of_group(stack: Stack, group: GroupNow = GROUP, period: str = "1h") -> ShownCourse:
    return course_of_group(stack.inspector, group, [], period)


# ---- what is read, and how often -----------------------------------------------------------------


def test_figures_are_asked_for_once_a_minute_for_each_span_workflow_and_step(stack: Stack) -> None:
    for _ in range(2):
        of_stack(stack)
        of_stack(stack, "3h")
        of_group(stack, replace(GROUP, agent=None))
        of_group(stack, replace(GROUP, agent=None, step="pick"))
        stack.at += MINUTE - 1
    once = [(60,), (180,), (60, "story", "charge"), (60, "story", "pick")]
    assert stack.asked == once
    stack.at += 1
    of_stack(stack)
    assert stack.asked == [*once, (60,)]


def test_versions_of_an_agent_are_asked_for_once_in_five_minutes_and_of_no_agent_never(
    stack: Stack,
) -> None:
    of_group(stack, replace(GROUP, agent=None))
    assert ("payment",) not in stack.asked
    for _ in range(5):
        of_group(stack)
        stack.at += MINUTE
    assert stack.asked.count(("payment",)) == 1
    of_group(stack)
    assert stack.asked.count(("payment",)) == 2


def test_a_span_that_there_is_not_is_the_usual_one_or_that_of_the_group(stack: Stack) -> None:
    assert of_stack(stack, "9h").period == "3h"
    assert of_stack(stack, "24h").period == "24h"
    assert of_group(stack, period="9h").period == "1h"
    assert of_group(stack, period="12h").period == "12h"
    early = replace(GROUP, first_at=AT - 120 * MINUTE)
    assert of_group(stack, early, "").period == "3h"
    assert of_stack(stack).periods == SPANS


# ---- what is not known ---------------------------------------------------------------------------


def test_deployments_that_were_not_read_are_said_and_none_are_not(stack: Stack) -> None:
    assert of_stack(stack, published=None).not_read == "Deployments are not known yet."
    assert of_stack(stack, published=()).not_read == ""
    assert of_group(stack).not_read == ""

    def refused() -> list[Published]:
        raise CallRefused("reading versions: AccessDenied")

    stack.published, stack.at = refused, AT + 5 * MINUTE
    assert of_group(stack).not_read.startswith("Deployments are not known: reading versions")


def test_a_total_is_known_if_each_minute_is_that_cloudwatch_should_have(stack: Stack) -> None:
    """The last three minutes may still be on their way."""
    known = (1,) * 57
    stack.ends = {
        TaskState.COMPLETED: (*known, 2, None, None),
        TaskState.UNDONE: (None, *known[1:], 0, 0, 0),
        TaskState.ARCHIVED: (*known[1:], None, 0, 0, 0),
    }
    totals = of_stack(stack).totals
    assert totals == {
        TaskState.COMPLETED.value: 59,
        TaskState.UNDONE.value: None,
        TaskState.ARCHIVED.value: None,
    }


def test_the_share_that_completed_is_known_if_every_end_is(stack: Stack) -> None:
    one, none = (1,) * 60, (0,) * 60
    stack.ends = {
        TaskState.COMPLETED: (3,) * 60,
        TaskState.UNDONE: one,
        TaskState.ARCHIVED: none,
    }
    assert of_stack(stack).completed_share is None
    stack.ends[TaskState.CANCELLED] = none
    stack.at += MINUTE
    assert of_stack(stack).completed_share == 0.75


def test_attempts_that_succeeded_since_are_unknown_where_no_step_is_counted(stack: Stack) -> None:
    whole = replace(GROUP, step=NO_STEP)
    assert of_group(stack, whole).succeeded_since(AT - 10 * MINUTE) is None
    assert of_group(stack).succeeded_since(AT - 10 * MINUTE) == 9


def test_a_course_is_late_if_cloudwatch_counts_the_accepted_orders(stack: Stack) -> None:
    assert of_stack(stack).is_late
    stack.missing, stack.at = LOCAL, AT + MINUTE
    assert not of_stack(stack).is_late
    stack.missing, stack.of_step, stack.at = None, stack.of_step[1:], AT + 2 * MINUTE
    assert not of_group(stack).is_late


# ---- what is drawn -------------------------------------------------------------------------------


def labels(shown: ShownCourse) -> list[str]:
    return [row.label for row in shown.drawing.rows]


def test_of_all_orders_the_cancelled_are_counted_and_not_drawn(stack: Stack) -> None:
    shown = of_stack(stack)
    assert labels(shown) == ["accepted", "completed", "failed"]
    assert "cancelled" in {one.name for one in shown.found.series}
    assert shown.sources


def test_what_a_local_stack_does_not_measure_is_not_drawn_beside_a_group(stack: Stack) -> None:
    stack.missing = LOCAL
    assert labels(of_group(stack)) == ["orders in the group now, by when they failed"]
    stack.missing, stack.at = "not measured in lean", AT + MINUTE
    assert labels(of_group(stack))[0] == "accepted", "as a gap that says why"


def test_a_sentence_of_the_page_takes_the_place_of_that_of_the_course(stack: Stack) -> None:
    own = of_group(stack).found.sentence
    told = course_of_group(stack.inspector, GROUP, [], "1h", "It is over.")
    assert told.found.sentence == "It is over."
    assert own
    assert own != "It is over."


def test_the_marks_are_those_of_the_agent_of_all_orders_and_of_this_hour(stack: Stack) -> None:
    def hold(agent: str, at: int, workflow: str = "") -> Hold:
        return Hold(agent, OPERATOR, at, AT + 60 * MINUTE, "why", "amy", workflow=workflow)

    stack.holds = [
        hold("payment", AT - 5 * MINUTE),
        hold("mail", AT - 5 * MINUTE),
        hold("", AT, EVERY_WORKFLOW),
        hold("payment", AT - 61 * MINUTE),
    ]
    stack.published = lambda: [Published("Payment", 41, AT - 7 * MINUTE)]
    assert [one.about for one in of_group(stack).found.marks] == [
        "Payment",
        "payment",
        "everything",
    ]
    without = of_group(stack, replace(GROUP, agent=None))
    assert [one.about for one in without.found.marks] == ["everything"]
    every = of_stack(stack, published=[Published("Mail", 3, AT)])
    assert [one.about for one in every.found.marks] == ["payment", "mail", "Mail", "everything"]


def test_only_the_mark_of_a_bulk_run_leads_to_a_page(stack: Stack) -> None:
    stack.runs = [ListedRun("b-1a2b3c4d", "AROA:amy", AT)]
    stack.holds = [Hold("payment", OPERATOR, AT, AT + MINUTE, "why", "amy")]
    shown = of_stack(stack)
    assert len(shown.found.marks) == 2
    assert shown.links == {"b-1a2b3c4d": "/bulk/b-1a2b3c4d"}
