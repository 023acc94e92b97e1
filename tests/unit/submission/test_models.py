"""A workflow with a pydantic model: its orders, their corrections, and what its agent gets."""

import json
from collections.abc import Mapping
from datetime import timedelta
from itertools import count
from typing import Annotated

import pytest
from pydantic import BaseModel, Field, SecretStr

from roundsman import Agent, Step, StepRequest, Workflow
from roundsman.definition.input_types import given_shape
from roundsman.errors import InvalidInput, RejectedOrder
from roundsman.model.corrections import changes_of, corrected, typed_change
from roundsman.model.json import Json
from roundsman.submission.corrections import as_meant, checked_changes
from roundsman.submission.events import EventReader
from roundsman.submission.newest_plan import answer_question
from roundsman.submission.submission import ValidOrder
from roundsman.wire.newest_plan import NewestPlanQuestion
from roundsman_testing import TaskState, World
from roundsman_testing.memory import MemoryPlans
from tests.support.orders_samples import NOW, reply_queue_problem

numbers = count()


class Line(BaseModel):
    sku: str
    quantity: Annotated[int, Field(ge=1)] = 1


class Parcel(BaseModel):
    lines: Annotated[list[Line], Field(min_length=1)]
    post_code: Annotated[str, Field(pattern="^[0-9]{4}$", alias="postCode")]
    token: SecretStr
    number: int = Field(default_factory=lambda: next(numbers))


pack = Step(name="pack", agent="packing", complete_within=timedelta(seconds=5), when="input.lines")
PARCELS = Workflow(name="parcels", input=Parcel, steps=(pack,), complete_within=timedelta(hours=1))
EVENT: Mapping[str, Json] = {
    "orderId": "ord-1",
    "lines": [{"sku": "A"}],
    "postCode": "9000",
    "token": "tok_4711",
}


def read(event: Mapping[str, Json]) -> ValidOrder:
    reader = EventReader({"parcels": PARCELS})
    order = reader.read(json.dumps(event), NOW, reply_queue_problem)
    assert isinstance(order, ValidOrder)
    return order


def test_an_order_is_stored_with_its_secret_and_its_defaults() -> None:
    order = read(EVENT)
    assert isinstance(order.content, Mapping)
    assert isinstance(order.content["number"], int)
    assert {**order.content, "number": 0} == {
        **EVENT,
        "lines": [{"sku": "A", "quantity": 1}],
        "number": 0,
    }


def test_an_event_has_the_same_hash_at_each_delivery_though_a_default_is_another() -> None:
    first, again = read(EVENT), read(EVENT)
    assert first.content != again.content
    assert first.content_hash == again.content_hash


def test_a_wrong_order_is_rejected_with_each_problem_and_no_value() -> None:
    event = {**EVENT, "lines": [{"quantity": 0}], "postCode": "tok_4711", "tokn": "tok_4711"}
    del event["token"]
    with pytest.raises(RejectedOrder) as caught:
        read({**event, "processing": {"priority": "none"}})
    assert [str(problem) for problem in caught.value.problems] == [
        "lines[0].quantity: must be at least 1",
        "lines[0].sku: missing",
        "postCode: must match the pattern ^[0-9]{4}$",
        "token: missing",
        "tokn: unknown field; the fields of this object are orderId, processing, lines, postCode, "
        "token, number",
        "processing.priority: must be normal or urgent",
    ]


def test_a_correction_is_checked_by_the_model() -> None:
    before = read(EVENT).content
    assert isinstance(before, Mapping)
    changes = checked_changes(PARCELS, before, (typed_change("postCode=1234"),))
    after = corrected(before, [changes])
    assert after == {**before, "postCode": "1234"}
    for path, value, message in (
        ("postCode", "12", "postCode: must match the pattern"),
        ("lines[0].quantity", 0, r"lines\[0\].quantity: must be at least 1"),
        ("post_code", "1234", "post_code: unknown field"),
        ("token", 4711, "token: must be text"),
    ):
        with pytest.raises(InvalidInput, match=message):
            checked_changes(PARCELS, before, changes_of({path: value}, ()))


def test_a_number_that_is_typed_for_a_secret_is_text() -> None:
    [change] = as_meant((typed_change("token=4711"),), EVENT, given_shape(Parcel))
    assert change.value == "4711"


def test_the_newest_plan_says_which_stored_orders_the_model_does_not_read() -> None:
    stored = read(EVENT).content
    question = NewestPlanQuestion("parcels", {"good": stored, "old": {"orderId": "old"}})
    answer = answer_question(question, {"parcels": PARCELS}, MemoryPlans())
    assert answer.checks_input
    assert {order: [p.path for p in problems] for order, problems in answer.problems.items()} == {
        "old": ["lines", "postCode", "token"]
    }


def test_an_agent_gets_the_order_as_the_model() -> None:
    packing, parcels = Agent("packing"), list[Parcel]()

    @packing.performs(pack)
    def perform(request: StepRequest) -> None:
        parcels.append(request.input_as(Parcel))

    world = World(PARCELS, agents=[packing])
    order_id = world.submit(EVENT)
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    (parcel,) = parcels
    assert parcel.token.get_secret_value() == "tok_4711"
    assert "tok_4711" not in repr(parcel)
    assert parcel.lines == [Line(sku="A", quantity=1)]
