"""The diagrams and the table in the documentation show every entry of the tables."""

from roundsman.engine.transitions import SAME, STEPS, TASKS, MayBecome, TaskEvent, Transition
from roundsman.model.states import TaskState
from tools.state_diagram import diagrams, moves_table


def test_every_entry_of_a_task_that_changes_something_is_drawn() -> None:
    arrows = [line.strip() for line in diagrams().splitlines() if "-->" in line]
    drawn = {
        (ends, event)
        for ends, _, events in (line.partition(": ") for line in arrows)
        for event in events.split(" / ")
    }
    for (before, event), entry in TASKS.items():
        after = entry.states if isinstance(entry, MayBecome) else frozenset[TaskState]()
        for state in after:
            assert (f"{before.value} --> {state.value}", event.value) in drawn
    assert ("Scheduled --> Pending", TaskEvent.INSPECT.value) in drawn
    assert ("[*] --> Pending", "") in drawn
    assert (f"{TaskState.ARCHIVED.value} --> [*]", "") in drawn


def test_every_entry_of_a_step_is_a_row() -> None:
    rows = [row.strip("| ").split(" | ") for row in moves_table().splitlines() if "|" in row]
    moves = {
        (before, event): before if after == SAME else after
        for event, befores, after, *_ in (row for row in rows if len(row) == 4)
        for before in befores.split(", ")
    }
    stale = [row for row in rows if len(row) == 2]
    whys = {before: why for befores, why in stale for before in befores.split(", ")}
    for (step, event), entry in STEPS.items():
        if isinstance(entry, Transition):
            assert moves[step.value, event.value] == ", ".join(one.value for one in entry.to)
        else:
            assert whys[step.value] == entry.why
