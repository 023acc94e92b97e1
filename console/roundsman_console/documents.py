"""The types of the JSON documents that only the command line makes.

The other types are in the module `documents` of each package.
"""

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from roundsman.model.states import TaskState
from roundsman_console.constraints import Count, Date, Duration, Keyword
from roundsman_console.dead_letter.documents import ProblemDocument

# --- submit and export -------------------------------------------------------------------------


SubmitOutcome = Literal[
    "accepted", "rejected", "notKnown", "ended", "removed", "stillOpen", "neverHeardOf"
]


class SubmitDocument(TypedDict):
    """An order event that was sent."""

    messageId: str
    """The id of the message in SQS."""
    orderId: str | None
    """The id of the order; null if the message is no order event and will be rejected."""
    outcome: SubmitOutcome | None
    """What became of the event: accepted, rejected or notKnown; with --wait, what became of the
    order. Null with --no-wait. How a removed order has ended is not kept."""
    state: TaskState | None
    """The state of the order if `outcome` is ended or stillOpen; else null."""
    problems: list[ProblemDocument]
    """Why the order was rejected; empty if it was not, or if that is not known."""


SignalOutcome = Literal["done", "refused", "sent", "unconfirmed"]


class SignalDocument(TypedDict):
    """A signal that was sent."""

    orderId: str
    name: str
    """The name for which a step of the order waits."""
    id: str
    """The id with which it was sent."""
    outcome: SignalOutcome
    """What the scheduler has made of it: done, refused, or unconfirmed if that is not known yet;
    sent with --no-wait."""
    why: str | None
    """Why it was refused, or why that is not known; else null."""


class ExportedDocument(TypedDict):
    """The progress of an export."""

    exported: Count
    lookedAt: Count
    unreadable: Count
    """The number of records that this code cannot read."""
    cursor: str | None
    """The value of --after to continue with; null if all is written, or nothing was."""
    whole: bool
    """Whether no task is left to export."""
    stopped: str | None
    """Why the export stopped early; null if it did not, or if it reached --limit."""


class ExportDocument(ExportedDocument):
    """The progress of an export to a file.

    Each line of the file is an object as `roundsman show` prints it, without history and, by
    default, without results.
    """

    to: str
    """The name of the file."""


class UiDocument(TypedDict):
    """A console in the browser that answers."""

    url: str
    """The link that opens the console, once. It is a secret."""


# --- an application ----------------------------------------------------------------------------


class InitDocument(TypedDict):
    """An application that was made."""

    folder: str
    """The absolute path of its folder."""
    files: list[str]
    """The paths of the files that were written, relative to the folder."""


class CheckDocument(TypedDict):
    """The result of comparing an application's definitions with its template."""

    problems: list[str]
    """One sentence for each problem; empty if there is none."""


# --- the local AWS -----------------------------------------------------------------------------


class LocalUpDocument(TypedDict):
    """A local AWS with the stack deployed on it."""

    endpoint: str
    stack: str
    region: str
    outputs: dict[str, str]
    services: dict[str, str]


LocalState: TypeAlias = Literal["healthy", "silent", "starting", "dead"]
"""The state of a local AWS."""


class LocalInstanceDocument(TypedDict):
    """One local AWS. The optional fields are missing if its record cannot be read."""

    port: Count
    state: LocalState
    log: str
    """The log file of the emulator."""
    endpoint: NotRequired[str]
    stack: NotRequired[str]
    region: NotRequired[str]
    outputs: NotRequired[dict[str, str]]
    services: NotRequired[dict[str, str]]
    pid: NotRequired[Count | None]


class LocalStatusDocument(TypedDict):
    """The local AWS instances of this project."""

    instances: list[LocalInstanceDocument]


class ServicesDocument(TypedDict):
    """The remote services of the example; printed when they accept requests."""

    url: str


# --- the demo ----------------------------------------------------------------------------------


class DemoOrderDocument(TypedDict):
    """One message of the demo, with its expected and its actual end."""

    orderId: str | None
    event: str
    """The file in events/."""
    shows: str
    expected: str
    actual: str
    ok: bool
    detail: str
    failureCounts: dict[str, Count]
    """The failure count of each step that has one."""


class DemoAlertDocument(TypedDict):
    """An alert that was sent during the demo."""

    orderId: str | None
    kind: str
    subject: str
    reason: str
    look: str


class DemoEffectDocument(TypedDict):
    """The effects of one idempotency key at a remote service."""

    key: str
    """The idempotency key."""
    orderId: str
    service: str
    effects: Count
    calls: Count
    undone: bool


class DemoQueuesDocument(TypedDict):
    """What was left in the queues."""

    lookedAt: Count
    """The number of queues."""
    messages: Count


class DemoDocument(TypedDict):
    """The result of the demo."""

    ok: bool
    orders: list[DemoOrderDocument]
    alerts: list[DemoAlertDocument]
    effects: list[DemoEffectDocument]
    queues: DemoQueuesDocument
    differences: list[str]
    """What is not as expected; empty if all is."""
    seconds: Duration
    """How long the demo took."""


# --- the cost ----------------------------------------------------------------------------------

LineKind: TypeAlias = Literal["orders", "standing"]
"""Whether a line of a bill depends on the number of orders."""

# `for` is a keyword, so this field cannot be declared in a class.
_LineFor = TypedDict("_LineFor", {"for": LineKind})


class CostLineDocument(_LineFor):
    """One line of a bill."""

    service: str
    what: str
    amount: float
    """The number of units."""
    unit: str
    usd: float


class CostAskedDocument(TypedDict):
    """The options of the estimate, with the defaults of those that were not given."""

    ordersPerMonth: Annotated[float, Keyword("minimum", 0)]
    steps: Annotated[int, Keyword("minimum", 1), Keyword("maximum", 100)]
    batch: Annotated[float, Keyword("minimum", 1), Keyword("maximum", 10)]
    """The average number of messages per invocation."""
    statuses: Count
    orderBytes: int | None
    """The size of the stored order; null for the size of the order that was measured."""
    resultBytes: Count
    serviceMs: Duration
    memory: int
    """In MB."""
    architecture: Annotated[str, Keyword("enum", ("x86_64", "arm64"))]
    taskDays: Duration
    orderDays: Duration
    logDays: Duration
    tenants: bool
    interval: int
    """The time from one pass of the supervisor to the next, in seconds."""
    profile: Annotated[str, Keyword("enum", ("lean", "standard", "full"))]


class CostOrderDocument(TypedDict):
    """The AWS usage of one order."""

    writeUnits: float
    readUnits: float
    sqsRequests: float
    """The number of SQS requests, with those for statuses."""
    invocations: float
    gbSeconds: float
    logBytes: float


class CostElsewhereDocument(TypedDict):
    """The cost of the same orders on another service of AWS."""

    name: str
    usdPerMillionOrders: float
    counted: str
    """How the cost was computed."""


class CostVolumeDocument(TypedDict):
    """The cost of a month with another number of such orders, in USD."""

    ordersPerMonth: Count
    profiles: dict[str, float]
    """By profile."""
    elsewhere: dict[str, float]
    """By the name of the service."""


class CostCheaperDocument(TypedDict):
    """From how many orders a month on a profile costs less than another service."""

    profile: str
    elsewhere: str
    ordersPerMonth: int | None
    """Null if it costs more at a thousand million orders too."""


class CostEstimateDocument(TypedDict):
    """The estimated bill of a month."""

    region: str
    """The AWS region whose list prices are used."""
    pricesDated: Date
    countedOn: Date
    """When the usage of an order was measured."""
    asked: CostAskedDocument
    order: CostOrderDocument
    usdPerMonth: float
    usdPerMillionOrders: float
    """The cost of a million orders, without the standing cost."""
    usdStanding: float
    """The cost of a month that does not depend on the number of orders, if there are some."""
    usdIdle: float
    """The cost of a month without orders."""
    lines: list[CostLineDocument]
    volumes: list[CostVolumeDocument]
    cheaperFrom: list[CostCheaperDocument]
    elsewhere: list[CostElsewhereDocument]


class CostWorkflowDocument(TypedDict):
    """The share of one workflow in the cost, by its share of the scheduler's decisions."""

    workflow: str
    orders: int
    """The number of orders that ended in the period."""
    decisions: int
    """The number of the scheduler's decisions for these orders."""
    usd: float
    usdPerMillionOrders: float


class CostSpentDocument(TypedDict):
    """The cost of what a deployed stack has used."""

    region: str
    pricesDated: Date
    days: float
    """The length of the period."""
    orders: int
    """The number of orders that were accepted in the period."""
    usd: float
    usdPerMillionOrders: float
    """Without the standing cost; 0 if there was no order."""
    lines: list[CostLineDocument]
    workflows: list[CostWorkflowDocument]


class CostDocument(TypedDict):
    """Costs in USD at list prices."""

    estimate: CostEstimateDocument | None
    """The estimated bill of a month; null if the usage of a stack was asked for."""
    spent: CostSpentDocument | None
    """The cost of what a deployed stack has used; null if an estimate was asked for."""
