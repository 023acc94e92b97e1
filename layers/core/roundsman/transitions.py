"""The transition tables: the only place where a state follows from a state and an event.

Theory of operation. A task is a set of steps, and each step moves on its own through the
pattern's states. STEPS says how: for each state and each thing that can happen to a step, either
the state that follows or that nothing changes, and why. The task's own state is not moved but
derived from its steps after each decision (`live_state`), and TASKS says which states each event
may lead to. Both are looked up; a pair that is missing, or a derived state that TASKS does not
list, is a defect and raises NoTransition. So an event that comes twice or too late is here as a
no-op with a reason, never an `if` elsewhere. The diagrams in the documentation are drawn from
these tables.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from roundsman.errors import NoTransition
from roundsman.states import ProcessState as P
from roundsman.states import TaskState as T


class StepEvent(StrEnum):
    """What can happen to one step."""

    CLAIMED = "claimed"
    CONDITION_FALSE = "condition false"
    CONDITION_FAILED = "condition failed"
    UNCLAIMED = "not started in time"
    RETRY_DUE = "next attempt due"
    SUCCEEDED = "succeeded"
    FAILED = "failed, attempts left"
    OVERDUE = "overdue, attempts left"
    UNREAD = "overdue, never read"
    WAITS_ON = "attempts exhausted, waits"
    EXHAUSTED = "attempts exhausted"
    REFUSED = "failed for good"
    STALE = "late or repeated reply"


@dataclass(frozen=True, slots=True)
class Move:
    """The step goes to this state."""

    to: P


@dataclass(frozen=True, slots=True)
class Stay:
    """Nothing changes, for this reason."""

    why: str


STEPS: Mapping[tuple[P, StepEvent], Move | Stay] = {
    (P.PENDING, StepEvent.CLAIMED): Move(P.PROCESSING),
    (P.PENDING, StepEvent.CONDITION_FALSE): Move(P.SKIPPED),
    (P.PENDING, StepEvent.CONDITION_FAILED): Move(P.ERROR),
    (P.PENDING, StepEvent.UNCLAIMED): Move(P.PENDING),
    (P.PENDING, StepEvent.RETRY_DUE): Move(P.PENDING),
    # A success of an earlier attempt is the same effect under the same key.
    (P.PENDING, StepEvent.SUCCEEDED): Move(P.PROCESSED),
    # Its answer was refused (too large): the effect stands, the step does not.
    (P.PENDING, StepEvent.REFUSED): Move(P.ERROR),
    (P.PENDING, StepEvent.STALE): Stay("no attempt is under way"),
    (P.PROCESSING, StepEvent.SUCCEEDED): Move(P.PROCESSED),
    (P.PROCESSING, StepEvent.FAILED): Move(P.PENDING),
    (P.PROCESSING, StepEvent.OVERDUE): Move(P.PENDING),
    (P.PROCESSING, StepEvent.UNREAD): Move(P.PENDING),
    (P.PROCESSING, StepEvent.WAITS_ON): Move(P.PENDING),
    (P.PROCESSING, StepEvent.EXHAUSTED): Move(P.ERROR),
    (P.PROCESSING, StepEvent.REFUSED): Move(P.ERROR),
    (P.PROCESSING, StepEvent.STALE): Stay("a later attempt is under way"),
    (P.PROCESSED, StepEvent.STALE): Stay("the step is done already"),
    (P.ERROR, StepEvent.STALE): Stay("the step has failed already"),
    (P.SKIPPED, StepEvent.STALE): Stay("the step was skipped"),
}


class TaskEvent(StrEnum):
    """What can happen to a task; the names of the classes in `roundsman.events`."""

    START = "Start"
    REPLIED = "Replied"
    INSPECT = "Inspect"


@dataclass(frozen=True, slots=True)
class MayBecome:
    """The event is taken, and the task stays as it is or ends up in one of these states."""

    states: frozenset[T]


def _to(*states: T) -> MayBecome:
    return MayBecome(frozenset(states))


TASKS: Mapping[tuple[T, TaskEvent], MayBecome | Stay] = {
    (T.SCHEDULED, TaskEvent.START): _to(T.ACTIVE, T.COMPLETED, T.ARCHIVED),
    (T.SCHEDULED, TaskEvent.REPLIED): Stay("the task has not started"),
    (T.SCHEDULED, TaskEvent.INSPECT): _to(T.PENDING, T.ARCHIVED),
    (T.PENDING, TaskEvent.START): _to(T.ACTIVE, T.COMPLETED, T.ARCHIVED),
    (T.PENDING, TaskEvent.REPLIED): _to(T.ACTIVE, T.COMPLETED, T.ARCHIVED),
    (T.PENDING, TaskEvent.INSPECT): _to(T.ARCHIVED),
    (T.ACTIVE, TaskEvent.START): _to(T.ARCHIVED),
    (T.ACTIVE, TaskEvent.REPLIED): _to(T.RETRY, T.COMPLETED, T.ARCHIVED),
    (T.ACTIVE, TaskEvent.INSPECT): _to(T.PENDING, T.RETRY, T.ARCHIVED),
    (T.RETRY, TaskEvent.START): _to(T.ACTIVE, T.ARCHIVED),
    (T.RETRY, TaskEvent.REPLIED): _to(T.ACTIVE, T.COMPLETED, T.ARCHIVED),
    (T.RETRY, TaskEvent.INSPECT): _to(T.PENDING, T.ARCHIVED),
    (T.COMPLETED, TaskEvent.START): Stay("the task is completed"),
    (T.COMPLETED, TaskEvent.REPLIED): Stay("the task is completed"),
    (T.COMPLETED, TaskEvent.INSPECT): Stay("the task is completed"),
    (T.ARCHIVED, TaskEvent.START): Stay("the task is archived and waits for a person"),
    (T.ARCHIVED, TaskEvent.REPLIED): Stay("the task is archived and waits for a person"),
    (T.ARCHIVED, TaskEvent.INSPECT): Stay("the task is archived and waits for a person"),
}


def step_transition(state: P, event: StepEvent) -> Move | Stay:
    """What an event does to a step. Raises NoTransition for a pair that cannot be."""
    found = STEPS.get((state, event))
    if found is None:
        raise NoTransition(f"a step that is {state} cannot have {event.value!r} happen to it")
    return found


def task_transition(state: T, event: TaskEvent) -> MayBecome | Stay:
    """What an event may do to a task. Raises NoTransition for a pair that cannot be."""
    found = TASKS.get((state, event))
    if found is None:
        raise NoTransition(f"a task that is {state} cannot have {event.value} happen to it")
    return found


def check_task_move(before: T, event: TaskEvent, after: T) -> None:
    """Raises NoTransition where the table does not let this event lead from before to after."""
    found = task_transition(before, event)
    allowed = found.states if isinstance(found, MayBecome) else frozenset[T]()
    if after is not before and after not in allowed:
        raise NoTransition(f"{event.value} cannot make a {before} task {after}")


def live_state(steps: Iterable[tuple[P, int | None]], now: int) -> T:
    """The state of a started task that has not ended: from its steps' states and `not_before`."""
    found = list(steps)
    if any(state is P.PROCESSING for state, _ in found):
        return T.ACTIVE
    waits = (at for state, at in found if state is P.PENDING and at is not None)
    return T.RETRY if any(at > now for at in waits) else T.PENDING
