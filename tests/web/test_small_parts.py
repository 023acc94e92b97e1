"""What pages are made of: reasons in words, alerts by severity, the axis of times, what is kept."""

from dataclasses import replace

import pytest

from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import MINUTE, second
from roundsman.model.situations import Asleep, AwaitsSignal
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, StepRecord, Task, Termination
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.faces.web.readings import cache as remembered
from roundsman_console.faces.web.readings.cache import Cached
from roundsman_console.facts.finding.report import Finding, worst_first
from roundsman_console.facts.finding.table import AlertSeverity, StandingKind
from roundsman_console.facts.orders.reasons import reason_of
from roundsman_console.inspector import Inspector
from tests.support.machine_world import T0, World, plan, step
from tests.support.steps import step_record

PLAN = plan(step("a"), step("b", "a"))


def waiting(**steps: StepRecord) -> Task:
    return replace(World(PLAN).task, state=TaskState.RETRY, steps=steps)


def test_an_order_says_what_it_waits_for() -> None:
    failed = StepError("TransientError", "POST answered 503")
    failed_words = "TransientError: POST answered 503"
    asleep = StepRecord(situation=Asleep(until=T0 + MINUTE, since=T0))
    assert reason_of(waiting(a=asleep)) == f"a: asleep until {second(T0 + MINUTE)}"
    awaits = StepRecord(situation=AwaitsSignal(until=T0 + MINUTE, since=T0))
    until = second(T0 + MINUTE)
    assert reason_of(waiting(a=awaits)) == f"a: waits for its signal until {until}"
    polled = step_record(polls=1, poll_until=T0 + MINUTE, polled_since=T0, not_before=T0 + 1_000)
    assert reason_of(waiting(a=polled)) == f"a: polled again at {second(T0 + 1_000)}"
    assert reason_of(waiting()) == "waits for the scheduler"
    assert reason_of(waiting(a=step_record(error=failed))) == f"a: tried again after {failed_words}"
    again = waiting(a=step_record(error=failed, not_before=T0 + MINUTE))
    assert reason_of(again) == f"a: tried again after {failed_words}, at {second(T0 + MINUTE)}"


def test_an_order_that_waits_for_a_held_agent_says_who_holds_it() -> None:
    held = step_record(held_since=T0, not_before=T0, error=StepError("AgentHeld", "on hold by amy"))
    assert reason_of(waiting(a=held)) == "a: waits: on hold by amy"
    assert reason_of(waiting(a=replace(held, error=None))) == "a: waits for its agent"
    until = T0 + MINUTE
    hold = Hold(PLAN.steps["a"].agent, OPERATOR, T0, until, "maintenance", "amy")
    sentence = (
        f"a: waits for {hold.agent}, which is held by amy: maintenance, until {second(until)}"
    )
    assert reason_of(waiting(a=held), PLAN, [hold]) == sentence
    assert reason_of(waiting(a=replace(held, agent=hold.agent)), None, [hold]) == sentence
    elsewhere = replace(hold, agent="other")
    assert reason_of(waiting(a=held), PLAN, [elsewhere]) == "a: waits: on hold by amy"


def test_an_order_whose_undo_failed_says_so_and_not_why_it_was_undone() -> None:
    refused = step_record(process_state=ProcessState.UNDO_ERROR, error=StepError("Gone", "no"))
    ending = Termination(TaskState.ARCHIVED, "b: declined", "b", undo=True)
    task = replace(waiting(a=refused), state=TaskState.ARCHIVED, ended_at=T0, ending=ending)
    assert reason_of(task) == "the undo of a failed: Gone: no"
    assert reason_of(replace(task, steps={})) == "b: declined"


def test_an_order_that_is_under_way_says_where() -> None:
    busy = step_record(process_state=ProcessState.PROCESSING, agent="payment", started_at=T0)
    assert reason_of(waiting(a=busy)) == "a: at payment"
    assert reason_of(waiting(a=busy, b=busy)) == "a, b: under way"


def test_an_order_that_completed_or_waits_for_its_time_says_so() -> None:
    task = World(PLAN).task
    assert reason_of(replace(task, state=TaskState.COMPLETED, ended_at=T0)) == ""
    assert reason_of(replace(task, state=TaskState.SCHEDULED)) == (
        f"starts at {second(task.start_at)}, as it asked"
    )


def test_the_worst_alert_comes_first_and_of_one_severity_the_newest() -> None:
    def concern(severity: AlertSeverity, since: int | None) -> Finding:
        return Finding(StandingKind.ALARM, "", f"{severity}-{since}", since=since, graded=severity)

    found = worst_first(
        [
            *(concern("info", 9), concern("error", 1), concern("critical", None)),
            *(concern("critical", 2), concern("error", 3)),
        ]
    )
    names = ["critical-2", "critical-None", "error-3", "error-1", "info-9"]
    assert [one.sentence for one in found] == names


def test_a_value_is_kept_for_its_time_and_an_error_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = [T0]
    monkeypatch.setattr(remembered, "now", lambda: instant[0])
    kept: Cached[int] = Cached(keep=MINUTE)
    one, other = (Inspector(DeployedStack(name, {}, {})) for name in ("one", "other"))
    reads: list[int] = []

    def read() -> int:
        reads.append(instant[0])
        if len(reads) == 1:
            raise ConnectionError
        return len(reads)

    with pytest.raises(ConnectionError):
        kept.get(one, read)
    assert kept.get(one, read) == kept.get(one, read) == 2
    assert kept.get(other, read) == 3, "each stack has its own"
    instant[0] += MINUTE
    assert kept.get(one, read) == 4
    instant[0] -= 2 * MINUTE
    assert kept.get(one, read) == 5, "a clock that was set back keeps nothing"
