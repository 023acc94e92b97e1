"""Generates the diagrams and the table of docs/reference/states.md from the transition tables.

`python -m tools.reference` writes them into the page.
"""

from collections.abc import Iterable

from roundsman.engine.transitions import (
    SAME,
    STALE,
    STEPS,
    TASKS,
    TRANSITIONS,
    MayBecome,
    StepEvent,
    TaskEvent,
    Transition,
)
from roundsman.model.states import END_STATES, ProcessState, TaskState
from tools.markdown import table

BY_ITSELF = frozenset({TaskEvent.START, TaskEvent.REPLIED, TaskEvent.INSPECT})
BY_PEOPLE = frozenset(
    {
        StepEvent.EXTENDED,
        StepEvent.DUE_EARLIER,
        StepEvent.REMOVED,
        StepEvent.RESUBMITTED,
        StepEvent.BEGUN_ANEW,
        StepEvent.RESOLVED_DONE,
        StepEvent.RESOLVED_NOT_DONE,
    }
)
AT_REST = frozenset({ProcessState.PROCESSED, ProcessState.ERROR})
"""The states in which a step may stay permanently, although its undo may begin."""

Arrow = tuple[str, str, str]


def diagrams() -> str:
    """Return the diagrams of tasks and steps: automatic transitions and those by people."""
    return "\n".join(
        [
            "### The states of a task",
            "",
            *_fence(_task_lines()),
            "",
            "By a person, an operator or the customer who cancels:",
            "",
            *_fence(_drawn(_task_arrows(people=True))),
            "",
            "### The states of a step",
            "",
            *_fence(_step_lines()),
            "",
            "By an operator:",
            "",
            *_fence(_drawn(_step_arrows(people=True))),
        ]
    )


def moves_table() -> str:
    """Return the table of what happens to a step, and why a late reply changes nothing."""
    rows = [
        (event, _listed(befores), _listed([to] if to == SAME else to), counts)
        for event, befores, to, counts in TRANSITIONS
    ]
    stale = [(_listed(befores), why) for befores, why in STALE]
    return "\n".join(
        [
            *table(("event", "a step that is", "becomes", "its counts"), rows),
            *("", f"A {StepEvent.STALE} changes nothing:", ""),
            *table(("a step that is", "why"), stale),
        ]
    )


def _listed(situations: Iterable[str]) -> str:
    return ", ".join(situations)


def _task_arrows(*, people: bool) -> list[Arrow]:
    return [
        (before.value, after.value, event.value)
        for (before, event), entry in TASKS.items()
        if isinstance(entry, MayBecome) and people is (event not in BY_ITSELF)
        for after in sorted(entry.states, key=list(TaskState).index)
    ]


def _task_lines() -> list[str]:
    begin = [f"[*] --> {state.value}" for state in (TaskState.SCHEDULED, TaskState.PENDING)]
    end = [f"{state.value} --> [*]" for state in TaskState if state in END_STATES]
    return [*begin, *_drawn(_task_arrows(people=False)), *end]


def _step_arrows(*, people: bool) -> list[Arrow]:
    found = (
        (before.state.value, entry.state.value, event.value)
        for (before, event), entry in STEPS.items()
        if isinstance(entry, Transition) and people is (event in BY_PEOPLE)
    )
    return list(dict.fromkeys(found))


def _step_lines() -> list[str]:
    arrows = _step_arrows(people=False)
    left = {before for before, _, _ in arrows}
    end = [
        f"{state.value} --> [*]" for state in ProcessState if state in AT_REST or state not in left
    ]
    return [f"[*] --> {ProcessState.PENDING.value}", *_drawn(arrows), *end]


def _drawn(arrows: Iterable[Arrow]) -> list[str]:
    """Return a line for each pair of states, with all events that lead from one to the other."""
    events: dict[tuple[str, str], list[str]] = {}
    for before, after, event in arrows:
        events.setdefault((before, after), []).append(event)
    return [
        f"{before} --> {after}: {' / '.join(found)}" for (before, after), found in events.items()
    ]


def _fence(lines: Iterable[str]) -> list[str]:
    return ["```mermaid", "stateDiagram-v2", *(f"    {line}" for line in lines), "```"]
