"""Whatever happens to the orders of a world, an audit of its tables finds no broken promise."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import Json
from roundsman.aws import clock
from roundsman.definition.workflow import Archive
from roundsman.model.states import TaskState
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.audit.audit import audit_stack
from roundsman_console.facts.audit.checks import CHECKS
from roundsman_console.facts.audit.reading import AuditCost, OrderReader, Scope
from roundsman_console.facts.audit.report import AuditReport
from roundsman_testing import World
from roundsman_testing.memory import TABLES
from tests.support.random_worlds import RandomWorld
from tests.world.shop import FENCED, ONCE, a_step, a_workflow

WORLDS = 10


def audit(world: World, monkeypatch: pytest.MonkeyPatch) -> AuditReport:
    """An audit of the world's tables, at its instant. The orders are not found by the index.

    The tables in memory do not know what lists ask the index for.
    """
    orders = list(world.processes.watch.tasks)
    monkeypatch.setattr(OrderReader, "_ids", lambda _: iter(orders))
    monkeypatch.setattr(clock, "now", lambda: world.now)
    names = {"Tasks": TABLES.tasks, "Orders": TABLES.orders, "History": TABLES.history}
    outputs = {f"{name}TableName": table for name, table in names.items()}
    stack = DeployedStack("world", {**outputs, "ControlTableName": TABLES.control}, {})
    stack.__dict__["dynamodb"] = world.processes.tables.client
    return audit_stack(stack, Scope(), AuditCost(0, more=False, read_units=0))


def broken(report: AuditReport) -> list[str]:
    return [f"{one.order_id}: {one.promise.name}: {one.found.what}" for one in report.violations]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.verify) for n in range(1, WORLDS))]
)
def test_an_audit_of_a_random_world_finds_no_broken_promise(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = RandomWorld(seed)
    story.run()
    report = audit(story.world, monkeypatch)
    assert broken(report) == []
    assert (report.orders, report.unread) == (len(story.orders), 0)
    assert report.promises.keys() == CHECKS.keys()


reserve = a_step("reserve", compensation=FENCED)
check = a_step("check", reserve, agent="checker", compensation=FENCED)
charge = a_step("charge", reserve, compensation=FENCED, retry=ONCE)
pick = a_step("pick", charge, compensation=FENCED, for_each="input.lines")
OLD = a_workflow(reserve, charge, pick, on_failure=Archive())
charge_checked = replace(charge, after=(check,))
pick_checked = replace(pick, after=(charge_checked,))
NEW = a_workflow(reserve, check, charge_checked, pick_checked, on_failure=Archive())
LINES: dict[str, Json] = {"lines": [{"sku": "a"}, {"sku": "b"}], "token": "old"}


def refused(world: World) -> str:
    """An order whose charge was refused, so that it waits for a person."""
    world.on("charge").refuses("CardDeclined", times=1)
    order = world.submit(LINES)
    world.run()
    assert world.task(order).state is TaskState.ARCHIVED
    return order


def test_nothing_that_a_person_does_seems_to_break_a_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(OLD)
    by = world.operator
    corrected, undone, resolved, moved_later, cancelled = (refused(world) for _ in range(5))
    by.resubmit(corrected, sets={"token": "new"}, used=True)
    by.undo(undone)
    by.resolve(resolved, "charge", did=True, result="by hand")
    by.cancel(cancelled)
    taken_back, erased = world.submit(LINES), world.submit(LINES)
    world.run()
    by.undo(taken_back)
    by.erase(erased)
    world.run()
    world.hold("reserve", timedelta(minutes=2), "so that it waits")
    moved = world.submit(LINES)
    world.run(for_=timedelta(seconds=20))
    assert world.task(moved).state is TaskState.RETRY
    world.deploy(NEW)
    by.move(moved)
    by.resubmit(moved_later, newest_plan=True)
    by.resubmit(cancelled, again=True)
    world.run()
    ends = {
        order: world.task(order).state
        for order in (
            corrected,
            undone,
            resolved,
            moved_later,
            cancelled,
            taken_back,
            erased,
            moved,
        )
    }
    assert ends == {
        **dict.fromkeys(ends, TaskState.COMPLETED),
        undone: TaskState.UNDONE,
        taken_back: TaskState.UNDONE,
    }
    report = audit(world, monkeypatch)
    assert broken(report) == []
    assert (report.orders, report.unread) == (8, 0)
