"""Events and decisions: what can happen to a task, and what the engine decides on it.

A decision contains the task to store, the actions for the caller, and the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from roundsman.model.corrections import Correction
from roundsman.model.json import Json
from roundsman.model.task import (
    UNDO,
    EarlyEnd,
    Effect,
    Operation,
    StepError,
    StepToAdd,
    Task,
    UnreadSignal,
)


@dataclass(frozen=True, slots=True)
class Claimant:
    """The identity under which a scheduler claims steps while it handles one message."""

    instance: str
    """The scheduler instance."""
    nonce: str
    """A hash of the message id. After a redelivery, it identifies the claims that the same message
    made before; only the requests of those claims are sent again."""
    sent_at: int | None = None
    """When the message was sent, in epoch ms, if it could be read from then on; else None."""

    def token(self, attempt: int, version: int) -> str:
        """Return the lock token of a claim, for example `7f3a-0c1d2e3f4a.1.5`.

        `version` is the version of the record that stores the claim. It makes the token unique,
        even if the same message claims the same attempt of the step twice.
        """
        return f"{self.instance}-{self.nonce}.{attempt}.{version}"

    def made(self, token: str | None) -> bool:
        """Whether this message made the claim with that lock token, on this or another instance."""
        return token is not None and token.partition(".")[0].endswith(f"-{self.nonce}")


def claim_of(token: str) -> int | None:
    """Return the claim number in a lock token: the version of the record that stored the claim.

    A later claim in the same task has a higher number. Returns None for an invalid lock token.
    """
    number = token.rpartition(".")[2]
    found = token.count(".") == 2 and number.isdecimal() and len(number) <= 15
    return int(number) if found else None


def attempt_of(token: str) -> int | None:
    """Return the attempt number in a lock token; None for an invalid lock token."""
    _, _, numbers = token.partition(".")
    number = numbers.partition(".")[0]
    return int(number) if number.isdecimal() and len(number) <= 9 else None


@dataclass(frozen=True, slots=True)
class Start:
    """Start every step that is ready. The event is idempotent and may come at any time."""

    claimant: Claimant


class Outcome(StrEnum):
    """What an agent reports about an attempt: how the attempt ended, or that it continues."""

    SUCCEEDED = "succeeded"
    TRANSIENT = "transient"  # failed; another attempt may succeed
    PERMANENT = "permanent"  # failed; no other attempt can succeed
    HELD = "held"  # the agent cannot take the step now; the attempt is not counted
    PROGRESS = "progress"  # a heartbeat; the attempt continues
    WAITING = "waiting"  # the attempt waits for a callback
    POLLING = "polling"  # the outside job is not done; the attempt is made again and not counted


@dataclass(frozen=True, slots=True)
class Replied:
    """An agent replied to a request. `roundsman.wire.messages.Reply` documents the fields."""

    claimant: Claimant
    step: str
    operation: str
    lock: str
    key: str
    outcome: Outcome
    result: Json = None
    error: StepError | None = None
    retry_after: int | None = None
    until: int | None = None
    remind_every: int | None = None
    again_in: int | None = None
    within: int | None = None
    outcome_unknown: bool = False
    effect: Effect | None = None
    callback: bool = False
    then: tuple[StepToAdd, ...] = ()
    left_out: str | None = None
    end: EarlyEnd | None = None
    sender: str | None = None
    """The principal that sent the reply, as AWS authenticated it; None if it is not known."""


@dataclass(frozen=True, slots=True)
class Inspect:
    """Look for anything overdue in the task. This event never claims a step."""


@dataclass(frozen=True, slots=True)
class CommandSource:
    """The sender of a command, the reason, and the version of the task that the sender saw."""

    command_id: str
    """Makes the command idempotent: a command with the same id acts once."""
    by: str
    """Who sent the command, as the command itself states; nothing proves it."""
    reason: str = ""
    """The reason in words."""
    seen_version: int | None = None
    """The command is refused if the task has another version; None for any version. A completed
    task is taken back only by a command that names its version."""
    forwarded_for: str | None = None
    """For whom the sender sends the command, as the command states; None for itself. It counts only
    in a message of submission, of the supervisor or of the console of a team
    (`roundsman.model.senders`)."""
    sender: str | None = None
    """The principal that sent the command, as AWS authenticated it, or the person who is signed in
    at the console of a team (`roundsman.model.senders`); None if it is not known. Never read from
    the command of anybody else."""

    @property
    def words(self) -> str:
        """Who sent the command, and why: `ann: the card is good again`."""
        return f"{self.by}: {self.reason}" if self.reason else self.by


@dataclass(frozen=True, slots=True)
class Resubmit:
    """Continue a task that a failure ended: attempt its failed steps again."""

    asked: CommandSource
    steps: tuple[str, ...] = ()
    """The failed steps to attempt again; empty for all of them."""
    fresh_key: bool = False
    """Perform the failed steps under a fresh idempotency key."""
    again: bool = False
    """Begin an undone or cancelled task again from its first step, under fresh keys."""
    plan: str | None = None
    """The hash of the plan of the same workflow under which the task continues; None for its
    own."""
    changes: Correction = ()
    """Changes of the task's input; the steps that go on get the corrected input."""
    used: bool = False
    """Also change what a finished step or an evaluated condition has used."""
    not_done: tuple[str, ...] = ()
    """Unfinished steps that did not happen, as the operator states; each gets a fresh key, without
    an undo."""


@dataclass(frozen=True, slots=True)
class UndoAsked:
    """Compensate every step that may have had an effect."""

    asked: CommandSource


@dataclass(frozen=True, slots=True)
class UndoPart:
    """Compensate some steps of a completed task; the others stand.

    It has a kind of its own among the commands: code that does not know it rejects it, and does not
    undo the whole task.
    """

    asked: CommandSource
    steps: tuple[str, ...]
    """The steps that are undone, at least one, by record name (`pick[2]`, `leg[a]`)."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop the task."""

    asked: CommandSource
    undo: bool = True
    """First compensate every step that may have had an effect."""


@dataclass(frozen=True, slots=True)
class Resolve:
    """A person states the outcome of a step."""

    asked: CommandSource
    step: str
    """The step that is resolved."""
    did: bool
    """Whether the step happened."""
    result: Json = None
    """The step's result, if it happened."""
    fresh_key: bool = False
    """The step did not happen, and is performed under a fresh idempotency key: the service may
    remember a refusal under the old key."""


@dataclass(frozen=True, slots=True)
class Extend:
    """Give more time to a step whose request is at its agent, or to the task."""

    asked: CommandSource
    seconds: int
    """The additional time in seconds."""
    step: str | None = None
    """The step that gets the time; None for the task."""


@dataclass(frozen=True, slots=True)
class RunNow:
    """Start a scheduled task now, or make the next attempt of every waiting step now."""

    asked: CommandSource


@dataclass(frozen=True, slots=True)
class Move:
    """Let an open task go on under another plan of its workflow."""

    asked: CommandSource
    plan: str
    """The hash of the plan."""


@dataclass(frozen=True, slots=True)
class Reconcile:
    """The task's record was restored as it was at an earlier instant: send again what it owes."""

    asked: CommandSource
    restored_to: int
    """The instant to which the tables were restored, in epoch ms."""


@dataclass(frozen=True, slots=True)
class Erase:
    """Remove the contents of an order whose task has ended, and keep the record that it was."""

    asked: CommandSource


@dataclass(frozen=True, slots=True)
class Signalled:
    """A signal has come. It ends a step that waits for one with its name, now or later."""

    asked: CommandSource
    """`command_id` is the id of the signal."""
    name: str
    """The name for which a step waits."""
    data: Json = field(default=None, repr=False)
    """What the step gets as its result."""


ChangeAsked: TypeAlias = (
    Resubmit
    | UndoAsked
    | UndoPart
    | Cancel
    | Resolve
    | Extend
    | RunNow
    | Move
    | Reconcile
    | Signalled
)
"""A command that changes how its task goes on."""
OperatorEvent: TypeAlias = ChangeAsked | Erase
CommandKind: TypeAlias = Literal[
    "resubmit",
    "undo",
    "undo-part",
    "cancel",
    "resolve",
    "extend",
    "run",
    "move",
    "reconcile",
    "signal",
    "erase",
]
COMMAND_KINDS: Mapping[type[OperatorEvent], CommandKind] = {
    Resubmit: "resubmit",
    UndoAsked: "undo",
    UndoPart: "undo-part",
    Cancel: "cancel",
    Resolve: "resolve",
    Extend: "extend",
    RunNow: "run",
    Move: "move",
    Reconcile: "reconcile",
    Signalled: "signal",
    Erase: "erase",
}
"""The name of each command in messages, in the history and on the command line, on which
`undo-part` is `undo --steps`."""

Event: TypeAlias = Start | Replied | Inspect | OperatorEvent


@dataclass(frozen=True, slots=True)
class HoldView:
    """What a decision knows of the holds that are in force together on one thing."""

    until: int
    """When the last of them ends, in epoch ms."""
    why: str = ""
    """The reasons for them, in words."""
    passes: frozenset[str] = frozenset()
    """The ids of the tasks that all of them let pass."""


@dataclass(frozen=True, slots=True)
class AgentView:
    """The state of one request queue of an agent, from its read mark and the agent's holds.

    Instants are epoch ms. See `roundsman.model.queue_lag`.
    """

    lag: int = 0
    """How long the request that was read last had waited, in ms; 0 if the mark is out of date."""
    reads: int | None = None
    """When the request that was read last was sent; None if the mark is out of date."""
    read_up_to: int | None = None
    """A request sent later than this has not been read; None if there is no mark."""
    read_lock: str | None = None
    """The lock of the request that the mark names; None if it is not known."""
    unread: bool = False
    """No read mark exists: as far as is known, nothing was ever read from the queue."""
    agent_hold: HoldView | None = None
    """The hold on the agent, by an operator or because its circuit breaker is open."""
    performs_hold: HoldView | None = None
    """The hold because of which no step of the order is performed: on its workflow or on
    everything."""
    undos_hold: HoldView | None = None
    """The hold because of which no step of the order is undone; None if undos go on."""

    def hold_on(self, operation: Operation) -> HoldView | None:
        """The hold because of which no request for the operation is sent to the agent.

        It is that on the order and that on the agent together; None if no hold is known.
        """
        of_order = self.hold_on_order(operation)
        if of_order is None or self.agent_hold is None:
            return of_order or self.agent_hold
        until = max(of_order.until, self.agent_hold.until)
        return HoldView(until, f"{of_order.why}; {self.agent_hold.why}")

    def hold_on_order(self, operation: Operation) -> HoldView | None:
        """The hold on orders because of which no such operation of the order begins."""
        return self.undos_hold if operation == UNDO else self.performs_hold


Agents: TypeAlias = Mapping[str, AgentView]
"""The views of the queues, keyed by agent and priority: `payment/normal`."""


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send the request of the step's current claim to its agent; if the claim waits for a callback,
    send its last reminder."""

    step: str


@dataclass(frozen=True, slots=True)
class StartTask:
    """A step is ready to be claimed: send a `start` command."""


@dataclass(frozen=True, slots=True)
class InspectAt:
    """Inspect the task again at this instant.

    This is best effort: if the message is lost, a supervisor finds the task through its due entry.
    """

    at: int
    """Epoch ms."""


@dataclass(frozen=True, slots=True)
class WakeOrder:
    """Inspect the task of another order now: it may be its turn. Best effort, as InspectAt."""

    order: str


Action: TypeAlias = SendRequest | StartTask | InspectAt | WakeOrder


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One row of a task's history: a failed attempt, a recovery, an undo or a command."""

    seq: int
    """The range key; it orders the rows (`roundsman.engine.history.seq`)."""
    at: int
    """When it happened, in epoch ms."""
    kind: str
    """What happened, for example `failed`, or the name of the command."""
    step: str | None
    """The step; None if the row is about the whole task."""
    attempt: int | None
    """The number of the attempt, from 1; None if the row is about no attempt."""
    reason: str
    """The reason in words."""
    by: str | None = None
    """Who sent the command, as it states itself; None if the row is about no command."""
    command_id: str | None = None
    """The id of the command; None if the row is about no command."""
    sender: str | None = None
    """The principal that sent the command or the answer to a callback, as AWS authenticated it, or
    `amy (through console)` for a command that the console of a team sent for a person; None if the
    row is about neither, or if the principal is not known."""
    signal: UnreadSignal | None = None
    """The signal that no step can read any more; None if the row is about none."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the engine decides on an event."""

    task: Task
    """The task to store. If nothing changed, it is the same object that was passed in, and nothing
    is stored."""
    actions: tuple[Action, ...]
    """What to send. If nothing changed, the actions may repeat those that an earlier delivery of
    the same message caused."""
    reason: str
    """The reason in words, for the log."""
    history: tuple[HistoryRow, ...] = ()
    """The history rows to store together with the task."""
    inputs: Mapping[str, Json] = field(default_factory=dict, repr=False)
    """The inputs of the steps that it adds to the task, by record name."""

    def then(self, later: "Decision") -> "Decision":
        """Merge this decision with a later one that was made on its task.

        An action of both is sent once.
        """
        return Decision(
            later.task,
            tuple(dict.fromkeys((*self.actions, *later.actions))),
            f"{self.reason}; {later.reason}",
            (*self.history, *later.history),
            {**self.inputs, **later.inputs},
        )
