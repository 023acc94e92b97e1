"""Orders are found by the fields that their workflow names, from submission to the last repair."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, NotRequired, TypedDict

import pytest

from roundsman import Masked, Text
from roundsman.definition.workflow import Archive
from roundsman.errors import TryAgain
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman_testing import Faults, Invariant, InvariantBroken, World, eventbridge_event
from roundsman_testing.memory import TABLES
from roundsman_testing.world.crashes import crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, ONCE, a_step, a_workflow, requests_sent


class Card(TypedDict):
    holder: Annotated[str, Text(50), Masked()]


class Order(TypedDict):
    customerId: str
    card: Card
    amount: NotRequired[int | float | str]


reserve = a_step("reserve", compensation=FENCED, reads=("amount",))
charge = a_step("charge", reserve, compensation=FENCED, retry=ONCE)
BY_THREE = ("input.customerId", "input.card.holder", "input.amount")
SHOP = a_workflow(reserve, charge, on_failure=Archive(), input=Order, search=BY_THREE)
PLAIN = replace(SHOP, search=())
HOLDER = "A. Reader"


def order(order_id: str = "ord-1", customer: str = "c-42", **more: Json) -> dict[str, Json]:
    return {"orderId": order_id, "customerId": customer, "card": {"holder": HOLDER}, **more}


def declined(world: World) -> None:
    """The card is declined once, and the order waits for a person."""
    world.on("charge").refuses("CardDeclined", times=1)
    world.submit(order())
    world.run()
    assert world.task("ord-1").state is TaskState.ARCHIVED


def rows(world: World) -> str:
    """All that the tables of orders, tasks and history have, without the content of orders."""
    items = [
        {name: value for name, value in item.items() if name != "Content"}
        for table in (TABLES.orders, TABLES.tasks, TABLES.history)
        for item in world.processes.tables.items(table)
    ]
    return repr(items)


def test_an_order_is_found_by_each_field_while_it_is_open_and_after_its_end() -> None:
    world = World(replace(SHOP, retain_for=timedelta()))
    world.submit(order("ord-1", amount=1.0))
    world.submit(order("ord-2", "c-43", amount="1"))
    assert world.search("input.customerId", "c-42") == [], "submission has not taken it yet"
    world.run(for_=timedelta(milliseconds=1))
    for _ in range(2):
        assert world.search("input.customerId", "c-42") == ["ord-1"]
        assert world.search("input.card.holder", HOLDER) == ["ord-1", "ord-2"]
        assert world.search("input.amount", 1) == ["ord-1", "ord-2"]
        assert world.search("input.customerId", "c-4") == []
        assert world.search("input.amount", "c-42") == []
        world.run()
    assert world.processes.store.stored("ord-1") is None, "its task was removed at its end"


@pytest.mark.parametrize("nothing", [None, "", [], {}])
def test_what_no_order_is_found_by_is_said(nothing: Json) -> None:
    with pytest.raises(ValueError, match="give a text, a number or a bool"):
        World(SHOP).search("input.customerId", nothing)


def test_a_masked_value_stands_nowhere_outside_of_the_content() -> None:
    world = World(SHOP)
    world.submit(order())
    world.run()
    assert world.search("card.holder", HOLDER) == ["ord-1"]
    assert "Reader" not in rows(world)
    assert "customerId=c-42" in rows(world)


def test_a_workflow_without_search_costs_nothing_more() -> None:
    """Not one call more, nor an attribute; also not where an order is corrected."""

    def calls(world: World) -> Counter[str]:
        declined(world)
        world.operator.resubmit("ord-1", used=True, sets={"customerId": "c-43"})
        world.run()
        assert world.search("input.customerId", "c-43") == []
        return Counter(world.faults.calls)

    plain = World(PLAIN)
    found = calls(plain)
    assert not any("search" in call for call in found)
    assert "Search" not in rows(plain)
    assert calls(World(replace(PLAIN, masked=("customerId",)))) == found
    named = Counter(calls(World(replace(SHOP, search=("input.amount",)))))
    assert named == found, "a field that no order has, and that is not masked, costs no call"


def test_a_decision_reads_no_order_for_its_search_keys_unless_it_is_corrected() -> None:
    """Each message has a new instance here, which reads the order once if it needs it: for a
    request, and to mask the message of the refusal."""
    world = World(SHOP)
    sent = requests_sent(world)
    declined(world)
    world.operator.resubmit("ord-1")
    world.run()
    assert Counter(world.faults.calls)["order"] == len(sent) + 1 == 4


def test_a_corrected_order_is_found_by_its_new_value_and_not_by_the_old_one() -> None:
    world = World(SHOP)
    declined(world)
    world.operator.resubmit(
        "ord-1", used=True, sets={"customerId": "c-43", "card.holder": "B. Reader", "amount": 7}
    )
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    for field, old, new in (
        ("customerId", "c-42", "c-43"),
        ("card.holder", HOLDER, "B. Reader"),
        ("amount", None, 7),
    ):
        assert old is None or world.search(field, old) == []
        assert world.search(field, new) == ["ord-1"]


def test_a_second_correction_counts_and_may_remove_a_value() -> None:
    world = World(SHOP)
    world.on("charge").refuses("CardDeclined", times=3)
    world.submit(order(amount=7))
    world.run()
    for customer in ("c-43", "c-42"):
        world.operator.resubmit("ord-1", used=True, sets={"customerId": customer})
        world.run()
        assert world.search("customerId", customer) == ["ord-1"]
        assert world.search("amount", 7) == ["ord-1"]
    world.operator.resubmit("ord-1", used=True, removes=["amount"])
    world.run()
    assert world.search("amount", 7) == []
    assert world.search("customerId", "c-42") == ["ord-1"]


def test_a_refused_correction_and_a_resubmit_without_one_change_nothing() -> None:
    world = World(SHOP)
    declined(world)
    world.operator.resubmit("ord-1", seen=1, used=True, sets={"customerId": "c-43"})
    world.run()
    assert world.search("customerId", "c-42") == ["ord-1"]
    before = world.processes.tables.row(TABLES.orders, "ord-1")
    world.operator.resubmit("ord-1")
    world.run()
    assert world.processes.tables.row(TABLES.orders, "ord-1") == before


def test_an_order_that_is_moved_keeps_its_fields_until_it_is_corrected() -> None:
    world = World(SHOP)
    declined(world)
    world.deploy(replace(SHOP, search=("input.customerId",)))
    world.operator.resubmit("ord-1", newest_plan=True)
    world.on("charge").refuses("CardDeclined", times=1)
    world.run()
    assert world.search("card.holder", HOLDER) == ["ord-1"]
    world.operator.resubmit("ord-1", used=True, sets={"amount": 7})
    world.run()
    assert world.search("customerId", "c-42") == ["ord-1"]
    assert world.search("card.holder", HOLDER) == []
    assert world.search("amount", 7) == []


def test_an_order_of_before_is_not_found_by_a_new_field_until_it_is_corrected() -> None:
    world = World(PLAIN)
    declined(world)
    world.deploy(SHOP)
    assert world.search("customerId", "c-42") == []
    world.operator.resubmit("ord-1", newest_plan=True, used=True, sets={"amount": 7})
    world.run()
    assert world.search("customerId", "c-42") == ["ord-1"]
    assert world.search("card.holder", HOLDER) == ["ord-1"]


def test_a_correction_under_a_plan_without_search_ends_what_it_was_found_by() -> None:
    world = World(SHOP)
    declined(world)
    world.deploy(PLAIN)
    world.operator.resubmit("ord-1", newest_plan=True, used=True, sets={"customerId": "c-43"})
    world.run()
    assert world.search("customerId", "c-42") == world.search("customerId", "c-43") == []


def test_an_order_of_an_event_of_aws_is_found() -> None:
    shop = replace(SHOP, input=None, search=("input.total",))
    source = "arn:aws:events:us-east-1:123456789012:rule/orders"
    world = World(shop, sources=(source,))
    world.send(
        eventbridge_event({"orderId": "ord-7", "total": 12}, source="shop", detail_type="Order")
    )
    world.run()
    assert world.search("total", "12") == ["ord-7"]


def test_an_erased_order_is_not_found() -> None:
    world = World(replace(SHOP, retain_for=timedelta(days=1)))
    world.submit(order(amount=7))
    world.submit(order("ord-2"))
    world.run()
    world.operator.erase("ord-1", "request 17")
    world.run()
    assert world.search("customerId", "c-42") == ["ord-2"]
    assert world.search("card.holder", HOLDER) == ["ord-2"]
    assert world.search("amount", 7) == []


def test_an_order_that_is_not_kept_any_more_is_not_found() -> None:
    world = World(SHOP, order_retention=timedelta(days=1))
    world.submit(order())
    world.run()
    assert world.search("customerId", "c-42") == ["ord-1"]
    world.run(for_=timedelta(days=2))
    world.processes.tables.expire("ExpiresAt")
    assert world.search("customerId", "c-42") == []


def test_a_restore_brings_back_what_an_order_was_found_by() -> None:
    world = World(SHOP)
    declined(world)
    backup = world.backup()
    world.operator.resubmit(
        "ord-1", used=True, sets={"customerId": "c-43", "card.holder": "B. Reader"}
    )
    world.submit(order("ord-2"))
    world.run()
    assert world.search("card.holder", HOLDER) == ["ord-2"]
    world.restore(backup)
    world.run()
    assert world.search("customerId", "c-42") == ["ord-1"]
    assert world.search("card.holder", HOLDER) == ["ord-1"]


def test_a_secret_that_cannot_be_read_delays_an_order_and_loses_none() -> None:
    faults = Faults()
    world = World(SHOP, faults=faults)
    failed: list[str] = []

    def fail(call: str) -> None:
        if call == "search_secret" and not failed:
            failed.append(call)
            raise TryAgain("DynamoDB is down")

    faults.before_each(fail)
    world.submit(order())
    world.run()
    assert failed
    assert world.search("card.holder", HOLDER) == ["ord-1"]
    assert world.task("ord-1").state is TaskState.COMPLETED


@at_every_call
def test_whatever_call_fails_the_order_is_found_by_its_last_values(kinds: Kinds) -> None:
    def story(world: World) -> None:
        declined(world)
        world.operator.resubmit("ord-1", used=True, sets={"card.holder": "B. Reader"})
        world.run()
        assert world.search("card.holder", "B. Reader") == ["ord-1"]
        assert world.search("card.holder", HOLDER) == []
        assert world.search("customerId", "c-42") == ["ord-1"]

    crash_everywhere(story, lambda faults: World(SHOP, faults=faults), faults=kinds)


def test_the_invariant_finds_an_order_with_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "roundsman.submission.submission.Submission._search_keys", lambda *_: ("a=b",)
    )
    world = World(SHOP)
    world.submit(order())
    with pytest.raises(InvariantBroken) as broken:
        world.run()
    assert {one.invariant for one in broken.value.broken} == {Invariant.FOUND}
