"""A person corrects the input of a failed order; no key is ever used with two inputs."""

from collections import defaultdict
from datetime import timedelta
from typing import Annotated, NotRequired, TypedDict

import pytest

from roundsman import InvalidInput, Masked, Text
from roundsman.definition.workflow import Archive, Workflow
from roundsman.model.json import Json, canonical_json
from roundsman.model.states import TaskState
from roundsman.wire.messages import read_request
from roundsman_testing import World
from roundsman_testing.world.queues import REQUESTS, QueuedMessage
from tests.world.shop import FENCED, MINUTE, ONCE, a_step, a_workflow


class Line(TypedDict):
    sku: Annotated[str, Text(20)]
    price: int


class Order(TypedDict):
    lines: list[Line]
    token: Annotated[str, Text(50), Masked()]
    note: NotRequired[str]


class PricedOrder(Order):
    total: int


def priced(order: Order) -> PricedOrder:
    return {**order, "total": sum(line["price"] for line in order["lines"])}


reserve = a_step("reserve", compensation=FENCED, reads=("lines",))
charge = a_step("charge", reserve, compensation=FENCED, retry=ONCE, reads=("token", "total"))
SHOP = a_workflow(reserve, charge, a_step("mail", charge), on_failure=Archive(), input=priced)
GIVEN: dict[str, Json] = {"lines": [{"sku": "a", "price": 3}], "token": "old", "note": "call"}


class Watched:
    """A world whose requests are collected: the inputs by idempotency key."""

    def __init__(self, workflow: Workflow = SHOP) -> None:
        self.world = World(workflow)
        self.inputs: dict[str, set[str]] = defaultdict(set)
        self.order = ""
        self.world.faults.before_each(self._collect)

    def declined(self) -> "Watched":
        """The card is declined once, and the order waits for a person."""
        self.world.on("charge").refuses("CardDeclined", times=1)
        self.order = self.world.submit(GIVEN)
        self.run()
        assert self.world.task(self.order).state is TaskState.ARCHIVED
        self.world.run(for_=5 * MINUTE)
        return self

    def run(self) -> None:
        self.world.run()

    def _collect(self, _call: str) -> None:
        for mail in self.world.queues.waiting:
            self._note(mail)

    def _note(self, mail: QueuedMessage) -> None:
        if mail.queue == REQUESTS:
            request = read_request(mail.body)
            self.inputs[request.idempotency_key].add(canonical_json(request.input))


def test_a_declined_card_is_replaced_and_the_order_is_completed() -> None:
    shop = Watched().declined()
    shop.world.operator.resubmit(shop.order, sets={"token": "new"})
    shop.run()
    assert shop.world.task(shop.order).state is TaskState.COMPLETED
    key = f"{shop.order}/charge/perform"
    assert shop.inputs[key] == {f'{{"orderId":"{shop.order}","token":"old","total":3}}'}
    assert shop.inputs[f"{key}/2"] == {f'{{"orderId":"{shop.order}","token":"new","total":3}}'}
    assert all(len(inputs) == 1 for inputs in shop.inputs.values())
    standing = [effect.key for effect in shop.world.services.ledger.standing(shop.order)]
    assert f"{key}/2" in standing
    assert key not in standing


def test_what_was_reserved_stays_as_it_is_and_is_changed_only_if_asked_explicitly() -> None:
    shop = Watched().declined()
    shop.world.operator.resubmit(shop.order, sets={"lines[0].price": 5})
    shop.run()
    assert shop.world.task(shop.order).state is TaskState.ARCHIVED
    refused = shop.world.history(shop.order)[-1]
    assert refused.kind == "refused"
    assert "lines[0].price was used by reserve: set `used`" in refused.reason
    shop.world.operator.resubmit(shop.order, sets={"lines[0].price": 5}, used=True)
    shop.run()
    assert shop.world.task(shop.order).state is TaskState.COMPLETED
    reasons = next(row.reason for row in shop.world.history(shop.order) if row.kind == "resubmit")
    assert "corrected lines[0].price, total (lines[0].price was used by reserve)" in reasons
    charged = shop.inputs[f"{shop.order}/charge/perform/2"]
    assert charged == {f'{{"orderId":"{shop.order}","token":"old","total":5}}'}


@pytest.mark.parametrize(
    ("sets", "removes", "path", "problem"),
    [
        ({"token": ""}, (), "token", "must not be blank"),
        ({"total": 4}, (), "total", "unknown field"),
        ({"lines[0].color": "red"}, (), "lines[0].color", "unknown field"),
        ({}, ("token",), "token", "missing"),
        ({"orderId": "x"}, (), "orderId", "cannot be corrected"),
        ({"lines[3].sku": "x"}, (), "", "there is no field lines[3].sku"),
    ],
)
def test_the_corrected_input_is_checked_by_its_type(
    sets: dict[str, Json], removes: tuple[str, ...], path: str, problem: str
) -> None:
    shop = Watched().declined()
    before = shop.world.task(shop.order)
    with pytest.raises(InvalidInput) as raised:
        shop.world.operator.resubmit(shop.order, sets=sets, removes=removes)
    (found,) = raised.value.problems
    assert (found.path, problem in found.message) == (path, True)
    assert shop.world.task(shop.order) == before


def test_a_text_that_is_no_path_is_refused() -> None:
    shop = Watched().declined()
    with pytest.raises(ValueError, match="is not a path"):
        shop.world.operator.resubmit(shop.order, sets={"lines[0": 1})


def test_a_field_is_removed_and_a_whole_undo_has_the_first_input() -> None:
    mail = a_step("mail", charge, retry=ONCE)
    shop = Watched(a_workflow(reserve, charge, mail, on_failure=Archive(), input=priced))
    shop.declined()
    shop.world.on("mail").refuses("NoAddress", times=1)
    shop.world.operator.resubmit(shop.order, sets={"token": "new"}, removes=("note",))
    shop.run()
    assert shop.world.task(shop.order).state is TaskState.ARCHIVED
    shop.world.operator.undo(shop.order)
    shop.run()
    assert shop.world.task(shop.order).state is TaskState.UNDONE
    (undone,) = shop.inputs[f"{shop.order}/charge/undo/2"]
    assert '"token":"new"' in undone
    assert all(len(inputs) == 1 for inputs in shop.inputs.values())


def test_an_undone_order_begins_again_with_another_token() -> None:
    shop = Watched(a_workflow(reserve, charge, input=priced))
    shop.world.on("charge").refuses("CardDeclined", times=1)
    shop.order = shop.world.submit(GIVEN)
    shop.run()
    assert shop.world.task(shop.order).state is TaskState.UNDONE
    shop.world.operator.resubmit(shop.order, again=True, sets={"token": "new"})
    shop.run()
    assert shop.world.task(shop.order).state is TaskState.COMPLETED
    assert all(len(inputs) == 1 for inputs in shop.inputs.values())


def test_a_redelivered_command_corrects_once_and_an_older_one_is_refused() -> None:
    shop = Watched().declined()
    seen = shop.world.task(shop.order).version
    shop.world.operator.resubmit(shop.order, sets={"token": "new"}, seen=seen)
    shop.world.operator.resubmit(shop.order, sets={"token": "other"}, seen=seen)
    shop.run()
    assert shop.world.task(shop.order).state is TaskState.COMPLETED
    assert len(shop.world.task(shop.order).corrections) == 1


def test_a_step_that_did_not_happen_goes_on_without_an_undo() -> None:
    alone = a_step("charge", retry=ONCE)
    shop = Watched(a_workflow(alone, on_failure=Archive(), input=priced)).declined()
    shop.world.run(for_=timedelta(hours=1))
    shop.world.operator.resubmit(shop.order, sets={"token": "new"}, not_done=("charge",))
    shop.run()
    assert shop.world.task(shop.order).state is TaskState.COMPLETED
    assert set(shop.inputs) == {f"{shop.order}/charge/perform", f"{shop.order}/charge/perform/2"}
