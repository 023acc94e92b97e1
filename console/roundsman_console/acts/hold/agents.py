"""Putting an agent on hold, and releasing it.

A hold is a row that schedulers and agents read, not a command to a task. It takes effect when they
next read it, and ends by itself at its end time.
"""

from dataclasses import dataclass, replace

from roundsman.aws.clock import now
from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.instants import SECOND
from roundsman.wire.limits import wire_text
from roundsman_console.acts.hold.alerts import alert_held, alert_released
from roundsman_console.acts.hold.wake import Woken, first_wake_after
from roundsman_console.acts.order.sent import check_sender
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InspectorError, InvalidArgument
from roundsman_console.base.limits import LONGEST_HOLD, SHORTEST_HOLD
from roundsman_console.facts.agent.reading import AgentNow, find_agent
from roundsman_console.facts.hold.documents import (
    AgentHeldDocument,
    AgentReleasedDocument,
    HoldDocument,
)
from roundsman_console.facts.hold.view import circuit_sentence, hold_document


@dataclass(frozen=True, slots=True)
class AgentHold:
    """An agent that was put on hold."""

    hold: Hold
    before: AgentNow
    """The agent before the hold."""
    not_alerted: str | None
    """Why the other operators were not alerted; None if they were."""

    @property
    def replaced(self) -> Hold | None:
        """The operator's hold that was in force before."""
        return self.before.hold(OPERATOR)

    def document(self) -> AgentHeldDocument:
        """Return the result as JSON for scripts."""
        return {
            "agent": self.hold.agent,
            "command": "hold",
            "outcome": "done",
            "hold": hold_document(self.hold),
            "replaced": _hold(self.before, OPERATOR),
            "circuit": _hold(self.before, BREAKER),
        }


@dataclass(frozen=True, slots=True)
class AgentRelease:
    """An agent that was released."""

    agent: AgentNow
    """The agent before the release, without the holds that were unreadable."""
    by: str
    reason: str
    """Empty if no reason was given."""
    released_at: int
    """In epoch ms."""
    not_alerted: str | None
    """Why the other operators were not alerted; None if they were."""
    first_wake: int | None
    """When the first waiting order may go on (epoch ms). None if the circuit is open too: once its
    recovery time is over, the supervisor wakes one order that tries it."""
    still_held: tuple[Hold, ...] = ()

    @property
    def wakes(self) -> str:
        """The agent, whose waiting orders may go on now."""
        return self.agent.name

    def document(self, woken: Woken) -> AgentReleasedDocument:
        """Return the release and the tasks that were woken after it as JSON for scripts."""
        return {
            "agent": self.agent.name,
            "command": "release",
            "outcome": "done",
            "by": self.by,
            "reason": self.reason or None,
            "hold": _hold(self.agent, OPERATOR),
            "circuit": _hold(self.agent, BREAKER),
            **woken.document(),
        }


def check_hold(seconds: int, by: str, reason: str) -> None:
    """Check the arguments of a hold.

    Raises InvalidArgument if `seconds` is not from SHORTEST_HOLD to LONGEST_HOLD, or if the name or
    the reason is empty or too long.
    """
    if not SHORTEST_HOLD <= seconds <= LONGEST_HOLD:
        raise InvalidArgument(
            f"A hold lasts {SHORTEST_HOLD} to {LONGEST_HOLD} seconds, not {seconds}."
        )
    check_sender(by, reason)


def hold_agent(
    stack: DeployedStack, agent: AgentNow, seconds: int, *, by: str, reason: str
) -> AgentHold:
    """Put the agent on hold for `seconds` from now, and alert the other operators.

    Raises what `check_hold` raises; TryAgain or CallRefused if the hold cannot be stored.
    """
    check_hold(seconds, by, reason)
    at = now()
    hold = Hold(agent.name, OPERATOR, at, at + seconds * SECOND, wire_text(reason), wire_text(by))
    stack.holds.hold(hold)
    return AgentHold(hold, agent, alert_held(stack, hold))


def release_agent(stack: DeployedStack, name: str, *, by: str, reason: str = "") -> AgentRelease:
    """Release the agent from the operator's hold, and alert the other operators.

    The supervisor wakes the orders that wait for the agent, from its next pass on; with
    `wake_released` the first ones go on at once. Raises InvalidArgument if the name is empty, or
    the name or the reason is too long; NotFound if there is no such agent; and InspectorError if no
    operator holds it.
    """
    check_sender(by, reason, reason_required=False)
    by, reason = wire_text(by), wire_text(reason)
    held = find_agent(stack, name)
    # An unreadable hold never ends by itself, so this also ends one of a circuit breaker.
    kinds = [OPERATOR, *(hold.kind for hold in held.holds if hold.unreadable)]
    released = [stack.holds.release(held.name, kind) for kind in kinds]
    circuit = held.hold(BREAKER)
    if not any(released):
        also = f" {circuit_sentence(circuit)}" if circuit else ""
        raise InspectorError(f"{held.name} is not held by an operator.{also}")
    if circuit is not None and circuit.unreadable:  # it was released, too
        held = replace(held, holds=tuple(hold for hold in held.holds if hold != circuit))
        circuit = None
    released_at = now()
    not_alerted = alert_released(stack, held.name, by, reason, released_at)
    first = None if circuit else first_wake_after(now())
    return AgentRelease(held, by, reason, released_at, not_alerted, first)


def can_be_released(agent: AgentNow) -> bool:
    """Return whether `release_agent` would end a hold of the agent."""
    return any(hold.kind == OPERATOR or hold.unreadable for hold in agent.holds)


def _hold(agent: AgentNow, kind: str) -> HoldDocument | None:
    hold = agent.hold(kind)
    return hold_document(hold) if hold else None
