"""`roundsman audit`: it reads the orders of a stack, and says which promises were kept."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from roundsman.errors import CallRefused, TryAgain
from roundsman.model.instants import DAY, MINUTE, iso
from roundsman_console.aws.stack import DeployedStack, find_stack
from roundsman_console.base.clock import now
from roundsman_console.faces.commands.audit import words_of
from roundsman_console.facts.audit import reading
from roundsman_console.facts.audit.audit import audit_stack
from roundsman_console.facts.audit.checks import judge
from roundsman_console.facts.audit.promises import Promise
from roundsman_console.facts.audit.reading import (
    AuditCost,
    OrderReader,
    Scope,
    UnreadOrder,
    estimate,
)
from roundsman_console.facts.audit.record_checks import NO_PLAN, TROUBLED
from roundsman_console.facts.audit.report import MOST_LISTED, AuditReport
from roundsman_testing.stack import Stack
from tests.console.operators import DECLINED, Operator, at_each_call, document
from tests.console.schemas import assert_schema
from tests.moto.orders import order
from tests.unit.console.audit.stored import stored_of
from tests.unit.console.audit.test_checks import cancelled, task

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

NOTHING = AuditCost(0, more=False, read_units=0)


def some_orders(operator: Operator) -> None:
    """One is completed, one is undone, and one is open."""
    world = operator.world
    world.submit(order("ord-1"))
    world.submit({**order("ord-2"), **DECLINED})
    world.run()
    world.faults({"operation": "POST /charges", "status": 503, "retryAfter": 600, "times": 1})
    world.submit(order("ord-3"))
    world.run()
    states = {name: world.task(name).state for name in ("ord-1", "ord-2", "ord-3")}
    assert states == {"ord-1": "Completed", "ord-2": "Undone", "ord-3": "Retry"}


def change(world: Stack, table: str, key: Mapping[str, "Value"], name: str, at: "Value") -> None:
    """Set an attribute of an item by another hand."""
    world.dynamodb.update_item(
        TableName=world.stack.outputs[table],
        Key=key,
        UpdateExpression="SET #name = :at",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues={":at": at},
    )


def change_task(world: Stack, task_id: str, name: str, at: "Value") -> None:
    change(world, "TasksTableName", {"TaskId": {"S": task_id}}, name, at)


@pytest.mark.exhaustive
def test_orders_that_followed_the_promises_are_counted(operator: Operator) -> None:
    some_orders(operator)
    found = operator.reads("audit", "--yes")
    assert_schema("audit", found)
    assert (found["orders"], found["broken"], found["unread"]) == (3, 0, 0)
    assert found["followed"] == 1
    assert found["partly"] == 2, "one is undone, and one is open"
    assert found["violations"] == []
    assert found["removed"] is None
    assert "GIVEN" in cast("list[str]", found["unjudged"])
    promises = {one["promise"]: one for one in cast("list[dict[str, object]]", found["promises"])}
    assert (promises["COMPLETED"]["followed"], promises["ENDS"]["unknown"]) == (3, 1)
    why = {one["why"]: one["example"] for one in cast("list[dict[str, object]]", found["unknown"])}
    assert why["it has not ended yet"] == "ord-3"


@pytest.mark.exhaustive
def test_a_violation_is_shown_with_its_rows_and_exits_1(operator: Operator) -> None:
    some_orders(operator)
    change_task(operator.world, "ord-1", "RetainFor", {"N": str(10**12)})
    change_task(operator.world, "ord-2", "Version", {"N": "2"})
    result = operator.types("audit", "--yes")
    assert result.exit_code == 1
    lines = " ".join(result.stdout.split())
    assert "broken: KEPT, ord-1 of" in lines
    assert "broken: NOT_LOST, ord-2 of" in lines
    assert "of its history $ roundsman show ord-2" in lines
    assert "2 broke a promise." in lines
    found = document(operator.types("audit", "--yes", "--json"))
    violations = cast("list[dict[str, object]]", found["violations"])
    (lost,) = [one for one in violations if one["promise"] == "NOT_LOST"]
    assert (lost["order"], lost["command"]) == ("ord-2", "roundsman show ord-2")
    assert lost["rows"]


@pytest.mark.exhaustive
def test_nothing_of_an_order_is_printed_or_written(operator: Operator, tmp_path: Path) -> None:
    some_orders(operator)
    operator.asks("cancel", "ord-3", "--reason", "A. Reader rang")
    change_task(operator.world, "ord-1", "RetainFor", {"N": str(10**12)})
    file = tmp_path / "orders.jsonl"
    result = operator.types("audit", "--yes", "--to", str(file))
    printed = result.output + file.read_text()
    for text in ("A. Reader", "c-42", "tok_", "Main St", "insufficient", "KB-101", "ch_", "ops"):
        assert text not in printed, text
    again = operator.types("audit", "--from", str(file))
    assert again.exit_code == 1
    assert again.stdout == result.stdout.partition("\n")[2], "all but the costs"


@pytest.mark.exhaustive
def test_it_says_what_it_will_cost_and_reads_nothing_unasked(operator: Operator) -> None:
    some_orders(operator)
    result = operator.types("audit", "--since", "1h")
    assert result.exit_code == 2
    assert "To read: 3 orders submitted since" in result.stdout
    assert (
        "about 10 read units of DynamoDB, less than 0.01 USD at the list price of" in result.stdout
    )
    assert "add --yes. Nothing was read." in " ".join(result.stderr.split())


@pytest.mark.exhaustive
def test_only_orders_since_then_are_read_and_at_most_so_many(operator: Operator) -> None:
    world = operator.world
    world.submit(order("ord-1"))
    world.run()
    world.faults({"operation": "POST /charges", "status": 503, "retryAfter": 6_000, "times": 1})
    world.submit(order("ord-0"))
    world.run()
    world.pass_time(3_600)
    later = world.clock()
    for name in ("ord-2", "ord-3"):
        world.submit(order(name))
    world.run()
    stack = find_stack("roundsman")
    scope = Scope(since=later)
    assert estimate(stack, scope) == AuditCost(2, more=False, read_units=7)
    begins = dict[str, int]()

    def note(params: Mapping[str, Mapping[str, "Value"]], **_: object) -> None:
        values = params["ExpressionAttributeValues"]
        if ":lane" in values:
            begins[str(values[":lane"].get("S"))] = int(str(values[":since"].get("N")))

    reader = OrderReader(find_stack("roundsman"), scope)
    with at_each_call("dynamodb.Query", note):
        list(reader.read())
    assert (reader.seen, reader.cut) == ({"ord-2", "ord-3"}, False)
    assert (begins["open#0"], begins["done#0"]) == (0, later), "older ones are not looked at"
    assert estimate(stack, Scope(most=2)).more
    reader = OrderReader(stack, Scope(most=3))
    list(reader.read())
    expected = {"ord-0", "ord-2", "ord-3"}  # the open one, and those that ended last
    assert (reader.seen, reader.cut) == (expected, True)
    found = operator.reads("audit", "--most", "2", "--yes", "--since", iso(later - 1))
    assert (found["orders"], found["more"], found["since"]) == (2, False, iso(later - 1))


def test_the_estimate_counts_a_unit_for_each_4_kb() -> None:
    sizes = {"tasks": (9_000, 2), "orders": (81_920, 10), "history": (100, 1)}

    class Tables:
        def describe_table(self, TableName: str) -> object:  # boto3's
            size, items = sizes[TableName]
            return {"Table": {"TableSizeBytes": size, "ItemCount": items}}

    class Records:
        def count(self, lane: str, most: int, **_: object) -> int:
            return min(60, most + 1) if lane.startswith("done") else 0

    outputs = {f"{name.title()}TableName": name for name in sizes}
    stack = DeployedStack("shop", outputs, {})
    stack.__dict__.update(dynamodb=Tables(), records=Records(), every_shard=range(2))
    each = 2 + 2 + 1  # 4,500 bytes, 8,192 and 10
    assert estimate(stack, Scope(most=200)) == AuditCost(120, more=False, read_units=120 * each + 3)
    assert estimate(stack, Scope(most=100)) == AuditCost(100, more=True, read_units=100 * each + 2)
    deep = estimate(stack, Scope(most=200, deep=True))
    assert deep.read_units == 120 * each + 3 + 10, "half a unit for each 4 KB of 80 KB"


def test_a_price_is_shown_from_a_cent_on() -> None:
    million = AuditCost(250_000, more=True, read_units=1_000_000)
    assert (
        "To read: the first 250000 orders, about 1,000,000 read units of DynamoDB, about 0.1"
        in (words_of(million, Scope()))
    )
    assert "less than 0.01 USD" in words_of(AuditCost(1, more=False, read_units=3), Scope())


@pytest.mark.exhaustive
def test_an_order_that_ends_while_it_is_read_is_judged_once(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_orders(operator)
    monkeypatch.setattr(reading, "AT_ONCE", 1)
    reader, ids = OrderReader(find_stack("roundsman"), Scope()), list[str]()
    for (found,) in reader.read():
        assert not isinstance(found, UnreadOrder)
        ids.append(found[0].task.task_id)
        if ids == ["ord-3"]:  # the open one is read first
            operator.world.pass_time(700)
            assert operator.world.task("ord-3").state == "Completed"
    assert sorted(ids) == ["ord-1", "ord-2", "ord-3"]


@pytest.mark.exhaustive
def test_clocks_may_differ_and_what_nobody_can_handle_is_not_judged(operator: Operator) -> None:
    some_orders(operator)
    world, stack = operator.world, find_stack("roundsman")
    task = stack.tasks.load("ord-3", now())
    assert task is not None
    due = task.step("charge_card").not_before or 0
    change_task(world, "ord-3", "DueAt", {"N": str(due + MINUTE)})
    assert audit_stack(stack, Scope(), NOTHING).is_well
    change_task(world, "ord-3", "DueAt", {"N": str(due + 10 * MINUTE)})
    assert {one.promise.name for one in audit_stack(stack, Scope(), NOTHING).violations} == {
        "ALWAYS_DUE"
    }
    change_task(world, "ord-3", "Trouble", {"N": "1"})
    report = audit_stack(stack, Scope(), NOTHING)
    assert report.is_well
    assert (Promise.ALWAYS_DUE, TROUBLED.why) in report.unknown


@pytest.mark.exhaustive
def test_a_plan_that_cannot_be_read_is_none(operator: Operator) -> None:
    some_orders(operator)
    world, stack = operator.world, find_stack("roundsman")
    task = stack.tasks.load("ord-1", now())
    assert task is not None
    key: Mapping[str, Value] = {"ControlId": {"S": f"plan#{task.plan}"}}
    item = world.dynamodb.get_item(TableName=world.stack.outputs["ControlTableName"], Key=key)
    for name in item["Item"]:
        if name not in ("ControlId", "ExpiresAt"):
            change(world, "ControlTableName", key, name, {"S": "no plan"})
    report = audit_stack(stack, Scope(), NOTHING)
    assert report.unknown[Promise.COMPLETED, NO_PLAN.why] == 1
    assert report.is_well


@pytest.mark.exhaustive
def test_an_order_that_changes_while_it_is_read_is_read_again(operator: Operator) -> None:
    """Its history has a command that its record, which was read before, does not know."""
    some_orders(operator)
    stack, was_cancelled = find_stack("roundsman"), [False]

    def cancel(params: Mapping[str, object], **_: object) -> None:
        of_history = params["TableName"] == operator.world.stack.outputs["HistoryTableName"]
        if of_history and not was_cancelled[0]:
            was_cancelled[0] = True
            operator.asks("cancel", "ord-3")

    with at_each_call("dynamodb.Query", cancel):
        report = audit_stack(stack, Scope(), NOTHING)
    assert was_cancelled[0]
    assert operator.world.task("ord-3").state == "Cancelled"
    assert (report.is_well, report.orders) == (True, 3)


@pytest.mark.exhaustive
def test_what_keeps_changing_or_cannot_be_read_is_not_judged(operator: Operator) -> None:
    some_orders(operator)
    world = operator.world
    change_task(world, "ord-1", "RetainFor", {"N": str(10**12)})
    change_task(world, "ord-2", "Version", {"S": "two"})
    change_task(world, "ord-3", "ExpiresAt", {"N": "1"})
    count = [0]

    def touch(params: Mapping[str, object], **_: object) -> None:
        if params["TableName"] == world.stack.outputs["HistoryTableName"]:
            count[0] += 1
            at: Value = {"N": str(10**12 + count[0])}
            change_task(world, "ord-1", "RetainFor", at)

    with at_each_call("dynamodb.Query", touch):
        report = audit_stack(find_stack("roundsman"), Scope(), NOTHING)
    why = {name: reason for (_, reason), name in report.examples.items()}
    assert why == {
        "ord-1": reading.CHANGES,
        "ord-2": reading.NO_RECORD,
        "ord-3": reading.REMOVED,
    }
    assert (report.orders, report.unread) == (0, 3)
    assert count[0] == 1 + reading.TRIES


@pytest.mark.exhaustive
def test_a_row_that_cannot_be_read_is_not_taken_for_a_missing_one(operator: Operator) -> None:
    some_orders(operator)
    world = operator.world
    key: Mapping[str, Value] = {"OrderID": {"S": "ord-1"}}
    change(world, "OrdersTableName", key, "CreatedAt", {"S": "then"})
    (row, *_) = world.dynamodb.query(
        TableName=world.stack.outputs["HistoryTableName"],
        KeyConditionExpression="TaskId = :id",
        ExpressionAttributeValues={":id": {"S": "ord-2"}},
    )["Items"]
    of_row = {"TaskId": row["TaskId"], "Seq": row["Seq"]}
    change(world, "HistoryTableName", of_row, "Kind", {"N": "1"})
    found = [one for part in OrderReader(find_stack("roundsman"), Scope()).read() for one in part]
    unread = {one.order_id: one.why for one in found if isinstance(one, UnreadOrder)}
    assert unread == {"ord-1": reading.NO_ROW, "ord-2": reading.NO_HISTORY}


@pytest.mark.exhaustive
def test_orders_whose_record_was_removed_are_counted_if_asked(operator: Operator) -> None:
    some_orders(operator)
    world, stack = operator.world, find_stack("roundsman")
    key: Mapping[str, Value] = {"TaskId": {"S": "ord-1"}}
    world.dynamodb.delete_item(TableName=world.stack.outputs["TasksTableName"], Key=key)
    found = operator.reads("audit", "--deep", "--yes")
    assert (found["orders"], found["removed"]) == (2, 1)
    shown = operator.types("audit", "--deep", "--yes").stdout
    assert "not judged: nothing of 1 order: its record was removed, after its retention" in shown
    limited = audit_stack(stack, Scope(most=1, deep=True), NOTHING)
    assert (limited.orders, limited.removed) == (1, 1), "what was not read may still be there"
    since = Scope(since=now() + MINUTE, deep=True)
    assert audit_stack(stack, since, NOTHING).removed == 0


@pytest.mark.exhaustive
def test_a_record_that_was_read_is_not_looked_for_again(operator: Operator) -> None:
    some_orders(operator)
    ended = OrderReader(find_stack("roundsman"), Scope())
    list(ended.read())
    reader, reads = OrderReader(find_stack("roundsman"), Scope(deep=True), ended.seen), list[int]()
    with at_each_call("dynamodb.BatchGetItem", lambda **_: reads.append(1)):
        assert sum(reader.removed()) == 0
    assert reads == []


@pytest.mark.exhaustive
def test_what_was_judged_is_reported_if_aws_stops_the_reading(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_orders(operator)
    monkeypatch.setattr(reading, "AT_ONCE", 1)
    read, parts = OrderReader._read, [0]

    def stops(error: Exception, after: int) -> Callable[..., object]:
        def call(reader: OrderReader, ids: list[str]) -> object:
            parts[0] += 1
            if parts[0] > after:
                raise error
            return read(reader, ids)

        return call

    monkeypatch.setattr(OrderReader, "_read", stops(TryAgain("the table is throttled"), 2))
    result = operator.types("audit", "--yes")
    assert result.exit_code == 1
    assert "Judged 2 orders." in result.stdout
    assert "Stopped: the table is throttled." in result.stdout
    parts[0] = 0
    monkeypatch.setattr(OrderReader, "_read", stops(CallRefused("no right"), 0))
    with pytest.raises(CallRefused):
        audit_stack(find_stack("roundsman"), Scope(), NOTHING)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--since", "yesterday"), "is not an instant with a time zone|is not a duration"),
        (("--since", "2027-01-15"), "is not an instant with a time zone"),
        (("--from", "x", "--deep"), "leave out the other options"),
        (("--from", "x", "--since", "7d"), "leave out the other options"),
        (("--from", "nowhere.jsonl"), "nowhere.jsonl cannot be read: No such file"),
        (("--to", "samconfig.toml", "--yes"), "samconfig.toml already exists"),
        (("--to", "nowhere/x", "--yes"), "nowhere/x cannot be written"),
    ],
)
@pytest.mark.exhaustive
def test_a_wrong_option_is_named(operator: Operator, words: tuple[str, ...], says: str) -> None:
    result = operator.types("audit", *words)
    assert result.exit_code == 2
    assert any(one in " ".join(result.stderr.split()) for one in says.split("|")), result.stderr


def test_violations_are_listed_up_to_a_limit_and_all_counted() -> None:
    broken = task(command_ids=())(stored_of(cancelled()))
    report = AuditReport("shop", DAY)
    for _ in range(MOST_LISTED + 1):
        report.add(broken, judge(broken))
    assert len(report.violations) == MOST_LISTED
    assert report.document()["broken"] == MOST_LISTED + 1
    assert not report.is_well
