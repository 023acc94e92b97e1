"""A bulk run meets what cannot be read: it says so of that order, and the others go on."""

import re
from dataclasses import replace

from tests.console.bulk_stories import archived, names, states
from tests.console.operators import Operator, at_each_call, document


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


def test_an_order_whose_plan_cannot_be_read_is_refused_and_holds_up_no_other(
    operator: Operator,
) -> None:
    group = archived(operator, 3)
    operator.world.clock.now += 1000
    with_a_plan_that_cannot_be_read(operator, "ord-2")
    shown = document(operator.asks("resubmit", "--group", group, "--json"))
    told = document(operator.asks("resubmit", "--group", group, "--go", "--json"))
    for one in (shown, told):
        listed = one["refused"]
        assert isinstance(listed, list)
        [refused] = listed
        assert refused["samples"] == ["ord-2"]
        assert "cannot be read" in refused["reason"]
    assert (told["completed"], told["state"]) == (2, "finished")
    assert states(operator, names(3)) == ["Completed", "Archived", "Completed"]


def test_an_order_whose_history_cannot_be_read_is_told_as_under_way_and_holds_up_no_other(
    operator: Operator,
) -> None:
    group = archived(operator, 3)
    operator.world.clock.now += 1000
    operator.world.dynamodb.put_item(
        TableName=operator.world.stack.outputs["HistoryTableName"],
        Item={"TaskId": {"S": "ord-2"}, "Seq": {"N": "0"}},
    )
    works, operator.patience.sleeping = operator.patience.sleeping, lambda: None

    def late() -> None:
        """The scheduler is slow, so that the histories are looked at."""
        if operator.patience.now > 3:
            works()

    operator.patience.sleeping = late
    told = document(operator.asks("resubmit", "--group", group, "--go", "--json"))
    assert (told["completed"], told["state"]) == (3, "finished")


def test_a_run_whose_plan_is_lost_is_interrupted_and_says_what_is_missing(
    operator: Operator,
) -> None:
    group = archived(operator, 2)
    operator.world.clock.now += 1000
    lost: list[str] = []

    def lose(params: dict[str, object], **_: object) -> None:
        """The plan goes as soon as the run is stored."""
        key = params["Key"]
        assert isinstance(key, dict)
        name = str(key["ControlId"]["S"])
        if re.fullmatch(r"bulk#b-[0-9a-f]{8}#0", name) and not lost:
            lost.append(name)
            operator.world.dynamodb.delete_item(
                TableName=operator.world.stack.outputs["ControlTableName"], Key=key
            )

    with at_each_call("dynamodb.GetItem", lose):
        result = operator.asks("resubmit", "--group", group, "--go")
    assert result.exit_code == 1
    assert f"the record {lost[0]} cannot be read: Orders is missing." in result.stderr
    listed = operator.reads("bulk", "ls")["runs"]
    assert isinstance(listed, list)
    [run] = listed
    assert (run["state"], run["sent"]) == ("interrupted", 0)
