"""The situations of a step, each with the values that exist only in it.

A step is in one of nine, for its perform and for its undo (`StepRecord.situation`). What outlives
a situation, such as the idempotency key and the number of failures, is in the record itself.
Instants are epoch ms; None means that there is no such instant.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

EVERY_ORDER = "*"
"""What a step waits for that is parked by a hold on orders: on those of a workflow, or on all."""

SEVERAL = "+"
"""What waits for more than one: for the first of several agents, or with several steps."""

TURN = "#"
"""What a step waits for whose order may not begin yet, by the limit of its workflow."""

OF_TENANT = "~"
"""Stands between agent and tenant in what a step waits for whose tenant is at its rate
(`roundsman.model.tenant_rate`). It is in no name of an agent."""


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The steps before it are not done, or it was not looked at yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """It is to be claimed: a Start was sent."""

    claim_by: int
    """When the step should have been claimed. If it was not, its Start was lost or is late."""
    late_since: int | None = None
    """Since when Starts of the step have been late."""
    parked_since: int | None = None
    """Since when the step was parked before. Until it is claimed, the time counts as parked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitsUntil:
    """It waits for a time: for its next attempt, or until no request to perform it can act."""

    not_before: int
    """The earliest start of the next attempt."""
    claim_by: int
    """When the step should have been claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """It waits only because of a hold, on its agent or on its order."""

    not_before: int
    """When the hold is checked again, if nobody has woken the step before."""
    claim_by: int
    """When the step should have been claimed."""
    since: int
    """Since when the step has been parked."""
    held_for: str | None = None
    """Whose hold the step waits for: an agent, EVERY_ORDER for the holds on orders, or SEVERAL;
    TURN if it waits for the turn of its order; a lane of its tenant at an agent if that is at its
    rate (`model.tenant_rate`). None in records of code that did not store it: such
    a step is not woken, and checks the hold itself within minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asleep:
    """It is a sleep, which has begun and ends by itself. It has no agent."""

    until: int
    """When the sleep ends."""
    since: int
    """When it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsSignal:
    """It waits for a signal, which ends it. It has no agent."""

    until: int
    """When the step fails if no signal has come."""
    since: int
    """When the wait began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """An attempt is under way: the values of AtAgent and AwaitsCallback."""

    lock: str
    """The lock token of the attempt. A reply counts for the attempt that has its token."""
    until: int
    """Until when the attempt waits: for its reply, or for its callback. The request itself may be
    allowed to act for longer (`roundsman.engine.request_deadlines`)."""
    heard_at: int | None = None
    """When the agent last reported on the attempt (progress, or waiting for a callback)."""
    extra: int = 0
    """Time in ms that a person added to the attempt. The next request has it (`granted`)."""
    late_since: int | None = None
    """Since when the attempt is late, if its reply may wait in its queue."""
    read_past_at: int | None = None
    """While the attempt is late: when it was first known that a reply was read that was sent after
    the attempt's end; None if it is not known."""

    @property
    def overdue_at(self) -> int:
        """When the attempt is overdue, and the engine checks it."""
        return self.until

    @property
    def sent_by(self) -> str | None:
        """The token of the last request or reminder; it identifies the message that caused it."""
        return self.lock


@dataclass(frozen=True, slots=True, kw_only=True)
class AtAgent(UnderWay):
    """Its request was sent, or is about to be."""

    heartbeat_by: int | None = None
    """When the attempt is overdue if it shows no progress; None if it needs no heartbeat."""

    @property
    def overdue_at(self) -> int:
        """When the attempt is overdue: `heartbeat_by` if it has one, else `until`."""
        return self.until if self.heartbeat_by is None else self.heartbeat_by


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsCallback(UnderWay):
    """Its agent has asked somebody, whose answer ends the attempt. Only a perform waits so."""

    remind_every: int = 0
    """The time in ms between two reminders; 0 for none."""
    remind_at: int | None = None
    """When the next reminder is due; None if no reminders are sent."""
    reminded_by: str | None = None
    """The token of the last reminder. It identifies the message that caused it, as `lock` does for
    a claim, so that a redelivery of that message sends it again."""

    @property
    def sent_by(self) -> str | None:
        """The token of the last reminder; None if none was sent."""
        return self.reminded_by


class End(StrEnum):
    """How a perform or an undo ended."""

    SUCCEEDED = "succeeded"
    AWAITS_RESULT = "awaits its result"
    """The perform succeeded, and its result was left out of the record. What comes after the step
    waits until a person has given the result."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """Its condition was false, it had no items, or it is an item that failed and was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """It is over."""

    how: End
    until: int | None = None
    """Until when the last attempt to perform the step would have waited: a copy of its request may
    still act. None if there was no attempt; of a skipped step and of an undo it is not kept."""


ToBegin: TypeAlias = Ready | WaitsUntil | Parked
"""The situations in which a step is to be claimed, at once or later."""
Attempt: TypeAlias = AtAgent | AwaitsCallback
"""The situations in which an attempt is under way."""
WithoutAgent: TypeAlias = Asleep | AwaitsSignal
"""The situations of a step without an agent that has begun and is not over."""
Situation: TypeAlias = NotBegun | ToBegin | WithoutAgent | Attempt | Ended
"""What a step does or waits for."""
