"""The scheduler reads no task that it has just stored, and stores nothing over another write."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.events import Claimant, HistoryRow, Outcome, Replied
from roundsman.model.instants import MINUTE
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import PERFORM, Owed, StepRecord, Task
from roundsman.ports import OrderRow, Saved, Superseded
from roundsman.scheduler.task_cache import KEPT_FOR, MAX_BYTES, MAX_STEPS, MAX_TASKS, TaskCache
from roundsman.wire.commands import START, Command
from roundsman_testing import Faults
from tests.support.machine_world import plan, step
from tests.support.shell_world import ORDER_ID, Shells
from tests.support.supervision_world import LINE

NOW = 5_000
PLAN = plan(step("only"))
CLAIMED = StepRecord(process_state=ProcessState.PROCESSING, locked_by="s1/m1/1", complete_by=9_000)
DONE = StepRecord(process_state=ProcessState.PROCESSED, result="done")


def waiting(task_id: str = "ord-1", /, **steps: StepRecord) -> Task:
    task = new_task(PLAN, task_id, ProcessingOptions(), 1_000, shards=1)
    return replace(task, steps=steps or {"only": CLAIMED})


def reply(lock: str = "s1/m1/1", name: str = "only") -> Replied:
    return Replied(Claimant("s1", "m2"), name, PERFORM, lock, "key", Outcome.SUCCEEDED)


def kept(task: Task) -> bool:
    cache = TaskCache()
    cache.keep(task, NOW)
    return cache.take(task.task_id, reply(), NOW) is task


def test_the_reply_to_the_stored_claim_finds_the_task_once() -> None:
    cache, task = TaskCache(), waiting()
    cache.keep(task, NOW)
    assert cache.take("ord-1", reply(), NOW) is task
    assert cache.take("ord-1", reply(), NOW) is None


def test_a_reply_to_another_claim_finds_nothing() -> None:
    for event in (reply("s2/m7/2"), reply(name="other")):
        cache = TaskCache()
        cache.keep(waiting(), NOW)
        assert cache.take("ord-1", event, NOW) is None


def test_a_task_that_was_stored_long_ago_is_not_used() -> None:
    """The tables may have been restored since; a restore takes longer."""
    for later, used in ((KEPT_FOR, True), (KEPT_FOR + 1, False)):
        cache = TaskCache()
        cache.keep(waiting(), NOW)
        assert (cache.take("ord-1", reply(), NOW + later) is not None) is used
    assert KEPT_FOR == MINUTE


def test_a_task_is_kept_only_if_one_reply_is_all_it_waits_for() -> None:
    assert kept(waiting())
    assert kept(waiting(only=CLAIMED, first=DONE))
    assert not kept(waiting(only=CLAIMED, other=CLAIMED)), "the other reply may come elsewhere"
    assert not kept(waiting(only=replace(CLAIMED, heartbeat_by=5_000)))
    assert not kept(waiting(only=replace(CLAIMED, waiting=True)))
    assert not kept(replace(waiting(), state=TaskState.COMPLETED, ended_at=2_000))
    assert not kept(replace(waiting(), order_expires=True))


def test_a_task_that_owes_a_status_is_not_kept() -> None:
    """Its removal from the record has no version of its own, so a later write could repeat it."""
    owed = Owed("status", "processing", 2, 1_000, "started")
    assert not kept(replace(waiting(), owed=(owed,)))


def test_no_large_task_is_kept() -> None:
    assert kept(waiting(only=CLAIMED, first=replace(DONE, result="x" * (MAX_BYTES - 2))))
    assert not kept(waiting(only=CLAIMED, first=replace(DONE, result="x" * (MAX_BYTES - 1))))
    many: dict[str, StepRecord] = {f"step-{number}": DONE for number in range(MAX_STEPS - 1)}
    assert kept(waiting(only=CLAIMED, **many))
    assert not kept(waiting(only=CLAIMED, one_more=DONE, **many))


def test_the_task_that_was_stored_first_is_forgotten_first() -> None:
    cache = TaskCache()
    for number in range(MAX_TASKS + 1):
        cache.keep(waiting(f"ord-{number}"), NOW)
    assert cache.take("ord-0", reply(), NOW) is None
    assert cache.take("ord-1", reply(), NOW) is not None


def test_a_later_version_that_cannot_be_kept_replaces_an_earlier_one() -> None:
    cache = TaskCache()
    cache.keep(waiting(), NOW)
    cache.keep(waiting(only=DONE), NOW)
    assert cache.take("ord-1", reply(), NOW) is None


def line() -> Shells:
    shells = Shells(LINE, options=ProcessingOptions())  # no statuses: each write is a decision
    shells.submit()
    return shells


def test_an_instance_reads_a_task_once_and_decides_each_reply_on_what_it_stored() -> None:
    shells, faults = line(), Faults()
    scheduler = shells.scheduler(faults)
    scheduler.command(Command(START, ORDER_ID), "m-start")
    for name in ("first", "second"):
        scheduler.reply(shells.reply_to(name), f"m-{name}")
    assert shells.task().ended
    assert faults.calls.count("load_eventually") == 1
    assert faults.calls.count("load") == 0
    assert faults.calls.count("save") == 3


def test_a_reply_that_comes_late_is_decided_on_a_read() -> None:
    shells, faults = line(), Faults()
    scheduler = shells.scheduler(faults)
    scheduler.command(Command(START, ORDER_ID), "m-start")
    shells.now += KEPT_FOR + 1
    scheduler.reply(shells.reply_to("first"), "m-first")
    assert faults.calls.count("load_eventually") == 2


def test_a_task_whose_rows_have_moved_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task in hand does not know the rows that the store has just written or removed."""
    shells, faults = line(), Faults()
    save = shells.store.save

    def moving(task: Task, *, seen: int, history: Sequence[HistoryRow] = ()) -> Saved | Superseded:
        saved = save(task, seen=seen, history=history)
        return replace(saved, moved=True) if isinstance(saved, Saved) else saved

    monkeypatch.setattr(shells.store, "save", moving)
    scheduler = shells.scheduler(faults)
    scheduler.command(Command(START, ORDER_ID), "m-start")
    for name in ("first", "second"):
        scheduler.reply(shells.reply_to(name), f"m-{name}")
    assert shells.task().ended
    assert faults.calls.count("load_eventually") == 3


def test_a_reply_that_another_instance_has_handled_is_decided_on_the_record() -> None:
    shells, faults = line(), Faults()
    scheduler = shells.scheduler(faults)
    scheduler.command(Command(START, ORDER_ID), "m-start")
    twice = shells.reply_to("first")
    shells.scheduler(instance="s2").reply(twice, "m-1")
    stored = shells.task()
    handled = scheduler.reply(twice, "m-2")
    assert shells.task() == stored, "the write on the kept version was refused"
    assert handled.task == stored, "and the decision made on the record that was read then"
    assert faults.calls.count("load") == 1
    assert len(shells.requests()) == 2


def test_a_kept_task_is_never_stored_over_another_one_that_has_taken_its_id() -> None:
    shells, faults = line(), Faults()
    scheduler = shells.scheduler(faults)
    scheduler.command(Command(START, ORDER_ID), "m-start")
    late, before = shells.reply_to("first"), shells.task()
    shells.store.remove_task(ORDER_ID)
    shells.store.remove_order(ORDER_ID)
    other = replace(before, created_at=before.created_at + 1)
    shells.store.create(OrderRow(ORDER_ID, {}, "hash", other.created_at), other)
    assert shells.task().version == before.version
    scheduler.reply(late, "m-1")
    assert shells.task().created_at == other.created_at
