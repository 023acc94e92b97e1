"""The document of a proof, which is its report too."""

from typing import Literal, TypedDict

from roundsman_console.base.constraints import Count, Duration, Instant


class ProvenDocument(TypedDict):
    """One promise, and what is known of it."""

    promise: str
    """Its name, such as `IN_ORDER`."""
    says: str
    """The promise as a sentence."""
    verdict: Literal["followed", "broken", "unknown"]
    judged: Count
    """The number of orders, or of keys of the ledger, of which it was judged; 1 for a promise of
    the run as a whole."""
    violations: Count
    unknown: Count
    """How often it cannot be judged, or not in every part."""


class ViolationDocument(TypedDict):
    """One way in which a promise was broken."""

    promise: str
    order: str | None
    """Null for a promise of the run as a whole."""
    what: str
    rows: list[int]
    """The `seq` of the rows of the order's history that show it."""


class NotJudgedDocument(TypedDict):
    """Why a promise cannot be judged."""

    promise: str
    why: str
    times: Count


class LatencyDocument(TypedDict):
    """How long orders took from their acceptance to their end, in seconds."""

    treatment: str
    """How the services treated them: `the services answer at once`."""
    orders: Count
    p50: Duration
    p90: Duration
    p99: Duration
    longest: Duration


class FaultDocument(TypedDict):
    """A fault that was to be made while orders were under way."""

    fault: str
    outcome: Literal["made", "refused", "notHere", "failed"]
    why: str
    """What was refused, or what failed; empty if it was made."""
    seconds: Duration
    """For how long; 0 if it was not made."""


class FunctionFailureDocument(TypedDict):
    """How often a function failed in one way, by its log."""

    function: str
    """`submission`, `scheduler`, `supervisor`, or the name of an agent."""
    what: str
    because: str | None
    """The fault that made it, or what the services did; null if nothing that was made explains
    it."""
    times: Count


class GivenUpDocument(TypedDict):
    """The messages of a dead-letter queue."""

    queue: str
    messages: Count


class SpentDocument(TypedDict):
    """What the stack had used of one thing that AWS bills, by the counts of CloudWatch."""

    service: str
    """The service: `DynamoDB`."""
    what: str
    """What is paid for: `writes`."""
    usd: float | None
    """At list prices; null if CloudWatch had not counted any of it yet."""


class ProofDocumentOfRun(TypedDict):
    """Where and how the proof was made."""

    run: str
    """The name of its stack."""
    region: str
    local: bool
    """Whether it was a local AWS and not an account."""
    version: str
    runtime: str
    templates: dict[str, str]
    """The SHA-256 of each template of the stack, by its file."""
    plans: dict[str, str]
    """The hash of the plan of each workflow."""
    seen: str
    """The SHA-256 of the file of all that was seen."""
    began: Instant
    ended: Instant
    finished: bool
    """Whether every order had ended when it was read; otherwise the time was over."""


class ProofReportDocument(TypedDict):
    """What a proof has found."""

    verdict: Literal["kept", "broken", "unfinished"]
    """Broken if one promise was broken; unfinished if none was, and the time was over before every
    order had ended, or an order could not be read."""
    run: ProofDocumentOfRun
    sent: Count
    """The number of orders."""
    copies: Count
    """How many order events were sent beside the first of each order."""
    stored: Count
    ended: dict[str, int]
    """The number of orders by the state of their task."""
    effects: Count
    """The number of effects that stand."""
    refusedByFence: Count
    """The number of calls that the services refused because the key was undone."""
    promises: list[ProvenDocument]
    violations: list[ViolationDocument]
    """At most 1,000."""
    notJudged: list[NotJudgedDocument]
    unjudged: list[str]
    """The promises of an audit that neither records nor the ledger show."""
    latencies: list[LatencyDocument]
    spent: list[SpentDocument]
    unpriced: str
    """Why the counts of CloudWatch could not be read; empty if they were."""
    faults: list[FaultDocument]
    functionFailures: list[FunctionFailureDocument]
    """What failed by the logs of the functions."""
    refusedRights: list[str]
    """What a fault needed and was refused."""
    givenUp: list[GivenUpDocument]
    """The dead-letter queues that have messages."""
