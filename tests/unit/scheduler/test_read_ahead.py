"""The tasks of a batch of starts are read by one call, and decided as if each had been read."""

from dataclasses import replace

import pytest

from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import CallRefused, TryAgain
from roundsman.ports import OrderRow
from roundsman.scheduler.order_cache import MAX_BYTES, OrderCache
from roundsman.wire.commands import START, Command
from roundsman_testing import Fault, Faults
from tests.support.shell_world import ORDER_ID, Shells
from tests.support.supervision_world import LINE

OTHER = "ord-other"


def line(*order_ids: str) -> Shells:
    shells = Shells(LINE, options=ProcessingOptions())  # no statuses: each write is a decision
    for order_id in order_ids or (ORDER_ID,):
        shells.submit(order_id)
    return shells


def reads(faults: Faults) -> list[str]:
    return [name for name in faults.calls if name.startswith("load") or name == "order"]


def test_starts_that_were_read_ahead_read_nothing() -> None:
    shells, faults = line(ORDER_ID, OTHER), Faults()
    scheduler = shells.scheduler(faults)
    assert scheduler.read_ahead([ORDER_ID, OTHER]) is None
    for order_id in (ORDER_ID, OTHER):
        scheduler.command(Command(START, order_id), f"m-{order_id}")
    assert reads(faults) == ["load_with_orders"]
    assert shells.requested() == ["first", "first"]


def test_without_starts_nothing_is_read() -> None:
    shells, faults = line(), Faults()
    assert shells.scheduler(faults).read_ahead([]) is None
    assert faults.calls == []


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.UNKNOWN])
def test_after_a_read_ahead_that_failed_each_start_reads_for_itself(fault: Fault) -> None:
    shells, faults = line(), Faults().on("load_with_orders", fault)
    scheduler = shells.scheduler(faults)
    assert scheduler.read_ahead([ORDER_ID])
    scheduler.command(Command(START, ORDER_ID), "m-start")
    assert reads(faults) == ["load_with_orders", "load_eventually", "order"]
    assert shells.requested() == ["first"]


def test_a_right_that_is_missing_costs_only_what_it_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an upgrade, the code may be newer than the role for a moment."""
    shells, faults = line(), Faults()

    def refused(*_: object) -> None:
        raise CallRefused("AccessDeniedException")

    monkeypatch.setattr(shells.store, "load_with_orders", refused)
    scheduler = shells.scheduler(faults)
    assert scheduler.read_ahead([ORDER_ID]) == "AccessDeniedException"
    scheduler.command(Command(START, ORDER_ID), "m-start")
    assert shells.requested() == ["first"]


def test_a_start_on_a_stale_record_loses_its_write_and_is_decided_anew() -> None:
    shells = line()
    shells.start("m-1")
    faults = Faults().on("load_with_orders", Fault.STALE)
    scheduler = shells.scheduler(faults, instance="s2")
    scheduler.read_ahead([ORDER_ID])
    # For the record before the first claim there is something to start.
    scheduler.command(Command(START, ORDER_ID), "m-2")
    assert faults.calls.count("save") == 1, "refused, since the version that was seen is over"
    assert reads(faults) == ["load_with_orders", "load"]
    assert len(shells.requests()) == 1, "the step is claimed once"


def test_a_task_that_another_has_written_since_is_decided_on_its_record() -> None:
    shells, faults = line(), Faults()
    scheduler = shells.scheduler(faults, instance="s2")
    scheduler.read_ahead([ORDER_ID])
    shells.start("m-1")
    scheduler.command(Command(START, ORDER_ID), "m-2")
    assert reads(faults) == ["load_with_orders", "load"]
    assert len(shells.requests()) == 1


def test_a_start_that_comes_twice_in_a_batch_is_read_the_second_time() -> None:
    shells, faults = line(), Faults()
    scheduler = shells.scheduler(faults)
    scheduler.read_ahead([ORDER_ID, ORDER_ID])
    for message in ("m-1", "m-2"):
        scheduler.command(Command(START, ORDER_ID), message)
    assert reads(faults)[:2] == ["load_with_orders", "load_eventually"]
    assert len(shells.requests()) == 1


def test_what_one_batch_has_read_ahead_no_later_batch_uses() -> None:
    shells, faults = line(), Faults()
    scheduler = shells.scheduler(faults)
    scheduler.read_ahead([ORDER_ID])
    scheduler.read_ahead([])
    scheduler.command(Command(START, ORDER_ID), "m-start")
    assert reads(faults)[:2] == ["load_with_orders", "load_eventually"]


def test_an_order_row_of_another_task_is_read_again() -> None:
    """Its id was given to another order, and an eventually consistent read finds the first row."""
    shells = line()
    row = shells.store.order(ORDER_ID)
    assert row is not None
    cache = OrderCache(shells.store)
    cache.keep(replace(row, created_at=row.created_at - 1, content={"of": "another"}))
    assert cache.content_of(shells.task()) == row.content


def test_an_order_that_was_read_ahead_is_not_read() -> None:
    class NoOrders:
        def order(self, order_id: str) -> OrderRow | None:
            raise TryAgain(order_id)

    shells = line()
    row = shells.store.order(ORDER_ID)
    assert row is not None
    cache = OrderCache(NoOrders())
    cache.keep(row)
    assert cache.content_of(shells.task()) == row.content


def test_large_orders_that_were_read_ahead_do_not_drive_each_other_out() -> None:
    """Of ten orders that take a fifth of the cache each, four are read ahead."""
    names = [f"ord-{place}" for place in range(10)]
    shells = Shells(LINE, options=ProcessingOptions())
    for name in names:
        order = shells.new_order(name)
        shells.submission().submit(replace(order, content={"text": "x" * (MAX_BYTES // 5)}))
    faults = Faults()
    scheduler = shells.scheduler(faults)
    scheduler.read_ahead(names)
    for name in names:
        scheduler.command(Command(START, name), f"m-{name}")
    assert reads(faults).count("order") == len(names) - 4
    assert len(shells.requests()) == len(names)
