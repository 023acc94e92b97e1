"""The faults of tables: they happen in the tables, and the adapters of AWS answer."""

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from random import Random

import pytest
from botocore.exceptions import ClientError

from roundsman import Step, Workflow
from roundsman.agents.call_notes import Begun
from roundsman.errors import Throttled, TryAgain
from roundsman.ports import DueEntry
from roundsman_testing import Fault, Faults, Mishaps, TaskState, World
from roundsman_testing.faults import (
    ABLE,
    CALLS,
    TABLE_CALLS,
    FaultyCallNotes,
    FaultyLeases,
    FaultyStore,
)
from roundsman_testing.memory import MemoryCallNotes, MemoryLeases, MemoryStore
from roundsman_testing.world.mishaps import RandomFaults
from tests.contract.samples import NOW, born, claimed, order_row
from tests.unit.testing.samples import FENCED, SHOP

OTHER = "ord-1002"


def store_with(faults: Faults) -> FaultyStore:
    """Two orders are stored; the faults come after."""
    inner = MemoryStore()
    inner.create(order_row(), born())
    inner.create(order_row(OTHER), born(OTHER))
    return FaultyStore(inner, faults, lambda: None)


def entries(store: FaultyStore) -> list[DueEntry]:
    return list(store.due(born().lane, born().due_at))


def test_a_write_in_conflict_is_cancelled_by_the_table_and_stores_nothing() -> None:
    store = store_with(Faults().on("save", Fault.CONFLICT, nth=1))
    with pytest.raises(TryAgain, match=r"storing the task .*TransactionConflict") as refused:
        store.save(claimed(born()), seen=born().version)
    assert isinstance(refused.value.__cause__, ClientError)
    assert store.load(born().task_id, NOW) == born()
    store.save(claimed(born()), seen=born().version)
    assert store.load(born().task_id, NOW) == claimed(born())


def test_an_index_that_lags_shows_what_is_due_as_before_the_last_write() -> None:
    store = store_with(Faults().on("due", Fault.LAGGING))
    later = born().due_at + 1
    assert entries(store) == [], "both were just made"
    store.rearm(born(), later)
    assert entries(store) == [DueEntry(born().task_id, born().due_at)]
    store.rearm(born(), later)
    assert entries(store) == []


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("load", lambda faults: store_with(faults).load(born().task_id, NOW)),
        ("due", lambda faults: entries(store_with(faults))),
        ("erase_history", lambda faults: store_with(faults).erase_history(OTHER)),
        ("save", lambda faults: store_with(faults).save(claimed(born()), seen=born().version)),
        ("read_leases", lambda faults: FaultyLeases(MemoryLeases(), faults).read()),
        ("note_call", lambda faults: FaultyCallNotes(MemoryCallNotes(), faults).begin("k", 1)),
    ],
)
def test_a_table_without_capacity_is_throttled_in_the_words_of_its_adapter(
    name: str, call: Callable[[Faults], object]
) -> None:
    call(Faults())
    with pytest.raises(Throttled, match="ProvisionedThroughputExceeded") as throttled:
        call(Faults().on(name, Fault.THROTTLED))
    assert isinstance(throttled.value.__cause__, ClientError)


def test_after_a_call_that_was_throttled_the_table_has_the_capacity_of_before() -> None:
    notes = FaultyCallNotes(MemoryCallNotes(), Faults().on("note_call", Fault.THROTTLED, nth=1))
    with pytest.raises(Throttled):
        notes.begin("k", 1)
    assert notes.begin("k", 1) is Begun.FIRST


def test_what_an_agent_logs_of_its_tables_is_not_logged_in_a_world(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shared = Step(
        name="print",
        agents=("one", "two"),
        complete_within=timedelta(minutes=1),
        compensation=FENCED,
    )
    shop = Workflow(name="shop", steps=(shared,), complete_within=timedelta(hours=1))
    world = World(shop, faults=Faults().on("note_call", Fault.THROTTLED, nth=1))
    order_id = world.submit()
    world.run()
    assert world.faults.count == {Fault.THROTTLED: 1}
    assert "could not be written; not attempted" in str(world.trace)
    assert world.task(order_id).state is TaskState.COMPLETED
    assert capsys.readouterr().out == ""


# --- drawn by chance -----------------------------------------------------------------------------

OF_ONE_KIND = {
    "lost_answers": Fault.ANSWER_LOST,
    "stale_reads": Fault.STALE,
    "lags": Fault.LAGGING,
    "left_out": Fault.LEFT_OUT,
    "conflicts": Fault.CONFLICT,
    "throttles": Fault.THROTTLED,
    "losses": Fault.SWALLOWED,
}


@pytest.mark.parametrize(("field", "fault"), OF_ONE_KIND.items())
def test_a_mishap_of_one_kind_hits_the_calls_that_it_can_hit_and_no_other(
    field: str, fault: Fault
) -> None:
    faults = RandomFaults(Random(1), Mishaps().but(**{field: 1.0}))  # noqa: S311  # repeatable
    assert [name for name in CALLS if faults.choose(name) is fault] == [
        name for name in CALLS if name in ABLE[fault]
    ]
    assert {faults.choose(name) for name in CALLS} == {None, fault}


@pytest.mark.parametrize("field", ["crashes", "failures", *OF_ONE_KIND])
def test_mishaps_of_calls_are_not_drawn_beside_chosen_faults(field: str) -> None:
    with pytest.raises(ValueError, match="give either"):
        World(SHOP, faults=Faults(), mishaps=Mishaps().but(**{field: 0.1}))


def test_some_mishaps_are_mishaps_of_every_kind() -> None:
    some = Mishaps.some(0.1)
    assert all(getattr(some, field.name) for field in fields(Mishaps))
    assert {fault for fault, _ in some.of_one_kind} == set(ABLE)


def test_the_faults_of_tables_are_counted_and_listed_in_the_trace() -> None:
    mishaps = Mishaps(lags=0.3, left_out=0.3, conflicts=0.2, throttles=0.1, meetings=0.1)
    world = World(SHOP, seed=3, mishaps=mishaps)
    for _ in range(12):
        world.submit()
    world.run(for_=Mishaps().longest_delay * 10)
    new = {Fault.LAGGING, Fault.LEFT_OUT, Fault.CONFLICT, Fault.THROTTLED}
    assert world.faults.count.keys() == new
    assert all(f"{hit.name}: {hit.fault}" in str(world.trace) for hit in world.faults.happened[-9:])
    world.all_is_well()
    world.run()
    world.redrive()
    world.run()
    world.check_all_ended()


def test_a_call_without_a_table_cannot_be_throttled() -> None:
    assert not {"send_requests", "read_depth", "reply", "publish", "plan"} & set(TABLE_CALLS)
