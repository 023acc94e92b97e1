"""What operators see of an order that waits for its turn, and how they let it begin."""

from dataclasses import replace

import pytest

from roundsman import Limit
from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.errors import CallRefused
from tests.console.operators import CHARGED_LATER, Operator
from tests.console.schemas import assert_schema
from tests.moto.orders import order
from workflows.order_fulfilment import order_fulfilment
from workflows.registry import WORKFLOWS

BEFORE = (
    "its turn: 2 orders of the same input.customerId are before it, 1 under way and 1 waiting; at "
    "most 1 may be under way"
)


@pytest.fixture
def turns(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """Three orders of one customer, of which the first one waits for its second charge."""
    limited = replace(order_fulfilment, limit=Limit(by="input.customerId"))
    monkeypatch.setitem(WORKFLOWS, limited.name, limited)
    operator.world.redeploy()
    operator.world.faults(CHARGED_LATER)
    for number in (1, 2, 3):
        operator.world.submit(order(f"ord-{number}"))
        operator.world.run()
        operator.world.clock.now += 1_000
    return operator


def test_an_order_that_waits_for_its_turn_says_how_many_are_before_it(turns: Operator) -> None:
    found = turns.reads("why", "ord-3")
    assert_schema("why", found)
    assert (found["case"], found["agent"]) == ("awaits_turn", None)
    assert found["sentence"] == f"ord-3 waits for {BEFORE}."
    assert found["next"] == "roundsman run ord-3 --past-holds --reason '...'"
    shown = turns.reads("show", "ord-3")
    assert_schema("show", shown)
    assert shown["turn"] == {"by": "input.customerId", "atOnce": 1, "underWay": 1, "waiting": 1}
    said = " ".join(turns.types("show", "ord-3").stdout.split())
    assert f"waits for {BEFORE}" in said
    assert "c-42" not in said, "the value is not shown"
    assert turns.reads("show", "ord-1")["turn"] is None
    listed = " ".join(turns.types("ls", "--state", "Retry").stdout.split())
    assert "waits for its turn, by the limit of its workflow" in listed


def test_an_order_that_is_let_begin_does_not_wait_and_the_others_wait_on(turns: Operator) -> None:
    turns.types("run", "ord-3", "--past-holds", "--yes", "--reason", "the customer called")
    turns.world.run()
    assert turns.world.task("ord-3").state == "Completed"
    assert turns.world.task("ord-2").state == "Retry"
    found = turns.reads("show", "ord-2")
    assert found["turn"] == {"by": "input.customerId", "atOnce": 1, "underWay": 1, "waiting": 0}
    history = turns.reads("show", "ord-3")["history"]
    assert isinstance(history, list)
    assert any("the customer called" in str(row) for row in history)


def test_a_viewer_who_may_not_read_who_waits_is_told_so(
    turns: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise CallRefused("AccessDeniedException")

    monkeypatch.setattr(DynamoStore, "waiting", refused)
    assert turns.reads("why", "ord-3")["sentence"] == (
        "ord-3 waits for its turn: 1 order of the same input.customerId under way, and how many "
        "wait before it is not known to you; at most 1 may be under way."
    )
    assert turns.reads("show", "ord-3")["turn"] == {
        "by": "input.customerId",
        "atOnce": 1,
        "underWay": 1,
        "waiting": None,
    }
