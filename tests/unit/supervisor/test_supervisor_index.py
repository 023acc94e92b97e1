"""The supervisor and an index that lags behind the records, and where it leaves what it ended."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from roundsman.definition.workflow import Undo
from roundsman.engine.due import Lane, lane_key
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman.ports import DueEntry
from roundsman.supervisor.supervisor import Supervisor, SupervisorConfig
from roundsman_testing.faults import Faults, FaultyStore
from roundsman_testing.memory import MemoryOrderLimits
from tests.support.machine_world import T0, plan
from tests.support.shell_world import ORDER_ID, SHARDS, Shells
from tests.support.supervision_world import LATER, first, passed, started, submitted


def test_a_task_that_a_pass_ends_stands_in_its_lane_at_the_instant_of_its_end() -> None:
    """It is no open task any more: the lists of what is over go by that instant."""
    kept = plan(first, on_failure=Undo(), retain_for=timedelta(days=1))
    shells = submitted(Shells(kept, ProcessingOptions()))
    shells.start()
    passed(shells.wait(3_600))
    task = shells.task()
    assert task.state is TaskState.UNDONE
    done = lane_key(Lane.DONE, task.shard)
    assert list(shells.store.due(done, shells.now + MINUTE)) == [DueEntry(ORDER_ID, shells.now)]
    assert task.ended_at == shells.now


class StaleIndex(FaultyStore):
    """An index that still shows what has moved on."""

    entries: tuple[DueEntry, ...] = ()

    def due(self, lane: str, until: int) -> Iterator[DueEntry]:
        yield from self.entries if lane == lane_key(Lane.OPEN, 0) else ()
        yield from super().due(lane, until)


def supervisor_over(shells: Shells, store: FaultyStore) -> Supervisor:
    return Supervisor(
        tasks=store,
        plans=shells.plans,
        board=shells.board,
        groups=shells.groups,
        outbox=shells.outbox,
        clock=shells.clock,
        jitter=lambda: 0.0,
        config=SupervisorConfig(shells.leases, "u1", SHARDS, MINUTE),
        limits=MemoryOrderLimits,
        on_trouble=lambda task_id, problem: shells.troubles.append(task_id),
    )


def test_entries_of_tasks_that_are_gone_ended_or_not_due_change_nothing() -> None:
    shells = started()
    shells.reply("first")
    shells.reply("second")
    shells.submit("ord-2")
    shells.outbox.sent.clear()
    before = shells.store.tasks()
    store = StaleIndex(shells.store, Faults(), shells.look)
    names = ("nobody", ORDER_ID, "ord-2")
    store.entries = tuple(DueEntry(name, T0 - MINUTE) for name in names)
    report = supervisor_over(shells, store).make_pass(stop_at=LATER)
    assert report.looked_at == 3
    assert (report.archived, report.troubled, report.deferred) == (0, 0, 0)
    assert [replace(task, due_at=0) for task in shells.store.tasks()] == [
        replace(task, due_at=0) for task in before
    ]
    assert set(shells.starts()) <= {"ord-2"}, "a Start is harmless"


def test_an_entry_that_lags_behind_the_end_of_its_task_costs_one_read() -> None:
    """No plan is read and nothing is written for it, however long the index shows it."""
    shells = submitted(Shells(plan(first, retain_for=timedelta(days=1))))
    shells.start()
    shells.reply("first")
    assert shells.task().state is TaskState.COMPLETED
    faults = Faults()
    store = StaleIndex(shells.store, faults, shells.look)
    store.entries = (DueEntry(ORDER_ID, T0 - MINUTE),)
    report = supervisor_over(shells, store).make_pass(stop_at=LATER)
    assert (report.looked_at, report.rearmed) == (1, 0)
    assert [call for call in faults.calls if call != "due"] == ["load"]
