"""A bulk run meets what cannot be read: it says so of that order, and the others go on."""

from dataclasses import replace

import pytest

from tests.console.bulk_stories import archived, names, states
from tests.console.operators import Operator, document


def with_a_plan_that_cannot_be_read(operator: Operator, name: str) -> None:
    """The order's task names a plan of which something else is stored."""
    world = operator.world
    task = world.task(name)
    altered = replace(task, plan="f" * 64, version=task.version + 1)
    world.store.save(altered, seen=task.version)
    world.dynamodb.put_item(
        TableName=world.stack.outputs["ControlTableName"],
        Item={"ControlId": {"S": f"plan#{'f' * 64}"}, "Text": {"S": "altered"}},
    )


@pytest.mark.exhaustive
def test_an_order_whose_plan_cannot_be_read_is_refused_and_holds_up_no_other(
    operator: Operator,
) -> None:
    group = archived(operator, 3)
    operator.world.clock.now += 1000
    with_a_plan_that_cannot_be_read(operator, "ord-2")
    shown = document(operator.asks("resubmit", "--group", group, "--json"))
    printed = document(operator.asks("resubmit", "--group", group, "--go", "--json"))
    for one in (shown, printed):
        listed = one["refused"]
        assert isinstance(listed, list)
        [refused] = listed
        assert refused["samples"] == ["ord-2"]
        assert "cannot be read" in refused["reason"]
    assert (printed["completed"], printed["state"]) == (2, "finished")
    assert states(operator, names(3)) == ["Completed", "Archived", "Completed"]
