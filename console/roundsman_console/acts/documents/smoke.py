"""The document about a smoke test."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from roundsman.model.states import TaskState
from roundsman_console.base.constraints import Count
from roundsman_console.base.result import Shown, rounded
from roundsman_console.facts.order.why_facts import DiagnosisDocument

SmokeOutcome: TypeAlias = Literal["asExpected", "endedOtherwise", "notEnded", "rejected", "noTask"]
"""How a smoke test ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeQueueDocument:
    """A queue that had messages when the smoke test gave up."""

    queue: str
    waiting: Count
    in_flight: Count
    oldest_seconds: int | None
    """The age of the oldest message; null if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeDocument:
    """The result of sending one order through a deployed stack."""

    order_id: str
    event: str
    """The file of the order event."""
    ok: bool
    """Whether the order ended as expected; the exit code is then 0."""
    outcome: SmokeOutcome
    expected: TaskState
    state: TaskState | None
    """The state of the task; null if there is none, or if it cannot be read."""
    sentence: str
    """The result in words: if the order is stuck, where."""
    changes: Sequence[str]
    """What was seen on the way, with the seconds since the order was sent."""
    why: DiagnosisDocument | None
    """What the order waits for; null if it ended as expected or has no task."""
    queues: Sequence[SmokeQueueDocument]
    """The queues that had messages; empty if the order ended."""
    left: Sequence[str]
    """What the test leaves behind, in words; never empty unless every effect was undone."""
    next: str | None
    """The command to run next; null if there is nothing to do."""
    seconds: Annotated[float, Shown(unit=rounded(1))]
