"""What all modules about attempts share: an attempt with another end, and the words for it.

A step has two operations: perform, and undo if its effect is compensated. Attempts of both have a
claim (`claims`), an end (`replies`), a time limit (`overdue`), a failure count and a limit
(`retries`). `StepRecord.operation` says which it is.
"""

from dataclasses import replace
from typing import TypeVar

from roundsman.definition.plan import StepPlan
from roundsman.model.situations import AtAgent, Attempt
from roundsman.model.task import PERFORM, StepRecord

A = TypeVar("A", bound=Attempt)


def in_time(attempt: A) -> A:
    """The attempt, if nothing is late about it any more."""
    return replace(attempt, late_since=None, read_past_at=None)


def extended(attempt: Attempt, until: int) -> Attempt:
    """The attempt, extended to `until` (epoch ms): it is not overdue before."""
    longer = replace(attempt, until=max(attempt.until, until))
    if isinstance(longer, AtAgent) and longer.heartbeat_by is not None:
        return replace(longer, heartbeat_by=until)
    return longer


def unknown_after(record: StepRecord) -> bool:
    """Whether the effect of the perform is unknown after an attempt without a definite answer."""
    return record.outcome_unknown or record.operation == PERFORM


def what_words(step: StepPlan, operation: str) -> str:
    """What an attempt is about, to begin a sentence: `charge_card (undo)`."""
    return step.name if operation == PERFORM else f"{step.name} (undo)"


def number_words(number: int, most: int | None) -> str:
    """Which attempt it is: `attempt 2 of 3`; `most` is None if no number limits the attempts."""
    return f"attempt {number}" if most is None else f"attempt {number} of {most}"
