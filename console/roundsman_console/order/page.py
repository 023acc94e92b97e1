"""One order: its graph, its timeline, what it waits for, its data and its history."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from roundsman.definition.plan import Plan
from roundsman.model.json import Json, canonical_json
from roundsman.model.states import DONE, ProcessState
from roundsman.model.task import (
    UNTOUCHED,
    StepRecord,
    Task,
    item_place,
    step_of,
)
from roundsman_console.clock import now
from roundsman_console.inspector import Inspector
from roundsman_console.order.forms import links_of
from roundsman_console.order.lookup import find_shown
from roundsman_console.order.masks import mask_of
from roundsman_console.order.step_text import agent_words, last_error, situation_words, step_facts
from roundsman_console.order.timeline import happenings, not_known
from roundsman_console.order.view import (
    erased_words,
    left_out_words,
    may_stand,
    nothing_undoes,
    step_names,
)
from roundsman_console.web.drawings.gantt import bars
from roundsman_console.web.drawings.graph import LEAST_ADVANCED, draw
from roundsman_console.web.parts import part

MOST_ITEMS = 8
"""Up to here the items of a fan-out are rows of the table of steps; more are folded away."""
NEWEST = 40
"""The number of entries of the history that are shown; the earlier ones are folded away."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step in the table of steps."""

    name: str
    record: StepRecord
    situation: str
    """The situation where it says more than the state."""
    agent: str
    attempts: str
    """The number of failures, with the maximum number of attempts if there is one."""
    error: str
    result: str
    may_stand: bool
    """Whether its effect may have happened and is not undone."""


@dataclass(frozen=True, slots=True)
class FoldedItems:
    """The items of a fan-out of many items: how many are in each state, and their rows."""

    step: str
    rows: tuple[StepRow, ...]
    states: tuple[tuple[ProcessState, int], ...]
    """The number of items in each state, the least advanced first."""


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read one order. Raises NotFound if there is no such order."""
    task, plan, history = find_shown(inspector.stack, given["order"])
    stack, at = inspector.stack, now()
    held = any(record.held_since is not None for record in task.steps.values())
    holds = stack.holds.holds() if held else ()
    mask = mask_of(stack, task, plan)
    # Of an order that goes on, every finished step has its effect: only its end makes that a fact
    # that somebody must know.
    stands = may_stand(task) if task.ended or task.ending is not None else ()
    steps, folded = fold([_row(name, task, plan, stands) for name in step_names(task, plan)])
    happened = happenings(task, plan, history, at)[::-1]
    content = part(lambda: stack.tasks.order(task.task_id))
    return {
        "task": task,
        "erased": erased_words(task),
        "left_out": left_out_words(task),
        "plan": plan,
        "why": part(lambda: inspector.why(task.task_id)),
        "facts": step_facts(task, plan, holds, at),
        "graph": None if plan is None else draw(plan, task),
        "bars": bars(task, plan, history, at),
        "steps": steps,
        "folded": folded,
        "uncompensated": nothing_undoes(task, plan),
        "input": content.value and pretty(mask.input(task.input(content.value.content))),
        "input_problem": content.problem,
        "happened": happened[:NEWEST],
        "earlier": happened[NEWEST:],
        "anybody": any(one.by for one in happened),
        "gaps": not_known(task, history),
        "commands": links_of(task),
        "waiting": [name for name, record in task.steps.items() if record.waiting],
    }


def fold(rows: Sequence[StepRow]) -> tuple[list[StepRow], list[FoldedItems]]:
    """Return the rows to show, and the fan-outs of more than MOST_ITEMS items, folded.

    Of a folded fan-out, the items that are neither done nor untouched are shown too, at most
    MOST_ITEMS of them: those that failed first.
    """
    items: dict[str, list[StepRow]] = {}
    for row in rows:
        if item_place(row.name) is not None:
            items.setdefault(step_of(row.name), []).append(row)
    many = {step: found for step, found in items.items() if len(found) > MOST_ITEMS}
    kept = {
        row.name
        for found in many.values()
        for row in sorted(filter(_is_of_interest, found), key=_advance)[:MOST_ITEMS]
    }
    shown = [row for row in rows if row.name in kept or step_of(row.name) not in many]
    return shown, [
        FoldedItems(step, tuple(found), tuple(_states(found))) for step, found in many.items()
    ]


def _is_of_interest(row: StepRow) -> bool:
    return row.record.process_state not in DONE and row.record != UNTOUCHED


def _advance(row: StepRow) -> int:
    return LEAST_ADVANCED.index(row.record.process_state.value)


def _states(rows: Sequence[StepRow]) -> list[tuple[ProcessState, int]]:
    counted = Counter(row.record.process_state for row in rows)
    return sorted(counted.items(), key=lambda one: LEAST_ADVANCED.index(one[0].value))


def _row(name: str, task: Task, plan: Plan | None, stands: Collection[str]) -> StepRow:
    record = task.step(name)
    step = plan.steps.get(name) if plan else None
    most = step.attempts_of(record.operation) if step else None
    failures = str(record.failure_count)
    return StepRow(
        name,
        record,
        situation_words(record),
        agent_words(record, step) or record.agent or (step.agent if step else ""),
        f"{failures} of {most}" if record.failure_count and most else failures,
        last_error(record),
        "" if record.result is None else pretty(record.result),
        name in stands,
    )


def pretty(value: Json) -> str:
    """Return a value as indented JSON for people, with its keys sorted."""
    return json.dumps(json.loads(canonical_json(value)), indent=2, ensure_ascii=False)
