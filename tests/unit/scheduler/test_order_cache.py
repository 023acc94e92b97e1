"""An instance keeps the orders it has used last, each for the task that was born with it."""

import pytest

from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.errors import TryAgain
from roundsman.model.task import Task
from roundsman.ports import OrderRow
from roundsman.scheduler.order_cache import MAX_BYTES, MAX_ORDERS, OrderCache
from tests.support.machine_world import plan, step

PLAN = plan(step("only"))


class Desk:
    """An OrderStore that says what was read."""

    def __init__(self) -> None:
        self.rows: dict[str, OrderRow] = {}
        self.reads: list[str] = []

    def order(self, order_id: str) -> OrderRow | None:
        self.reads.append(order_id)
        return self.rows.get(order_id)

    def born(self, order_id: str, at: int = 1_000, total: str = "1.00") -> Task:
        """A task and its row, of one instant."""
        self.rows[order_id] = OrderRow(order_id, {"total": total}, "hash", at)
        return new_task(PLAN, order_id, ProcessingOptions(), at, shards=1)


def test_an_order_is_read_once() -> None:
    desk = Desk()
    rows, task = OrderCache(desk), desk.born("ord-1")
    assert [rows.content_of(task) for _ in range(4)] == [{"total": "1.00"}] * 4
    assert desk.reads == ["ord-1"]


def test_an_id_that_another_order_has_taken_since_is_read_anew() -> None:
    desk = Desk()
    rows = OrderCache(desk)
    rows.content_of(desk.born("ord-1"))
    again = desk.born("ord-1", at=2_000, total="2.00")
    assert rows.content_of(again) == {"total": "2.00"}
    assert rows.content_of(again) == {"total": "2.00"}
    assert len(desk.reads) == 2


def test_a_row_that_is_older_than_its_task_is_used_and_read_each_time() -> None:
    desk = Desk()
    rows = OrderCache(desk)
    desk.born("ord-1")
    task = new_task(PLAN, "ord-1", ProcessingOptions(), 2_000, shards=1)
    assert rows.content_of(task) == rows.content_of(task) == {"total": "1.00"}
    assert len(desk.reads) == 2


def test_the_order_that_was_not_used_for_longest_goes_first() -> None:
    desk = Desk()
    rows = OrderCache(desk)
    tasks = [desk.born(f"ord-{number}") for number in range(MAX_ORDERS + 1)]
    for task in tasks[:-1]:
        rows.content_of(task)
    rows.content_of(tasks[0])
    rows.content_of(tasks[-1])
    desk.reads.clear()
    rows.content_of(tasks[0])
    assert desk.reads == []
    rows.content_of(tasks[1])
    assert desk.reads == ["ord-1"]


def test_a_row_that_is_gone_gives_the_message_back_until_it_is_there_again() -> None:
    desk = Desk()
    rows = OrderCache(desk)
    task = desk.born("ord-1")
    row = desk.rows.pop("ord-1")
    with pytest.raises(TryAgain, match="order row"):
        rows.content_of(task)
    desk.rows["ord-1"] = row
    assert rows.content_of(task) == {"total": "1.00"}


def test_of_long_orders_fewer_are_kept() -> None:
    desk = Desk()
    rows = OrderCache(desk)
    tasks = [desk.born(f"ord-{n}", total="9" * (MAX_BYTES // 4)) for n in range(5)]
    for task in tasks:
        rows.content_of(task)
    desk.reads.clear()
    for task in reversed(tasks):
        rows.content_of(task)
    assert desk.reads == ["ord-1", "ord-0"], "three and their names are all there is room for"


def test_an_order_that_is_longer_than_all_that_is_kept_is_still_read() -> None:
    desk = Desk()
    rows, task = OrderCache(desk), desk.born("ord-1", total="9" * MAX_BYTES)
    assert rows.content_of(task) == rows.content_of(task) == {"total": "9" * MAX_BYTES}
