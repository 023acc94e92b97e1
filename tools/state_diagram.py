"""Generates the diagrams of a task and the table of a step on docs/reference/states.md.

Both are made from the transition tables.

`python -m tools.reference` writes them into the page.
"""

from collections.abc import Iterable

from roundsman.engine.transitions import (
    SAME,
    STALE,
    TASKS,
    TRANSITIONS,
    MayBecome,
    StepEvent,
    TaskEvent,
)
from roundsman.model.states import END_STATES, TaskState

BY_ITSELF = frozenset({TaskEvent.START, TaskEvent.REPLIED, TaskEvent.INSPECT})

Arrow = tuple[str, str, str]


def diagrams() -> str:
    """Return the diagrams of a task: its automatic transitions and those by people."""
    return "\n".join(
        [
            *_fence(_task_lines()),
            "",
            "By a person, an operator or the customer who cancels:",
            "",
            *_fence(_drawn(_task_arrows(people=True))),
        ]
    )


def moves_table() -> str:
    """Return the table of what happens to a step, and why a late reply changes nothing."""
    rows = [
        f"| {event} | {_listed(befores)} | {_listed([to] if to == SAME else to)} | {counts} |"
        for event, befores, to, counts in TRANSITIONS
    ]
    stale = [f"| {_listed(befores)} | {why} |" for befores, why in STALE]
    return "\n".join(
        [
            *("| event | a step that is | becomes | its counts |", "| --- | --- | --- | --- |"),
            *rows,
            *("", f"A {StepEvent.STALE} changes nothing:", ""),
            *("| a step that is | why |", "| --- | --- |"),
            *stale,
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
