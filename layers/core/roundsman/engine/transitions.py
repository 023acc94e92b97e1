"""The transition tables: the only place where a state follows from a state and an event.

A task is a set of steps, and each step moves through the states of the pattern on its own. For each
state and each event of a step, STEPS has the next state, or the reason why nothing changes. The
state of the task is derived from its steps after each decision (`live_state`), and TASKS lists the
states that each event may lead to. A pair that is missing, or a derived state that TASKS does not
list, is a defect and raises NoTransition. So an event that comes twice or too late is an entry with
a reason here, and not an `if` elsewhere. ERASED_TASKS replaces TASKS for a task whose contents were
erased. The diagrams in the documentation are drawn from these tables.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from roundsman.errors import NoTransition
from roundsman.model.states import ProcessState as P
from roundsman.model.states import TaskState as T


class StepEvent(StrEnum):
    """The events that can happen to a step."""

    CLAIMED = "claimed"
    HELD = "held: its agent takes no work"
    CONDITION_FALSE = "condition false"
    CONDITION_FAILED = "condition failed"
    NO_ITEMS = "no items"
    LEFT_OUT = "left out"
    UNCLAIMED = "not started in time"
    RETRY_DUE = "next attempt due"
    PROGRESSED = "progress shown"
    WAITS_FOR_CALLBACK = "waits for a callback"
    REMINDER_DUE = "reminder due"
    SUCCEEDED = "succeeded"
    FAILED = "failed, attempts left"
    OVERDUE = "overdue, attempts left"
    UNREAD = "overdue, never read"
    WAITS_ON = "attempts exhausted, waits"
    EXHAUSTED = "attempts exhausted"
    REFUSED = "failed for good"
    UNDO_BEGUN = "undo begun"
    SETTLING = "undo begun, to go on at another agent"
    BEGINS_ANEW = "undone, goes on at another agent"
    UNDONE_HERE = "undone at one agent of several"
    EXTENDED = "given more time"
    RESUBMITTED = "resubmitted"
    BEGUN_ANEW = "begun anew"
    RESOLVED_DONE = "resolved: it happened"
    RESOLVED_NOT_DONE = "resolved: it did not happen"
    OUT_OF_TIME = "overdue, a person has given more time"
    RESTORED = "restored from a backup"
    HAPPENED = "succeeded after all"
    WAIT_ENDED = "its wait for a callback was ended"
    STALE = "late or repeated reply"


@dataclass(frozen=True, slots=True)
class Move:
    """The step changes to this state."""

    to: P


@dataclass(frozen=True, slots=True)
class Stay:
    """Nothing changes, for this reason."""

    why: str


STEPS: Mapping[tuple[P, StepEvent], Move | Stay] = {
    (P.PENDING, StepEvent.CLAIMED): Move(P.PROCESSING),
    (P.PENDING, StepEvent.HELD): Move(P.PENDING),
    (P.PENDING, StepEvent.CONDITION_FALSE): Move(P.SKIPPED),
    (P.PENDING, StepEvent.CONDITION_FAILED): Move(P.ERROR),
    (P.PENDING, StepEvent.NO_ITEMS): Move(P.SKIPPED),
    (P.PENDING, StepEvent.UNCLAIMED): Move(P.PENDING),
    (P.PENDING, StepEvent.RETRY_DUE): Move(P.PENDING),
    # An earlier attempt succeeded: the same effect under the same key.
    (P.PENDING, StepEvent.SUCCEEDED): Move(P.PROCESSED),
    # An earlier attempt's result is too large (its effect stands), or its callback failed.
    (P.PENDING, StepEvent.REFUSED): Move(P.ERROR),
    (P.PENDING, StepEvent.STALE): Stay("no attempt is under way"),
    (P.PROCESSING, StepEvent.PROGRESSED): Move(P.PROCESSING),
    (P.PROCESSING, StepEvent.WAITS_FOR_CALLBACK): Move(P.PROCESSING),
    (P.PROCESSING, StepEvent.REMINDER_DUE): Move(P.PROCESSING),
    (P.PROCESSING, StepEvent.HELD): Move(P.PENDING),
    (P.PROCESSING, StepEvent.SUCCEEDED): Move(P.PROCESSED),
    (P.PROCESSING, StepEvent.FAILED): Move(P.PENDING),
    (P.PROCESSING, StepEvent.OVERDUE): Move(P.PENDING),
    (P.PROCESSING, StepEvent.UNREAD): Move(P.PENDING),
    (P.PROCESSING, StepEvent.OUT_OF_TIME): Move(P.PENDING),
    (P.PROCESSING, StepEvent.WAITS_ON): Move(P.PENDING),
    (P.PROCESSING, StepEvent.EXHAUSTED): Move(P.ERROR),
    (P.PROCESSING, StepEvent.REFUSED): Move(P.ERROR),
    # The task is ending, and nothing has to wait for the answer.
    (P.PROCESSING, StepEvent.WAIT_ENDED): Move(P.ERROR),
    (P.PROCESSING, StepEvent.STALE): Stay("a later attempt is under way"),
    (P.PROCESSED, StepEvent.STALE): Stay("the step is done already"),
    # A copy of a failed request has succeeded: the step stays failed, and its effect stands.
    (P.ERROR, StepEvent.HAPPENED): Move(P.ERROR),
    # The answer to a wait that was ended: a resubmitted task does not ask again.
    (P.ERROR, StepEvent.SUCCEEDED): Move(P.PROCESSED),
    (P.ERROR, StepEvent.STALE): Stay("the step has failed already"),
    (P.SKIPPED, StepEvent.STALE): Stay("the step was skipped"),
    # Undo: of every step that was ever claimed, with attempts like those of a perform.
    (P.PENDING, StepEvent.UNDO_BEGUN): Move(P.UNDOING),
    (P.PROCESSED, StepEvent.UNDO_BEGUN): Move(P.UNDOING),
    (P.ERROR, StepEvent.UNDO_BEGUN): Move(P.UNDOING),
    (P.UNDOING, StepEvent.CLAIMED): Move(P.UNDOING),
    (P.UNDOING, StepEvent.HELD): Move(P.UNDOING),
    (P.UNDOING, StepEvent.UNCLAIMED): Move(P.UNDOING),
    (P.UNDOING, StepEvent.RETRY_DUE): Move(P.UNDOING),
    (P.UNDOING, StepEvent.SUCCEEDED): Move(P.UNDONE),
    (P.UNDOING, StepEvent.FAILED): Move(P.UNDOING),
    (P.UNDOING, StepEvent.OVERDUE): Move(P.UNDOING),
    (P.UNDOING, StepEvent.UNREAD): Move(P.UNDOING),
    (P.UNDOING, StepEvent.OUT_OF_TIME): Move(P.UNDOING),
    (P.UNDOING, StepEvent.EXHAUSTED): Move(P.UNDO_ERROR),
    (P.UNDOING, StepEvent.REFUSED): Move(P.UNDO_ERROR),
    (P.UNDOING, StepEvent.STALE): Stay("the step is being undone"),
    (P.UNDONE, StepEvent.STALE): Stay("the step is undone"),
    (P.UNDO_ERROR, StepEvent.STALE): Stay("the step's undo has failed already"),
    # Several agents: a step is finished at one before another may act, and undone at each.
    (P.PROCESSING, StepEvent.SETTLING): Move(P.UNDOING),
    (P.UNDOING, StepEvent.BEGINS_ANEW): Move(P.PENDING),
    (P.UNDO_ERROR, StepEvent.BEGINS_ANEW): Move(P.PENDING),
    (P.UNDOING, StepEvent.UNDONE_HERE): Move(P.UNDOING),
    (P.UNDO_ERROR, StepEvent.UNDONE_HERE): Move(P.UNDOING),
    # A tolerated item of a fan-out: its effect is undone, or there is no undo to make.
    (P.ERROR, StepEvent.LEFT_OUT): Move(P.SKIPPED),
    (P.UNDONE, StepEvent.LEFT_OUT): Move(P.SKIPPED),
    # Commands of operators.
    (P.ERROR, StepEvent.RESUBMITTED): Move(P.PENDING),
    (P.UNDO_ERROR, StepEvent.RESUBMITTED): Move(P.UNDOING),
    (P.PROCESSING, StepEvent.EXTENDED): Move(P.PROCESSING),
    (P.UNDOING, StepEvent.EXTENDED): Move(P.UNDOING),
    (P.PROCESSING, StepEvent.RESTORED): Move(P.PENDING),
    (P.UNDOING, StepEvent.RESTORED): Move(P.UNDOING),
    (P.PENDING, StepEvent.RESOLVED_DONE): Move(P.PROCESSED),
    (P.PROCESSING, StepEvent.RESOLVED_DONE): Move(P.PROCESSED),
    (P.ERROR, StepEvent.RESOLVED_DONE): Move(P.PROCESSED),
    (P.UNDOING, StepEvent.RESOLVED_DONE): Move(P.UNDONE),
    (P.UNDO_ERROR, StepEvent.RESOLVED_DONE): Move(P.UNDONE),
    (P.PENDING, StepEvent.RESOLVED_NOT_DONE): Move(P.PENDING),
    (P.PROCESSING, StepEvent.RESOLVED_NOT_DONE): Move(P.PENDING),
    (P.ERROR, StepEvent.RESOLVED_NOT_DONE): Move(P.PENDING),
    (P.PENDING, StepEvent.BEGUN_ANEW): Move(P.PENDING),
    (P.PROCESSED, StepEvent.BEGUN_ANEW): Move(P.PENDING),
    (P.SKIPPED, StepEvent.BEGUN_ANEW): Move(P.PENDING),
    (P.ERROR, StepEvent.BEGUN_ANEW): Move(P.PENDING),
    (P.UNDONE, StepEvent.BEGUN_ANEW): Move(P.PENDING),
}


class TaskEvent(StrEnum):
    """The events that can happen to a task, by their class names in `roundsman.model.events`."""

    START = "Start"
    REPLIED = "Replied"
    INSPECT = "Inspect"
    RESUBMIT = "Resubmit"
    UNDO_ASKED = "UndoAsked"
    CANCEL = "Cancel"
    RESOLVE = "Resolve"
    EXTEND = "Extend"
    RUN_NOW = "RunNow"
    RECONCILE = "Reconcile"
    ERASE = "Erase"


@dataclass(frozen=True, slots=True)
class MayBecome:
    """The event is accepted; the task keeps its state or changes to one of these."""

    states: frozenset[T]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The command is not possible in this state; `why` is the sentence for the operator."""

    why: str


def _to(*states: T) -> MayBecome:
    return MayBecome(frozenset(states))


_ENDS = (T.COMPLETED, T.ARCHIVED)
_UNDO_ENDS = (T.UNDONE, T.ARCHIVED, T.CANCELLED)

_OVER: Mapping[T, str] = {
    T.COMPLETED: "the task is completed",
    T.UNDONE: "the task is undone",
    T.ARCHIVED: "the task is archived and waits for a person",
    T.CANCELLED: "the task is cancelled",
}

TASKS: Mapping[tuple[T, TaskEvent], MayBecome | Stay | Refusal] = {
    (T.SCHEDULED, TaskEvent.START): _to(T.ACTIVE, T.RETRY, *_ENDS, T.UNDONE),
    (T.SCHEDULED, TaskEvent.REPLIED): Stay("the task has not started"),
    (T.SCHEDULED, TaskEvent.INSPECT): _to(T.PENDING, T.ARCHIVED, T.UNDONE),
    # Retry without a failure: the step is parked, because its agent is on hold.
    (T.PENDING, TaskEvent.START): _to(T.ACTIVE, T.RETRY, *_ENDS, T.UNDOING, T.UNDONE),
    (T.PENDING, TaskEvent.REPLIED): _to(
        T.ACTIVE, T.RETRY, *_ENDS, T.UNDOING, T.UNDONE, T.CANCELLED
    ),
    (T.PENDING, TaskEvent.INSPECT): _to(T.ARCHIVED, T.UNDOING, T.UNDONE),
    (T.ACTIVE, TaskEvent.START): _to(T.ARCHIVED, T.UNDOING, T.CANCELLED),
    (T.ACTIVE, TaskEvent.REPLIED): _to(T.RETRY, *_ENDS, T.UNDOING, T.UNDONE, T.CANCELLED),
    # Completed without a reply: the last item of a fan-out was overdue and is left out.
    (T.ACTIVE, TaskEvent.INSPECT): _to(
        T.PENDING, T.RETRY, *_ENDS, T.UNDOING, T.UNDONE, T.CANCELLED
    ),
    (T.RETRY, TaskEvent.START): _to(T.ACTIVE, T.ARCHIVED, T.UNDOING, T.UNDONE),
    (T.RETRY, TaskEvent.REPLIED): _to(T.ACTIVE, *_ENDS, T.UNDOING, T.UNDONE, T.CANCELLED),
    (T.RETRY, TaskEvent.INSPECT): _to(T.PENDING, T.ARCHIVED, T.UNDOING, T.UNDONE),
    # Archived: nothing is undone without the plan. Active: another branch still performs.
    (T.UNDOING, TaskEvent.START): _to(T.ACTIVE, T.ARCHIVED),
    (T.UNDOING, TaskEvent.REPLIED): _to(T.ACTIVE, *_UNDO_ENDS),
    (T.UNDOING, TaskEvent.INSPECT): _to(T.ACTIVE, T.ARCHIVED),
    **{
        (state, event): Stay(why)
        for state, why in _OVER.items()
        for event in (TaskEvent.START, TaskEvent.INSPECT)
    },
    (T.COMPLETED, TaskEvent.REPLIED): Stay(_OVER[T.COMPLETED]),
    # A late success of a failed step is recorded for its repair; the state stays.
    **{(state, TaskEvent.REPLIED): _to() for state in (T.ARCHIVED, T.UNDONE, T.CANCELLED)},
    # Commands of operators.
    **{
        (state, TaskEvent.RESUBMIT): Refusal(
            "only a task that ended with a failure can be resubmitted"
        )
        for state in (T.SCHEDULED, T.PENDING, T.ACTIVE, T.RETRY, T.UNDOING, T.COMPLETED)
    },
    # Cancelled: the plan was missing when it was cancelled, and nothing is left to undo.
    (T.ARCHIVED, TaskEvent.RESUBMIT): _to(
        T.PENDING, T.RETRY, T.COMPLETED, T.UNDOING, T.UNDONE, T.CANCELLED
    ),
    (T.UNDONE, TaskEvent.RESUBMIT): _to(T.PENDING),
    (T.CANCELLED, TaskEvent.RESUBMIT): _to(T.PENDING),
    (T.SCHEDULED, TaskEvent.UNDO_ASKED): Refusal("the task has not started: cancel it instead"),
    (T.PENDING, TaskEvent.UNDO_ASKED): _to(T.UNDOING, T.UNDONE),
    (T.ACTIVE, TaskEvent.UNDO_ASKED): _to(T.UNDOING, T.UNDONE),
    (T.RETRY, TaskEvent.UNDO_ASKED): _to(T.UNDOING, T.UNDONE),
    (T.UNDOING, TaskEvent.UNDO_ASKED): Refusal("the task is already being undone"),
    (T.COMPLETED, TaskEvent.UNDO_ASKED): Refusal("the task is completed and cannot be undone"),
    (T.UNDONE, TaskEvent.UNDO_ASKED): Refusal("the task is already undone"),
    (T.ARCHIVED, TaskEvent.UNDO_ASKED): _to(T.UNDOING, T.UNDONE),
    (T.CANCELLED, TaskEvent.UNDO_ASKED): _to(T.UNDOING, T.UNDONE),
    (T.SCHEDULED, TaskEvent.CANCEL): _to(T.CANCELLED),
    (T.PENDING, TaskEvent.CANCEL): _to(T.UNDOING, T.CANCELLED),
    (T.ACTIVE, TaskEvent.CANCEL): _to(T.UNDOING, T.CANCELLED),
    (T.RETRY, TaskEvent.CANCEL): _to(T.PENDING, T.UNDOING, T.CANCELLED),
    (T.UNDOING, TaskEvent.CANCEL): Refusal(
        "the task is being undone: an undo that has begun is finished"
    ),
    (T.COMPLETED, TaskEvent.CANCEL): Refusal("the task is completed"),
    (T.UNDONE, TaskEvent.CANCEL): Refusal("the task is already undone"),
    # Pending or Retry: the plan was missing during an undo after which its step goes on.
    (T.ARCHIVED, TaskEvent.CANCEL): _to(T.PENDING, T.RETRY, T.UNDOING, T.CANCELLED),
    (T.CANCELLED, TaskEvent.CANCEL): Refusal("the task is already cancelled"),
    (T.SCHEDULED, TaskEvent.RESOLVE): Refusal("the task has not started: no step has an outcome"),
    (T.PENDING, TaskEvent.RESOLVE): _to(*_ENDS, T.CANCELLED),
    (T.ACTIVE, TaskEvent.RESOLVE): _to(
        T.PENDING, T.RETRY, T.COMPLETED, T.UNDOING, T.UNDONE, T.ARCHIVED, T.CANCELLED
    ),
    (T.RETRY, TaskEvent.RESOLVE): _to(T.PENDING, *_ENDS, T.CANCELLED),
    (T.UNDOING, TaskEvent.RESOLVE): _to(T.ACTIVE, *_UNDO_ENDS),
    (T.ARCHIVED, TaskEvent.RESOLVE): _to(
        T.PENDING, T.RETRY, T.COMPLETED, T.UNDOING, T.UNDONE, T.CANCELLED
    ),
    (T.COMPLETED, TaskEvent.RESOLVE): Refusal("the task is completed: every outcome is known"),
    (T.UNDONE, TaskEvent.RESOLVE): Refusal("the task is undone: every outcome is known"),
    (T.CANCELLED, TaskEvent.RESOLVE): Refusal("the task is cancelled"),
    (T.SCHEDULED, TaskEvent.EXTEND): _to(T.PENDING),
    (T.PENDING, TaskEvent.EXTEND): _to(),
    (T.ACTIVE, TaskEvent.EXTEND): _to(),
    (T.RETRY, TaskEvent.EXTEND): _to(T.PENDING),
    (T.UNDOING, TaskEvent.EXTEND): _to(),
    **{(state, TaskEvent.EXTEND): Refusal(why) for state, why in _OVER.items()},
    (T.SCHEDULED, TaskEvent.RUN_NOW): _to(T.PENDING),
    (T.RETRY, TaskEvent.RUN_NOW): _to(T.PENDING),
    **{
        (state, TaskEvent.RUN_NOW): Refusal(
            "the task does not wait for its start or for a next attempt"
        )
        for state in T
        if state not in (T.SCHEDULED, T.RETRY)
    },
    (T.SCHEDULED, TaskEvent.RECONCILE): _to(T.PENDING),
    (T.PENDING, TaskEvent.RECONCILE): _to(),
    (T.ACTIVE, TaskEvent.RECONCILE): _to(T.PENDING, T.RETRY),
    (T.RETRY, TaskEvent.RECONCILE): _to(T.PENDING),
    (T.UNDOING, TaskEvent.RECONCILE): _to(),
    **{(state, TaskEvent.RECONCILE): Refusal(why) for state, why in _OVER.items()},
    **{
        (state, TaskEvent.ERASE): Refusal(
            "the task has not ended and needs its contents: cancel it, or wait for its end"
        )
        for state in (T.SCHEDULED, T.PENDING, T.ACTIVE, T.RETRY, T.UNDOING)
    },
    (T.ARCHIVED, TaskEvent.ERASE): Refusal(
        "the task is archived, and its repair needs its contents: resubmit, resolve or undo it "
        "first, or cancel it"
    ),
    **{(state, TaskEvent.ERASE): _to() for state in (T.COMPLETED, T.UNDONE, T.CANCELLED)},
}

_ERASED = "the contents of the order were erased"
ERASED_TASKS: Mapping[TaskEvent, MayBecome | Stay | Refusal] = {
    **{event: Stay(_ERASED) for event in (TaskEvent.START, TaskEvent.REPLIED, TaskEvent.INSPECT)},
    **{
        event: Refusal(f"{_ERASED}, so the task cannot be changed any more")
        for event in TaskEvent
        if event not in (TaskEvent.START, TaskEvent.REPLIED, TaskEvent.INSPECT, TaskEvent.ERASE)
    },
    TaskEvent.ERASE: _to(),
}
"""The entries for a task whose contents were erased, whatever its state: it stays as it is."""


def step_transition(state: P, event: StepEvent) -> Move | Stay:
    """The table's entry for the event. Raises NoTransition if there is none."""
    found = STEPS.get((state, event))
    if found is None:
        raise NoTransition(f"the table has no entry for a step that is {state} and {event.value!r}")
    return found


def task_transition(
    state: T, event: TaskEvent, *, erased: bool = False
) -> MayBecome | Stay | Refusal:
    """The table's entry for the event. Raises NoTransition if there is none.

    `erased`: the contents of the task's order were erased.
    """
    found = ERASED_TASKS.get(event) if erased else TASKS.get((state, event))
    if found is None:
        raise NoTransition(f"the table has no entry for a task that is {state} and {event.value}")
    return found


def check_task_move(before: T, event: TaskEvent, after: T) -> None:
    """Raise NoTransition if the table does not allow the event to lead from before to after."""
    found = task_transition(before, event)
    allowed = found.states if isinstance(found, MayBecome) else frozenset[T]()
    if after is not before and after not in allowed:
        raise NoTransition(f"{event.value} cannot change a task from {before} to {after}")


def live_state(steps: Iterable[tuple[P, int | None]], now: int) -> T:
    """The state of a started task that has not ended.

    `steps` are the state and the `not_before` (epoch ms) of each step.
    """
    found = list(steps)
    states = {state for state, _ in found}
    if P.UNDOING in states:
        return T.UNDOING
    if P.PROCESSING in states:
        return T.ACTIVE
    waits = (at for state, at in found if state is P.PENDING and at is not None)
    return T.RETRY if any(at > now for at in waits) else T.PENDING
