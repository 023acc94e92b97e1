"""Diagnosing what a task waits for: one sentence, the evidence, and the next command. Pure.

An ended task waits for nothing, or for a person. An open task waits for the step that is the
furthest from continuing, in this order: an overdue step, a step that waits for the scheduler, a
step whose agent is on hold, a step that waits for a callback, a step at its agent, a step that
waits for its next attempt, a ready step (see `step_waits.CASES`). This module decides nothing
about the task; `roundsman.engine.machine` does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from roundsman.command_line import REASON, command_line
from roundsman.definition.plan import Plan
from roundsman.engine.due import START_WITHIN
from roundsman.model.events import Agents
from roundsman.model.holds import Hold
from roundsman.model.instants import MINUTE, format_duration, second
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_console.base.counted import counted
from roundsman_console.facts.order.documents import StepCase, TaskCase
from roundsman_console.facts.order.step_text import situation_words, span, step_state
from roundsman_console.facts.order.step_waits import (
    NOTHING_KNOWN,
    RUNBOOK,
    STATS,
    SchedulerNow,
    StepWait,
    waits_of,
)
from roundsman_console.facts.order.view import (
    in_state,
    left_out_words,
    may_stand,
    nothing_undoes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """The facts outside the task's record that a diagnosis needs. Instants are epoch ms."""

    at: int
    """The instant of the diagnosis."""
    holds: Sequence[Hold] = ()
    """The holds in force on any agent."""
    agents: Agents = field(default_factory=dict)
    visited_at: int | None = None
    """When a supervisor last visited the task's shard; None if none ever did."""
    interval: int = MINUTE
    """The time in ms from one pass of the supervisor to the next."""
    scheduler: SchedulerNow = NOTHING_KNOWN
    """What is known of the queues that the scheduler reads."""
    order_stored: bool = True
    """Whether the orders table has the order's row."""

    @property
    def late(self) -> int:
        """The time in ms within which a supervisor that works handles an overdue task.

        Two passes, and one minute because the timer has a resolution of one minute.
        """
        return 2 * self.interval + MINUTE

    def supervised(self) -> bool:
        """Whether a supervisor visited the task's shard within the last `late` ms."""
        return self.visited_at is not None and self.at - self.visited_at <= self.late


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


def diagnose(task: Task, plan: Plan | None, facts: TaskFacts) -> Diagnosis:
    """Return what the task waits for at `facts.at`."""
    if task.ended:
        return _of_ended(task, plan, facts)
    if plan is None:
        return _without_plan(task, facts)
    if not facts.order_stored:
        return Diagnosis(
            "no_order_row",
            f"{task.task_id} cannot continue: its row is missing in the orders table, and no "
            "request can be sent without it.",
            tuple(_about(task, facts)),
            "roundsman doctor",
        )
    if task.state is TaskState.SCHEDULED:
        return _scheduled(task, facts)
    waits = waits_of(task, plan, facts.at, facts.holds, facts.agents, facts.scheduler)
    return _of_step(task, waits, facts) if waits else _ready(task, plan, facts)


def unreadable(order_id: str, problem: str) -> Diagnosis:
    """Return the diagnosis of a task whose record exists but cannot be read by this code."""
    return Diagnosis(
        "unreadable",
        f"This code cannot continue {order_id}: {problem}.",
        ("the supervisor postpones it, by 1 to 15 minutes each time, until some code can read it",),
        "roundsman doctor",
    )


def _of_ended(task: Task, plan: Plan | None, facts: TaskFacts) -> Diagnosis:
    if task.owed:
        return _owed(task, facts)
    if task.state is TaskState.ARCHIVED:
        return _archived(task, plan, facts)
    ended = task.ended_at if task.ended_at is not None else facts.at
    left_out = left_out_words(task)
    why = f": {task.ending.why}" if task.ending else f", {left_out}" if left_out else ""
    again = task.state in (TaskState.UNDONE, TaskState.CANCELLED) and task.erased_at is None
    kept = (f"kept until {second(task.expires_at)}",) if task.expires_at is not None else ()
    return Diagnosis(
        "ended",
        f"{task.task_id} has ended: {task.state} at {second(ended)} ({_ago(ended, facts)}){why}.",
        (*_undo_ledger(task, plan), *kept),
        command_line("resubmit", task.task_id, options=("--again", *REASON)) if again else None,
    )


def _owed(task: Task, facts: TaskFacts) -> Diagnosis:
    first = min(task.owed, key=lambda owed: owed.at)
    names = ", ".join(f"the {owed.kind} {owed.name}" for owed in task.owed)
    overdue = task.due_at + facts.late < facts.at
    return Diagnosis(
        "owed",
        f"{task.task_id} is {task.state}, but {names}, decided {_ago(first.at, facts)}, is "
        f"not known to be sent; the supervisor sends it {_when(task.due_at, facts)}.",
        tuple(_about(task, facts)),
        "roundsman doctor" if overdue or not facts.supervised() else None,
    )


def _archived(task: Task, plan: Plan | None, facts: TaskFacts) -> Diagnosis:
    failed = in_state(task, plan, ProcessState.UNDO_ERROR)
    why = task.ending.why if task.ending else "no reason is stored"
    if failed:
        errors = [error for name in failed if (error := task.step(name).error)]
        alike = dict.fromkeys(f"{error.type}: {error.message}" for error in errors)
        messages = "; ".join(alike) or why
        why = f"the undo of {span(failed)} failed ({messages})"
    step = failed[0] if failed else (task.ending.step if task.ending else None)
    since = task.ended_at if task.ended_at is not None else facts.at
    return Diagnosis(
        "archived",
        f"{task.task_id} has needed a person since {second(since)} ({_ago(since, facts)}): {why}.",
        (*_undo_ledger(task, plan), "correct the cause first; its keys are kept"),
        command_line("resubmit", task.task_id, options=REASON),
        step,
    )


def _undo_ledger(task: Task, plan: Plan | None) -> Iterator[str]:
    ledger: Mapping[str, Sequence[str]] = {
        "may have happened": [] if task.state is TaskState.COMPLETED else may_stand(task, plan),
        "undone": in_state(task, plan, ProcessState.UNDONE),
        "left out": task.left_out(),
        "cannot be undone": nothing_undoes(task, plan),
    }
    yield from (f"{what}: {span(names)}" for what, names in ledger.items() if names)


def _without_plan(task: Task, facts: TaskFacts) -> Diagnosis:
    return Diagnosis(
        "no_plan",
        f"{task.task_id} cannot continue: its plan {task.plan[:12]} is not stored, so it is "
        f"archived at its next inspection, {_when(task.due_at, facts)}.",
        tuple(_about(task, facts)),
        "roundsman doctor",
    )


def _scheduled(task: Task, facts: TaskFacts) -> Diagnosis:
    if task.start_at > facts.at:
        return Diagnosis(
            "scheduled",
            f"{task.task_id} waits for its start time, {_when(task.start_at, facts)}.",
            tuple(_about(task, facts)),
            command_line("run", task.task_id, options=REASON),
        )
    sentence = f"{task.task_id} should have started {_ago(task.start_at, facts)}"
    return _late(task, "scheduled_late", sentence, task.start_at, facts)


def _ready(task: Task, plan: Plan, facts: TaskFacts) -> Diagnosis:
    """Diagnose a task that waits for the scheduler: no step is under way or waits for a time."""
    ready = [
        name
        for name, step in plan.steps.items()
        if task.step(name).process_state is ProcessState.PENDING
        and all(task.step(before).process_state in _OVER for before in step.after)
    ]
    what = f" {span(ready)}" if ready and not task.ending else " the next steps"
    behind, count = "", facts.scheduler.waiting
    if count is not None:
        behind = f", with {counted(count, 'message')} in its queue"
    sentence = f"{task.task_id} waits for the scheduler to begin{what}{behind}"
    where = facts.scheduler.start_words(facts.at)
    if where and not task.steps and task.start_at + START_WITHIN < facts.at:
        return _start_waits(task, f"{sentence}: {where}", ready, facts)
    if task.due_at <= facts.at:
        return _late(task, "pending_late", sentence, task.due_at, facts)
    return Diagnosis(
        "pending",
        f"{sentence}; if the message is lost, the supervisor sends another "
        f"{_when(task.due_at, facts)}.",
        tuple(_about(task, facts)),
        STATS,
        ready[0] if ready else None,
    )


def _start_waits(task: Task, sentence: str, ready: Sequence[str], facts: TaskFacts) -> Diagnosis:
    """Diagnose a task of which nothing has begun: its Start waits in the scheduler's queue."""
    evidence, step = (*_about(task, facts), RUNBOOK), ready[0] if ready else None
    if task.due_at <= facts.at:
        found = _late(task, "start_waits", sentence, task.due_at, facts)
        return replace(found, evidence=evidence, step=step)
    sentence = f"{sentence}; nothing is counted; it is checked again {_when(task.due_at, facts)}."
    return Diagnosis("start_waits", sentence, evidence, STATS, step)


_OVER = (ProcessState.PROCESSED, ProcessState.SKIPPED)


def _of_step(task: Task, waits: Sequence[StepWait], facts: TaskFacts) -> Diagnosis:
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
        *_about(task, facts),
    )
    if first.overdue_since is None:
        return Diagnosis(first.case, f"{sentence}.", evidence, first.next, first.step, first.agent)
    found = _late(task, first.case, sentence, first.overdue_since, facts)
    return replace(found, evidence=evidence, step=first.step, agent=first.agent)


def _late(
    task: Task, case: StepCase | TaskCase, sentence: str, since: int, facts: TaskFacts
) -> Diagnosis:
    """Diagnose a task that is overdue since `since`: a supervisor handles it, or is itself late."""
    by = since + facts.late
    if facts.at <= by and facts.supervised():
        then = f"a supervisor handles it in its next pass, by {second(by)}"
        return Diagnosis(case, f"{sentence}; {then}.", tuple(_about(task, facts)))
    if facts.supervised():
        then = "a supervisor pass since then has not handled it"
    else:
        then = "no supervisor has handled it: none is running"
    return Diagnosis(case, f"{sentence}; {then}.", tuple(_about(task, facts)), "roundsman doctor")


def _about(task: Task, facts: TaskFacts) -> Iterator[str]:
    """The evidence that is given for every open task."""
    if task.ending is not None:
        yield f"no further steps start: {task.ending.why}"
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


def _ago(instant: int, facts: TaskFacts) -> str:
    return f"{format_duration(max(0, facts.at - instant))} ago"


def _passed(instant: int, facts: TaskFacts) -> str:
    if instant > facts.at:
        return f"in {format_duration(instant - facts.at)}"
    return _ago(instant, facts)


def _when(instant: int, facts: TaskFacts) -> str:
    """Return `at 08:10:00Z, in 10 min` for a future instant, `by ..., 3 min ago` for a past one."""
    by = "at" if instant > facts.at else "by"
    return f"{by} {second(instant)}, {_passed(instant, facts)}"
