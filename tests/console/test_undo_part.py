"""`undo --steps`: a part of a completed order is taken back, and the rest of it stands."""

import pytest

from roundsman_console.acts.order.verbs import UndoVerb
from roundsman_console.aws.stack import find_stack
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.inspector.inspector import Inspector
from tests.console.operators import Operator, document
from tests.moto.orders import order

SHIPMENT = ("undo", "ord-1", "--steps", "create_shipment,send_confirmation")


def completed(operator: Operator) -> None:
    operator.world.submit(order("ord-1"))
    operator.world.run()
    assert operator.world.task("ord-1").state == "Completed"


def test_the_named_steps_are_undone_and_everything_shows_which(operator: Operator) -> None:
    completed(operator)
    result = operator.asks(*SHIPMENT)
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "Done: undo-part by ops: routine; steps: create_shipment, send_confirmation.\n"
        "ord-1 is Completed.\n"
    )
    why = "undo of create_shipment, send_confirmation requested by ops: routine"
    shown = operator.reads("show", "ord-1")
    assert shown["undone"] == ["create_shipment"]
    assert shown["withoutCompensation"] == ["send_confirmation"]
    assert shown["ending"] == {
        "how": "Completed",
        "why": f"{why}; without compensation: send_confirmation",
        "step": None,
        "undo": True,
        "part": ["create_shipment", "send_confirmation"],
    }
    said = " ".join(operator.types("why", "ord-1").stdout.split())
    assert "ord-1 has ended: Completed" in said
    assert why in said
    assert "undone: create_shipment" in said
    assert "Undone 2027-01-15T08:00:00Z: create_shipment" in operator.types("show", "ord-1").stdout


def test_what_depends_on_a_named_step_is_refused_before_anything_is_sent(
    operator: Operator,
) -> None:
    completed(operator)
    result = operator.asks("undo", "ord-1", "--steps", "charge_card", "--json")
    assert result.exit_code == 1
    assert document(result)["sentence"] == (
        "undo-part of ord-1 refused, nothing was sent: create_shipment, send_confirmation took "
        "effect after a step that is named, and may depend on it: name them as well, or undo the "
        "whole task."
    )


@pytest.mark.parametrize("steps", ["", ",", "create_shipment,", "create_shipment,,x"])
def test_an_empty_name_never_stands_for_the_whole_order(operator: Operator, steps: str) -> None:
    completed(operator)
    result = operator.asks("undo", "ord-1", "--steps", steps)
    assert result.exit_code == 2
    assert "A name of a step is empty. Write them so: reserve,charge." in result.stderr
    assert operator.world.task("ord-1").ending is None


def test_a_step_that_does_not_exist_is_reported_with_those_that_do(operator: Operator) -> None:
    completed(operator)
    result = operator.asks("undo", "ord-1", "--steps", "charge")
    assert result.exit_code == 1
    assert "The workflow has no step charge; it has reserve_stock" in result.stderr


def test_steps_of_several_orders_cannot_be_named(operator: Operator) -> None:
    result = operator.asks("undo", "ord-1", "ord-2", "--steps", "charge_card")
    assert result.exit_code == 2
    assert "--steps names the steps of one order." in result.stderr


@pytest.mark.exhaustive
def test_the_question_names_the_part(operator: Operator) -> None:
    completed(operator)
    verb = UndoVerb.read({"steps": ["create_shipment, send_confirmation", "create_shipment"]})
    assert verb.steps == ("create_shipment", "send_confirmation")
    assert verb.question(operator.world.task("ord-1")) == (
        "ord-1 is Completed. Undo create_shipment, send_confirmation, and keep the rest?"
    )


def test_a_form_asks_for_steps_only_of_completed_orders() -> None:
    states = UndoVerb.states
    assert UndoVerb.left_out_in(()) == ()
    for state in states:
        assert bool(UndoVerb.left_out_in([state])) == (state != "Completed")


def test_the_inspector_undoes_a_part_and_takes_no_empty_list_for_all(operator: Operator) -> None:
    completed(operator)
    inspector = Inspector(find_stack(None))
    with pytest.raises(InvalidArgument, match="No step is named"):
        inspector.undo("ord-1", by="ops", reason="routine", steps=[], wait=0)
    inspector.undo(
        "ord-1", by="ops", reason="routine", steps=["send_confirmation", "create_shipment"], wait=0
    )
    operator.world.run()
    task = operator.world.task("ord-1")
    assert task.ending is not None
    assert task.ending.part == ("send_confirmation", "create_shipment")
