"""An order row loses its content and the history its reasons; each write may be repeated."""

from dataclasses import replace

import pytest

from roundsman.engine.history import SIGNAL_UNREAD
from roundsman.errors import SchemaTooNew
from roundsman.model.events import HistoryRow
from roundsman.model.instants import DAY
from roundsman.model.task import ERASED, Task, UnreadSignal
from roundsman.ports import Created, Exists, Saved
from tests.contract.samples import NOW, born, completed, order_row
from tests.contract.worlds import World

WHO = ("ann", "c-1", "AIDA:ann")
SIGNAL = UnreadSignal("pay-7", "paid", NOW, {"card": "4111"})
ROWS = [
    HistoryRow(2_000, NOW, "failed", "charge", 2, "declined for A. Reader"),
    HistoryRow(3_000, NOW + 1, "cancel", None, None, "A. Reader called", *WHO),
    HistoryRow(3_001, NOW + 1, SIGNAL_UNREAD, None, None, "has ended no step", signal=SIGNAL),
    HistoryRow(3_500, NOW + 2, "refused", None, None, "undo refused", *WHO),
    HistoryRow(4_000, NOW + 3, "erase", None, None, "erase by ann: request 17", *WHO),
]


@pytest.fixture
def over(world: World) -> Task:
    """A task that is over, with its order and history."""
    world.store.create(order_row(), born())
    task = completed(born(), retain_for=DAY)
    assert world.store.save(task, seen=1, history=ROWS) == Saved()
    return task


def erase_order(world: World, task: Task, at: int = NOW + DAY) -> None:
    world.store.erase_order(task.task_id, created_at=task.created_at, erased_at=at)


def test_an_erased_order_has_no_content_and_keeps_the_rest(world: World, over: Task) -> None:
    for _ in range(2):
        erase_order(world, over)
        assert world.store.order(over.task_id) == replace(
            order_row(), content=None, erased_at=NOW + DAY
        )


def test_an_order_keeps_the_time_of_its_first_erasure(world: World, over: Task) -> None:
    erase_order(world, over)
    erase_order(world, over, NOW + 2 * DAY)
    row = world.store.order(over.task_id)
    assert row is not None
    assert row.erased_at == NOW + DAY


def test_another_order_under_the_id_is_not_erased(world: World, over: Task) -> None:
    world.store.erase_order(over.task_id, created_at=over.created_at + 1, erased_at=NOW)
    assert world.store.order(over.task_id) == order_row()


def test_an_order_that_is_not_there_is_not_made(world: World) -> None:
    world.store.erase_order("ord-1001", created_at=NOW, erased_at=NOW)
    assert world.store.order("ord-1001") is None


def test_an_erased_order_is_still_known_by_its_hash(world: World, over: Task) -> None:
    erase_order(world, over)
    found = world.store.create(order_row(), born())
    assert isinstance(found, Exists)
    assert found.order.content_hash == order_row().content_hash


def test_the_order_expires_as_it_would_have(world: World, over: Task) -> None:
    world.keep_orders(30 * DAY)
    world.store.save(replace(over, version=3), seen=2)
    before = world.store.order(over.task_id)
    assert before is not None
    assert before.expires_at is not None
    erase_order(world, over)
    after = world.store.order(over.task_id)
    assert after == replace(before, content=None, erased_at=NOW + DAY)


def test_an_erased_history_keeps_who_did_what_and_when(world: World, over: Task) -> None:
    erased = [replace(row, reason=ERASED) for row in ROWS[:-1]] + ROWS[-1:]
    erased[2] = replace(erased[2], signal=replace(SIGNAL, data=None))
    for _ in range(2):
        world.store.erase_history(over.task_id)
        assert world.store.history(over.task_id) == erased


def test_a_history_that_is_not_there_is_not_made(world: World) -> None:
    world.store.erase_history("ord-1001")
    assert world.store.history("ord-1001") == []


def test_the_history_of_another_order_stays(world: World, over: Task) -> None:
    other = HistoryRow(1_000, NOW, "failed", None, None, "late")
    world.store.add_history("ord-1002", other)
    world.store.erase_history(over.task_id)
    assert world.store.history("ord-1002") == [other]


def test_a_history_of_several_pages_is_erased_to_its_end(world: World) -> None:
    """A page of DynamoDB holds 1 MB."""
    rows = [HistoryRow(n, NOW, "failed", None, None, "x" * 30_000) for n in range(40)]
    for row in rows:
        world.store.add_history("ord-1001", row)
    world.store.erase_history("ord-1001")
    assert {row.reason for row in world.store.history("ord-1001")} == {ERASED}
    assert len(world.store.history("ord-1001")) == 40


def test_a_row_that_is_deleted_meanwhile_is_not_made_again(moto_world: World) -> None:
    """A person deletes the row after it was read to be erased; one without a kind is unreadable."""
    world = moto_world
    for row in ROWS[:2]:
        world.store.add_history("ord-1001", row)

    event = "provide-client-params.dynamodb.UpdateItem"

    def deletes(params: dict[str, object], **_: object) -> None:
        world.client.meta.events.unregister(event, deletes)
        gone = {"TaskId": {"S": "ord-1001"}, "Seq": {"N": str(ROWS[0].seq)}}
        world.client.delete_item(TableName=str(params["TableName"]), Key=gone)

    world.client.meta.events.register(event, deletes)
    world.store.erase_history("ord-1001")
    assert world.store.history("ord-1001") == [replace(ROWS[1], reason=ERASED)]


def test_an_erased_task_is_read_back_as_it_was_stored(world: World, over: Task) -> None:
    erased = replace(over, version=3, erased_at=NOW + 1, erased_by="ann: request 17", steps={})
    assert world.store.save(erased, seen=2) == Saved()
    found = world.store.load(over.task_id, NOW)
    assert found is not None
    assert replace(found, expires_at=over.expires_at) == erased


def test_code_that_knows_no_erasure_does_not_read_the_record(
    moto_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert moto_world.store.create(order_row(), born()) == Created()
    erased = replace(completed(born(), retain_for=DAY), erased_at=NOW, erased_by="ann")
    assert moto_world.store.save(erased, seen=1) == Saved()
    monkeypatch.setattr("roundsman.aws.dynamodb.codec.SCHEMA", 2)
    with pytest.raises(SchemaTooNew):
        moto_world.store.load("ord-1001", NOW)
