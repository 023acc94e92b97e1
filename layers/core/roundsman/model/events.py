"""What can happen to a task, and what a decision asks the shell to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from roundsman.model.json import Json
from roundsman.model.task import Effect, StepError, Task


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who would claim: the scheduler instance, and a nonce hashed from the message it handles.

    The nonce lets a redelivered message know the claims it made itself: only those are sent again.
    """

    instance: str
    nonce: str

    def token(self, attempt: int, version: int) -> str:
        """The lock token of a claim: `7f3a-0c1d2e3f4a.1.5`.

        `version` is that of the record which stores the claim. So the token is given once, even
        where the same message claims the same attempt of the step twice.
        """
        return f"{self.instance}-{self.nonce}.{attempt}.{version}"

    def made(self, token: str | None) -> bool:
        """Whether this message, on whatever instance, made the claim with that token."""
        return token is not None and token.partition(".")[0].endswith(f"-{self.nonce}")


def claim_of(token: str) -> int | None:
    """The number of the claim with that lock token, higher than those before it in its task.

    None where it is no token of ours.
    """
    number = token.rpartition(".")[2]
    found = token.count(".") == 2 and number.isdecimal() and len(number) <= 15
    return int(number) if found else None


def attempt_of(token: str) -> int | None:
    """Which attempt a lock token belongs to; None where it is no token of ours."""
    _, _, numbers = token.partition(".")
    number = numbers.partition(".")[0]
    return int(number) if number.isdecimal() and len(number) <= 9 else None


@dataclass(frozen=True, slots=True)
class Start:
    """Start whatever is ready. Harmless at any time, any number of times."""

    claimant: Claimant


class Outcome(StrEnum):
    """What an agent says of an attempt: how it ended, or that it goes on."""

    SUCCEEDED = "succeeded"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    HELD = "held"
    PROGRESS = "progress"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Replied:
    """An agent answered a request; the fields are those of `messages.Reply`."""

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
    outcome_unknown: bool = False
    effect: Effect | None = None
    callback: bool = False


@dataclass(frozen=True, slots=True)
class Inspect:
    """A timer ran out: look for anything overdue. Never claims."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asked for something, why, and on what view of the task.

    A command acts once, by its id; and only on the version its sender saw, where it names one.
    """

    command_id: str
    by: str
    reason: str = ""
    seen_version: int | None = None


@dataclass(frozen=True, slots=True)
class Resubmit:
    """Go on with a task that a failure has ended: the failed steps, or those that are named."""

    asked: Asked
    steps: tuple[str, ...] = ()
    fresh_key: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class UndoAsked:
    """Compensate whatever may have happened."""

    asked: Asked


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop; with `undo`, compensate first."""

    asked: Asked
    undo: bool = True


@dataclass(frozen=True, slots=True)
class Resolve:
    """A person knows the outcome of a step: it did happen, with this result, or it did not.

    `fresh_key`: it did not, and is made under a new key, since its service may remember a refusal.
    """

    asked: Asked
    step: str
    did: bool
    result: Json = None
    fresh_key: bool = False


@dataclass(frozen=True, slots=True)
class Extend:
    """More time: to a step that is at its agent, or to the task where no step is named."""

    asked: Asked
    seconds: int
    step: str | None = None


@dataclass(frozen=True, slots=True)
class RunNow:
    """Wait no longer for the task's time, or for a step's next attempt."""

    asked: Asked


OperatorEvent: TypeAlias = Resubmit | UndoAsked | Cancel | Resolve | Extend | RunNow
COMMAND_KINDS: Mapping[type[OperatorEvent], str] = {
    Resubmit: "resubmit",
    UndoAsked: "undo",
    Cancel: "cancel",
    Resolve: "resolve",
    Extend: "extend",
    RunNow: "run",
}
"""What each is called in messages, in the history and on the command line."""

Event: TypeAlias = Start | Replied | Inspect | OperatorEvent


@dataclass(frozen=True, slots=True)
class AgentView:
    """What is known of one agent's request queue.

    `lag` is the age in ms of the request that was last read, and `reads` when that one was sent;
    0 and None where that is no news. A request sent later than `read_up_to` has not been read.
    `read_lock` is the lock of the request that was noted last; None where that is not known.
    `unread` says that nothing was ever read of the queue, as far as the marks know.
    `held_until` (epoch ms) is set while the agent takes no work, because an operator holds it or
    its breaker is open; `held_why` says which, in words.
    """

    lag: int = 0
    reads: int | None = None
    read_up_to: int | None = None
    read_lock: str | None = None
    unread: bool = False
    held_until: int | None = None
    held_why: str = ""


Agents: TypeAlias = Mapping[str, AgentView]
"""By agent and priority: `payment/normal`."""


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send the request of the step's current claim to its agent."""

    step: str


@dataclass(frozen=True, slots=True)
class StartTask:
    """Something is ready to be claimed: follow with Start."""


@dataclass(frozen=True, slots=True)
class InspectAt:
    """Look again at this instant (epoch ms); best effort, the due entry stands behind it."""

    at: int


Action: TypeAlias = SendRequest | StartTask | InspectAt


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One line of a task's history: a failed attempt, a recovery, an undo or an operator's act.

    `by` and `command_id` say whose act it was, and in answer to which command.
    """

    seq: int
    at: int
    kind: str
    step: str | None
    attempt: int | None
    reason: str
    by: str | None = None
    command_id: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of an event: the task to store, what to send, and why, in words.

    `task` is the very object that was passed in where nothing changed; then nothing is stored,
    though actions may repeat what a redelivered message had caused.
    """

    task: Task
    actions: tuple[Action, ...]
    reason: str
    history: tuple[HistoryRow, ...] = ()

    def then(self, later: "Decision") -> "Decision":
        """This decision and one made on its outcome, as one to store and send."""
        return Decision(
            later.task,
            (*self.actions, *later.actions),
            f"{self.reason}; {later.reason}",
            (*self.history, *later.history),
        )
