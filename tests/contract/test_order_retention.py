"""The order row expires some time after its task is over, and never while the task may need it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from roundsman.engine.due import with_due_entry, without_owed
from roundsman.errors import SchemaTooNew
from roundsman.model.events import HistoryRow
from roundsman.model.instants import DAY, MINUTE, SECOND
from roundsman.model.states import TaskState
from roundsman.model.task import PACKED_SCHEMA, Owed, Task
from roundsman.ports import Saved, Superseded
from tests.contract.samples import NOW, born, claimed, completed, order_row
from tests.contract.test_races import together
from tests.contract.worlds import World
from tests.support.steps import step_record

ROW = HistoryRow(2_000, NOW, "failed", None, None, "late")
OVER_AT = NOW + SECOND
"""When the tasks of `completed` have ended."""


@pytest.fixture
def kept(world: World) -> World:
    """A world that keeps orders for 30 days, with one order."""
    world.keep_orders(30 * DAY)
    world.store.create(order_row(), born())
    return world


def expiry(world: World, order_id: str = "ord-1001") -> int | None:
    row = world.store.order(order_id)
    assert row is not None
    assert replace(row, expires_at=None) == order_row(order_id), "nothing else changes"
    return row.expires_at


def whole_second(instant: int) -> int:
    return -(-instant // SECOND) * SECOND


def loaded(world: World) -> Task:
    found = world.store.load("ord-1001", NOW)
    assert found is not None
    return found


@pytest.mark.parametrize("history", [(), (ROW,)])
@pytest.mark.parametrize("retain_for", [0, MINUTE])
def test_the_write_that_ends_a_task_gives_its_order_the_expiry(
    kept: World, history: tuple[HistoryRow, ...], retain_for: int
) -> None:
    over = completed(born(), retain_for=retain_for)
    assert kept.store.save(over, seen=1, history=history) == Saved()
    assert expiry(kept) == whole_second(OVER_AT + 30 * DAY)
    found = kept.store.load("ord-1001", NOW)
    assert (found is None) == (retain_for == 0)
    assert found is None or found.order_expires
    assert kept.store.history("ord-1001") == list(history)


def test_the_end_of_a_task_fits_one_transaction_with_the_most_history_and_its_orders_expiry(
    kept: World,
) -> None:
    rows = [HistoryRow(2_000 + n, NOW, "failed", f"s{n}", 1, f"reason {n}") for n in range(150)]
    assert kept.store.save(completed(born(), retain_for=MINUTE), seen=1, history=rows) == Saved()
    assert expiry(kept) == whole_second(OVER_AT + 30 * DAY)
    assert "reason 149" in kept.store.history("ord-1001")[-1].reason


def test_an_open_task_has_an_order_without_an_expiry(kept: World) -> None:
    assert expiry(kept) is None
    assert kept.store.save(claimed(born()), seen=1) == Saved()
    assert expiry(kept) is None


def test_an_archived_task_keeps_its_order(kept: World) -> None:
    archived = with_due_entry(
        replace(completed(born()), state=TaskState.ARCHIVED, expires_at=None), OVER_AT
    )
    assert kept.store.save(archived, seen=1) == Saved()
    assert expiry(kept) is None


@pytest.mark.parametrize("retain_for", [0, MINUTE])
def test_a_task_that_owes_something_keeps_its_order_until_it_was_sent(
    kept: World, retain_for: int
) -> None:
    over = completed(born(), owed=("completed",), retain_for=retain_for)
    kept.store.save(over, seen=1)
    assert expiry(kept) is None
    sent = without_owed(over, OVER_AT + MINUTE)
    assert kept.store.clear_owed(sent) == Saved()
    assert expiry(kept) == whole_second(OVER_AT + MINUTE + 30 * DAY)
    found = kept.store.load("ord-1001", NOW)
    assert (found is None) == (retain_for == 0)
    assert found is None or found.order_expires
    assert kept.store.clear_owed(sent) == Superseded()


def test_a_task_that_is_begun_again_has_its_order_for_as_long_as_it_takes(kept: World) -> None:
    kept.store.save(replace(completed(born()), state=TaskState.UNDONE), seen=1)
    over = loaded(kept)
    again = replace(over, version=3, state=TaskState.PENDING, ended_at=None, steps={})
    assert kept.store.save(with_due_entry(again, NOW), seen=2, history=[ROW]) == Saved()
    assert expiry(kept) is None
    assert not loaded(kept).order_expires
    later = replace(loaded(kept), version=4, state=TaskState.UNDONE, ended_at=NOW + MINUTE)
    assert kept.store.save(with_due_entry(later, NOW + MINUTE), seen=3) == Saved()
    assert expiry(kept) == whole_second(NOW + MINUTE + 30 * DAY)


def test_a_task_that_owes_something_again_has_its_order_until_that_was_sent(kept: World) -> None:
    """So it is if a callback is answered after its undo; what is owed is sent without a read."""
    kept.store.save(completed(born()), seen=1)
    owed = (Owed("alert", "late_answer", 3, NOW, "charge"),)
    late = with_due_entry(replace(loaded(kept), version=3, owed=owed), NOW + MINUTE)
    assert kept.store.save(late, seen=2) == Saved()
    assert expiry(kept) is None
    assert kept.store.clear_owed(without_owed(late, NOW + MINUTE)) == Saved()
    assert expiry(kept) == whole_second(NOW + MINUTE + 30 * DAY)
    assert loaded(kept).order_expires


def test_it_is_begun_again_with_its_order_after_orders_are_kept_for_ever(kept: World) -> None:
    kept.store.save(replace(completed(born()), state=TaskState.UNDONE), seen=1)
    kept.keep_orders(None)
    over = loaded(kept)
    late = replace(over, version=3)  # a late reply is recorded
    assert kept.store.save(late, seen=2) == Saved()
    assert expiry(kept) is not None
    assert loaded(kept).order_expires
    again = replace(over, version=4, state=TaskState.PENDING, ended_at=None, steps={})
    assert kept.store.save(with_due_entry(again, NOW), seen=3) == Saved()
    assert expiry(kept) is None


def test_a_write_that_comes_too_late_changes_no_order(kept: World) -> None:
    kept.store.save(claimed(born()), seen=1)
    assert kept.store.save(completed(born()), seen=1) == Superseded()
    assert kept.store.save(completed(born()), seen=1, history=[ROW]) == Superseded()
    assert kept.store.save(completed(born(), retain_for=0), seen=1) == Superseded()
    assert expiry(kept) is None
    assert kept.store.history("ord-1001") == []


def test_a_task_without_an_order_row_ends_all_the_same(world: World) -> None:
    world.keep_orders(DAY)
    names = ("a", "b", "c", "d")
    for name in names:
        world.store.create(order_row(name), born(name))
        world.remove_order(name)
    assert world.store.save(completed(born("a")), seen=1) == Saved()
    assert world.store.save(completed(born("b"), retain_for=0), seen=1, history=[ROW]) == Saved()
    for name, retain_for in (("c", MINUTE), ("d", 0)):
        over = completed(born(name), owed=("completed",), retain_for=retain_for)
        world.store.save(over, seen=1)
        assert world.store.clear_owed(without_owed(over, NOW)) == Saved()
    found = [world.store.load(name, NOW) for name in names]
    assert [task and task.state for task in found] == ["Completed", None, "Completed", None]
    assert [world.store.order(name) for name in names] == [None] * 4, "no row is made up"
    assert world.store.save(completed(born("a")), seen=1) == Superseded()


def test_an_order_is_kept_as_long_as_the_record_of_its_task(kept: World) -> None:
    over = completed(born(), retain_for=90 * DAY)
    kept.store.save(over, seen=1)
    assert expiry(kept) == whole_second(OVER_AT + 90 * DAY)


def test_orders_that_are_kept_for_ever_have_no_expiry(world: World) -> None:
    world.store.create(order_row(), born())
    world.store.save(completed(born()), seen=1)
    assert expiry(world) is None
    assert not loaded(world).order_expires


def test_of_many_that_end_a_task_at_once_one_does(atomic_world: World) -> None:
    atomic_world.keep_orders(DAY)
    atomic_world.store.create(order_row(), born())
    over = completed(born())
    outcomes = together([lambda: atomic_world.store.save(over, seen=1)] * 8)
    assert outcomes.count(Saved()) == 1
    assert expiry(atomic_world) == whole_second(OVER_AT + DAY)


def test_the_time_of_the_expiry_is_in_seconds(dynamo_world: World) -> None:
    dynamo_world.keep_orders(DAY)
    dynamo_world.store.create(order_row(), born())
    dynamo_world.store.save(completed(born()), seen=1)
    item = dynamo_world.client.get_item(
        TableName=dynamo_world.tables.orders, Key={"OrderID": {"S": "ord-1001"}}
    )["Item"]
    assert item["ExpiresAt"] == {"N": str(-(-(OVER_AT + DAY) // SECOND))}


def test_what_the_expiry_of_an_order_costs(local_world: World) -> None:
    units: list[float] = []

    def ask(params: dict[str, object], **_rest: object) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def note(parsed: Mapping[str, Any], **_rest: object) -> None:
        found = parsed["ConsumedCapacity"]
        units.extend(each["CapacityUnits"] for each in ([found] if "TableName" in found else found))

    for operation in ("PutItem", "TransactWriteItems"):
        local_world.client.meta.events.register(f"provide-client-params.dynamodb.{operation}", ask)
    spent = []
    for name, retention in (("a", None), ("b", DAY)):
        local_world.keep_orders(retention)
        local_world.store.create(order_row(name), born(name))
        for operation in ("PutItem", "TransactWriteItems"):
            local_world.client.meta.events.register(f"after-call.dynamodb.{operation}", note)
        local_world.store.save(completed(born(name)), seen=1)
        for operation in ("PutItem", "TransactWriteItems"):
            local_world.client.meta.events.unregister(f"after-call.dynamodb.{operation}", note)
        spent.append(sum(units))
        units.clear()
    assert spent == [3, 8], "docs/explanation/cost.md says what it costs"


@pytest.mark.parametrize("steps", [0, 60], ids=["short", "packed"])
@pytest.mark.parametrize("owed", [(), ("completed",)], ids=["nothing owed", "owed"])
def test_older_code_does_not_begin_a_task_again_whose_order_expires(
    moto_world: World, monkeypatch: pytest.MonkeyPatch, owed: tuple[str, ...], steps: int
) -> None:
    moto_world.keep_orders(DAY)
    moto_world.store.create(order_row(), born())
    over = completed(born(), owed=owed, retain_for=MINUTE)
    more = {f"s{n}": step_record(started_at=NOW) for n in range(steps)}
    over = replace(over, steps={**over.steps, **more}, deadline=NOW if steps else None)
    assert moto_world.store.save(over, seen=1) == Saved()
    if owed:
        assert moto_world.store.clear_owed(without_owed(over, NOW)) == Saved()
    assert loaded(moto_world).order_expires
    assert moto_world.item("ord-1001")["Schema"] == {"N": "6" if steps else "5"}
    monkeypatch.setattr("roundsman.aws.dynamodb.codec.SCHEMA", PACKED_SCHEMA)
    with pytest.raises(SchemaTooNew):
        moto_world.store.load("ord-1001", NOW)
