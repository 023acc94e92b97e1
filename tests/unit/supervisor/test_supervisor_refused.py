"""The supervisor while AWS refuses its calls: no record is taken for broken because of it."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from roundsman.definition.plan import Plan
from roundsman.engine.due import LONG_START_INTERVAL
from roundsman.errors import UnreadableRecord
from roundsman.model.instants import MINUTE, SECOND
from roundsman.ports import AgentBoard, PlanStore
from roundsman.supervisor.supervisor import PassReport, Supervisor, SupervisorConfig
from roundsman.wire.commands import Command
from roundsman_testing.faults import (
    Fault,
    Faults,
    FaultyBoard,
    FaultyGroups,
    FaultyLeases,
    FaultyOutbox,
    FaultyPlans,
    FaultyStore,
)
from roundsman_testing.memory import MemoryOrderLimits
from tests.support.machine_world import plan, step
from tests.support.shell_world import SHARDS, Shells

LINE = plan(step("first"), complete_within=timedelta(days=1))
NAMES = [f"ord-{n}" for n in range(12)]
FOR_ALL = ["read_board", "plan", "load"]
HINDERS = [*FOR_ALL, "due", "save", "send_start"]


@dataclass
class Passes:
    """Passes of one supervisor, and what it reported as it met with it."""

    shells: Shells
    faults: Faults
    supervisor: Supervisor
    troubles: list[tuple[str, str]]

    def make(self) -> PassReport:
        return self.supervisor.make_pass(stop_at=self.shells.now + MINUTE)

    def entries(self) -> list[int | None]:
        return [self.shells.open_entry(name) for name in NAMES]


def overdue(faults: Faults | None = None, plans: PlanStore | None = None) -> Passes:
    """Twelve tasks in all shards, the attempts of which are overdue by a second."""
    shells = Shells(LINE)
    for name in NAMES:
        shells.submit(name)
        shells.scheduler().command(Command(kind="start", task_id=name), f"m-{name}")
    shells.outbox.sent.clear()
    shells.wait(31)
    faults = faults or Faults()
    troubles: list[tuple[str, str]] = []
    board: AgentBoard = FaultyBoard(shells.board, faults)
    supervisor = Supervisor(
        tasks=FaultyStore(shells.store, faults, shells.look),
        plans=plans or FaultyPlans(shells.plans, faults),
        board=board,
        groups=FaultyGroups(shells.groups, faults),
        outbox=FaultyOutbox(shells.outbox, faults),
        clock=shells.clock,
        jitter=lambda: 0.5,
        config=SupervisorConfig(FaultyLeases(shells.leases, faults), "u1", SHARDS, MINUTE),
        limits=MemoryOrderLimits,
        on_trouble=lambda task_id, problem: troubles.append((task_id, type(problem).__name__)),
    )
    return Passes(shells, faults, supervisor, troubles)


def refusing(call: str) -> Faults:
    return Faults().on(call, Fault.REFUSED)


@pytest.mark.parametrize("call", [*HINDERS, "rearm", "read_leases", "read_groups"])
def test_after_hours_of_refused_calls_the_first_pass_moves_everything_on(call: str) -> None:
    # What nobody answers is looked at less often, and a task that fails of nothing is stored.
    moves = call in ("read_leases", "read_groups", "send_start", "rearm")
    latest = LONG_START_INTERVAL if moves else MINUTE
    passes = overdue(refusing(call))
    for _ in range(8):
        passes.make()
        entries = [entry for entry in passes.entries() if entry is not None]
        assert len(entries) == len(NAMES)
        assert max(entries) <= passes.shells.now + latest, "nothing is put off"
        passes.shells.wait(20 * 60)
    assert passes.shells.alerts() == []
    passes.shells.outbox.sent.clear()
    passes.faults.stop()  # the same instance goes on
    passes.make()
    assert sorted(passes.shells.starts()) == sorted(NAMES)


@pytest.mark.parametrize("call", FOR_ALL)
def test_what_is_refused_for_one_task_is_asked_for_no_other_in_that_pass(call: str) -> None:
    passes = overdue(refusing(call))
    report = passes.make()
    assert passes.faults.calls.count(call) == 1
    assert (report.looked_at, report.deferred) == (1, len(NAMES))
    assert report.blind
    assert report.lag == SECOND, "what waits is reported all the same"


@pytest.mark.parametrize("call", HINDERS)
def test_a_refused_call_is_reported_once_a_pass_and_not_once_a_task(call: str) -> None:
    passes = overdue(refusing(call))
    for number in range(1, 4):
        report = passes.make()
        assert len(passes.troubles) == number
        assert {kind for _, kind in passes.troubles} == {"CallRefused"}
        assert report.troubled == 1
        assert report.refused is not None
        passes.shells.wait(60)


def test_a_pass_that_reads_no_record_sends_ahead_what_falls_due_all_the_same() -> None:
    passes = overdue(refusing("read_board"))
    passes.shells.submit("ord-soon")
    passes.shells.outbox.sent.clear()
    report = passes.make()
    assert [name for name, _ in passes.shells.inspects()] == ["ord-soon"]
    assert report.ahead == 1


def test_a_refused_write_of_one_task_keeps_no_other_waiting() -> None:
    passes = overdue(Faults().on("save", Fault.REFUSED, nth=1))
    report = passes.make()
    assert len(passes.shells.starts()) == len(NAMES) - 1
    assert (report.deferred, report.troubled, report.blind) == (1, 1, False)


class Altered:
    """A PlanStore whose row was changed by another hand."""

    def __init__(self) -> None:
        self.calls = 0

    def put_plan(self, plan: Plan) -> None:
        """Not asked here."""

    def plan(self, plan_hash: str) -> Plan | None:
        self.calls += 1
        raise UnreadableRecord(f"plan#{plan_hash}", "Text", "is not a plan")


def test_a_plan_that_cannot_be_read_postpones_none_of_its_tasks_and_is_alerted_once() -> None:
    passes = overdue(plans=Altered())
    before = passes.entries()
    for number in range(1, 6):
        report = passes.make()
        assert (report.troubled, report.deferred) == (1, len(NAMES))
        assert len(passes.troubles) == number, "once a pass"
        passes.shells.wait(60)
    assert passes.entries() == before
    assert passes.shells.alerts()[0] == "task_unreadable"
    assert sorted(passes.shells.standing_in("task_unreadable")) == sorted(NAMES)
