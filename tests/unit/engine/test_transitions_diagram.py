"""The diagrams in the documentation show every entry of the tables."""

from roundsman.engine.transitions import STEPS, TASKS, MayBecome, StepEvent, TaskEvent, Transition
from roundsman.model.states import ProcessState, TaskState
from tools.state_diagram import diagrams


def test_every_entry_that_changes_something_is_drawn() -> None:
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
    for (step, happened), move in STEPS.items():
        if isinstance(move, Transition):
            assert (f"{step.state.value} --> {move.state.value}", happened.value) in drawn
    assert ("Processing --> Processed", StepEvent.SUCCEEDED.value) in drawn
    assert ("Scheduled --> Pending", TaskEvent.INSPECT.value) in drawn
    assert ("[*] --> Pending", "") in drawn
    assert (f"{TaskState.ARCHIVED.value} --> [*]", "") in drawn
    assert (f"{ProcessState.SKIPPED.value} --> [*]", "") in drawn
