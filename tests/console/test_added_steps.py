"""What an operator sees and does of an order to which steps were added."""

from dataclasses import replace

import pytest
from rich.console import Console

from roundsman.definition.workflow import Archive
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepToAdd
from roundsman_console.base.result import document_of
from roundsman_console.faces.commands import show as show_command
from roundsman_console.faces.commands.show import steps_table, undo_lines
from roundsman_console.faces.web.drawings.gantt import bars
from roundsman_console.facts.order.documents import order_document
from roundsman_console.facts.order.step_text import span
from roundsman_console.facts.order.why import diagnose
from roundsman_console.facts.orders.step_marks import marks_of
from tests.console.operators import Operator
from tests.support.large_orders import REFUSED, MadeOrder, facts_of, loop_of
from tests.support.machine_world import T0, World, plan, step
from tests.support.steps import step_record


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
    output = Console(record=True, width=160)
    output.print(steps_table(facts_of(world)))
    rows = [line.split() for line in output.export_text().splitlines()]
    assert rows[0][-2:] == ["Last", "error"]
    assert [row[0] for row in rows[1:]] == ["find", "leg[a]", "leg[b]", "pay"]
    assert "find" in rows[2][1:]
    assert "leg[a]" in rows[3][1:]
    document = document_of(order_document(facts_of(world)))
    assert [(one["name"], one["addedBy"]) for one in document["steps"]] == [
        ("find", None),
        ("leg[a]", "find"),
        ("leg[b]", "leg[a]"),
        ("pay", None),
    ]
    assert "secret" not in str(document)


def test_each_added_step_has_its_own_reason_mark_and_line() -> None:
    world = story()
    facts = facts_of(world, world.now + 1)
    found = diagnose(facts)
    assert (found.step, found.agent) == ("leg[b]", "worker")
    assert "leg[b]" in found.sentence
    assert [mark.steps for mark in marks_of(facts.task, facts.plan)] == [
        ("find",),
        ("leg[a]",),
        ("leg[b]",),
        ("pay",),
    ]
    assert [line.step for line in bars(facts).lines] == ["the order", "find", "leg[a]", "leg[b]"]


def shown(order: MadeOrder) -> list[list[str]]:
    output = Console(record=True, width=160)
    output.print(steps_table(order.facts()))
    return [line.split("  ") for line in output.export_text().splitlines()]


def test_a_thousand_steps_of_a_loop_are_four_rows_and_the_failed_one_is_seen() -> None:
    _, *rows = shown(loop_of(1_000))
    assert [row[0] for row in rows if row[0]] == ["find", "leg (999 steps)", "leg[n0999]", "pay"]
    assert "find - leg[n0997]" in [cell.strip() for cell in rows[1]]


def test_a_few_alike_added_steps_have_a_row_each() -> None:
    _, *rows = shown(loop_of(8, failed=False))
    assert [row[0] for row in rows] == ["find", *(f"leg[n000{place}]" for place in range(8)), "pay"]
    _, *rows = shown(loop_of(9, failed=False))
    assert [row[0] for row in rows] == ["find", "leg (9 steps)", "pay"]


def test_the_steps_that_a_thousand_undos_took_back_are_one_line() -> None:
    order = loop_of(1_000, undone=True)
    assert [str(line) for line in undo_lines(order.facts())] == [
        "Undone 2027-01-15T08:16:40Z to 2027-01-15T08:33:20Z: find, leg (1,000 steps)"
    ]
    found = diagnose(order.facts())
    assert "undone: find, leg (1,000 steps)" in found.evidence


def test_show_has_the_newest_rows_of_a_long_history_and_the_command_for_all(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = loop_of(150)
    monkeypatch.setattr(show_command, "find_shown", lambda *_, **__: order.facts())
    lines = operator.types("show", "ord-1").stdout.splitlines()
    assert "50 earlier rows: roundsman timeline ord-1" in lines
    rows = [line for line in lines if "  added  " in line]
    assert len(rows) == 100
    assert rows[-1].endswith("leg[n0148]: adds leg[n0149]")


def test_many_added_steps_are_named_by_their_kind_and_number() -> None:
    legs = [f"leg[n{place}]" for place in range(9)]
    assert span(["a", *legs[1:], "pick[0]", "pick[1]"]) == ", ".join(["a", *legs[1:], "pick[0-1]"])
    assert span(["a", *legs, "other[x]", "b"]) == "a, leg (9 steps), other[x], b"


def test_undos_that_fail_alike_are_one_error() -> None:
    order = loop_of(60, undone=True)
    failed = step_record(process_state=ProcessState.UNDO_ERROR, started_at=T0, error=REFUSED)
    steps = {**order.task.steps, **{f"leg[n{place:04}]": failed for place in range(10, 60)}}
    task = replace(order.task, steps=steps, state=TaskState.ARCHIVED)
    found = diagnose(replace(order.facts(), task=task))
    assert f"the undo of leg (50 steps) failed (OutOfStock: {REFUSED.message})" in found.sentence


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
