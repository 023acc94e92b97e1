"""`roundsman groups`: what failed alike, how many orders it hit, and what to do."""

from dataclasses import dataclass, replace

import pytest

from roundsman.alerts.group import opened
from roundsman.aws.dynamodb.groups import DynamoGroups
from roundsman.model.failure import Group, failure_of
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.faces.commands.groups import print_group
from roundsman_console.facts.agent.reading import AgentNow
from roundsman_console.facts.group import reading as groups
from roundsman_console.facts.group.next_commands import commands_of
from roundsman_console.facts.group.reading import (
    OVER_WITH_ORDERS,
    GroupNow,
    find_group,
    list_groups,
)
from roundsman_console.facts.orders.counts import Count
from tests.console.operators import Operator
from tests.console.schemas import assert_schema
from tests.console.shelves import Shelves, archived
from tests.console.step_samples import AT, HOLD
from tests.moto.orders import order

AGENTS = [AgentNow("payment", (HOLD,)), AgentNow("mail")]


@dataclass
class Rows:
    """Stands in for the stored groups."""

    rows: list[Group]

    def groups(self) -> list[Group]:
        return list(self.rows)


def row(count: int = 1, name: str | None = None, how: str = "archived") -> Group:
    failure = failure_of(archived("ord-1"))
    assert failure is not None
    made = opened(failure, agent="payment", task_id="ord-1", since=AT, now=AT)
    return replace(made, id=name or made.id, count=count, how=how, last_at=AT)


def shown(members: int, rows: list[Group], group: str | None = None) -> GroupNow | None:
    shelves = Shelves()
    shelves.put(*(archived(f"ord-{place}", AT + place) for place in range(1, members + 1)))
    stack = shelves.stack()
    stack.__dict__["groups"] = Rows(rows)
    stack.__dict__["plans"] = Plans()
    return find_group(stack, group or row().id, AGENTS, AT + 60_000)


class Plans:
    """No plan is stored."""

    def plan(self, plan_hash: str) -> None:
        return None


def test_a_group_shows_its_count_its_times_and_samples_of_its_ends() -> None:
    found = shown(5, [row()])
    assert found is not None
    assert (found.count, found.standing) == (Count(5), "open")
    assert (found.first_at, found.last_at) == (AT, AT + 5), "the row knows an earlier one"
    assert found.complete_by == AT + 1 - 60_000 + 3_600_000
    assert [task.task_id for task in found.samples] == ["ord-1", "ord-3", "ord-5"]
    assert found.agent == AGENTS[0]


def test_of_a_large_group_the_count_is_bounded_and_the_newest_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert groups.MOST == 10_000
    monkeypatch.setattr(groups, "MOST", 60)
    found = shown(80, [row()])
    assert found is not None
    assert found.count == Count(60, more=True)
    assert str(found.count) == "more than 60"
    assert (found.first_at, found.last_at) == (AT, AT + 80)
    assert (len(found.failed_at), len(found.newest)) == (60, 50)
    assert [one.task_id for one in found.newest[:2]] == ["ord-80", "ord-79"]


def test_a_group_that_was_never_alerted_is_known_by_who_stands_in_it() -> None:
    found = shown(1, [])
    assert found is not None
    assert (found.workflow, found.step, found.error_type) == ("story", "charge", "CardDeclined")
    assert (found.row, found.standing, found.severity) == (None, "open", "error")


def test_a_group_that_nobody_stands_in_is_calm_then_over_then_unknown() -> None:
    calm, over = shown(0, [row()]), shown(0, [replace(row(), closed_at=AT)])
    assert calm is not None
    assert over is not None
    assert (calm.standing, over.standing) == ("calm", "over")
    assert shown(0, []) is None


def undone(task_id: str) -> Task:
    ended = replace(archived(task_id), state=TaskState.UNDONE)
    failure = failure_of(ended)
    return replace(ended, failure=failure.group if failure else None)


def test_undone_orders_whose_group_is_not_listed_any_more_are_over_on_its_page_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The supervisor removes the row of such a group once few orders were undone in an hour."""
    task, shelves = undone("ord-1"), Shelves()
    shelves.put(task)
    stack = shelves.stack()
    rows = Rows([])
    stack.__dict__.update(groups=rows, plans=Plans())
    assert list_groups(stack, AGENTS, AT) == []
    found = find_group(stack, str(task.failure), AGENTS, AT)
    assert found is not None
    assert (found.how, found.count, found.standing) == ("undone", Count(1), "over")
    print_group(found)
    assert OVER_WITH_ORDERS in " ".join(capsys.readouterr().out.split())
    rows.rows = [row(1, task.failure, "undone")]
    [listed] = list_groups(stack, AGENTS, AT)
    found = find_group(stack, str(task.failure), AGENTS, AT)
    assert found is not None
    assert listed.standing == found.standing == "open"
    print_group(found)
    assert OVER_WITH_ORDERS not in " ".join(capsys.readouterr().out.split())


def test_a_list_counts_a_few_anew_and_has_undone_orders_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(groups, "COUNTED_NOW", 1)
    shelves = Shelves()
    shelves.put(archived("ord-1"), archived("ord-2"))
    stack = shelves.stack()
    undone = row(500, "f-00000001", "undone")
    stack.__dict__["groups"] = Rows([undone, row(70), row(60, "f-00000002")])
    listed = list_groups(stack, AGENTS, AT + 9)
    assert [(group.id, group.count.count, group.counted_at) for group in listed] == [
        ("f-00000002", 60, AT),
        (row().id, 2, AT + 9),
        ("f-00000001", 500, AT),
    ]


def test_the_commands_fit_what_is_the_matter() -> None:
    held, undone = shown(1, [row()]), shown(1, [replace(row(), agent="mail", how="undone")])
    assert held is not None
    assert undone is not None
    assert commands_of(held) == [
        f"roundsman ls --group {held.id}",
        "roundsman show ord-1",
        f"roundsman resubmit --group {held.id} --reason '...'",
    ]
    assert commands_of(undone)[2:] == [
        "roundsman hold mail --for 30m --reason '...'",
        f"roundsman resubmit --group {held.id} --again --reason '...'",
    ]


@pytest.mark.exhaustive
def test_groups_are_listed_and_shown_with_what_stands(operator: Operator) -> None:
    world = operator.world
    world.faults({"operation": "POST /messages", "status": 422})
    world.submit(order("ord-1"), order("ord-2"))
    world.run()
    failure = failure_of(world.task("ord-1"))
    assert failure is not None
    table = world.stack.outputs["ControlTableName"]
    DynamoGroups(world.dynamodb, control_table=table).open(
        opened(failure, agent="mail", task_id="ord-1", since=world.clock(), now=world.clock())
    )
    listed = operator.reads("groups", "ls")
    assert_schema("groups-ls", listed)
    groups = listed["groups"]
    assert isinstance(groups, list)
    assert [(group["group"], group["count"]) for group in groups] == [(failure.group, 2)]
    assert failure.group in operator.types("groups", "ls").stdout
    document = operator.reads("groups", "show", failure.group)
    assert_schema("groups-show", document)
    output = operator.types("groups", "show", failure.group).stdout
    assert "\n2 orders\n" in output
    assert "mail accepts work" in output
    assert "done: charge_card, create_shipment, reserve_stock" in output
    assert f"  roundsman resubmit --group {failure.group} --reason '...'\n" in output
    tasks = operator.reads("ls", "--group", failure.group)["tasks"]
    assert isinstance(tasks, list)
    assert sorted(task["orderId"] for task in tasks) == ["ord-1", "ord-2"]
    unknown = operator.types("groups", "show", "f-00000000")
    assert (unknown.exit_code, unknown.stdout) == (3, "")
    assert operator.types("groups", "show", "none").exit_code == 2
