"""What pages are made of: reasons in words, alerts by severity, the axis of times, what is kept."""

from dataclasses import replace

import pytest

from roundsman.model.events import HistoryRow
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import MINUTE, SECOND, second
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, StepRecord, Task, Termination
from roundsman_console.alert.documents import AlertSeverity
from roundsman_console.inspector import Inspector
from roundsman_console.order.page import StepRow, fold
from roundsman_console.orders.reasons import reason_of
from roundsman_console.stack.attention import Concern, worst_first
from roundsman_console.stack.stack import DeployedStack
from roundsman_console.web import remembered
from roundsman_console.web.drawings.gantt import bars
from roundsman_console.web.remembered import Remembered
from tests.support.machine_world import T0, World, plan, step

PLAN = plan(step("a"), step("b", "a"))


def waiting(**steps: StepRecord) -> Task:
    return replace(World(PLAN).task, state=TaskState.RETRY, steps=steps)


def test_an_order_says_what_it_waits_for() -> None:
    failed = StepError("TransientError", "POST answered 503")
    failed_words = "TransientError: POST answered 503"
    assert reason_of(waiting()) == "waits for the scheduler"
    assert reason_of(waiting(a=StepRecord(error=failed))) == f"a: tried again after {failed_words}"
    again = waiting(a=StepRecord(error=failed, not_before=T0 + MINUTE))
    assert reason_of(again) == f"a: tried again after {failed_words}, at {second(T0 + MINUTE)}"


def test_an_order_that_waits_for_a_held_agent_says_who_holds_it() -> None:
    held = StepRecord(held_since=T0, error=StepError("AgentHeld", "on hold by amy"))
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
    refused = StepRecord(process_state=ProcessState.UNDO_ERROR, error=StepError("Gone", "no"))
    ending = Termination(TaskState.ARCHIVED, "b: declined", "b", undo=True)
    task = replace(waiting(a=refused), state=TaskState.ARCHIVED, ended_at=T0, ending=ending)
    assert reason_of(task) == "the undo of a failed: Gone: no"
    assert reason_of(replace(task, steps={})) == "b: declined"


def test_many_items_of_a_fan_out_are_folded_and_those_that_failed_are_shown() -> None:
    def row(name: str, state: ProcessState) -> StepRow:
        record = StepRecord(process_state=state, started_at=T0)
        return StepRow(name, record, "", "", "0", "", "", may_stand=False)

    done, failed, busy = ProcessState.PROCESSED, ProcessState.ERROR, ProcessState.PROCESSING
    items = [row(f"a[{place}]", busy if place < 10 else done) for place in range(30)]
    items[29] = row("a[29]", failed)
    shown, folded = fold([*items, row("b", done)])
    names = [one.name for one in shown]
    assert names == [*(f"a[{place}]" for place in range(7)), "a[29]", "b"]
    assert [(one.step, len(one.rows)) for one in folded] == [("a", 30)]
    assert folded[0].states == ((failed, 1), (busy, 10), (done, 19))
    assert fold(items[:8]) == (items[:8], []), "a few are rows as any other"


def test_the_items_of_a_fan_out_share_one_line_of_times() -> None:
    made = plan(step("a", for_each="input.lines"))
    record = StepRecord(process_state=ProcessState.PROCESSED, started_at=T0, finished_at=T0 + 10)
    steps = {"a[0]": record, "a[1]": replace(record, started_at=T0 + 20, finished_at=T0 + 30)}
    task = replace(World(made, order={"lines": [1, 2]}).task, steps=steps, fan_outs={"a": 2})
    task = replace(task, created_at=T0)
    row = HistoryRow(1, T0 + 5, "failed", "a[1]", 1, "no")
    drawn = bars(task, made.expanded({"a": 2}), [row], T0 + 100)
    (line,) = drawn.steps
    assert (line.step, line.state) == ("a", "Processed")
    (bar,) = line.bars
    assert (bar.x, bar.width, bar.words) == (0, 300, "attempt, 2 of 2 items, 30 ms")
    assert [(mark.x, mark.failure) for mark in line.marks] == [(50, True)]


def test_an_order_that_is_under_way_says_where() -> None:
    busy = StepRecord(process_state=ProcessState.PROCESSING, agent="payment", started_at=T0)
    assert reason_of(waiting(a=busy)) == "a: at payment"
    assert reason_of(waiting(a=busy, b=busy)) == "a, b: under way"


def test_an_order_that_completed_or_waits_for_its_time_says_so() -> None:
    task = World(PLAN).task
    assert reason_of(replace(task, state=TaskState.COMPLETED, ended_at=T0)) == ""
    assert reason_of(replace(task, state=TaskState.SCHEDULED)) == (
        f"starts at {second(task.start_at)}, as it asked"
    )


def test_the_worst_alert_comes_first_and_of_one_severity_the_newest() -> None:
    def concern(severity: AlertSeverity, since: int | None) -> Concern:
        return Concern(severity, f"{severity}-{since}", "/", since)

    found = worst_first(
        [
            *(concern("info", 9), concern("error", 1), concern("critical", None)),
            *(concern("critical", 2), concern("error", 3)),
        ]
    )
    names = ["critical-2", "critical-None", "error-3", "error-1", "info-9"]
    assert [one.sentence for one in found] == names


def test_the_axis_of_times_is_from_the_submission_to_the_end() -> None:
    task = replace(World(PLAN).task, ended_at=T0 + 40 * SECOND)
    drawn = bars(replace(task, created_at=T0), PLAN, [], T0 + MINUTE)
    assert [words for _, words in drawn.ticks] == ["0 ms", "10 s", "20 s", "30 s", "40 s"]
    assert [x for x, _ in drawn.ticks] == [0, 250, 500, 750, 1000]


def test_a_value_is_kept_for_its_time_and_an_error_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = [T0]
    monkeypatch.setattr(remembered, "now", lambda: instant[0])
    kept: Remembered[int] = Remembered(keep=MINUTE)
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
