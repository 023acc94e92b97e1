"""`roundsman diff`: an order beside the last one that completed, or another one."""

import json
from dataclasses import replace

import pytest

from roundsman_console.aws.stack import find_stack
from roundsman_console.base.errors import InvalidArgument, NotFound
from roundsman_console.facts.orders.compared import last_that_completed, read_difference
from tests.console.operators import DECLINED, Operator
from tests.console.schemas import assert_schema
from tests.moto.orders import order
from tests.support.large_orders import loop_of, store


def sent(operator: Operator, *events: dict[str, object]) -> None:
    for event in events:
        operator.world.submit(event)
        operator.world.run()
        operator.world.clock.now += 10_000


@pytest.fixture
def declined(operator: Operator) -> Operator:
    """Two orders that completed, and then one whose card was declined."""
    sent(operator, order("ord-1"), order("ord-2"), {**order("ord-3"), **DECLINED})
    return operator


def test_an_order_is_compared_with_the_last_that_completed(declined: Operator) -> None:
    found = declined.reads("diff", "ord-3")
    assert (found["orderId"], found["otherId"]) == ("ord-3", "ord-2")
    assert (found["state"], found["otherState"]) == ("Undone", "Completed")
    assert_schema("diff", found)
    rows = found["differences"]
    assert isinstance(rows, list)
    said = {(one["part"], one["name"]): (one["order"], one["other"]) for one in rows}
    why, none = said["order", "why it ended"]
    assert "charge_card: failed for good: CardDeclined: POST answered 402" in why
    assert none is None
    assert said["step", "charge_card: state"][1] == "Processed"
    assert ("input", "paymentToken") not in said, "it is masked, and not compared"
    assert found["notCompared"]
    assert str(DECLINED["paymentToken"]) not in json.dumps(found)


def test_the_command_prints_a_table_of_each_part_that_differs(declined: Operator) -> None:
    result = declined.types("diff", "ord-3")
    assert result.exit_code == 0, result.output
    assert "ord-3 Undone compared with ord-2 Completed" in result.stdout
    assert "Steps" in result.stdout
    assert "CardDeclined: POST answered 402" in result.stdout
    assert "not compared" in result.stdout
    assert DECLINED["paymentToken"] not in result.stdout
    named = declined.types("diff", "ord-3", "ord-1")
    assert "ord-3 Undone compared with ord-1 Completed" in named.stdout


def test_without_an_order_that_completed_it_is_said_what_to_do(operator: Operator) -> None:
    sent(operator, {**order("ord-3"), **DECLINED})
    result = operator.types("diff", "ord-3")
    assert result.exit_code == 3
    assert "keeps no other order of the workflow order_fulfilment that completed" in result.stderr
    assert "Name the order to compare it with: roundsman diff ord-3 '...'" in result.stderr
    sent(operator, order("ord-4"))
    with pytest.raises(NotFound, match="no other order"):
        last_that_completed(find_stack(None), operator.world.task("ord-4"))


def test_an_order_is_not_compared_with_itself_or_with_one_that_is_not_there(
    declined: Operator,
) -> None:
    with pytest.raises(InvalidArgument, match="is the same order"):
        read_difference(find_stack(None), "ord-3", "ord-3")
    assert declined.types("diff", "ord-3", "ord-9").exit_code == 3
    assert declined.types("diff", "ord-9").exit_code == 3
    hostile = declined.types("diff", "ord-3", "<script>\x1b[31m")
    assert "\x1b" not in hostile.output
    assert hostile.exit_code == 3


def test_an_order_of_the_same_version_is_preferred(operator: Operator) -> None:
    sent(operator, order("ord-1"))
    stack = find_stack(None)
    store(loop_of(3, failed=False), stack, "ord-loop")
    task = operator.world.task("ord-1")
    other = replace(task, task_id="ord-0", plan="0" * 64)
    sent(operator, order("ord-2"))
    assert last_that_completed(stack, other) == "ord-2"
    assert last_that_completed(stack, task) == "ord-2"
    with pytest.raises(NotFound, match="no other order of the workflow"):
        last_that_completed(stack, stack.tasks.load("ord-loop", 0) or task)


def test_300_steps_are_printed_with_at_most_50_rows_of_a_part(operator: Operator) -> None:
    stack = find_stack(None)
    operator.world.clock.now += 3 * 3_600_000
    store(loop_of(300), stack, "ord-1")
    store(loop_of(3), stack, "ord-2")
    result = operator.types("diff", "ord-1", "ord-2")
    assert result.exit_code == 0, result.output
    assert "more: roundsman diff ord-1 ord-2 --json" in result.stdout
    assert len(result.stdout.splitlines()) < 150
    found = operator.reads("diff", "ord-1", "ord-2")["differences"]
    assert isinstance(found, list)
    assert len(found) > 297
