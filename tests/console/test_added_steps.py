"""What an operator sees and does of an order to which steps were added."""

from rich.console import Console

from roundsman.definition.workflow import Archive
from roundsman.model.json import Json
from roundsman.model.task import StepToAdd
from roundsman_console.order.show_command import steps_table
from roundsman_console.order.view import task_document
from roundsman_console.order.why import TaskFacts, diagnose
from roundsman_console.orders.step_marks import marks_of
from roundsman_console.web.drawings.gantt import bars
from tests.support.machine_world import World, plan, step


def story() -> World:
    """Two legs are added one by one; the second one has failed once."""
    world = World(plan(step("find"), step("pay", "find"), may_add=(step("leg"),)))
    world.start()
    world.adds("find", StepToAdd("leg[a]", input={"secret": 1}))
    world.adds("leg[a]", StepToAdd("leg[b]"))
    world.fails("leg[b]")
    return world


def test_show_lists_added_steps_after_their_adder_and_says_who_added_them() -> None:
    world = story()
    made = world.plan.for_task(world.task)
    output = Console(record=True, width=160)
    output.print(steps_table(world.task, made, world.now))
    rows = [line.split() for line in output.export_text().splitlines()]
    assert rows[0][-2:] == ["Last", "error"]
    assert [row[0] for row in rows[1:]] == ["find", "leg[a]", "leg[b]", "pay"]
    assert "find" in rows[2][1:]
    assert "leg[a]" in rows[3][1:]
    document = task_document(world.task, made, [])
    assert [(one["name"], one["addedBy"]) for one in document["steps"]] == [
        ("find", None),
        ("leg[a]", "find"),
        ("leg[b]", "leg[a]"),
        ("pay", None),
    ]
    assert "secret" not in str(document)


def test_each_added_step_has_its_own_reason_mark_and_line() -> None:
    world = story()
    made = world.plan.for_task(world.task)
    facts = TaskFacts(at=world.now, visited_at=world.now)
    found = diagnose(world.task, made, facts)
    assert (found.step, found.agent) == ("leg[b]", "worker")
    assert "leg[b]" in found.sentence
    assert [mark.steps for mark in marks_of(world.task, made)] == [
        ("find",),
        ("leg[a]",),
        ("leg[b]",),
        ("pay",),
    ]
    rows = [row for _, _, decision in world.decisions for row in decision.history]
    drawn = bars(world.task, made, rows, world.now + 1)
    assert [line.step for line in drawn.lines] == ["the order", "find", "leg[a]", "leg[b]"]


def test_a_person_resolves_an_added_step_by_its_name() -> None:
    made = plan(step("find"), may_add=(step("leg"),), on_failure=Archive())
    world = World(made)
    world.start()
    world.adds("find", StepToAdd("leg[a]"))
    world.is_refused("leg[a]")
    result: Json = {"booked": "by phone"}
    world.resolve("leg[a]", result=result)
    assert world.task.step("leg[a]").result == result
    assert world.task.state == "Completed"
