"""`Workflow(limit=...)`: what it takes, what it refuses at import, and what a plan has."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import TypedDict

import pytest

from roundsman import DefinitionError, Limit, Step, Workflow
from roundsman.definition.plan import LimitPlan, plan_of, read_plan
from roundsman.definition.plan_differences import differences
from roundsman.engine.order_limit import limit_key
from roundsman.model.json import Json

MINUTE = timedelta(minutes=1)


class Order(TypedDict):
    customerId: str


STEP = Step(name="charge", agent="payment", complete_within=MINUTE)
PLAIN = Workflow(name="shop", steps=(STEP,), complete_within=5 * MINUTE, input=Order)
LIMITED = replace(PLAIN, limit=Limit(by="input.customerId", at_once=2))


def test_a_plan_has_the_limit_and_one_without_keeps_its_hash_and_its_version() -> None:
    made = plan_of(LIMITED)
    assert made.limit == LimitPlan("input.customerId", 2)
    assert read_plan(made.text) == made
    assert json.loads(made.text)["planVersion"] == 7, "older code would begin the orders at once"
    assert "limit" not in json.loads(plan_of(PLAIN).text)
    assert json.loads(plan_of(PLAIN).text)["planVersion"] == 1
    [found] = differences(plan_of(PLAIN), made)
    assert found.sentence.endswith("limit: none, now 2 at once by input.customerId")


@pytest.mark.parametrize(
    ("by", "at_once", "says"),
    [
        ("input.", 1, "not valid JMESPath"),
        (7, 1, "must be a JMESPath expression"),
        ("results.charge.id", 1, "can read only input"),
        ("came.charge", 1, "can read only input"),
        ("'all'", 1, "reads nothing of the order; write input.customerId"),
        ("order.customerId", 1, "order"),
        ("input.customerId", 0, "at_once"),
        ("input.customerId", True, "at_once"),
        ("input.customerId", 101, "at most 100 orders of one value are counted"),
    ],
)
def test_a_limit_that_can_never_count_is_refused_at_import(
    by: str, at_once: int, says: str
) -> None:
    with pytest.raises(DefinitionError, match=says):
        Limit(by=by, at_once=at_once)


def test_a_field_that_the_input_does_not_have_is_refused_at_import() -> None:
    with pytest.raises(
        DefinitionError, match=r"workflow 'shop': by of its limit reads input.shopId"
    ):
        replace(PLAIN, limit=Limit(by="input.shopId"))
    with pytest.raises(DefinitionError, match="limit"):
        replace(PLAIN, limit="input.customerId")  # type: ignore[arg-type]  # a mistake


def key(value: Json, by: str = "input.v", workflow: str = "shop", secret: bytes = b"1") -> object:
    return limit_key(workflow, LimitPlan(by, 1), {"v": value, "w": 1}, lambda: secret)


def test_a_key_is_a_keyed_hash_of_the_value_the_workflow_and_the_expression() -> None:
    same = key("c-42")
    assert isinstance(same, str)
    assert len(same) == 32
    assert "c-42" not in same
    assert same == key("c-42")
    others = [key("c-43"), key("c-42", workflow="s"), key("c-42", secret=b"2")]
    others += [key("c-42", by="input.v || input.w"), key(["c-42"]), key({"c": 42})]
    assert len({same, *others}) == 7
    assert key(1) == key(1.0) == key("1")


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_order_without_a_value_is_not_limited(nothing: Json) -> None:
    assert key(nothing) is None
    assert key(1, by="input.missing") is None
    assert key(0) is not None
    assert key(False) is not None


def test_an_expression_that_cannot_be_evaluated_says_so() -> None:
    with pytest.raises(ValueError, match=r"the limit's by 'abs\(input.v\)' cannot be evaluated"):
        key("c", by="abs(input.v)")
