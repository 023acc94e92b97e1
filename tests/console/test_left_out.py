"""Orders that completed although items of a fan-out failed: they are seen, and can be found."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from roundsman import Compensation, Step, Workflow
from roundsman.aws.dynamodb.codec import steps_map
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, Task, item_names
from roundsman_console.base.result import document_of
from roundsman_console.faces.cli.text.states import task_line
from roundsman_console.faces.web.selection_fields import option_text, selection_of
from roundsman_console.facts.order.documents import order_summary
from roundsman_console.facts.order.effects import left_out_words
from roundsman_console.facts.order.why import diagnose
from roundsman_console.facts.orders.reasons import reason_of
from roundsman_testing import World
from tests.console.operators import Operator
from tests.console.step_samples import AT, facts, task
from tests.moto.orders import order
from tests.support.steps import step_record

if TYPE_CHECKING:
    from collections.abc import Iterable

DONE = step_record(process_state=ProcessState.PROCESSED)
FAILED = step_record(
    process_state=ProcessState.SKIPPED, error=StepError("OutOfStock", "no"), started_at=AT
)


def completed(fan_outs: Mapping[str, int], left_out: "Iterable[str]") -> Task:
    """A completed task of which these items were left out."""
    items = [item for step, count in fan_outs.items() for item in item_names(step, count)]
    steps = dict.fromkeys(items, DONE) | dict.fromkeys(left_out, FAILED)
    return replace(
        task(steps), state=TaskState.COMPLETED, ended_at=AT, lane="done#1", fan_outs=fan_outs
    )


ONE = completed({"pick": 5}, ["pick[3]"])
NONE = completed({"pick": 5}, [])


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (NONE, ""),
        (completed({}, []), ""),
        (completed({"pick": 0}, []), ""),
        (ONE, "1 of 5 items left out"),
        (completed({"pick": 2}, ["pick[0]", "pick[1]"]), "2 of 2 items left out"),
        (completed({"pick": 5, "pack": 3}, ["pick[3]"]), "1 of 5 items left out"),
        (completed({"pick": 5, "pack": 3}, ["pick[3]", "pack[0]"]), "2 of 8 items left out"),
        # What an earlier run of the task had and this one does not was not left out by it.
        (completed({"pick": 2}, ["pick[3]"]), ""),
        # A whole step that was skipped is none of its items.
        (completed({"pick": 2}, ["pick"]), ""),
    ],
)
def test_an_order_says_how_many_of_its_items_were_left_out(found: Task, words: str) -> None:
    assert left_out_words(found) == words
    assert reason_of(found) == words
    assert task_line(found).plain == f"ord-1  story  Completed{words and ', '}{words}"
    diagnosis = diagnose(facts(found))
    assert diagnosis.sentence.endswith(f"(0 ms ago){words and ', '}{words}.")
    assert any(line.startswith("left out: p") for line in diagnosis.evidence) == bool(words)


def test_scripts_get_the_names_of_the_items() -> None:
    assert document_of(order_summary(ONE))["leftOut"] == ["pick[3]"]
    assert document_of(order_summary(NONE))["leftOut"] == []


@pytest.mark.parametrize("undo", [False, True])
def test_what_the_engine_leaves_out_is_what_is_shown(undo: bool) -> None:
    pick = Step(
        name="pick",
        agent="shelves",
        complete_within=timedelta(seconds=30),
        for_each="input.lines",
        tolerate=2,
        compensation=Compensation() if undo else None,
    )
    world = World(Workflow(name="w", steps=(pick,), complete_within=timedelta(hours=1)))
    world.on("pick[1]").refuses("OutOfStock")
    world.on("pick[4]").refuses("OutOfStock")
    order_id = world.submit({"orderId": "x", "lines": [1, 2, 3, 4, 5]})
    world.run()
    found = world.task(order_id)
    assert (found.state, found.left_out()) == (TaskState.COMPLETED, ("pick[1]", "pick[4]"))
    assert left_out_words(found) == "2 of 5 items left out"
    assert world.post.alerts == []


def with_an_item_left_out(operator: Operator, order_id: str) -> None:
    """Let a completed order have a fan-out of which one item was left out."""
    values: dict[str, Any] = {
        ":steps": steps_map(ONE.steps),
        ":counts": {"M": {"pick": {"N": "5"}}},
        ":one": {"N": "1"},
    }
    operator.world.dynamodb.update_item(
        TableName=operator.world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": order_id}},
        UpdateExpression="SET Steps = :steps, FanOuts = :counts, LeftOut = :one",
        ExpressionAttributeValues=values,
    )


def test_lists_find_the_orders_that_have_left_out_an_item(operator: Operator) -> None:
    for name in ("ord-1", "ord-2"):
        operator.world.submit(order(name))
    operator.world.run()
    with_an_item_left_out(operator, "ord-2")
    listed = operator.types("ls", "--left-out").stdout
    assert "ord-1" not in listed
    assert "1 of 5 items left out" in listed
    shown = operator.types("show", "ord-2").stdout.splitlines()
    assert shown[0].rstrip() == "ord-2  order_fulfilment  Completed, 1 of 5 items left out"
    assert "Left out: pick[3]" in [line.rstrip() for line in shown]
    assert operator.types("ls", "--left-out", "--state", "Undone").stdout.strip() == "No tasks."
    assert "Completed 2 (1 with items left out)" in operator.types("stats").stdout


def test_a_form_asks_for_them_as_the_command_line_does() -> None:
    asked = {"state": "Completed", "left_out": "yes"}
    assert selection_of(asked).left_out
    assert not selection_of({"state": "Completed"}).left_out
    assert option_text(asked) == "--state Completed --left-out"
    assert selection_of(asked).words() == "Completed, with items left out"
