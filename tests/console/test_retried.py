"""What is retried now: open orders by the cause of their failing attempts, in `groups ls`."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from roundsman.engine.agent_holds import HELD
from roundsman.model.events import HistoryRow
from roundsman.model.instants import MINUTE, iso
from roundsman.model.states import ProcessState
from roundsman.model.task import StepError, StepRecord
from roundsman.ports import Saved
from roundsman_console.facts.group import retried
from roundsman_console.facts.group.retried import RetriedNow, read_retries, retried_now
from roundsman_console.facts.orders.counts import Count
from roundsman_console.facts.orders.open_orders import OpenOrders, read_open_orders
from tests.console.operators import Operator, in_retry
from tests.console.schemas import assert_schema
from tests.console.shelves import Shelves, archived, open_task
from tests.console.step_samples import AT, plan
from tests.moto.orders import order
from tests.support.steps import step_record

BUSY = StepError("Unavailable", "POST answered 503 for order 17")


def failing(
    failures: int = 1, *, error: StepError = BUSY, began: int = AT, after: int = 60_000
) -> StepRecord:
    """A step that waits for its next attempt."""
    return step_record(
        process_state=ProcessState.PENDING,
        failure_count=failures,
        error=error,
        started_at=began,
        not_before=AT + after,
        complete_by=AT + after + 30_000,
    )


def orders(**steps: Mapping[str, StepRecord]) -> OpenOrders:
    return OpenOrders(tuple(open_task(name, steps=records) for name, records in steps.items()))


def found(opened: OpenOrders, at: int = AT) -> list[RetriedNow]:
    return retried_now(opened, {task.task_id: plan() for task in opened.tasks}, at)


def test_orders_that_fail_alike_are_one_cause_with_its_trend_and_a_sample() -> None:
    opened = orders(
        a={"charge": failing(1)},
        b={"charge": failing(2, error=replace(BUSY, message="POST answered 503 for order 18"))},
        c={"charge": failing(1, began=AT - 6 * MINUTE, after=20_000)},
        d={},
    )
    [one] = found(opened)
    assert (one.cause.workflow, one.cause.step, one.cause.error_type) == (
        *("story", "charge"),
        "Unavailable",
    )
    assert one.cause.message == "POST answered 503 for order *"
    assert one.count == Count(3)
    assert one.new == 1, "one failed twice, and one began six minutes ago"
    assert (one.attempts, one.most, one.sample.task_id) == (2, 3, "b")
    assert one.next_at == AT + 20_000
    assert one.agents == ("payment",)


def test_causes_are_apart_and_the_one_with_most_orders_comes_first() -> None:
    slow = StepError("Timeout", "no answer within 30 s")
    undoing = step_record(
        process_state=ProcessState.UNDOING, failure_count=1, error=BUSY, started_at=AT
    )
    opened = orders(
        a={"charge": failing(3, error=slow)},
        b={"charge": failing()},
        c={"charge": failing()},
        d={"charge": undoing},
    )
    assert [(one.cause.error_type, one.cause.undo, one.count.count) for one in found(opened)] == [
        ("Unavailable", False, 2),
        ("Timeout", False, 1),
        ("Unavailable", True, 1),
    ]


def test_the_items_of_a_fan_out_are_one_step_and_an_order_counts_once() -> None:
    items = {f"pick[{place}]": failing() for place in range(3)}
    task = replace(open_task("a", steps=items), fan_outs={"pick": 3})
    [one] = retried_now(OpenOrders((task,)), {"a": plan().expanded(task.fan_outs)}, AT)
    assert (one.cause.step, one.count, one.new) == ("pick", Count(1), 1)


def test_an_attempt_that_goes_on_after_one_that_failed_is_a_retry_too() -> None:
    under_way = step_record(
        process_state=ProcessState.PROCESSING,
        failure_count=1,
        error=BUSY,
        started_at=AT - 1_000,
        locked_by="lock",
        complete_by=AT + 29_000,
    )
    [one] = found(orders(a={"charge": under_way}))
    assert (one.next_at, one.new) == (None, 1)


def test_what_waits_for_a_hold_or_failed_for_good_or_succeeded_is_not_retried() -> None:
    held = step_record(
        process_state=ProcessState.PENDING,
        failure_count=1,
        error=StepError(HELD, "payment is held"),
        held_since=AT,
        not_before=AT + 1,
        complete_by=AT + 2,
    )
    done = step_record(
        process_state=ProcessState.PROCESSED, failure_count=2, error=BUSY, finished_at=AT
    )
    opened = OpenOrders((archived("x"), *orders(a={"charge": held}, b={"charge": done}).tasks))
    assert found(opened) == []


def test_the_open_orders_that_are_due_first_are_read_and_the_rest_makes_it_a_bound() -> None:
    shelves = Shelves()
    shelves.put(archived("over"), open_task("late", AT + 5), open_task("soon", AT + 1))
    stack = shelves.stack()
    whole = read_open_orders(stack)
    assert ([task.task_id for task in whole.tasks], whole.whole) == (["soon", "late"], True)
    part = read_open_orders(stack, 1)
    assert ([task.task_id for task in part.tasks], part.whole) == (["soon"], False)
    bound = replace(orders(a={"charge": failing()}), whole=False)
    assert [one.count for one in found(bound)] == [Count(1, more=True)]


def test_of_many_causes_a_few_are_shown_and_no_other_history_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retried, "MOST", 2)
    asked: list[str] = []

    class Histories(Shelves):
        def history(self, task_id: str) -> list[HistoryRow]:
            asked.append(task_id)
            return []

    kinds = ("A", "B", "C", "D")
    opened = orders(**{kind: {"charge": failing(error=StepError(kind, "busy"))} for kind in kinds})
    retries = read_retries(Histories().stack(), opened, AT)
    assert (len(retries.causes), retries.others, retries.read, retries.whole) == (2, 2, 4, True)
    assert len(asked) == 2
    assert [one.since for one in retries.causes] == [None, None], "no history says it"


def test_a_masked_value_does_not_stand_in_a_cause(operator: Operator) -> None:
    in_retry(operator)
    task, token = operator.world.task("ord-1"), str(order("ord-1")["paymentToken"])
    record = task.step("charge_card")
    quoted = replace(record, error=StepError("Unavailable", f"busy: {token}"))
    steps = {**task.steps, "charge_card": quoted}
    saved = operator.world.store.save(
        replace(task, steps=steps, version=task.version + 1), seen=task.version
    )
    assert isinstance(saved, Saved)
    text = operator.types("groups", "ls").stdout
    assert "busy: (masked)" in text
    assert token not in text


def test_groups_ls_has_what_is_retried_since_when_and_when_next(operator: Operator) -> None:
    empty = operator.reads("groups", "ls")
    assert (empty["groups"], empty["retried"]) == ([], [])
    assert operator.types("groups", "ls").stdout == "No failure groups.\n"
    in_retry(operator)
    failed_at = operator.world.clock()
    operator.world.clock.now += 7 * MINUTE
    listed = operator.reads("groups", "ls")
    assert_schema("groups-ls", listed)
    retries = listed["retried"]
    assert isinstance(retries, list)
    [one] = retries
    assert (one["workflow"], one["step"], one["agents"]) == (
        *("order_fulfilment", "charge_card"),
        ["payment"],
    )
    assert (one["count"], one["more"], one["new"], one["attempts"]) == (1, False, 0, 1)
    assert (one["sample"], one["since"]) == ("ord-1", iso(failed_at))
    assert one["nextAttemptAt"] == iso(failed_at + 10 * MINUTE)
    shown = operator.types("groups", "ls").stdout
    assert "Retried now:" in shown
    assert "in 3 min" in shown
    assert "7 min ago" in shown
