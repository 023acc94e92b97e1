"""Diagnosing what a task waits for: one sentence, the evidence, and the next command. Pure.

An ended task waits for nothing, or for a person. An open task waits for the step that is the
furthest from continuing, in this order: an overdue step, a step that waits for the scheduler, a
step whose agent is on hold, a step that waits for a callback, a step at its agent, a step that
waits for its next attempt, a ready step (see `step_waits.CASES`). This module decides nothing
about the task; `roundsman.engine.machine` does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from roundsman.command_line import REASON, command_line
from roundsman.engine.due import START_WITHIN
from roundsman.model.instants import format_duration, second
from roundsman.model.schedules import is_queued
from roundsman.model.states import ProcessState, TaskState
from roundsman_console.base.counted import counted
from roundsman_console.facts.order.closing import closing_words, end_words
from roundsman_console.facts.order.effects import left_out_words
from roundsman_console.facts.order.not_needed import not_needed_words
from roundsman_console.facts.order.order_facts import OrderFacts
from roundsman_console.facts.order.step_text import (
    error_words,
    situation_words,
    span,
    step_state,
)
from roundsman_console.facts.order.step_waits import RUNBOOK, STATS, StepCase, StepWait, waits_of

TaskCase: TypeAlias = Literal[
    "archived",
    "ended",
    "no_order_row",
    "no_plan",
    "owed",
    "pending",
    "pending_late",
    "scheduled",
    "scheduled_late",
    "unreadable",
]
"""What a task waits for, if it does not wait for a step."""


_KEYS_ARE_KEPT = "correct the cause first; its keys are kept"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a task waits for."""

    case: StepCase | TaskCase
    """One word for scripts, for example `overdue` or `archived`."""
    sentence: str
    evidence: tuple[str, ...] = ()
    next: str | None = None
    """The command to run next; None if there is nothing to do but wait."""
    step: str | None = None
    """The step that the task waits for; None if it waits for no single step."""
    agent: str | None = None
    """The agent that the task waits for; None if it waits for no agent."""


def diagnose(facts: OrderFacts) -> Diagnosis:
    """Return what the task waits for."""
    task = facts.task
    if task.ended:
        return _of_ended(facts)
    if facts.plan is None:
        return _without_plan(facts)
    if not facts.order_stored:
        return Diagnosis(
            "no_order_row",
            f"{task.task_id} cannot continue: its row is missing in the orders table, and no "
            "request can be sent without it.",
            tuple(_about(facts)),
            "roundsman doctor",
        )
    if task.state is TaskState.SCHEDULED:
        return _scheduled(facts)
    waits = waits_of(facts)
    return _of_step(waits, facts) if waits else _ready(facts)


def unreadable(order_id: str, problem: str) -> Diagnosis:
    """Return the diagnosis of a task whose record exists but cannot be read by this code."""
    return Diagnosis(
        "unreadable",
        f"This code cannot continue {order_id}: {problem}.",
        ("the supervisor postpones it, by 1 to 15 minutes each time, until some code can read it",),
        "roundsman doctor",
    )


def _of_ended(facts: OrderFacts) -> Diagnosis:
    task = facts.task
    if task.owed:
        return _owed(facts)
    if task.state is TaskState.ARCHIVED:
        return _archived(facts)
    ended = task.ended_at if task.ended_at is not None else facts.at
    left_out, end = left_out_words(task), end_words(task)
    why = f": {end}" if end else f", {left_out}" if left_out else ""
    again = task.state in (TaskState.UNDONE, TaskState.CANCELLED) and task.erased_at is None
    kept = (f"kept until {second(task.expires_at)}",) if task.expires_at is not None else ()
    return Diagnosis(
        "ended",
        f"{task.task_id} has ended: {task.state} at {second(ended)} ({_ago(ended, facts)}){why}.",
        (*_undo_ledger(facts), *filter(None, (closing_words(task),)), *kept),
        command_line("resubmit", task.task_id, options=("--again", *REASON)) if again else None,
    )


def _owed(facts: OrderFacts) -> Diagnosis:
    task = facts.task
    first = min(task.owed, key=lambda owed: owed.at)
    names = ", ".join(f"the {owed.kind} {owed.name}" for owed in task.owed)
    overdue = task.due_at + facts.late < facts.at
    return Diagnosis(
        "owed",
        f"{task.task_id} is {task.state}, but {names}, decided {_ago(first.at, facts)}, is "
        f"not known to be sent; the supervisor sends it {_when(task.due_at, facts)}.",
        tuple(_about(facts)),
        "roundsman doctor" if overdue or not facts.supervised else None,
    )


def _archived(facts: OrderFacts) -> Diagnosis:
    task = facts.task
    failed = facts.effects.undo_failed
    why = task.ending.why if task.ending else "no reason is stored"
    if failed:
        errors = [error for name in failed if (error := task.step(name).error)]
        alike = dict.fromkeys(error_words(error.type, error.message) for error in errors)
        messages = "; ".join(alike) or why
        why = f"the undo of {span(failed)} failed ({messages})"
    step = failed[0] if failed else (task.ending.step if task.ending else None)
    since = task.ended_at if task.ended_at is not None else facts.at
    return Diagnosis(
        "archived",
        f"{task.task_id} has needed a person since {second(since)} ({_ago(since, facts)}): {why}.",
        (*_undo_ledger(facts), *_not_needed(failed, facts), _KEYS_ARE_KEPT),
        command_line("resubmit", task.task_id, options=REASON),
        step,
    )


def _not_needed(failed: Sequence[str], facts: OrderFacts) -> Iterator[str]:
    """Which of the steps whose undo has failed are not needed: nothing else of the order failed."""
    for name in failed:
        if words := not_needed_words(facts.step(name)):
            yield f"{name} is {words}"


def _undo_ledger(facts: OrderFacts) -> Iterator[str]:
    task, effects = facts.task, facts.effects
    ledger: Mapping[str, Sequence[str]] = {
        "may have happened": [] if task.state is TaskState.COMPLETED else effects.may_stand,
        "undone": effects.undone,
        "left out": task.left_out(),
        "cannot be undone": effects.without_compensation,
    }
    yield from (f"{what}: {span(names)}" for what, names in ledger.items() if names)


def _without_plan(facts: OrderFacts) -> Diagnosis:
    task = facts.task
    return Diagnosis(
        "no_plan",
        f"{task.task_id} cannot continue: its plan {task.plan[:12]} is not stored, so it is "
        f"archived at its next inspection, {_when(task.due_at, facts)}.",
        tuple(_about(facts)),
        "roundsman doctor",
    )


def _scheduled(facts: OrderFacts) -> Diagnosis:
    task = facts.task
    if is_queued(task):
        return Diagnosis(
            "scheduled",
            f"{task.task_id} is the order of a run, and waits for that of an earlier run to end.",
            tuple(_about(facts)),
            command_line("schedules ls"),
        )
    if task.start_at > facts.at:
        return Diagnosis(
            "scheduled",
            f"{task.task_id} waits for its start time, {_when(task.start_at, facts)}.",
            tuple(_about(facts)),
            command_line("run", task.task_id, options=REASON),
        )
    sentence = f"{task.task_id} should have started {_ago(task.start_at, facts)}"
    return _late("scheduled_late", sentence, task.start_at, facts)


def _ready(facts: OrderFacts) -> Diagnosis:
    """Diagnose a task that waits for the scheduler: no step is under way or waits for a time."""
    task = facts.task
    ready = [
        one.name
        for one in facts.steps
        if one.record.process_state is ProcessState.PENDING and one.is_unblocked
    ]
    what = f" {span(ready)}" if ready and not task.ending else " the next steps"
    behind, count = "", facts.scheduler.waiting
    if count is not None:
        behind = f", with {counted(count, 'message')} in its queue"
    sentence = f"{task.task_id} waits for the scheduler to begin{what}{behind}"
    where = facts.scheduler.start_words(facts.at)
    if where and not task.steps and task.start_at + START_WITHIN < facts.at:
        return _start_waits(f"{sentence}: {where}", ready, facts)
    if task.due_at <= facts.at:
        return _late("pending_late", sentence, task.due_at, facts)
    return Diagnosis(
        "pending",
        f"{sentence}; if the message is lost, the supervisor sends another "
        f"{_when(task.due_at, facts)}.",
        tuple(_about(facts)),
        STATS,
        ready[0] if ready else None,
    )


def _start_waits(sentence: str, ready: Sequence[str], facts: OrderFacts) -> Diagnosis:
    """Diagnose a task of which nothing has begun: its Start waits in the scheduler's queue."""
    task, step = facts.task, ready[0] if ready else None
    evidence = (*_about(facts), RUNBOOK)
    if task.due_at <= facts.at:
        found = _late("start_waits", sentence, task.due_at, facts)
        return replace(found, evidence=evidence, step=step)
    sentence = f"{sentence}; nothing is counted; it is checked again {_when(task.due_at, facts)}."
    return Diagnosis("start_waits", sentence, evidence, STATS, step)


def _of_step(waits: Sequence[StepWait], facts: OrderFacts) -> Diagnosis:
    task = facts.task
    first, *rest = waits
    alike = [wait.step for wait in rest if wait.case == first.case]
    more = f" (and the same for {span(alike)})" if alike else ""
    sentence = f"{task.task_id} waits for {first.what}{more}"
    others: dict[str, StepWait] = {}
    for wait in rest:
        if wait.case != first.case:
            others.setdefault(wait.case, wait)
    record = task.step(first.step)
    situation = (
        [f"{first.step} is {step_state(task, record)}"] if situation_words(task, record) else []
    )
    evidence = (
        *situation,
        *first.evidence,
        *(f"{wait.step} waits for {wait.what}" for wait in others.values()),
        *_about(facts),
    )
    if first.overdue_since is None:
        return Diagnosis(first.case, f"{sentence}.", evidence, first.next, first.step, first.agent)
    found = _late(first.case, sentence, first.overdue_since, facts)
    return replace(found, evidence=evidence, step=first.step, agent=first.agent)


def _late(case: StepCase | TaskCase, sentence: str, since: int, facts: OrderFacts) -> Diagnosis:
    """Diagnose a task that is overdue since `since`: a supervisor handles it, or is itself late."""
    by = since + facts.late
    if facts.at <= by and facts.supervised:
        then = f"a supervisor handles it in its next pass, by {second(by)}"
        return Diagnosis(case, f"{sentence}; {then}.", tuple(_about(facts)))
    if facts.supervised:
        then = "a supervisor pass since then has not handled it"
    else:
        then = "no supervisor has handled it: none is running"
    return Diagnosis(case, f"{sentence}; {then}.", tuple(_about(facts)), "roundsman doctor")


def _about(facts: OrderFacts) -> Iterator[str]:
    """The evidence that is given for every open task."""
    task = facts.task
    if task.ending is not None:
        yield f"no further steps start: {task.ending.why}"
    if words := closing_words(task):
        yield words
    yield f"it must be complete {_when(task.complete_by, facts)}"
    if task.deadline is not None:
        yield f"its deadline, which nothing moves, is {second(task.deadline)}"
    due = "is" if task.due_at > facts.at else "was"
    yield f"it {due} due for a check at {second(task.due_at)} ({_passed(task.due_at, facts)})"
    if facts.visited_at is None:
        yield f"no supervisor has ever visited its shard, {task.shard}"
    else:
        yield (
            f"a supervisor last visited its shard, {task.shard}, {_ago(facts.visited_at, facts)}"
        )


def _ago(instant: int, facts: OrderFacts) -> str:
    return f"{format_duration(max(0, facts.at - instant))} ago"


def _passed(instant: int, facts: OrderFacts) -> str:
    if instant > facts.at:
        return f"in {format_duration(instant - facts.at)}"
    return _ago(instant, facts)


def _when(instant: int, facts: OrderFacts) -> str:
    """Return `at 08:10:00Z, in 10 min` for a future instant, `by ..., 3 min ago` for a past one."""
    by = "at" if instant > facts.at else "by"
    return f"{by} {second(instant)}, {_passed(instant, facts)}"
