"""The task record: one item that contains a task and all its steps.

A step without a step record is Pending and was never claimed.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias

from roundsman.model.checks import LONGEST_ERROR_TYPE
from roundsman.model.corrections import Correction, corrected
from roundsman.model.field_table import Stored
from roundsman.model.instants import DAY
from roundsman.model.json import Json, canonical_json, sha256
from roundsman.model.polling import Polling
from roundsman.model.record_limits import LONGEST_MESSAGE, cut
from roundsman.model.retry_window import CLOSED, RetryWindow
from roundsman.model.situations import (
    OF_TENANT,
    Asleep,
    AtAgent,
    AwaitsCallback,
    AwaitsSignal,
    End,
    Ended,
    NotBegun,
    Parked,
    Ready,
    Situation,
    ToBegin,
    UnderWay,
    WaitsUntil,
    WithoutAgent,
)
from roundsman.model.states import DONE, END_STATES, ProcessState, SituationName, TaskState

SCHEMA = 10
"""The newest record format that this code reads. It does not change a record with a higher one. The
formats of single fields are in the field tables (`roundsman.aws.dynamodb.codec`)."""
PACKED_SCHEMA = 4
"""The format of a packed record. Code that does not know of it would see no steps."""
DIVIDED_SCHEMA = 5
"""The format of a record with rows of settled steps beside it. Code that does not know of them
would begin those steps again."""

ADDED_SCHEMA = 8
"""The format of a record with steps that were added at run time. Code that does not know of them
would complete the task without them."""
SIGNALS_SCHEMA = 8
"""The format of a record with signals. Code that does not know of them would lose them."""
LEFT_OUT_SCHEMA = 9
"""The format of a record with results that were left out. Code that does not know of them would
take such a result for null."""
KEYS_SCHEMA = 9
"""The format of a record that says since when a service may know a key. Code that does not know of
it would count the life of the key from a later request."""
REJECTIONS_SCHEMA = 9
"""The format of a record that owes a rejected message, or whose signals have left it. Code that
does not know of them would send a rejected message as a status."""
UNANSWERED_SCHEMA = 10
"""The format of a record with steps that nobody has answered. Code that does not know of them would
take the result for an answer."""
LIMIT_SCHEMA = 10
"""The format of a record that a limit counts. Code that does not know of it would never let another
order begin when this one ends."""
CLOSING_SCHEMA = 10
"""The format of a record with closing steps, or of a task that a step has ended early. Code that
does not know of them would end the task without the closing steps, or perform what is skipped."""

ERASED = "(erased)"
"""Stands for every text that was erased, whatever it was."""


@dataclass(frozen=True, slots=True)
class StepError:
    """Why an attempt failed."""

    type: str
    """A short name for programs, for example `CardDeclined`."""
    message: str
    """A sentence for people."""
    unexpected: Annotated[bool, Stored(since=3)] = False
    """The agent's code, or its deployment, has a defect: an exception that its author did not
    expect, or a function that is missing."""

    @property
    def size(self) -> int:
        """The size of its texts in bytes of UTF-8."""
        return len(f"{self.type}{self.message}".encode("utf-8", "replace"))

    def cut(self, longest: int = LONGEST_MESSAGE) -> "StepError":
        """Return the error with the type cut to 100 bytes and the message to `longest` bytes.

        The error is stored in the record and the history and sent in an alert and a status. A
        record that exceeds DynamoDB's 400 KB could never be written again.
        """
        return StepError(
            cut(self.type, LONGEST_ERROR_TYPE), cut(self.message, longest), self.unexpected
        )


class AfterUndo(StrEnum):
    """What happens to a step after its undo, if its task continues."""

    SKIPPED = "skipped"  # the step is an item of a fan-out that may fail
    NEXT_AGENT = "next agent"  # the step is performed at another agent
    NEW_KEY = "new key"  # the step is performed under a fresh idempotency key


class Effect(StrEnum):
    """What is proven about the effect of a step's requests. Without proof, it is unknown."""

    NONE = "none"  # no request had an effect, and none can have one any more
    STANDS = "stands"  # the effect took place


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A result that the record does not have, although its step has succeeded.

    It is not null: nobody gets it as a value.
    """

    why: str
    """Why, in words, without anything of the result itself."""
    size: int = 0
    """The size of the result in bytes of JSON; 0 if there is none in JSON."""
    row: int | None = None
    """The number of the row beside the record that has the whole result; None if none has."""
    lacks_steps: bool = False
    """The reply adds steps, and the task does not have them."""
    whole: Json = field(default=None, compare=False, repr=False)
    """The whole result, from the decision that left it out until that is stored. The record never
    has it."""


CALL_NOTES_LAST: Final = 30 * DAY
"""How long an agent's note of a call is kept, in ms; longer than a queue and its dead-letter queue
together keep a request, 18 days. An agent proves with its notes that nothing has happened, so it
proves nothing about a call that is older."""


Operation: TypeAlias = Literal["perform", "undo"]
PERFORM: Final = "perform"
UNDO: Final = "undo"
_NOT_BEGUN: Final = NotBegun()
_TO_PERFORM: Final = frozenset({ProcessState.PENDING, ProcessState.PROCESSING})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step of one task: what it does or waits for, and what outlives that.

    All fields but the first two are lasting ones. They are listed only here: how they are stored
    follows (`roundsman.aws.dynamodb.codec`), and so does what a decision may change
    (`roundsman.engine.step_values`).

    Instants are epoch ms; None means that there is no such instant.
    """

    operation: Operation = PERFORM
    """What the situation is about: the perform of the step, or its undo."""
    situation: Situation = _NOT_BEGUN
    """What the step does or waits for, with the values that exist only then."""

    # Of its idempotency key: until a new round, or until the step goes to another agent.

    round: int = 1
    """The generation of the idempotency key; a fresh key begins the next round."""
    agent: str | None = None
    """The step's agent; None for the first agent in the plan."""
    tried: tuple[str, ...] = ()
    """The agents that were tried before `agent`."""
    corrections: Annotated[int, Stored(since=2)] = 0
    """How many of the task's corrections are in the input of the step's requests. All requests
    under one idempotency key have the same input."""
    reminders: Annotated[int, Stored(since=3)] = 0
    """The number of reminders that were sent under the current idempotency key, in all attempts."""
    polling: Polling | None = None
    """Of a step that is polled, how often, since when and until when; None if it is not polled, or
    not any more."""
    started_at: int | None = None
    """When the current attempt was claimed; None if the step was never claimed."""
    acts_until: int | None = None
    """Until when a copy of a request may still act that the attempt's own end does not bound: an
    earlier one, or one that was sent while the queue was behind. None if none can."""
    effect: Effect | None = None
    """What is proven about the effect of all requests so far; None if nothing is proven. An agent
    proves it (`Reply.effect`), or a person states it."""
    outcome_unknown: bool = False
    """An attempt ended without a definite answer. For an undone step: its effect was never
    confirmed."""
    wait_ended_at: Annotated[int | None, Stored(since=7)] = None
    """When the step's wait for its callback was ended, because its task was ending or went on
    without the answer; None if it was not, or if an answer came after that."""
    key_since: Annotated[int | None, Stored(since=KEYS_SCHEMA)] = None
    """Since when the service may know the key: when the first request under it was claimed, or when
    the round began. None if that is `started_at`, or if nothing was sent under the key."""
    key_until: Annotated[int | None, Stored(since=7)] = None
    """Until when the service remembers the key; None if nothing was sent under it, or if it has no
    `key_lifetime`. It can be computed (`engine.request_deadlines.key_until`)."""

    # Of its operation: the attempts to perform it, or to undo it.

    failure_count: int = 0
    """The number of failed attempts that were counted."""
    retry_window: RetryWindow = CLOSED
    """For how long the step is retried, if that is for a time."""
    uncounted_timeouts: Annotated[int, Stored("Spared")] = 0
    """Timeouts in a row that were attributed to a backlog and not counted as attempts."""
    uncounted_calls: Annotated[int, Stored("InVain")] = 0
    """`held` replies in a row, each after a call whose outcome is unknown, that did not count as
    attempts."""
    granted: int = 0
    """Time in ms that is added to each attempt from the next claim on: what persons have added to
    earlier attempts."""

    # Of its outcome.

    finished_at: int | None = None
    """When the step last ended."""
    result: Json = None
    """What the agent returned, or the data of the signal that ended the step."""
    left_out: Annotated[LeftOut | None, Stored("ResultLeftOut", since=LEFT_OUT_SCHEMA)] = None
    """Why `result` is not the result; None if it is. Of a step that is not done: an attempt has
    succeeded, but its result cannot be taken, so the step is attempted again under its key."""
    signal: Annotated[str | None, Stored(since=SIGNALS_SCHEMA)] = None
    """The id of the signal that ended the step; None if none did."""
    unanswered: Annotated[bool, Stored(since=UNANSWERED_SCHEMA)] = False
    """Nobody has answered in time, and `result` is what the plan says for that (`otherwise`)."""
    error: StepError | None = None
    """The error of the last attempt that failed."""
    after_undo: AfterUndo | None = None
    """What happens to the step after its undo; None if it stays Undone."""

    @property
    def situation_name(self) -> SituationName:
        """The name of the situation, by which the transition table is ordered."""
        here = self.situation
        return _NAMES[self.operation, here.how if isinstance(here, Ended) else type(here)]

    @property
    def process_state(self) -> ProcessState:
        """The state of the step: that of the pattern, to which the situation belongs."""
        return self.situation_name.state

    @property
    def done(self) -> bool:
        """Whether the steps that come after it may begin: it is Processed, and its result is there
        if somebody reads it, or it is Skipped."""
        return self.process_state in DONE and not self.awaits_result

    @property
    def awaits_result(self) -> bool:
        """Whether the step is done, and what comes after it waits for its result."""
        here = self.situation
        return isinstance(here, Ended) and here.how is End.AWAITS_RESULT

    @property
    def lacks_result(self) -> bool:
        """Whether the step has taken effect, and nobody can go on before its result is there."""
        pending = self.left_out is not None and self.process_state in _TO_PERFORM
        return pending or self.awaits_result

    @property
    def under_way(self) -> bool:
        """Whether an attempt is under way, of the perform or of the undo."""
        return isinstance(self.situation, UnderWay)

    @property
    def waiting(self) -> bool:
        """Whether the attempt waits for a callback."""
        return isinstance(self.situation, AwaitsCallback)

    @property
    def locked_by(self) -> str | None:
        """The lock token of the attempt; None if none is under way."""
        here = self.situation
        return here.lock if isinstance(here, UnderWay) else None

    @property
    def heard_at(self) -> int | None:
        """When the agent last reported on the attempt; None if none is under way."""
        here = self.situation
        return here.heard_at if isinstance(here, UnderWay) else None

    @property
    def heartbeat_by(self) -> int | None:
        """When the attempt is overdue if it shows no progress; None if it needs no heartbeat."""
        here = self.situation
        return here.heartbeat_by if isinstance(here, AtAgent) else None

    @property
    def overdue_at(self) -> int | None:
        """When the attempt is overdue; None if none is under way."""
        here = self.situation
        return here.overdue_at if isinstance(here, UnderWay) else None

    @property
    def until(self) -> int | None:
        """Until when the attempt waits for its reply or its callback; None if none is under way."""
        here = self.situation
        return here.until if isinstance(here, UnderWay) else None

    @property
    def extra(self) -> int:
        """Time in ms that a person added to the attempt; 0 if none is under way."""
        here = self.situation
        return here.extra if isinstance(here, UnderWay) else 0

    @property
    def last_until(self) -> int | None:
        """Until when the attempt waits, or the last perform would have; else None."""
        here = self.situation
        return here.until if isinstance(here, UnderWay | Ended) else None

    @property
    def late_since(self) -> int | None:
        """Since when the attempt, or the Start of a ready step, is late; None if it is not."""
        here = self.situation
        return here.late_since if isinstance(here, UnderWay | Ready) else None

    @property
    def remind_at(self) -> int | None:
        """When the next reminder is due; None if none is sent."""
        here = self.situation
        return here.remind_at if isinstance(here, AwaitsCallback) else None

    @property
    def claim_by(self) -> int | None:
        """When the step should have been claimed; None if it is not to be claimed."""
        here = self.situation
        return here.claim_by if isinstance(here, ToBegin) else None

    @property
    def not_before(self) -> int | None:
        """The earliest start of the next attempt; None if the step is not waiting for a time."""
        here = self.situation
        return here.not_before if isinstance(here, WaitsUntil | Parked) else None

    @property
    def held_since(self) -> int | None:
        """Since when the step is parked, until it is claimed; None if it is not parked."""
        here = self.situation
        if isinstance(here, Parked):
            return here.since
        return here.parked_since if isinstance(here, Ready) else None

    @property
    def at_rate(self) -> bool:
        """Whether the step waits only because its tenant is at its rate."""
        here = self.situation
        return isinstance(here, Parked) and OF_TENANT in (here.held_for or "")

    def may_begin(self, *, ending: bool) -> bool:
        """Whether the step waits to be claimed. A task that is ending performs no step any more."""
        waits = isinstance(self.situation, ToBegin)
        return waits and not (ending and self.operation == PERFORM)

    @property
    def admitted(self) -> bool:
        """Whether its condition was evaluated, so that it is not evaluated again."""
        waits = self.not_before is not None or self.held_since is not None
        waits = waits or isinstance(self.situation, WithoutAgent)
        return self.started_at is not None or waits or bool(self.tried)

    @property
    def wait_was_ended(self) -> bool:
        """Whether the step failed because its task ended before its callback came."""
        return self.process_state is ProcessState.ERROR and self.wait_ended_at is not None

    @property
    def refused(self) -> bool:
        """Whether the step has failed and provably had no effect.

        A refusal by the service is not a proof: the service may have accepted another try of the
        attempt, or another copy of the request.
        """
        return self.process_state is ProcessState.ERROR and self.effect is Effect.NONE


_NAMES: Final[Mapping[tuple[Operation, type[Situation] | End], SituationName]] = {
    (PERFORM, NotBegun): SituationName.NOT_BEGUN,
    (PERFORM, Ready): SituationName.READY,
    (PERFORM, WaitsUntil): SituationName.WAITS,
    (PERFORM, Parked): SituationName.PARKED,
    (PERFORM, Asleep): SituationName.ASLEEP,
    (PERFORM, AwaitsSignal): SituationName.AWAITS_SIGNAL,
    (PERFORM, AtAgent): SituationName.AT_AGENT,
    (PERFORM, AwaitsCallback): SituationName.AWAITS_CALLBACK,
    (PERFORM, End.SUCCEEDED): SituationName.PROCESSED,
    (PERFORM, End.AWAITS_RESULT): SituationName.AWAITS_RESULT,
    (PERFORM, End.SKIPPED): SituationName.SKIPPED,
    (PERFORM, End.FAILED): SituationName.FAILED,
    (UNDO, Ready): SituationName.UNDO_READY,
    (UNDO, WaitsUntil): SituationName.UNDO_WAITS,
    (UNDO, Parked): SituationName.UNDO_PARKED,
    (UNDO, AtAgent): SituationName.UNDO_AT_AGENT,
    (UNDO, End.SUCCEEDED): SituationName.UNDONE,
    (UNDO, End.FAILED): SituationName.UNDO_FAILED,
}

UNTOUCHED = StepRecord()


@dataclass(frozen=True, slots=True)
class AddedStep:
    """A step that was added to a task at run time. Its kind is in its name: `book_leg[leg-3]`."""

    adder: str
    """The name of the step whose reply added it. It comes after that step."""
    after: tuple[str, ...] = ()
    """The names of the further steps that it comes after."""
    digest: str = ""
    """Identifies the input that it was added with; empty once the task is erased."""
    place: int = 0
    """Its number among all steps that were added to the task, from 0."""


@dataclass(frozen=True, slots=True)
class SettledRow:
    """Steps of a task that the store has in a row beside the task's record."""

    version: int
    """The version of the task that was stored together with the row. It identifies the row."""
    size: int
    """The size of the packed steps in bytes."""
    steps: Mapping[str, StepRecord]
    """The records of the steps by name. `Task.steps` has the present ones."""
    expires_at: int | None = None
    """When the row may be removed; None if it does not expire."""
    added: Mapping[str, AddedStep] = field(default_factory=dict)
    """Those of these steps that were added at run time, by name."""


@dataclass(frozen=True, slots=True)
class StepToAdd:
    """A step that a reply adds to its task."""

    name: str
    """The kind of the step, and its own name: `book_leg[leg-3]`."""
    after: tuple[str, ...] = ()
    """The names of the steps that it comes after, besides the one that adds it."""
    input: Json = field(default=None, repr=False)
    """What its requests contain as their step input; at most LARGEST_STEP_INPUT bytes."""

    @property
    def digest(self) -> str:
        """Identifies the input: 20 hexadecimal digits."""
        return sha256(canonical_json(self.input))[:20]


@dataclass(frozen=True, slots=True)
class EndOfTask:
    """The end that a task has come to, as its closing steps are told."""

    end: str
    """`Undone`, `Archived` or `Cancelled`."""
    step: str | None = None
    """The step that failed; None if no step has."""
    error_type: str | None = None
    """The type of its error, or of the task's; None if a person has ended the task."""
    undone: tuple[str, ...] = ()
    """The names of the steps that were undone, in the order of the plan."""


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """What a reply asks for that ends its task early, as Completed."""

    why: str
    """Why, in words."""
    undo: bool = False
    """What the task has done is undone first."""


@dataclass(frozen=True, slots=True)
class UnreadSignal:
    """A signal that has come to a task and has not ended a step yet."""

    id: str
    """Identifies the signal: one that comes twice counts once."""
    name: str
    """The name for which a step waits."""
    at: int
    """When it was stored, in epoch ms."""
    data: Json = field(default=None, repr=False)
    """What the step that it ends gets as its result."""


@dataclass(frozen=True, slots=True)
class RowsBeside:
    """Rows of one kind that the store has beside the record of a task: from number 0 on."""

    count: int = 0
    expires_at: int | None = None
    """When they may be removed; None if they do not expire."""


NO_ROWS: Final = RowsBeside()

CLOSING_FAILED = "closing_failed"
"""The alert that a task has ended although closing steps of it have failed. The detail is their
names."""
LATE_ANSWER = "late_answer"
"""The alert that a callback was answered after the undo of its step had begun, and after its task
had ended. The detail is the step."""


REJECTION: Final = "rejection"
"""The kind of a rejected message that is owed: of a signal that no step can read any more."""


TURN_ENDS: Final = "turn"
"""The kind of what is owed at the end of an order that a limit counts: another one may begin."""


@dataclass(frozen=True, slots=True)
class Owed:
    """A status, alert or rejected message that was stored with a decision and is not known to be
    sent; or the end of a turn that is not known to be noted."""

    kind: str
    """`status`, `alert`, `rejection` or `turn`."""
    name: str
    """The status (`completed`), the kind of the alert (`task_archived`, `unexpected_error`,
    `result_awaited`, LATE_ANSWER), the name of the signal that is rejected, or a turn's end."""
    seq: int
    """The version of the record that the decision stored."""
    at: int
    """When the decision was made, in epoch ms."""
    detail: str
    """The reason of the decision; of a turn, the key of its limit."""
    signal: Annotated[str | None, Stored(since=REJECTIONS_SCHEMA)] = None
    """The id of the signal that is rejected; None for a status and an alert."""


@dataclass(frozen=True, slots=True)
class Termination:
    """How a task ends that performs no further step, and why."""

    how: TaskState
    """The state in which the task will end."""
    why: str
    """The reason in words."""
    step: str | None = None
    """The step that failed; None if the task failed as a whole or no step failed."""
    undo: bool = False
    """First compensate every step that may have had an effect, or those of `part`."""
    error: StepError | None = None
    """The error that ended the task; None if a person ended it."""
    early: Annotated[bool, Stored(since=CLOSING_SCHEMA)] = False
    """A step has ended the task early: it ends Completed once all that it has done is undone."""
    part: Annotated[tuple[str, ...], Stored(since=8)] = ()
    """The steps that were taken back from a completed task, by record name; it ends Completed
    again, since the others stand. Empty for a task that ends in another state."""

    def __post_init__(self) -> None:
        """Raise ValueError unless just a task that ends Completed has a part that is undone, or was
        ended early."""
        completes = self.how is TaskState.COMPLETED
        why = bool(self.part) + self.early
        if why != completes or (completes and not self.undo):
            raise ValueError("a part is undone of a task that ends Completed, and of no other")

    def undoes(self, step: str) -> bool:
        """Whether the step is undone before the task ends, if it may have had an effect."""
        return self.undo and (not self.part or step in self.part)


@dataclass(frozen=True, slots=True)
class Closing:
    """The closing steps of an end that a task has come to: they run before the end is stored."""

    end: TaskState
    """The end: Undone, Archived or Cancelled."""
    by: int
    """When they have to be over (epoch ms); what is not over then has failed."""
    steps: tuple[str, ...]
    """The names of the steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as stored. Instants are epoch ms."""

    task_id: str
    """The id of the order."""
    workflow: str
    """The name of the workflow."""
    plan: str
    """The hash of the plan."""
    state: TaskState
    """The state of the task."""
    version: int
    """Counts the decisions on the task; every decision is stored on the condition that the stored
    version is the one it was made on. Decisions that one write stores count each. The command
    `reconcile` raises it by a million."""
    created_at: int
    """When the task was submitted."""
    start_at: int
    """When the task may start."""
    complete_by: int
    """When the task must be complete: its `complete_within`, counted from `start_at`, plus the time
    that was added since."""
    retain_for: int
    """How long the task is kept, in ms, from when it has ended and nothing is owed any more."""
    shard: int
    """The shard of the due index; it never changes."""
    lane: str
    """The hash key of the `due` index (`roundsman.engine.due`)."""
    due_at: int
    """The range key of the `due` index: when a supervisor looks at the task."""
    steps: Mapping[str, StepRecord] = field(default_factory=dict)
    """The step records by name."""
    owed: tuple[Owed, ...] = ()
    """The statuses, alerts and rejected messages that are not known to be sent."""
    ending: Termination | None = None
    """How the task ends; None while it goes on, and once it is completed, unless a part of it was
    taken back."""
    ended_at: int | None = None
    """When the task ended; None while it is open."""
    expires_at: int | None = None
    """When the record may be removed; None if it does not expire."""
    priority: str = "normal"
    """`normal` or `urgent`."""
    tenant: str | None = None
    """On whose behalf the order was sent; None if it names no tenant."""
    reply_to: str | None = None
    """The URL of the queue for statuses; None if the application wants none."""
    correlation_id: str | None = None
    """The text that the application wants repeated in each status; None if it sent none."""
    command_ids: tuple[str, ...] = ()
    """The ids of the last commands that were applied; a repeated command is ignored."""
    fan_outs: Mapping[str, int] = field(default_factory=dict)
    """The number of items of each fan-out step for which it is known. The records of the items are
    `name[0]`, `name[1]` and so on."""
    added: Mapping[str, AddedStep] = field(default_factory=dict)
    """The steps that were added at run time, by record name, in the order in which they were added.
    Their inputs are not here: the store has them in rows beside the record."""
    signals: tuple[UnreadSignal, ...] = ()
    """The signals that have ended no step yet, in the order in which they came."""
    signals_left: tuple[str, ...] = ()
    """The ids of the last signals that have left the record, because no step could read them any
    more. A task that begins again forgets them: sent again, such a signal is new."""
    credited_until: int | None = None
    """The end of the time that was already added to `complete_by`, because steps were parked or
    messages waited."""
    corrections: tuple[Correction, ...] = ()
    """The corrections of the input, the oldest first."""
    used_rounds: Mapping[str, int] = field(default_factory=dict)
    """The last round of each step whose keys were used and that the task does not have any more: a
    change of the plan has removed it. If a later plan has the step again, it begins with the next
    round. Of the added steps that the task has forgotten, it is the last one of each kind."""
    order_expires: bool = False
    """Whether the order row has an expiry: the store sets it when the task has ended, and takes it
    back when a person begins the task again."""
    erased_at: int | None = None
    """When the contents of the order were erased: its input, the results and the messages of
    errors (`roundsman.engine.erasure`); None if they were not."""
    erased_by: str | None = None
    """Who erased them, and why: `ann: request 17`; None if they were not erased."""
    failure: str | None = None
    """The id of the failure group (`roundsman.model.failure`): of a task that has failed, or of an
    open task with an unexpected error; None for any other task."""
    deadline: int | None = None
    """The instant after which no step is performed, counted from when the task was submitted.
    Nothing moves it. None if the workflow has none, or once an operator has let the task go on
    after it."""
    limit: str | None = None
    """The key under which the limit of its workflow counts the order: a hash
    (`roundsman.model.order_limit`). None if it is not limited."""
    has_turn: bool = False
    """Whether the order is one of those that the limit lets be under way."""
    turns: int = 0
    """How many turns of the order have ended: one with each end of the task."""
    closing: Closing | None = None
    """The closing steps of the end that the task comes to, or has come to; None if it has none."""
    ended_early: str | None = None
    """Why a step has ended the task early, in words: what had not begun is Skipped. None if none
    has."""
    settled: tuple[SettledRow, ...] = field(default=(), compare=False, repr=False)
    """The rows that the store has for steps of this task, as they were when it was loaded. Only the
    store reads and sets them."""
    input_rows: RowsBeside = field(default=NO_ROWS, compare=False, repr=False)
    """The rows that the store has for the inputs of added steps, as they were when the task was
    loaded. Only the store reads and sets this."""
    result_rows: RowsBeside = field(default=NO_ROWS, compare=False, repr=False)
    """The rows that the store has for results that were left out, as they were when the task was
    loaded. Only the store reads and sets this."""

    @property
    def ended(self) -> bool:
        """Whether the task is in an end state. An operator may resubmit it from some of them."""
        return self.state in END_STATES

    @property
    def turn(self) -> str:
        """What a limit counts of the task: its id, with a number once a turn of it has ended.

        So what ends an earlier turn late does not end the present one.
        """
        return f"{self.task_id}#{self.turns}" if self.turns else self.task_id

    @property
    def perform_by(self) -> int:
        """When the last perform must have ended: `complete_by`, or `deadline` if it is earlier."""
        if self.deadline is None:
            return self.complete_by
        return min(self.complete_by, self.deadline)

    def closes(self, name: str) -> bool:
        """Whether this is one of the closing steps of the task's end."""
        return self.closing is not None and name in self.closing.steps

    def performs(self, name: str) -> bool:
        """Whether the step may still be performed: the task is not ending, or is closed by it."""
        return self.ending is None or self.closes(name)

    def ends_by(self, name: str) -> int:
        """When the last perform of the step must have ended (epoch ms)."""
        if self.closing is not None and name in self.closing.steps:
            return self.closing.by
        return self.perform_by

    @property
    def failed_at(self) -> int | None:
        """When the task joined its failure group: when it ended, since when a step awaits its
        result, or its first unexpected error."""
        if self.ended_at is not None:
            return self.ended_at
        awaited = [one.finished_at for one in self.steps.values() if one.awaits_result]
        since = awaited or [one.retry_window.unexpected_since for one in self.steps.values()]
        return min((at for at in since if at is not None), default=None)

    def step(self, name: str) -> StepRecord:
        """Return the step's record; that of an untouched step if it has none."""
        return self.steps.get(name) or self.untouched(name)

    def untouched(self, name: str) -> StepRecord:
        """Return the record of a step that never began: UNTOUCHED, but for its round."""
        used = self.last_used_round(name)
        return StepRecord(round=used + 1) if used else UNTOUCHED

    def last_used_round(self, name: str) -> int:
        """Return the last round of a step that the task does not have any more; 0 for others."""
        return max(self.used_rounds.get(name, 0), self.used_rounds.get(step_of(name), 0))

    def input(self, order: Json, corrections: int | None = None) -> Json:
        """Return the order with the task's first `corrections` corrections; None: with all.

        `order` is the content of the order row.
        """
        return corrected(order, self.corrections[:corrections])

    def answers(self) -> dict[str, Json]:
        """Return the results of the Processed steps by record name: `pick[0]` for an item."""
        return answers_of(self.steps)

    def left_out(self) -> tuple[str, ...]:
        """Return the names of the items that were left out: they failed, and the task goes on.

        An item that is Skipped without an error has not failed: enough others had succeeded.
        """
        found = (item for name, n in self.fan_outs.items() for item in item_names(name, n))
        return tuple(
            item
            for item in found
            if self.step(item).process_state is ProcessState.SKIPPED and self.step(item).error
        )

    def results(self, enough: Collection[str] = ()) -> dict[str, Json]:
        """Return the results of the steps by step name.

        The result of a fan-out step is a list in the order of the items, with None for an item that
        was left out. The list is included only when every item is Processed or Skipped, or if the
        fan-out is in `enough`: so many of its items have succeeded that the others are not needed.
        """
        found = self.answers()
        for name, count in self.fan_outs.items():
            items = item_names(name, count)
            records = [self.step(item) for item in items]
            # A list with a result that was left out would have null for it.
            if name in enough or all(one.done and not one.left_out for one in records):
                found[name] = [found.get(item) for item in items]
            for item in items:
                found.pop(item, None)
        return found

    def came(self) -> dict[str, Json]:
        """Return whether the result of a step is an answer that came, by step name.

        False if nobody has answered in time, so that the result is the step's `otherwise`. Of a
        fan-out step it is a list in the order of the items.
        """
        found: dict[str, Json] = {name: not one.unanswered for name, one in self.steps.items()}
        for name, count in self.fan_outs.items():
            found[name] = [found.pop(item, True) for item in item_names(name, count)]
        return found


def answers_of(steps: Mapping[str, StepRecord]) -> dict[str, Json]:
    """Return the results of the Processed steps, by record name."""
    return {
        name: record.result
        for name, record in steps.items()
        if record.process_state is ProcessState.PROCESSED and record.left_out is None
    }


def item_names(step: str, count: int) -> tuple[str, ...]:
    """Return the names of the item records of a fan-out step: `pick[0]`, `pick[1]`."""
    return tuple(f"{step}[{index}]" for index in range(count))


def item_place(name: str) -> tuple[str, int] | None:
    """Split the name of an item record: `pick[3]` gives `("pick", 3)`. None for other names."""
    found = _ITEM.fullmatch(name)
    return (found[1], int(found[2])) if found else None


def fan_out_of(name: str) -> str:
    """Return the fan-out that an item belongs to: `pick[3]` gives `pick`; else the name itself."""
    found = item_place(name)
    return found[0] if found else name


def step_of(name: str) -> str:
    """Return the step or kind of the definition that a record belongs to: `pick[3]` gives `pick`.

    The name of a step of the definition is returned unchanged.
    """
    found = _PART.fullmatch(name)
    return found[1] if found else name


def added_name(kind: str, label: str) -> str:
    """Return the name of the record of an added step: `book_leg[leg-3]`."""
    return f"{kind}[{label}]"


LABEL: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,39}")
"""The name that an added step has within its kind. It is never only digits, as that of an item."""
ADDED_NAME: Final = re.compile(rf"[a-z][a-z0-9_]{{0,39}}\[{LABEL.pattern}\]")
"""The name of the record of an added step."""
_ITEM = re.compile(r"(.+)\[([0-9]+)\]")
_PART = re.compile(r"(.+)\[([A-Za-z0-9][A-Za-z0-9._-]*)\]")


TASK_ID: Final = re.compile(r"[A-Za-z0-9._~-]{1,128}")
"""What the id of an order may be."""


def idempotency_key(task_id: str, step: str, operation: str, record: StepRecord) -> str:
    """Return the idempotency key of one effect.

    The key is the same in every attempt, redelivery and resubmission. `operation` is `perform` or
    `undo`. A remote service answers a used key with the old result. So a new round (a fresh key)
    and another agent each have a key of their own.
    """
    parts = [task_id, step, operation]
    if record.round > 1:
        parts.append(str(record.round))
    if record.agent:
        parts.append(record.agent)
    return "/".join(parts)
