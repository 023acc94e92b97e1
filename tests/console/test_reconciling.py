"""Tables are restored to an instant, and every order of then goes on to its end."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import boto3
import pytest

from roundsman.engine.restored import VERSIONS_SKIPPED
from roundsman.model.events import CommandSource, Resubmit
from roundsman.model.instants import iso
from roundsman.model.states import TaskState
from roundsman.model.task import Owed
from roundsman.wire.commands import command_of
from roundsman_console.acts.reconcile import reconcile
from roundsman_console.acts.reconcile.reconcile import command_id_of
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.faces.cli.target import find_stack
from roundsman_testing.stack import MORNING, Stack
from tests.console.operators import Operator, at_each_call, document
from tests.console.schemas import assert_schema
from tests.moto.orders import ALL_EFFECTS, order

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    Items: TypeAlias = Sequence[Mapping[str, AttributeValueTypeDef]]

TABLES = ("OrdersTableName", "TasksTableName", "ControlTableName", "HistoryTableName")
LATER = 2 * 3600 * 1000


def tables(world: Stack) -> "dict[str, Items]":
    """The items of the four tables, as a backup would have them."""
    names = [world.stack.outputs[name] for name in TABLES]
    return {name: world.dynamodb.scan(TableName=name)["Items"] for name in names}


def restore(world: Stack, items: "Mapping[str, Items]") -> None:
    """Replace the items of the tables by these."""
    for table in items:
        keys = world.dynamodb.describe_table(TableName=table)["Table"]["KeySchema"]
        for item in world.dynamodb.scan(TableName=table)["Items"]:
            key = {each["AttributeName"]: item[each["AttributeName"]] for each in keys}
            world.dynamodb.delete_item(TableName=table, Key=key)
        for kept in items[table]:
            world.dynamodb.put_item(TableName=table, Item=kept)


def purge(world: Stack) -> None:
    """Empty every queue, although another test did so less than a minute ago."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_SQS_ENFORCE_STRICT_QUEUE_PURGE_BEHAVIOUR", "false")
        for url in world.sqs.list_queues()["QueueUrls"]:
            world.sqs.purge_queue(QueueUrl=url)


def stop_supervisor(world: Stack) -> None:
    boto3.client("lambda").put_function_concurrency(
        FunctionName=world.stack.outputs["SupervisorFunctionName"], ReservedConcurrentExecutions=0
    )


def stages(world: Stack) -> list[str]:
    """An order at each stage between two messages: submitted, claimed, performed, ..."""
    names = []
    queues = [
        *("SubmissionQueue", "SchedulerQueue"),
        *("InventoryRequestQueue", "InventoryReplyQueue"),
        *("PaymentRequestQueue", "PaymentReplyQueue"),
        *("ShippingRequestQueue", "ShippingReplyQueue", "MailRequestQueue"),
    ]
    for reached in range(len(queues), 0, -1):
        name = f"ord-{reached}"
        names.append(name)
        world.submit(order(name))
        for queue in queues[:reached]:
            world.run_one_batch(queue)
    return names


def reconciles(operator: Operator, at: int, *more: str) -> dict[str, object]:
    result = operator.types(
        "reconcile", "--restored-to", iso(at), "--as", "ops", "--yes", "--json", *more
    )
    assert result.exit_code == 0, result.output
    assert_schema("reconcile", document(result))
    return document(result)


def to_the_end(world: Stack) -> None:
    """Every order is completed."""
    world.run()


def a_little(world: Stack) -> None:
    """Some orders go on by a step."""
    for queue in ("SchedulerQueue", "InventoryReplyQueue", "PaymentRequestQueue"):
        world.run_one_batch(queue)


def not_at_all(world: Stack) -> None:
    """The messages in flight are lost."""


def restored(world: Stack, goes_on: Callable[[Stack], None]) -> tuple[list[str], int]:
    """Restore the tables to an instant two hours ago, after which the orders went on so far.

    Returns the orders and the instant. The queues are empty, and the supervisor is stopped.
    """
    names = stages(world)
    at, kept = world.clock.now, tables(world)
    world.clock.now += 1_000
    goes_on(world)
    world.clock.now += LATER
    restore(world, kept)
    purge(world)
    stop_supervisor(world)
    return names, at


@pytest.mark.exhaustive
@pytest.mark.parametrize("goes_on", [to_the_end, a_little, not_at_all])
def test_every_order_of_the_instant_ends_and_nothing_happens_twice(
    operator: Operator, goes_on: Callable[[Stack], None]
) -> None:
    world = operator.world
    names, at = restored(world, goes_on)
    report = reconciles(operator, at, "--go")
    assert report["sent"] == len(names)
    world.run()
    world.supervise()
    world.run()
    for name in names:
        assert world.task(name).state is TaskState.COMPLETED, name
        assert world.effects(name) == ALL_EFFECTS, name
    world.assert_nothing_is_stuck()
    # Nobody takes the new state for an older one.
    assert {world.task(name).version // VERSIONS_SKIPPED for name in names} == {1}
    again = reconciles(operator, at, "--go")
    assert again["sent"] == 0


@pytest.mark.exhaustive
def test_without_it_the_supervisor_ends_what_was_under_way_and_is_overdue_since_the_instant(
    operator: Operator,
) -> None:
    world = operator.world
    names, _ = restored(world, not_at_all)
    world.supervise()
    world.pass_time(1800)
    states = [world.task(name).state for name in names]
    assert set(states) == {TaskState.UNDONE, TaskState.COMPLETED}, "nothing had begun of the others"


@pytest.mark.exhaustive
def test_what_was_not_reached_is_sent_when_the_command_runs_again(operator: Operator) -> None:
    world = operator.world
    names, at = restored(world, not_at_all)
    report = reconciles(operator, at)
    assert (report["dryRun"], report["sent"]) == (True, 0)
    assert counts(report) == {"reconcile": len(names)}
    assert world.waiting("SchedulerQueue") == 0
    calls = []

    def breaks(**_: object) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with at_each_call("sqs.SendMessage", breaks):
        result = operator.types("reconcile", "--restored-to", iso(at), "--go", "--yes", "--json")
    assert result.exit_code == 130
    assert document(result)["sent"] == 2
    assert "Interrupted after 2 orders. Run the command again to go on." in result.stderr
    world.run()
    report = reconciles(operator, at, "--go")
    assert report["sent"] == len(names) - 2
    world.run()
    assert {world.task(name).state for name in names} == {TaskState.COMPLETED}


def counts(report: Mapping[str, object]) -> dict[str, object]:
    found = report["counts"]
    assert isinstance(found, dict)
    return {name: count for name, count in found.items() if count}


def test_the_supervisor_must_be_stopped_before(operator: Operator) -> None:
    world = operator.world
    world.submit(order("ord-1"))
    world.run_one_batch("SubmissionQueue")
    at = iso(world.clock.now)
    shown = operator.types("reconcile", "--restored-to", at)
    assert shown.exit_code == 0
    stop = "aws lambda put-function-concurrency --function-name "
    assert f"The supervisor is running. Stop it first: {stop}" in shown.stdout
    refused = operator.types("reconcile", "--restored-to", at, "--go", "--yes")
    assert refused.exit_code == 1
    assert "would end the orders whose time was over meanwhile" in refused.stderr
    stop_supervisor(world)
    shown = operator.types("reconcile", "--restored-to", at)
    assert f"To send: roundsman reconcile --restored-to {at} --go" in shown.stdout


def test_each_order_is_counted_by_what_is_done_about_it(operator: Operator) -> None:
    world = operator.world
    stop_supervisor(world)
    world.submit(order("ord-open"), order("ord-broken"), order("ord-no-plan"))
    world.run_one_batch("SubmissionQueue")
    at = world.clock.now
    table = world.stack.outputs["TasksTableName"]
    world.dynamodb.update_item(
        TableName=table,
        Key={"TaskId": {"S": "ord-broken"}},
        UpdateExpression="REMOVE CompleteBy",
    )
    world.dynamodb.update_item(
        TableName=table,
        Key={"TaskId": {"S": "ord-no-plan"}},
        UpdateExpression="SET #plan = :none",
        ExpressionAttributeNames={"#plan": "Plan"},
        ExpressionAttributeValues={":none": {"S": "0" * 64}},
    )
    world.clock.now += 1
    world.submit(order("ord-new"))
    world.run_one_batch("SubmissionQueue")
    report = reconciles(operator, at)
    assert counts(report) == {"reconcile": 1, "new": 1, "unreadable": 2}
    shown = operator.types("reconcile", "--restored-to", iso(at)).stdout
    assert "- 1 open: each goes on" in shown
    assert "its plan 000000000000 is not stored" in shown
    sent = reconciles(operator, at, "--go")
    assert sent["sent"] == 1
    world.run()
    assert counts(reconciles(operator, at)) == {"unreadable": 1}  # the other is archived


@pytest.mark.exhaustive
def test_the_commands_are_sent_at_the_rate_that_is_asked(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(reconcile, "pause", pauses.append)
    names, at = restored(operator.world, not_at_all)
    reconciles(operator, at, "--go", "--rate", "5")
    assert pauses == [1 / 5] * (len(names) - 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("rate", [0.4, 101.0, float("nan")])
def test_a_rate_that_is_too_low_or_too_high_sends_nothing(operator: Operator, rate: float) -> None:
    _, at = restored(operator.world, not_at_all)
    stack = find_stack(None)
    found = reconcile.look_at_restored(stack, at)
    with pytest.raises(InvalidArgument, match=r"The rate is 0\.5 to 100 per second"):
        reconcile.send_all(stack, found, by="ops", reason="a test", rate=rate)
    assert operator.world.waiting("SchedulerQueue") == 0


@pytest.mark.exhaustive
def test_archived_orders_are_counted_and_left_to_a_person(operator: Operator) -> None:
    world = operator.world
    stop_supervisor(world)
    at = iso(world.clock.now)
    shown = operator.types("reconcile", "--restored-to", at)
    assert "No order is open, and none is archived." in shown.stdout
    world.submit(order("ord-1"))
    world.run()
    task = world.task("ord-1")
    archived = replace(task, version=task.version + 1, lane="archived#1", expires_at=None)
    world.store.save(archived, seen=task.version)
    shown = operator.types("reconcile", "--restored-to", at)
    assert "- 1 archived: a person may have repaired them since" in shown.stdout
    assert reconciles(operator, world.clock.now, "--go")["archived"] == 1


@pytest.mark.exhaustive
def test_an_order_that_has_ended_and_owes_a_status_is_inspected(operator: Operator) -> None:
    world = operator.world
    stop_supervisor(world)
    url = world.reply_queue("shop")
    world.submit(order("ord-1", replyTo=url))
    world.run()
    task = world.task("ord-1")
    owed = Owed("status", "completed", task.version + 1, world.clock.now, "")
    again = replace(task, version=task.version + 1, owed=(owed,), lane="open#1", expires_at=None)
    world.store.save(again, seen=task.version)
    world.clock.now += 60_000
    purge(world)
    report = reconciles(operator, world.clock.now, "--go")
    assert counts(report) == {"inspect": 1}
    world.run()
    assert len(world.messages(url)) == 1
    assert world.task("ord-1").owed == ()
    assert reconciles(operator, world.clock.now)["orders"] == []


@pytest.mark.parametrize(
    ("instant", "why"),
    [
        ("yesterday", "is not an instant with a time zone"),
        ("2027-01-15T08:00:00", "is not an instant with a time zone"),
        ("2999-01-15T08:00:00Z", "is not over yet"),
    ],
)
def test_a_wrong_instant_is_refused(operator: Operator, instant: str, why: str) -> None:
    result = operator.types("reconcile", "--restored-to", instant)
    assert result.exit_code == 2
    assert why in result.stderr


def test_the_id_of_the_command_is_that_of_the_instant_and_the_order() -> None:
    one = command_id_of(MORNING, "ord-1")
    assert one == command_id_of(MORNING, "ord-1")
    assert len({one, command_id_of(MORNING + 1, "ord-1"), command_id_of(MORNING, "ord-2")}) == 3


@pytest.mark.exhaustive
def test_a_message_from_before_the_restore_is_refused_or_changes_nothing(
    operator: Operator,
) -> None:
    world = operator.world
    names, at = restored(world, to_the_end)
    seen = {name: world.task(name).version + 2 for name in names}  # in the state that is gone
    reconciles(operator, at, "--go")
    world.run()
    before = {name: world.task(name) for name in names}
    for name in names:
        asked = CommandSource("late", "ann", seen_version=seen[name])
        world.send("SchedulerQueue", command_of(name, Resubmit(asked, again=True)).body())
    world.run()
    assert {name: world.task(name) for name in names} == before
