"""Several threads at one record: real ones, so only where the engine's own writes are atomic."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Barrier

import pytest

from roundsman.engine.due import Lane, due, is_closed, lane_key, without_owed
from roundsman.errors import TryAgain
from roundsman.model.events import HistoryRow
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.task import Task
from roundsman.ports import Created, Exists, Saved, Superseded
from tests.contract.samples import NOW, born, claimed, completed, order_row, owing
from tests.contract.worlds import World

THREADS = 8
ROUNDS = 10
DELIVERIES = 100


def together(calls: Sequence[Callable[[], object]]) -> list[object]:
    """Make the calls at one moment, each in a thread of its own; their results in order."""
    start = Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def decide(world: World, task: Task, seen: int, *history: HistoryRow) -> Saved | Superseded:
    """Store a decision as a handler does: what may pass is tried again, as by redelivery."""
    for _ in range(DELIVERIES):
        with suppress(TryAgain):
            return world.store.save(task, seen=seen, history=history)
    raise AssertionError(f"in conflict {DELIVERIES} times")


@pytest.mark.parametrize("with_history", [False, True])
def test_of_eight_decisions_on_one_version_exactly_one_is_stored(
    atomic_world: World, with_history: bool
) -> None:
    task = born()
    atomic_world.store.create(order_row(), task)
    for _ in range(ROUNDS):
        rivals = [claimed(task, lock=f"{n}-nonce.1") for n in range(THREADS)]
        rows = [HistoryRow(rivals[0].version, NOW, "failed", None, None, "x")] * with_history
        calls = [partial(decide, atomic_world, mine, task.version, *rows) for mine in rivals]
        results = together(calls)
        assert Counter(results) == {Saved(): 1, Superseded(): THREADS - 1}
        winner = rivals[results.index(Saved())]
        assert atomic_world.store.load("ord-1001", NOW) == winner
        task = winner


def test_the_same_order_submitted_at_once_is_made_once(atomic_world: World) -> None:
    store = atomic_world.store

    def submit(order_id: str) -> Created | Exists | TryAgain:
        try:
            return store.create(order_row(order_id), born(order_id))
        except TryAgain as conflict:
            return conflict

    for n in range(ROUNDS):
        order_id = f"ord-{n}"
        results = together([partial(submit, order_id)] * THREADS)
        assert results.count(Created()) == 1
        there = Exists(order_row(order_id), born(order_id))
        assert all(isinstance(r, Created | TryAgain) or r == there for r in results)


def test_a_rearming_and_a_decision_at_once_leave_the_decisions_deadline(
    atomic_world: World,
) -> None:
    store = atomic_world.store
    task = born()
    store.create(order_row(), task)
    lane = lane_key(Lane.OPEN, task.shard)
    for n in range(ROUNDS):
        early = replace(claimed(task, within=SECOND), due_at=NOW + SECOND)
        together(
            [
                partial(store.rearm, task, NOW + 30 * MINUTE),
                partial(decide, atomic_world, early, task.version),
            ]
        )
        assert [entry.due_at for entry in store.due(lane, NOW + SECOND)] == [NOW + SECOND], n
        task = early


def test_clearing_and_a_decision_at_once_lose_nothing_that_is_owed(atomic_world: World) -> None:
    """Whichever comes first, what the decision owes is still owed, in the open lane."""
    store = atomic_world.store
    store.create(order_row(), born())
    task = owing(born(), "received")
    decide(atomic_world, task, 1)
    for _ in range(ROUNDS):
        newer = owing(task, "started")
        together(
            [
                partial(store.clear_owed, without_owed(task, NOW)),
                partial(decide, atomic_world, newer, task.version),
            ]
        )
        assert store.load("ord-1001", NOW) == newer
        task = newer


def test_clearing_and_rearming_at_once_never_leave_an_ended_task_in_its_open_lane(
    atomic_world: World,
) -> None:
    store = atomic_world.store
    for n in range(ROUNDS):
        task = completed(born(f"ord-{n}"), owed=("completed",))
        store.create(order_row(task.task_id), born(task.task_id))
        decide(atomic_world, task, 1)
        cleared = without_owed(task, NOW)
        results = together(
            [
                partial(store.clear_owed, cleared),
                partial(store.rearm, task, NOW + MINUTE),
                partial(postpone, atomic_world, task),
            ]
        )
        assert results[0] == Saved()
        found = store.load(task.task_id, NOW)
        assert found is not None
        assert is_closed(found)
        assert (found.lane, found.due_at) == (cleared.lane, cleared.due_at)


def postpone(world: World, task: Task) -> None:
    world.store.postpone(task.task_id, NOW + 2 * MINUTE)


def test_two_that_clear_different_things_never_lose_one_that_was_not_sent(
    atomic_world: World,
) -> None:
    store = atomic_world.store
    for n in range(ROUNDS):
        task = completed(born(f"ord-{n}"), owed=("started", "failed", "completed"))
        store.create(order_row(task.task_id), born(task.task_id))
        decide(atomic_world, task, 1)
        started, unsent, over = task.owed
        one = without_owed(task, NOW, still_owed=(unsent, over))
        other = without_owed(task, NOW, still_owed=(started, unsent))
        together([partial(store.clear_owed, one), partial(store.clear_owed, other)])
        found = store.load(task.task_id, NOW)
        assert found is not None
        assert unsent in found.owed
        assert found.lane == task.lane
        assert found.due_at <= due(found, NOW)
