"""Failures that are out of the ordinary: strange records, and texts that never repeat."""

from dataclasses import replace
from typing import Never

import pytest

from roundsman.alerts.group import MOST_OPEN, Census, alerted, evaluate, opened
from roundsman.alerts.reporter import KNOWN_FOR
from roundsman.errors import UnreadableRecord
from roundsman.model.failure import failure_of
from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman.model.task import StepError
from roundsman.wire.alert import Alert
from roundsman_testing.faults import Fault, Faults
from roundsman_testing.memory import MemoryGroups, MemoryStore
from tests.support.machine_world import T0
from tests.support.shell_world import ORDER_ID
from tests.unit.alerts.test_census import ONE, Counting, archived, failure_named, reporter


def test_a_group_that_cannot_be_looked_at_keeps_no_due_task_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shells = archived(Faults())
    shells.submit("ord-waits")
    shells.outbox.sent.clear()

    def strange(*_: object, **__: object) -> Never:
        raise UnreadableRecord(ORDER_ID, "FailedAt", "is not a whole number")

    monkeypatch.setattr(MemoryStore, "members", strange)
    report = shells.wait(60).supervisor().make_pass(stop_at=shells.now + MINUTE)
    [group] = shells.groups.groups()
    assert report.groups.problems == [(group.id, "unexpected UnreadableRecord")]
    assert "ord-waits" in shells.starts()


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.REFUSED])
def test_a_first_alert_waits_for_no_index(fault: Fault) -> None:
    shells = archived(Faults().on("publish", Fault.REFUSED))
    assert shells.alerts() == []
    cannot_count = Faults().on("members", fault)
    shells.wait(60).supervisor(cannot_count).make_pass(stop_at=shells.now + MINUTE)
    assert shells.alerts() == ["task_archived"]
    [group] = shells.groups.groups()
    assert group.alerted_at == shells.now


@pytest.mark.parametrize("instant", [10**18, -(10**18)])
def test_an_instant_that_no_calendar_has_keeps_no_alert_back(instant: int) -> None:
    shells = archived(Faults())
    shells.groups = MemoryGroups()
    shells.outbox.sent.clear()
    shells.store.put(replace(shells.task(), complete_by=instant))
    reporter(shells).failed(shells.task(), ONE)
    [alert] = [each for each in shells.outbox.sent if isinstance(each, Alert)]
    assert f"{instant} ms" in alert.text


@pytest.mark.parametrize("how", ["archived", "undone"])
def test_texts_that_never_repeat_cost_a_full_row_a_write_every_few_seconds(how: str) -> None:
    """A write that the row's condition refuses costs what the whole row does, some 40 units."""
    shells, groups = archived(Faults()), Counting()
    for number in range(MOST_OPEN):
        failure = failure_named(f"Kind{number}")
        groups.open(opened(failure, agent="", task_id="x", since=T0, now=T0))
    groups.reads = groups.writes = 0
    one, task = reporter(shells, groups), shells.task()
    assert task.ending is not None
    for number in range(1_000):
        shells.now = T0 + number * KNOWN_FOR // 1_000
        error = StepError(f"Kind{'x' * number}", "never the same")
        failed = replace(task, ending=replace(task.ending, error=error))
        if how == "archived":
            assert one.failed(failed, ONE) is not None
        else:
            one.ended(task, replace(failed, state=TaskState.UNDONE), ONE)
    assert groups.reads <= 2
    assert groups.writes <= 3, "refused once; the overflow group opened, and alerted"
    shells.now += KNOWN_FOR
    groups.remove(groups.groups()[0])
    groups.remove(groups.groups()[0])
    reported, own = one.failed(task, ONE), failure_of(task)
    assert reported is not None
    assert own is not None
    assert reported.group == own.group, "there is room again"


def test_a_number_that_goes_up_and_down_makes_no_storm_of_updates() -> None:
    group, updates = (
        alerted(opened(failure_named("A"), agent="", task_id="a", since=0, now=0), 1, 0),
        0,
    )
    for minute in range(1, 61):
        census = Census(count=4 if minute % 2 else 1, first_at=1, last_at=2, samples=("a",))
        verdict = evaluate(group, census, minute * MINUTE, undone_count=20)
        group = verdict.group
        if verdict.news is not None:
            updates, group = updates + 1, alerted(group, census.count, minute * MINUTE)
    assert updates == 1
