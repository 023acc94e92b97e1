"""Documents about agents and their holds."""

from typing import Literal, TypedDict

from roundsman_console.constraints import Count, Duration, Instant


class HoldDocument(TypedDict):
    """Why an agent takes no work, and until when."""

    since: Instant
    until: Instant
    by: str
    """The operator, or the circuit breaker."""
    reason: str


class AgentDocument(TypedDict):
    """One agent."""

    agent: str
    takesWork: bool
    hold: HoldDocument | None
    """The hold of an operator."""
    circuit: HoldDocument | None
    """The hold of the circuit breaker."""
    lag: dict[str, Duration]
    """How far the agent is behind in its request queues, in seconds, by priority."""


class AgentListDocument(TypedDict):
    """The agents of a stack."""

    agents: list[AgentDocument]


class AgentHeldDocument(TypedDict):
    """An agent that was put on hold."""

    agent: str
    command: Literal["hold"]
    outcome: Literal["done"]
    hold: HoldDocument
    """The hold that is now in force."""
    replaced: HoldDocument | None
    """The operator's hold that was in force before."""
    circuit: HoldDocument | None
    """The hold of the circuit breaker."""


class AgentReleasedDocument(TypedDict):
    """An agent that was released, and the tasks that were woken after it."""

    agent: str
    command: Literal["release"]
    outcome: Literal["done"]
    by: str
    reason: str | None
    hold: HoldDocument | None
    """The operator's hold that was ended."""
    circuit: HoldDocument | None
    """The hold of the circuit breaker."""
    looked: Count
    """The number of open tasks that were read."""
    woken: Count
    unread: Count
    """The number of open tasks that could not be read."""
    whole: bool
    """Whether all open tasks were examined."""
