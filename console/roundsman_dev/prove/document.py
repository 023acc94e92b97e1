"""What was seen of a proof: what was sent, and all that was there when everything had ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from roundsman_console.facts.audit.stored_order import StoredOrder


@dataclass(frozen=True, slots=True)
class SentOrder:
    """An order that was sent."""

    order_id: str
    at: int
    """When it was sent first, in epoch ms."""
    copies: int = 1
    """How often it was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What the services know of one idempotency key."""

    key: str
    agent: str | None = None
    """The agent that performed; None if it was only undone."""
    calls: int = 0
    """The number of calls to perform."""
    undo_calls: int = 0
    effects: int = 0
    """How often its effect came about."""
    stands: bool = False
    """Whether it stands now."""
    took_at: int | None = None
    """When it last came about, in epoch ms."""
    undone_at: int | None = None
    """When it was first undone, in epoch ms; every later perform is refused."""
    fenced: int = 0
    """The number of calls that were refused because the key was undone."""
    late: int = 0
    """The number of calls to perform that began after the complete-by of their request."""
    inputs: frozenset[str] = frozenset()
    """The hashes of what was asked for under the key."""

    @property
    def order_id(self) -> str:
        """The id of the order."""
        return self.key.partition("/")[0]

    @property
    def step(self) -> str:
        """The step; `pick[1]` for an item of a fan-out."""
        return (*self.key.split("/"), "")[1]


@dataclass(frozen=True, slots=True)
class QueueAtEnd:
    """How many messages a queue had at the end."""

    name: str
    """As in the template: `SchedulerQueue`."""
    waiting: int
    in_flight: int
    delayed: int = 0
    """Messages that were sent ahead and wait for their time."""
    dead: int = 0
    """The messages of its dead-letter queue."""

    @property
    def has_requests(self) -> bool:
        """Whether its messages are requests to an agent.

        A request is of use only before its complete-by. The supervisor sends another one then, so
        that one which was given up is no loss.
        """
        return self.name.endswith("RequestQueue")


TIMED_OUT = "its time was over"
PROCESS_ENDED = "its process ended"
THROTTLED = "AWS throttled a call"


@dataclass(frozen=True, slots=True)
class LoggedFailure:
    """A failure of a function by its log."""

    what: str
    """TIMED_OUT, PROCESS_ENDED, THROTTLED (such a call is made again), or the message and the type
    of an error, without the text of an exception."""
    at: int
    """When it was logged, in epoch ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLog:
    """What the log of a function says. It has no line of it."""

    function: str
    """`submission`, `scheduler`, `supervisor`, or the name of an agent."""
    lines: int = 0
    """The number of lines that were read."""
    with_contents: int = 0
    """The number of lines that have contents of an order."""
    with_credentials: int = 0
    """The number of lines that have a credential."""
    failures: Sequence[LoggedFailure] = ()
    unread: str = ""
    """Why not all of it was read; empty if all was."""


class FaultOutcome(StrEnum):
    """What became of a fault. The values are part of the JSON output."""

    MADE = "made"
    REFUSED = "refused"
    """A right was missing."""
    NOT_HERE = "notHere"
    """This AWS cannot have it."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class MadeFault:
    """A fault that was to be made while orders were under way."""

    name: str
    outcome: FaultOutcome
    why: str = ""
    """What was refused, or what failed; empty if it was made."""
    began_at: int = 0
    """In epoch ms; 0 if it was not made."""
    ended_at: int = 0
    makes: Sequence[tuple[str, str]] = ()
    """Each function that may fail meanwhile, with the failure."""


@dataclass(frozen=True, slots=True)
class SpentLine:
    """What the stack had used of one thing that AWS bills, by the counts of CloudWatch."""

    service: str
    """The service: `DynamoDB`."""
    what: str
    """What is paid for: `writes`."""
    usd: float | None
    """At list prices; null if CloudWatch had not counted any of it yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Where and how a proof was made."""

    run: str
    """The name of its stack, with which each order's id begins."""
    region: str
    local: bool
    """Whether it was a local AWS and not an account."""
    version: str
    """The release of roundsman."""
    templates: Mapping[str, str]
    """The SHA-256 of each template of the stack, by its file."""
    runtime: str
    """The runtime of the functions."""
    began_at: int
    """In epoch ms."""
    ended_at: int
    finished: bool
    """Whether everything had ended when it was read; otherwise the time was over."""
    spent: Sequence[SpentLine] = ()
    """What the stack had used, as far as CloudWatch had counted it."""
    unpriced: str = ""
    """Why the counts of CloudWatch could not be read; empty if they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofDocument:
    """All that was seen of a proof. It has no contents of orders."""

    circumstances: Circumstances
    sent: Sequence[SentOrder]
    orders: Sequence[StoredOrder]
    """What was stored of each order that was found, without effects."""
    ledger: Sequence[LedgerRow]
    queues: Sequence[QueueAtEnd]
    faults: Sequence[MadeFault] = ()
    logs: Sequence[FunctionLog] = ()
    """What the logs of the functions say; empty if they were not read."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """By the id of an order of which something could not be read: why."""
