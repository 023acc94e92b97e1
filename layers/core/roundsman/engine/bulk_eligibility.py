"""Assessing one order of a bulk run: whether it is eligible for the command, and its result. Pure.

Eligibility is the engine's own decision on the task's current record. The scheduler decides again
when it handles the command.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from roundsman.definition.plan import Plan
from roundsman.engine.compensation import expired_key
from roundsman.engine.eligibility import REFUSED_ROW, decided
from roundsman.engine.routing import agent_now
from roundsman.engine.signal_readers import lost_by
from roundsman.errors import Refused
from roundsman.model.bulk_run import InFlightOrder, OrderResult, PlannedOrder, Run
from roundsman.model.events import (
    COMMAND_KINDS,
    Cancel,
    Extend,
    HistoryRow,
    Move,
    OperatorEvent,
    Resolve,
    Resubmit,
    RunNow,
    UndoAsked,
)
from roundsman.model.failure import failure_of
from roundsman.model.holds import Hold, hold_words, on_orders
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman.model.task import PERFORM, UNDO, Operation, StepRecord, Task

WOULD_WAIT = ", and the orders would wait for it"
"""Follows the sentence of a hold because of which nothing, or nothing more, is sent."""

CHANGED = "its task has changed since the run was planned"
"""Of a task with a version of its own in the plan."""

GONE = "its task has ended, and its retention too"
NOT_BY_THIS_RUN = f"{GONE}: this run's command was not carried out, so others decided how it ended"
"""Of an order that got the command, or may have got it, and whose history has no trace of it."""
AGAIN = "it failed again after the run began"
KNOWN_BY_ITSELF = (
    "a step can be marked as done for one order at a time only: each has its own result"
)

FOR_ANY_VERSION = (Cancel, UndoAsked, Extend, RunNow, Move)
"""The commands that the scheduler decides afresh, on the task as it then is."""

ENDS_AS: Mapping[type[OperatorEvent], OrderResult] = {
    Cancel: OrderResult.CANCELLED,
    UndoAsked: OrderResult.UNDONE,
    Extend: OrderResult.TAKEN,
    Move: OrderResult.TAKEN,
}
"""The result of a task that got this command and was not Archived after it."""


@dataclass(frozen=True, slots=True)
class Eligible:
    """The engine accepts the command for the task."""

    to_undo: bool = False
    """The command makes the task end in undo."""
    agents: tuple[tuple[str, ...], ...] = ()
    """The agents of the next requests: for each step, every agent that may perform it."""
    workflow: str = ""
    task_id: str = ""
    operations: frozenset[Operation] = frozenset()
    """The operations of the next requests."""
    lost_signals: tuple[str, ...] = ()
    """The names of the unread signals that no step can read after the command."""


@dataclass(frozen=True, slots=True)
class NotFor:
    """The command must not be sent to the task, for the reason `why`."""

    why: str


def event_for(run: Run, planned: PlannedOrder, task: Task) -> OperatorEvent:
    """Return the event of the run's command for one task.

    A command for one version is refused if the task has changed when it is delivered, up to 20 s
    later. A task under way changes every few seconds, so the commands that mean the task in
    whatever state it is by then are for any version.
    """
    any_version = planned.version is None and isinstance(run.event, FOR_ANY_VERSION)
    event = run.event_for(None if any_version else task.version)
    if planned.changes is not None and isinstance(event, Resubmit):
        event = replace(event, changes=planned.changes)
    return event


def judged(
    run: Run,
    planned: PlannedOrder,
    plan: Plan | None,
    task: Task | None,
    at: int,
    next_plan: Plan | None = None,
    *,
    order: Json = None,
) -> Eligible | NotFor:
    """Return whether the task is eligible for the run's command at `at` (epoch ms).

    `next_plan` is the plan that the command names, if it names one. `order` is the content of the
    order row, if the command corrects inputs.
    """
    if task is None:
        return NotFor(GONE)
    event = event_for(run, planned, task)
    unfit = _unfit(run, planned, task, event)
    if unfit is not None:
        return NotFor(unfit)
    try:
        after = decided(plan, task, event, at, next_plan, order=order)
    except Refused as refused:
        return NotFor(str(refused))
    to_undo = after.ending is not None and after.ending.undo
    if to_undo and plan is not None:
        expired = expired_key(plan.for_task(after), after.steps, at)
        if expired is not None:
            return NotFor(expired)
    if after.plan != task.plan and next_plan is not None:
        plan = next_plan.for_task(after)
    following = {
        name: record
        for name, record in after.steps.items()
        if record.may_begin(ending=not after.performs(name))
    }
    agents = () if plan is None else _agents_of(plan, following)
    operations = frozenset(record.operation for record in following.values())
    lost = tuple(dict.fromkeys(one.name for one in lost_by(task, after)))
    return Eligible(to_undo, agents, task.workflow, task.task_id, operations, lost)


def _unfit(run: Run, planned: PlannedOrder, task: Task, event: OperatorEvent) -> str | None:
    """Return why a bulk run must not send the command, although the engine may accept it."""
    if _failed_since(task, run.started_at):
        return AGAIN
    if planned.refused is not None:
        return planned.refused
    if planned.version is not None and planned.version != task.version:
        return CHANGED
    if isinstance(event, Resolve) and event.did and _performs(task, event.step):
        return KNOWN_BY_ITSELF
    return None


def _failed_since(task: Task, started_at: int) -> bool:
    failed = task.state in (TaskState.ARCHIVED, TaskState.UNDONE)
    return failed and task.ended_at is not None and task.ended_at > started_at


def _performs(task: Task, step: str) -> bool:
    return task.step(step).operation != UNDO


def _agents_of(plan: Plan, steps: Mapping[str, StepRecord]) -> tuple[tuple[str, ...], ...]:
    """For each of the steps: the agent that it is at, or all that may perform it."""
    found = []
    for name, record in steps.items():
        step = plan.steps.get(name)
        if step is not None:
            at_one = record.started_at is not None
            found.append((agent_now(step, record),) if at_one else step.agents)
    return tuple(dict.fromkeys(found))


def held_for(eligible: Eligible, holds: Sequence[Hold]) -> Hold | None:
    """Return a hold because of which a step would be parked: on its order, or on all its agents."""
    for hold in on_orders(holds):
        waits = PERFORM in eligible.operations or (hold.undos and UNDO in eligible.operations)
        if waits and hold.holds_order(eligible.workflow, eligible.task_id):
            return hold
    by_agent = {hold.agent: hold for hold in holds}
    for agents in eligible.agents:
        if all(agent in by_agent for agent in agents):
            return by_agent[agents[0]]
    return None


def hold_sentence(hold: Hold) -> str:
    """Return the hold in words: `payment is held by amy: maintenance`."""
    return f"{hold.target} {hold_words(hold)}"


def was_taken(run: Run, task: Task, history: Sequence[HistoryRow] = ()) -> bool:
    """Whether the scheduler carried out the run's command on the task."""
    if run.id in task.command_ids:
        return True
    kind = COMMAND_KINDS[type(run.event)]
    return any(row.command_id == run.id and row.kind == kind for row in history)


def refusals(run: Run, history: Sequence[HistoryRow], *, since: int = 0) -> list[str]:
    """Return the reasons with which the scheduler refused the run's command since an instant.

    `since` is epoch ms. There is one reason for each refusal.
    """
    return [
        row.reason.partition(" refused: ")[2] or row.reason
        for row in history
        if row.command_id == run.id and row.kind == REFUSED_ROW and row.at >= since
    ]


def result_of(run: Run, sent: InFlightOrder, task: Task) -> OrderResult | None:
    """Return the result of a task after the command; None while the task is under way."""
    if isinstance(run.event, Extend | Move):
        return OrderResult.TAKEN
    match task.state:
        case TaskState.COMPLETED:
            return OrderResult.COMPLETED
        case TaskState.CANCELLED:
            return OrderResult.CANCELLED
        case TaskState.UNDONE:
            return OrderResult.UNDONE if _to_undo(run, sent) else OrderResult.FAILED
        case TaskState.ARCHIVED:
            return OrderResult.FAILED
        case _:
            return None


def result_of_gone(
    run: Run, sent: InFlightOrder, history: Sequence[HistoryRow]
) -> OrderResult | None:
    """Return the result of a task whose retention is over; None if it ended without the command.

    The task was not Archived, because an Archived task never expires. Its history is kept longer
    than the task. It shows whether the scheduler carried out the command, and what followed. A
    command that was refused has no result: somebody else has repaired the order.
    """
    kind = COMMAND_KINDS[type(run.event)]
    taken = [row.seq for row in history if row.command_id == run.id and row.kind == kind]
    if not taken:
        return None
    certain = ENDS_AS.get(type(run.event))
    if certain is not None:
        return certain
    after = {row.kind for row in history if row.seq > max(taken)}
    if COMMAND_KINDS[Resubmit] in after:
        return OrderResult.FAILED  # only a task that has failed again is resubmitted by others
    if COMMAND_KINDS[Cancel] in after:
        return OrderResult.CANCELLED
    if "undone" not in after:
        return OrderResult.COMPLETED
    return OrderResult.UNDONE if _to_undo(run, sent) else OrderResult.FAILED


def _to_undo(run: Run, sent: InFlightOrder) -> bool:
    return sent.to_undo or isinstance(run.event, UndoAsked | Cancel)


def failure_words(task: Task) -> tuple[str, str]:
    """Return the id of the task's failure group, or `none`, and the failure in words."""
    failure = failure_of(task)
    if failure is None:
        return "none", task.ending.why if task.ending else "it failed"
    parts = (failure.step, failure.error_type, failure.message)
    return failure.group, ": ".join(part for part in parts if part)
