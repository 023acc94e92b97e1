"""The transition tables: the only place where a state follows from a state and an event.

A task is a set of steps, and each step moves through its situations on its own. For each situation
and each event of a step, STEPS has the next situations, or the reason why nothing changes. The
state of the task is derived from its steps after each decision (`live_state`), and TASKS lists the
states that each event may lead to. A pair that is missing, or a derived state that TASKS does not
list, is a defect and raises NoTransition. So an event that comes twice or too late is an entry with
a reason here, and not an `if` elsewhere. ERASED_TASKS replaces TASKS for a task whose contents were
erased. The diagrams in the documentation are drawn from these tables.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from roundsman.errors import NoTransition
from roundsman.model.states import BUSY, IDLE, OF_UNDO, UNDO_IDLE, WITHOUT_AGENT
from roundsman.model.states import ProcessState as P
from roundsman.model.states import SituationName as S
from roundsman.model.states import TaskState as T
from roundsman.model.task import PERFORM, UNDO, Operation


class StepEvent(StrEnum):
    """The events that can happen to a step."""

    CLAIMED = "claimed"
    HELD = "held: a hold, or its agent takes no work"
    CONDITION_FALSE = "condition false"
    CONDITION_FAILED = "condition failed"
    NO_ITEMS = "no items"
    LEFT_OUT = "left out"
    UNCLAIMED = "not started in time"
    RETRY_DUE = "next attempt due"
    PROGRESSED = "progress shown"
    WAITS_FOR_CALLBACK = "waits for a callback"
    ANSWERED = "its callback was answered"
    REMINDER_DUE = "reminder due"
    NOT_YET = "not yet, polled again"
    FELL_ASLEEP = "its sleep begins"
    WOKE = "its sleep is over"
    AWAITS_SIGNAL = "its wait for a signal begins"
    SIGNALLED = "its signal has come"
    NO_SIGNAL = "no signal in time"
    UNANSWERED = "no answer in time, goes on without it"
    SUCCEEDED = "succeeded"
    FAILED = "failed, attempts left"
    OVERDUE = "overdue, attempts left"
    UNREAD = "overdue, not counted"
    WAITS_ON = "attempts exhausted, waits"
    EXHAUSTED = "attempts exhausted"
    REFUSED = "failed for good"
    UNDO_BEGUN = "undo begun"
    UNDONE_FIRST = "undo begun, to go on at another agent"
    GOES_ON_AFTER_UNDO = "undone, goes on at another agent"
    UNDONE_HERE = "undone at one agent of several"
    EXTENDED = "given more time"
    RESUBMITTED = "resubmitted"
    BEGUN_ANEW = "begun anew"
    NEW_KEY = "goes on under a new key"
    DUE_EARLIER = "its task's time ends earlier"
    BLOCKED = "another step comes before it"
    FANNED_OUT = "its items are known"
    REMOVED = "no longer a step of its task"
    RESOLVED_DONE = "resolved: it happened"
    RESOLVED_NOT_DONE = "resolved: it did not happen"
    OUT_OF_TIME = "overdue, a person has given more time"
    RESTORED = "restored from a backup"
    HAPPENED = "succeeded after all"
    WAIT_ENDED = "its wait for a callback was ended"
    STALE = "late or repeated reply"
    NOT_NEEDED = "not needed: enough others have succeeded"


class CountsInARow(StrEnum):
    """What becomes of what a step counts in a row."""

    GO_ON = "go on"
    """Nothing was learnt about the service: all counts go on."""
    CALLS_END = "calls end"
    """The service did something: calls that found it down are counted anew (`uncounted_calls`)."""
    BEGIN_ANEW = "begin anew"
    """The series of attempts ends as well: the next failure begins a new one, with a new retry
    window. Polling ends too, but for NOT_YET."""


@dataclass(frozen=True, slots=True)
class Transition:
    """The step changes to one of these situations; which one follows from the event's times."""

    to: tuple[S, ...]
    counts: CountsInARow

    @property
    def state(self) -> P:
        """The state of the pattern that all of these situations belong to."""
        return self.to[0].state

    @property
    def operation(self) -> Operation:
        """The operation that all of these situations are about."""
        return UNDO if self.to[0] in OF_UNDO else PERFORM


@dataclass(frozen=True, slots=True)
class Stay:
    """Nothing changes, for this reason."""

    why: str


_ANY_UNDO = (*UNDO_IDLE, S.UNDO_AT_AGENT)
_SUCCEEDED = (S.PROCESSED, S.AWAITS_RESULT)
_UNDO_BEGINS = (S.UNDO_READY, S.UNDO_WAITS)
SAME: Final = "the same"

TRANSITIONS: Sequence[
    tuple[StepEvent, tuple[S, ...], tuple[S, ...] | Literal["the same"], CountsInARow]
] = (
    # Perform: to its agent, or not at all.
    (StepEvent.CLAIMED, IDLE, (S.AT_AGENT,), CountsInARow.GO_ON),
    (StepEvent.HELD, IDLE, (S.PARKED,), CountsInARow.GO_ON),
    (StepEvent.CONDITION_FALSE, (S.NOT_BEGUN, S.READY), (S.SKIPPED,), CountsInARow.BEGIN_ANEW),
    (StepEvent.CONDITION_FAILED, (S.NOT_BEGUN, S.READY), (S.FAILED,), CountsInARow.BEGIN_ANEW),
    (StepEvent.NO_ITEMS, (S.NOT_BEGUN, S.READY), (S.SKIPPED,), CountsInARow.BEGIN_ANEW),
    (StepEvent.UNCLAIMED, IDLE, (S.READY,), CountsInARow.GO_ON),
    (StepEvent.RETRY_DUE, (S.WAITS, S.PARKED), (S.READY,), CountsInARow.GO_ON),
    # An earlier attempt succeeded: the same effect under the same key.
    (StepEvent.SUCCEEDED, IDLE, _SUCCEEDED, CountsInARow.BEGIN_ANEW),
    # An earlier attempt's callback failed.
    (StepEvent.REFUSED, IDLE, (S.FAILED,), CountsInARow.BEGIN_ANEW),
    # A sleep, which has no agent. One until an instant that is past ends at once.
    (StepEvent.FELL_ASLEEP, (S.NOT_BEGUN, S.READY), (S.ASLEEP,), CountsInARow.BEGIN_ANEW),
    (StepEvent.WOKE, (S.NOT_BEGUN, S.READY, S.ASLEEP), (S.PROCESSED,), CountsInARow.BEGIN_ANEW),
    # A step that waits for a signal, which has no agent. One that came before ends it at once.
    (StepEvent.AWAITS_SIGNAL, (S.NOT_BEGUN, S.READY), (S.AWAITS_SIGNAL,), CountsInARow.BEGIN_ANEW),
    (
        StepEvent.SIGNALLED,
        (S.NOT_BEGUN, S.READY, S.AWAITS_SIGNAL),
        (S.PROCESSED,),
        CountsInARow.BEGIN_ANEW,
    ),
    (StepEvent.NO_SIGNAL, (S.AWAITS_SIGNAL,), (S.FAILED,), CountsInARow.BEGIN_ANEW),
    # Nobody has answered: no signal or callback has come, or the outside job goes on and on.
    (
        StepEvent.UNANSWERED,
        (S.AWAITS_SIGNAL, S.AWAITS_CALLBACK, S.AT_AGENT),
        (S.PROCESSED,),
        CountsInARow.BEGIN_ANEW,
    ),
    # At its agent.
    (StepEvent.PROGRESSED, (S.AT_AGENT,), SAME, CountsInARow.CALLS_END),
    (StepEvent.WAITS_FOR_CALLBACK, (S.AT_AGENT,), (S.AWAITS_CALLBACK,), CountsInARow.BEGIN_ANEW),
    (StepEvent.REMINDER_DUE, (S.AWAITS_CALLBACK,), SAME, CountsInARow.BEGIN_ANEW),
    # Nobody else can act any more. What the answer says is the next event of the same decision.
    (StepEvent.ANSWERED, (S.AWAITS_CALLBACK,), (S.AT_AGENT,), CountsInARow.GO_ON),
    # The outside job is not done: no failure, and nothing is counted.
    (StepEvent.NOT_YET, (S.AT_AGENT,), (S.WAITS,), CountsInARow.BEGIN_ANEW),
    # Ready: another of its agents takes it, or the task is ending and it is not attempted again.
    (StepEvent.HELD, (S.AT_AGENT,), (S.PARKED, S.READY), CountsInARow.GO_ON),
    (StepEvent.SUCCEEDED, BUSY, _SUCCEEDED, CountsInARow.BEGIN_ANEW),
    (StepEvent.FAILED, BUSY, (S.WAITS,), CountsInARow.CALLS_END),
    (StepEvent.OVERDUE, BUSY, (S.READY, S.WAITS), CountsInARow.CALLS_END),
    (StepEvent.UNREAD, (S.AT_AGENT,), (S.READY,), CountsInARow.GO_ON),
    (StepEvent.OUT_OF_TIME, BUSY, (S.READY,), CountsInARow.CALLS_END),
    (StepEvent.WAITS_ON, BUSY, (S.WAITS,), CountsInARow.CALLS_END),
    (StepEvent.EXHAUSTED, BUSY, (S.FAILED,), CountsInARow.CALLS_END),
    (StepEvent.REFUSED, BUSY, (S.FAILED,), CountsInARow.BEGIN_ANEW),
    # The task is ending, and nothing has to wait for the answer.
    (StepEvent.WAIT_ENDED, (S.AWAITS_CALLBACK,), (S.FAILED,), CountsInARow.BEGIN_ANEW),
    # A copy of a failed request has succeeded: the step stays failed, and its effect stands.
    (StepEvent.HAPPENED, (S.FAILED,), SAME, CountsInARow.CALLS_END),
    # The answer to a wait that was ended: a resubmitted task does not ask again.
    (StepEvent.SUCCEEDED, (S.FAILED,), (S.PROCESSED,), CountsInARow.BEGIN_ANEW),
    # Undo: of every step that was ever claimed, with attempts like those of a perform.
    (StepEvent.UNDO_BEGUN, (*IDLE, *_SUCCEEDED, S.FAILED), _UNDO_BEGINS, CountsInARow.BEGIN_ANEW),
    (StepEvent.CLAIMED, UNDO_IDLE, (S.UNDO_AT_AGENT,), CountsInARow.GO_ON),
    (StepEvent.HELD, _ANY_UNDO, (S.UNDO_PARKED,), CountsInARow.GO_ON),
    (StepEvent.UNCLAIMED, (S.UNDO_READY,), SAME, CountsInARow.GO_ON),
    (StepEvent.RETRY_DUE, (S.UNDO_WAITS, S.UNDO_PARKED), (S.UNDO_READY,), CountsInARow.GO_ON),
    (StepEvent.SUCCEEDED, _ANY_UNDO, (S.UNDONE,), CountsInARow.BEGIN_ANEW),
    (StepEvent.REFUSED, _ANY_UNDO, (S.UNDO_FAILED,), CountsInARow.BEGIN_ANEW),
    (StepEvent.FAILED, (S.UNDO_AT_AGENT,), (S.UNDO_WAITS,), CountsInARow.CALLS_END),
    (StepEvent.OVERDUE, (S.UNDO_AT_AGENT,), (S.UNDO_READY, S.UNDO_WAITS), CountsInARow.CALLS_END),
    (StepEvent.UNREAD, (S.UNDO_AT_AGENT,), (S.UNDO_READY,), CountsInARow.GO_ON),
    (StepEvent.OUT_OF_TIME, (S.UNDO_AT_AGENT,), (S.UNDO_READY,), CountsInARow.CALLS_END),
    (StepEvent.EXHAUSTED, (S.UNDO_AT_AGENT,), (S.UNDO_FAILED,), CountsInARow.CALLS_END),
    # Several agents: a step is finished at one before another may act, and undone at each.
    (StepEvent.UNDONE_FIRST, BUSY, _UNDO_BEGINS, CountsInARow.BEGIN_ANEW),
    (
        StepEvent.GOES_ON_AFTER_UNDO,
        (*_ANY_UNDO, S.UNDO_FAILED),
        (S.READY,),
        CountsInARow.BEGIN_ANEW,
    ),
    (StepEvent.UNDONE_HERE, (*_ANY_UNDO, S.UNDO_FAILED), (S.UNDO_READY,), CountsInARow.BEGIN_ANEW),
    # A tolerated item of a fan-out: its effect is undone, or there is no undo to make.
    (StepEvent.LEFT_OUT, (S.FAILED, S.UNDONE), (S.SKIPPED,), CountsInARow.BEGIN_ANEW),
    # One of many of which enough have succeeded: nothing of it is to be undone.
    (
        StepEvent.NOT_NEEDED,
        (*IDLE, *WITHOUT_AGENT, *_SUCCEEDED, S.FAILED),
        (S.SKIPPED,),
        CountsInARow.BEGIN_ANEW,
    ),
    # Commands of operators. A step that has succeeded is given the result that was left out.
    (StepEvent.RESUBMITTED, (S.FAILED,), (S.READY,), CountsInARow.BEGIN_ANEW),
    (StepEvent.RESUBMITTED, (S.UNDO_FAILED,), (S.UNDO_READY,), CountsInARow.BEGIN_ANEW),
    # Idle: a step that is polled gets more time for that.
    (
        StepEvent.EXTENDED,
        (S.READY, S.WAITS, S.PARKED, *WITHOUT_AGENT, *BUSY, S.UNDO_AT_AGENT),
        SAME,
        CountsInARow.GO_ON,
    ),
    (StepEvent.RESTORED, BUSY, (S.READY,), CountsInARow.CALLS_END),
    (StepEvent.RESTORED, (S.AWAITS_SIGNAL,), SAME, CountsInARow.GO_ON),
    (StepEvent.RESTORED, (S.UNDO_AT_AGENT,), (S.UNDO_READY,), CountsInARow.CALLS_END),
    (
        StepEvent.RESOLVED_DONE,
        (*IDLE, *WITHOUT_AGENT, *BUSY, *_SUCCEEDED, S.FAILED),
        (S.PROCESSED,),
        CountsInARow.BEGIN_ANEW,
    ),
    (StepEvent.RESOLVED_DONE, (*_ANY_UNDO, S.UNDO_FAILED), (S.UNDONE,), CountsInARow.BEGIN_ANEW),
    (
        StepEvent.RESOLVED_NOT_DONE,
        (*IDLE, S.AT_AGENT, S.FAILED),
        (S.READY,),
        CountsInARow.BEGIN_ANEW,
    ),
    (
        StepEvent.BEGUN_ANEW,
        (*IDLE, *WITHOUT_AGENT, *_SUCCEEDED, S.SKIPPED, S.FAILED, S.UNDONE),
        (S.NOT_BEGUN,),
        CountsInARow.BEGIN_ANEW,
    ),
    # Its effects so far are undone, or it is proven that there are none.
    (StepEvent.NEW_KEY, IDLE, SAME, CountsInARow.GO_ON),
    # Another plan.
    (StepEvent.DUE_EARLIER, (S.READY, S.WAITS, S.PARKED, *UNDO_IDLE), SAME, CountsInARow.GO_ON),
    (
        StepEvent.BLOCKED,
        (S.READY, S.WAITS, S.PARKED, *WITHOUT_AGENT),
        (S.NOT_BEGUN,),
        CountsInARow.GO_ON,
    ),
    # Records that were kept for the fan-out before it had items.
    (StepEvent.FANNED_OUT, (S.NOT_BEGUN, S.READY), (S.NOT_BEGUN,), CountsInARow.BEGIN_ANEW),
    # Its task begins again, or goes on under a plan without it.
    (
        StepEvent.REMOVED,
        (*IDLE, *WITHOUT_AGENT, *_SUCCEEDED, S.SKIPPED, S.FAILED, S.UNDONE),
        (S.NOT_BEGUN,),
        CountsInARow.BEGIN_ANEW,
    ),
)
"""What happens to a step: the event, the situations in which it may happen, the situations of which
the step gets one, and what becomes of what it counts."""

STALE: Sequence[tuple[tuple[S, ...], str]] = (
    ((*IDLE, *WITHOUT_AGENT), "no attempt is under way"),
    (BUSY, "a later attempt is under way"),
    (_SUCCEEDED, "the step is done already"),
    ((S.FAILED,), "the step has failed already"),
    ((S.SKIPPED,), "the step was skipped"),
    (_ANY_UNDO, "the step is being undone"),
    ((S.UNDONE,), "the step is undone"),
    ((S.UNDO_FAILED,), "the step's undo has failed already"),
)
"""Why a late or repeated reply changes nothing, by situation."""

STEPS: Mapping[tuple[S, StepEvent], Transition | Stay] = {
    **{
        (before, event): Transition((before,) if to == SAME else to, counts)
        for event, befores, to, counts in TRANSITIONS
        for before in befores
    },
    **{(before, StepEvent.STALE): Stay(why) for befores, why in STALE for before in befores},
}


class TaskEvent(StrEnum):
    """The events that can happen to a task, by their class names in `roundsman.model.events`."""

    START = "Start"
    REPLIED = "Replied"
    INSPECT = "Inspect"
    RESUBMIT = "Resubmit"
    UNDO_ASKED = "UndoAsked"
    UNDO_PART = "UndoPart"
    CANCEL = "Cancel"
    RESOLVE = "Resolve"
    EXTEND = "Extend"
    RUN_NOW = "RunNow"
    MOVE = "Move"
    RECONCILE = "Reconcile"
    SIGNALLED = "Signalled"
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
    # Pending: it begins with a sleep, or waits for a signal.
    (T.SCHEDULED, TaskEvent.START): _to(T.PENDING, T.ACTIVE, T.RETRY, *_ENDS, T.UNDONE),
    (T.SCHEDULED, TaskEvent.REPLIED): Stay("the task has not started"),
    (T.SCHEDULED, TaskEvent.INSPECT): _to(T.PENDING, T.ARCHIVED, T.UNDONE),
    # Retry without a failure: the step is parked, because of a hold.
    (T.PENDING, TaskEvent.START): _to(T.ACTIVE, T.RETRY, *_ENDS, T.UNDOING, T.UNDONE, T.CANCELLED),
    (T.PENDING, TaskEvent.REPLIED): _to(
        T.ACTIVE, T.RETRY, *_ENDS, T.UNDOING, T.UNDONE, T.CANCELLED
    ),
    # Completed: the last step was a sleep, and is over. Retry: it was enough, and the undo of
    # another step waits.
    (T.PENDING, TaskEvent.INSPECT): _to(
        T.RETRY, T.COMPLETED, T.ARCHIVED, T.UNDOING, T.UNDONE, T.CANCELLED
    ),
    # Undone: only a wait for a callback is ended, and nothing is to be undone. Pending, Retry: a
    # sleep was enough, so that the wait for a callback has ended, here and below.
    (T.ACTIVE, TaskEvent.START): _to(
        T.PENDING, T.RETRY, T.ARCHIVED, T.UNDOING, T.UNDONE, T.CANCELLED
    ),
    # Pending: a step is to be undone and to go on, after steps that may have been performed; or a
    # sleep is left.
    (T.ACTIVE, TaskEvent.REPLIED): _to(
        T.PENDING, T.RETRY, *_ENDS, T.UNDOING, T.UNDONE, T.CANCELLED
    ),
    # Completed without a reply: the last item of a fan-out was overdue and is left out.
    (T.ACTIVE, TaskEvent.INSPECT): _to(
        T.PENDING, T.RETRY, *_ENDS, T.UNDOING, T.UNDONE, T.CANCELLED
    ),
    # Pending, Completed: it has waited for its turn, and begins with a sleep.
    (T.RETRY, TaskEvent.START): _to(
        T.PENDING, T.ACTIVE, T.COMPLETED, T.ARCHIVED, T.UNDOING, T.UNDONE, T.CANCELLED
    ),
    # Pending: an earlier attempt has succeeded, and a sleep follows.
    (T.RETRY, TaskEvent.REPLIED): _to(
        T.PENDING, T.ACTIVE, *_ENDS, T.UNDOING, T.UNDONE, T.CANCELLED
    ),
    (T.RETRY, TaskEvent.INSPECT): _to(T.PENDING, T.ARCHIVED, T.UNDOING, T.UNDONE, T.CANCELLED),
    # Archived: nothing is undone without the plan. Active: another branch still performs. Retry:
    # no undo fits under its key any more, and the closing step is parked.
    (T.UNDOING, TaskEvent.START): _to(T.ACTIVE, T.RETRY, T.ARCHIVED),
    # Completed: a part of it was to be undone. Active, Retry: its closing steps run.
    (T.UNDOING, TaskEvent.REPLIED): _to(T.ACTIVE, T.RETRY, T.COMPLETED, *_UNDO_ENDS),
    (T.UNDOING, TaskEvent.INSPECT): _to(T.PENDING, T.ACTIVE, T.ARCHIVED),
    **{
        (state, event): Stay(why)
        for state, why in _OVER.items()
        for event in (TaskEvent.START, TaskEvent.INSPECT)
    },
    # A late success of a failed step is recorded for its repair, and an answer that nobody waits
    # for any more is alerted; the state stays.
    **{(state, TaskEvent.REPLIED): _to() for state in _OVER},
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
    # Pending: its closing steps run, here and below.
    (T.ACTIVE, TaskEvent.UNDO_ASKED): _to(T.PENDING, T.UNDOING, T.UNDONE),
    (T.RETRY, TaskEvent.UNDO_ASKED): _to(T.PENDING, T.UNDOING, T.UNDONE),
    (T.UNDOING, TaskEvent.UNDO_ASKED): Refusal("the task is already being undone"),
    # A completed order is taken back.
    (T.COMPLETED, TaskEvent.UNDO_ASKED): _to(T.UNDOING),
    (T.UNDONE, TaskEvent.UNDO_ASKED): Refusal("the task is already undone"),
    (T.ARCHIVED, TaskEvent.UNDO_ASKED): _to(T.PENDING, T.UNDOING, T.UNDONE),
    (T.CANCELLED, TaskEvent.UNDO_ASKED): _to(T.PENDING, T.UNDOING, T.UNDONE),
    (T.COMPLETED, TaskEvent.UNDO_PART): _to(T.UNDOING),
    **{
        (state, TaskEvent.UNDO_PART): Refusal(
            f"only of a completed task can a part be undone, and the task is {state.lower()}"
        )
        for state in T
        if state is not T.COMPLETED
    },
    (T.SCHEDULED, TaskEvent.CANCEL): _to(T.CANCELLED),
    (T.PENDING, TaskEvent.CANCEL): _to(T.UNDOING, T.CANCELLED),
    # Retry: its wait for an answer is ended, and an undo waits after which its step would go on.
    (T.ACTIVE, TaskEvent.CANCEL): _to(T.PENDING, T.RETRY, T.UNDOING, T.CANCELLED),
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
    # Retry: enough steps have succeeded now, and the undo of another one waits.
    (T.PENDING, TaskEvent.RESOLVE): _to(T.RETRY, *_ENDS, T.CANCELLED),
    (T.ACTIVE, TaskEvent.RESOLVE): _to(
        T.PENDING, T.RETRY, T.COMPLETED, T.UNDOING, T.UNDONE, T.ARCHIVED, T.CANCELLED
    ),
    (T.RETRY, TaskEvent.RESOLVE): _to(T.PENDING, *_ENDS, T.CANCELLED),
    (T.UNDOING, TaskEvent.RESOLVE): _to(T.PENDING, T.ACTIVE, T.COMPLETED, *_UNDO_ENDS),
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
    # Completed: the other plan does not have the steps that were left.
    (T.SCHEDULED, TaskEvent.MOVE): _to(T.PENDING),
    (T.PENDING, TaskEvent.MOVE): _to(T.RETRY, T.COMPLETED),
    (T.ACTIVE, TaskEvent.MOVE): _to(T.PENDING, T.RETRY),
    (T.RETRY, TaskEvent.MOVE): _to(T.PENDING, T.COMPLETED),
    (T.UNDOING, TaskEvent.MOVE): Refusal("the task is being undone, as its own plan says"),
    **{
        (state, TaskEvent.MOVE): Refusal(
            f"{why}: a failed task goes on under another plan when it is resubmitted"
        )
        for state, why in _OVER.items()
    },
    (T.SCHEDULED, TaskEvent.RECONCILE): _to(T.PENDING),
    (T.PENDING, TaskEvent.RECONCILE): _to(),
    (T.ACTIVE, TaskEvent.RECONCILE): _to(T.PENDING, T.RETRY),
    (T.RETRY, TaskEvent.RECONCILE): _to(T.PENDING),
    (T.UNDOING, TaskEvent.RECONCILE): _to(),
    **{(state, TaskEvent.RECONCILE): Refusal(why) for state, why in _OVER.items()},
    # A signal of an application. Completed: it has ended the last step.
    (T.SCHEDULED, TaskEvent.SIGNALLED): _to(T.PENDING),
    (T.PENDING, TaskEvent.SIGNALLED): _to(T.RETRY, T.COMPLETED),
    (T.ACTIVE, TaskEvent.SIGNALLED): _to(T.PENDING, T.RETRY),
    (T.RETRY, TaskEvent.SIGNALLED): _to(T.PENDING),
    (T.UNDOING, TaskEvent.SIGNALLED): Refusal(
        "the task is being undone: no step waits for a signal any more"
    ),
    **{(state, TaskEvent.SIGNALLED): Refusal(why) for state, why in _OVER.items()},
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


def step_transition(situation: S, event: StepEvent) -> Transition | Stay:
    """The table's entry for the event. Raises NoTransition if there is none."""
    found = STEPS.get((situation, event))
    if found is None:
        raise NoTransition(f"the table has no entry for a step {situation} and {event.value!r}")
    return found


def check_step_move(before: S, event: StepEvent, after: S) -> None:
    """Raise NoTransition if the table does not allow the event to lead from before to after."""
    found = step_transition(before, event)
    if not isinstance(found, Transition) or after not in found.to:
        raise NoTransition(f"{event.value!r} may not change a step from {before} to {after}")


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
