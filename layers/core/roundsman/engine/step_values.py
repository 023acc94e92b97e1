"""The lasting values of a step in a decision: which are set, and which follow from the event.

A decision sets what it knows (`step_values`). What every event of its kind changes follows here,
whoever makes the decision, so that no caller can forget or override it:

- `uncounted_calls` and the retry window begin anew, or go on, as the transition table says
  (`CountsInARow`). `uncounted_timeouts` does not follow: each decision sets it.
- The retry window and the polling end later by the time in which the step could not be attempted:
  that of an attempt that is not counted, and that for which the step was parked.
- The polling ends with the series of attempts, and with the operation.
- The wait that was ended is over if the step begins anew or has succeeded.
- A step that nobody has answered stays so while it is undone; anything else forgets it.
- The time that a person added to an attempt is given to the next one of the operation.
- An item that is left out keeps the error for which it is, while it is undone.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, ParamSpec

from roundsman.engine.transitions import CountsInARow, StepEvent
from roundsman.model.polling import Polling
from roundsman.model.retry_window import CLOSED
from roundsman.model.situations import Ended, UnderWay
from roundsman.model.states import ProcessState
from roundsman.model.task import UNDO, AfterUndo, StepRecord

P = ParamSpec("P")

NO_ANSWER_COMES: Final = frozenset({ProcessState.PENDING, ProcessState.PROCESSED})
"""The states in which the ended wait of a step is over: it begins anew, or was answered."""

NOT_COUNTED: Final = frozenset(
    {StepEvent.HELD, StepEvent.UNREAD, StepEvent.OUT_OF_TIME, StepEvent.RESTORED}
)
"""Events that end an attempt without counting it. The time of the attempt does not count either."""


@dataclass(frozen=True, slots=True)
class StepValues:
    """Some lasting values of a step; `step_values` makes them."""

    values: dict[str, Any]

    def of(self, record: StepRecord) -> StepRecord:
        """The record with these values."""
        return replace(record, **self.values)

    def and_also(self, others: "StepValues") -> "StepValues":
        """These values and others, which count where both have one."""
        return StepValues({**self.values, **others.values})


def _as_declared(_: Callable[P, StepRecord]) -> Callable[P, StepValues]:
    def values(*_: P.args, **found: P.kwargs) -> StepValues:
        return StepValues(found)

    return values


step_values = _as_declared(StepRecord)
"""Makes StepValues: `step_values(failure_count=0, error=None)`. Its arguments are the fields that
StepRecord declares, and have their types; not given ones are not set."""
NO_VALUES: Final = step_values()


def after_event(
    before: StepRecord, after: StepRecord, event: StepEvent, counts: CountsInARow, now: int
) -> StepRecord:
    """The record `after` the event at `now` (epoch ms), with all that follows from the event.

    `after` has its new situation, and what the decision sets. `counts` is from the transition
    table.
    """
    return replace(
        after,
        error=before.error if _is_left_out(before, after) else after.error,
        uncounted_calls=after.uncounted_calls if counts is CountsInARow.GO_ON else 0,
        retry_window=CLOSED
        if counts is CountsInARow.BEGIN_ANEW
        else after.retry_window.later(_excused_time(before, event, now)),
        polling=_polling(before, after, event, counts, now),
        wait_ended_at=after.wait_ended_at if _may_be_answered(after, event) else None,
        unanswered=event is StepEvent.UNANSWERED or (before.unanswered and after.operation == UNDO),
        granted=_granted(before, after),
    )


def _may_be_answered(after: StepRecord, event: StepEvent) -> bool:
    """Whether an answer may still come that nobody waits for any more."""
    return event is StepEvent.UNANSWERED or after.process_state not in NO_ANSWER_COMES


def _is_left_out(before: StepRecord, after: StepRecord) -> bool:
    """Whether the step is an item that is left out, and its undo goes on."""
    left_out = before.after_undo is AfterUndo.SKIPPED
    return left_out and before.process_state is after.process_state is ProcessState.UNDOING


def _polling(
    before: StepRecord, after: StepRecord, event: StepEvent, counts: CountsInARow, now: int
) -> Polling | None:
    if after.polling is None or event is StepEvent.NOT_YET:
        return after.polling
    if counts is CountsInARow.BEGIN_ANEW or isinstance(after.situation, Ended):
        return None
    return after.polling.later(_excused_time(before, event, now))


def _granted(before: StepRecord, after: StepRecord) -> int:
    """The time in ms that each further attempt of the operation has more."""
    if isinstance(after.situation, Ended) or after.operation != before.operation:
        return 0
    goes_on = isinstance(after.situation, UnderWay)
    return after.granted if goes_on else after.granted + before.extra


def _excused_time(before: StepRecord, event: StepEvent, now: int) -> int:
    """The time in ms, up to this event, in which the step could not be attempted."""
    since = None
    if event is StepEvent.CLAIMED:
        since = before.held_since
    elif event in NOT_COUNTED and before.under_way:
        since = before.started_at
    return 0 if since is None else max(0, now - since)
