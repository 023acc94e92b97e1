"""Documents about what orders cost."""

from typing import Annotated, Literal, TypeAlias, TypedDict

from roundsman_console.base.constraints import Count, Date, Duration, Keyword

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
