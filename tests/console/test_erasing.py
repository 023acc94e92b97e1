"""`roundsman erase`: the contents of an order are gone, wherever a person looks for them."""

import json

import boto3
import pytest

from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.errors import TryAgain
from roundsman.model.task import ERASED
from roundsman_console.acts.order.commands import CommandOutcome
from roundsman_console.aws.stack import find_stack
from roundsman_console.inspector import Inspector
from tests.console.operators import DECLINED, Operator, document
from tests.console.schemas import assert_schema
from tests.moto.orders import order

SECRET = "Market Street 17"
ERASE = ("erase", "ord-1", "--why", "request 17", "--as", "ops")


def undone(operator: Operator) -> None:
    """An order whose card was declined, with an address that nobody may keep."""
    address = {**order("ord-1")["shippingAddress"], "street": SECRET}  # type: ignore[dict-item]
    operator.world.submit({**order("ord-1"), **DECLINED, "shippingAddress": address})
    operator.world.run()
    assert operator.world.task("ord-1").state == "Undone"
    assert operator.world.task("ord-1").step("reserve_stock").result is not None


def waiting(operator: Operator) -> list[str]:
    return operator.world.bodies(operator.world.url("SchedulerQueue"))


def test_the_contents_of_an_order_are_erased_and_its_end_stays(operator: Operator) -> None:
    undone(operator)
    result = operator.types(*ERASE, "--yes")
    assert result.exit_code == 0, result.output
    assert result.stdout == "Done: erase by ops: request 17.\nord-1 is Undone.\n"
    task = operator.world.task("ord-1")
    assert task.state == "Undone"
    assert (task.erased_at, task.erased_by) == (operator.world.clock.now, "ops: request 17")
    row = operator.world.store.order("ord-1")
    assert row is not None
    assert row.content is None
    assert SECRET not in repr((task, row, operator.world.store.history("ord-1")))


@pytest.mark.exhaustive
@pytest.mark.parametrize("write", ["erase_order", "erase_history"])
def test_it_is_not_confirmed_before_the_order_and_the_history_are_erased_too(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    """The row of the command is stored with the decision, before them."""
    undone(operator)

    def is_throttled(*_: object, **__: object) -> None:
        raise TryAgain("throttled")

    with monkeypatch.context() as patched:
        patched.setattr(DynamoStore, write, is_throttled)
        result = operator.types(*ERASE, "--yes")
    assert operator.world.task("ord-1").erased_at is not None
    assert result.exit_code == 4, result.output
    assert "still has contents" in " ".join(result.output.split())
    assert operator.types(*ERASE, "--yes").exit_code == 0
    check_nothing_is_left(operator)


def check_nothing_is_left(operator: Operator) -> None:
    row, history = operator.world.store.order("ord-1"), operator.world.store.history("ord-1")
    assert row is not None
    assert row.content is None
    assert {one.reason for one in history if one.kind != "erase"} == {ERASED}


@pytest.mark.exhaustive
def test_whoever_looks_sees_when_it_was_erased_by_whom_and_why(operator: Operator) -> None:
    undone(operator)
    operator.types(*ERASE, "--yes")
    task = operator.world.task("ord-1")
    shown = operator.types("show", "ord-1").stdout
    words = "erased on 2027-01-15T08:00:00.000Z by ops: request 17"
    for command in (("show", "ord-1"), ("timeline", "ord-1"), ("why", "ord-1"), ("ls",)):
        assert words in " ".join(operator.types(*command).stdout.split()), command
    assert "resubmit" not in shown
    found = operator.reads("show", "ord-1")
    assert found["erasedAt"] == "2027-01-15T08:00:00.000Z"
    assert found["erasedBy"] == task.erased_by
    assert found["next"] is None
    (row,) = [one for one in found["history"] if one["kind"] == "erase"]  # type: ignore[attr-defined]
    assert row["reason"] == "erase by ops: request 17"
    assert operator.reads("why", "ord-1")["next"] is None


@pytest.mark.exhaustive
def test_an_export_has_no_contents_of_it(operator: Operator) -> None:
    undone(operator)
    operator.types(*ERASE, "--yes")
    result = operator.types("export", "--with-orders")
    (line,) = result.stdout.splitlines()
    found = json.loads(line)
    assert found["order"] is None
    assert found["erasedBy"] == "ops: request 17"
    assert {step["result"] for step in found["steps"]} == {None}


def test_it_is_asked_for_and_a_no_sends_nothing(operator: Operator) -> None:
    undone(operator)
    before = operator.world.task("ord-1")
    result = operator.types(*ERASE, answer="n\n")
    assert result.exit_code != 0
    assert "ord-1 is Undone. Erase its contents? They cannot be brought back" in result.output
    assert waiting(operator) == []
    assert operator.world.task("ord-1") == before


def test_a_dry_run_sends_nothing(operator: Operator) -> None:
    undone(operator)
    result = operator.types(*ERASE, "--dry-run", "--json")
    assert result.exit_code == 0
    assert_schema("erase", document(result))
    assert document(result)["outcome"] == "dryRun"
    assert document(result)["sentence"] == "erase of ord-1 is possible; nothing was sent."
    assert waiting(operator) == []


def test_a_reason_is_required_and_the_help_says_what_not_to_write_in_it(
    operator: Operator,
) -> None:
    assert operator.types("erase", "ord-1", "--yes").exit_code == 2
    assert operator.types("erase", "ord-1", "--why", " ", "--yes").exit_code == 2
    text = " ".join(operator.types("erase", "--help").stdout.split())
    assert "Do not write personal data in it" in text.replace(" │ │ ", " ")


def test_an_order_that_needs_its_contents_is_refused_before_anything_is_sent(
    operator: Operator,
) -> None:
    operator.world.faults({"operation": "POST /messages", "status": 422})
    operator.world.submit(order("ord-1"))
    operator.world.run()
    assert operator.world.task("ord-1").state == "Archived"
    result = operator.types(*ERASE, "--yes")
    assert result.exit_code == 1
    assert "erase of ord-1 refused, nothing was sent: the task is archived" in result.stderr
    assert waiting(operator) == []


@pytest.mark.parametrize(
    "typed",
    [
        ("resubmit", "ord-1", "--again"),
        pytest.param(
            ("resubmit", "ord-1", "--again", "--plan", "newest"), marks=pytest.mark.exhaustive
        ),
    ],
)
def test_every_other_command_is_refused_in_words(
    operator: Operator, typed: tuple[str, ...]
) -> None:
    undone(operator)
    operator.types(*ERASE, "--yes")
    result = operator.asks(*typed)
    assert result.exit_code == 1
    assert result.stderr == (
        f"{typed[0]} of ord-1 refused, nothing was sent: the contents of the order were erased, "
        "so the task cannot be changed any more.\n"
    )
    assert waiting(operator) == []


@pytest.mark.exhaustive
def test_after_its_retention_what_is_left_is_erased(operator: Operator) -> None:
    undone(operator)
    boto3.client("dynamodb").delete_item(
        TableName=operator.world.stack.outputs["TasksTableName"], Key={"TaskId": {"S": "ord-1"}}
    )
    asked = operator.types(*ERASE, answer="n\n")
    question = " ".join(asked.output.split())
    assert "ord-1 has no task: its retention is over, or its record was lost." in question
    tried = operator.types(*ERASE, "--dry-run")
    assert tried.stdout == "erase of ord-1 is possible; nothing was sent.\n"
    assert waiting(operator) == []
    result = operator.types(*ERASE, "--yes")
    assert result.exit_code == 0, result.output
    assert "erase by ops: request 17; its task's retention is over" in result.stdout
    row = operator.world.store.order("ord-1")
    assert row is not None
    assert row.content is None


def test_an_order_that_is_not_there_is_one_sentence(operator: Operator) -> None:
    for name in ("ord-2", "no such id!"):
        result = operator.types("erase", name, "--why", "x", "--yes")
        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr.startswith("There is no order ")


@pytest.mark.exhaustive
def test_the_library_erases_an_order(operator: Operator) -> None:
    undone(operator)
    inspector = Inspector(find_stack(None))
    result = inspector.erase("ord-1", by="ops", reason="request 17")
    assert result.outcome is CommandOutcome.DONE
    assert operator.world.task("ord-1").erased_by == "ops: request 17"


@pytest.mark.exhaustive
def test_an_event_that_comes_again_makes_no_new_order(operator: Operator) -> None:
    undone(operator)
    operator.types(*ERASE, "--yes")
    address = {**order("ord-1")["shippingAddress"], "street": SECRET}  # type: ignore[dict-item]
    operator.world.submit({**order("ord-1"), **DECLINED, "shippingAddress": address})
    operator.world.run()
    row = operator.world.store.order("ord-1")
    assert row is not None
    assert row.content is None
    assert operator.world.bodies(operator.world.url("RejectedQueue")) == []
    operator.world.submit({**order("ord-1"), "shippingAddress": address})
    operator.world.run()
    assert len(operator.world.bodies(operator.world.url("RejectedQueue"))) == 1
