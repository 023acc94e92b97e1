"""A step whose result was left out: what a person sees of it, and what is offered."""

import json

import pytest

from roundsman import Workflow
from roundsman.model.states import ProcessState
from roundsman_console.facts.order.next_command import missing_result, next_command
from roundsman_console.inspector import Inspector
from roundsman_testing import World
from tests.console.missing_results import CARD, LIMIT, STRANGE, a_sale, store_waiting
from tests.console.operators import Operator

WHY = "the result has 4204 bytes; the plan allows 4096"
GIVES_IT = "roundsman resolve ord-1 charge --did --result '...' --reason '...'"
SEE = (("show",), ("show", "--json"), ("why",), ("why", "--json"), ("timeline",))


def stored(operator: Operator, workflow: Workflow, *, ended: bool = False) -> None:
    def end(world: World) -> None:
        world.cancel("ord-1", undo=False)

    store_waiting(Inspector.of_stack().stack, workflow, then=end if ended else None)
    operator.world.pass_time(120)


def test_show_says_why_what_waits_and_how_the_result_is_given(operator: Operator) -> None:
    stored(operator, a_sale())
    shown = operator.types("show", "ord-1").stdout
    assert "charge  Processed, awaits its result  0" in shown
    assert f"charge: its result was left out: {WHY}" in " ".join(shown.split())
    assert shown.splitlines()[-1] == f"Next, to give the missing result: {GIVES_IT}"
    assert "xxxx" not in shown, "a text for the terminal does not have the result itself"
    document = json.loads(operator.types("show", "ord-1", "--json").stdout)
    assert document["next"] == GIVES_IT
    charge, ship = document["steps"]
    assert (charge["result"], ship["resultLeftOut"]) == (None, None)
    left_out = charge["resultLeftOut"]
    assert left_out.pop("whole") == {
        "note": STRANGE,
        "card": "paid by (masked)",
        "scan": "x" * LIMIT,
    }
    assert left_out == {"why": WHY, "bytes": 4204, "kept": True, "lacksSteps": False}
    assert GIVES_IT in operator.types("why", "ord-1").stdout


def test_the_command_that_is_offered_gives_the_result(operator: Operator) -> None:
    stored(operator, a_sale())
    gives = [*GIVES_IT.split()[1:-3], '{"id": "ch_1"}', "--reason", "read at the service"]
    result = operator.types(*gives, "--as", "amy", "--yes")
    assert result.exit_code == 0, result.output
    record = operator.world.task("ord-1").step("charge")
    assert (record.result, record.left_out) == ({"id": "ch_1"}, None)
    assert not record.awaits_result
    assert missing_result(operator.world.task("ord-1")) is None
    assert "left out:" not in operator.types("show", "ord-1").stdout.partition("Step ")[0]


@pytest.mark.parametrize("options", SEE, ids=" ".join)
def test_nothing_of_a_result_that_was_left_out_is_shown_unmasked(
    operator: Operator, options: tuple[str, ...]
) -> None:
    stored(operator, a_sale(result_masked=True))
    command, *more = options
    output = operator.types(command, "ord-1", *more).output
    assert CARD not in output
    assert "xxxx" not in output, "all of the result is masked"
    assert "\x1b" not in output
    assert "markup" not in output
    if command == "show" and more:
        assert json.loads(output)["steps"][0]["resultLeftOut"]["whole"] == "(masked)"
        revealed = json.loads(operator.types("show", "ord-1", "--reveal", "--json").stdout)
        assert revealed["steps"][0]["resultLeftOut"]["whole"]["card"] == f"paid by {CARD}"


def test_an_erased_order_has_no_result_that_was_left_out(operator: Operator) -> None:
    stored(operator, a_sale(), ended=True)
    before = operator.types("show", "ord-1", "--json").stdout
    assert json.loads(before)["steps"][0]["resultLeftOut"]["whole"]["scan"] == "x" * LIMIT
    erased = operator.types("erase", "ord-1", "--why", "request 17", "--as", "amy", "--yes")
    assert erased.exit_code == 0, erased.output
    for options in SEE:
        command, *more = options
        output = operator.types(command, "ord-1", *more).output
        assert "xxxx" not in output
        assert "paid by" not in output


def test_an_order_that_has_ended_awaits_no_result(operator: Operator) -> None:
    stored(operator, a_sale(), ended=True)
    task = operator.world.task("ord-1")
    assert task.step("charge").process_state is ProcessState.PROCESSED
    assert "awaits its result" not in operator.types("show", "ord-1").stdout
    assert next_command(task) == "roundsman resubmit ord-1 --again --reason '...'"
