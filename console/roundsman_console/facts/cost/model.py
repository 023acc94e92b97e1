"""Computes the monthly bill for a number of orders of one kind, from figures and prices.

The functions are pure. The model assumes that each message is handled once: failed attempts and the
actions of operators are extra. `service_ms` is the time of a remote service; all other time is that
of the functions themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf
from typing import Annotated, Final, Literal, TypeAlias

from roundsman.aws.sqs.send_buffer import WAITS_FOR
from roundsman.definition.workflow import MOST_SEARCH_FIELDS
from roundsman_console.base.constraints import Count, Duration, Keyword
from roundsman_console.base.result import USD, Shown, Unit, rounded
from roundsman_console.facts.cost.figures import Figures, Role
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.records import KB, StoredBytes, stored_after_each

GB = 1024**3
MILLION = 1_000_000
READ_AT_ONCE = 4 * KB  # bytes per read unit; an eventually consistent read takes half a unit
KEPT_IN_MIND = 5  # seconds for which instances cache read marks, holds and circuit breakers
DEFAULT_MEMORY = 576  # MB; docs/explanation/cost.md#memory has why
SUPERVISOR_MEMORY = 256  # MB, the default; no order waits for it
MARKED_EVERY = 10  # seconds between two read marks of an instance whose requests do not wait
DAYS = 365 / 12  # days of a month
RETAINED_DAYS = 14  # the default retention of a durable execution after its end
MOVED = 2  # write units of an index entry that moves: it is removed and put
HOURS = DAYS * 24  # of a month
SEARCH_ENTRY = 300  # bytes of a search key of some 50, with its entry: keys, and 100 for the index
PROFILES = ("lean", "standard", "full")
"""The profiles of a stack, the cheapest while it waits first."""
LineKind: TypeAlias = Literal["orders", "standing"]
"""Whether a line of a bill depends on the number of orders."""
PER_ORDER: Final = "orders"
STANDING: Final = "standing"
"""The kinds of costs: those of the orders, and those of a stack that waits for orders."""


Usd: TypeAlias = Annotated[float, Shown(unit=USD)]
UsdPerMillion: TypeAlias = Annotated[float, Shown(unit=USD, name="usdPerMillionOrders")]
"""The cost of a million orders in USD, without the standing cost."""
Used: TypeAlias = Annotated[float, Shown(unit=rounded(6))]
"""How much of something one order uses."""
Rounded: TypeAlias = Annotated[float, Shown(unit=Unit(int, round, "{:,.0f}".format))]
"""A number of orders or decisions."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The orders and the stack whose bill is computed."""

    orders_per_month: Annotated[float, Keyword("minimum", 0)]
    """0 for a stack that only waits."""
    steps: Annotated[int, Keyword("minimum", 1), Keyword("maximum", 100)] = 4
    """The number of steps of an order; they run one after the other."""
    batch: Annotated[float, Keyword("minimum", 1), Keyword("maximum", 10)] = 1.0
    """The average number of messages per invocation, 1 to 10."""
    statuses: Count = 0
    """The number of status messages that are sent for an order."""
    order_bytes: int | None = None
    """The size of the stored order in bytes; None for the size of the order that was measured."""
    result_bytes: Count = 40
    """The size of each step's result in bytes."""
    service_ms: Duration = 0.0
    """How long a remote service takes to answer an agent, in ms."""
    memory: int = DEFAULT_MEMORY
    """The memory in MB of submission, the scheduler and each agent."""
    architecture: Annotated[str, Keyword("enum", ("x86_64", "arm64"))] = "arm64"
    """The processor architecture of the functions: `x86_64` or `arm64`."""
    task_days: Duration = 7.0
    """How long the task of an ended order is stored, in days."""
    order_days: Duration = 30.0
    """How long an order is stored, in days."""
    log_days: Duration = 30.0
    """How long logs are stored, in days."""
    search_fields: Annotated[int, Keyword("minimum", 0), Keyword("maximum", MOST_SEARCH_FIELDS)] = 0
    """The number of fields by which an order is found (`Workflow.search`)."""
    limited: bool = False
    """Whether a limit counts the orders (`Workflow.limit`). None of them waits for its turn."""
    tenants: bool = False
    """Whether orders name a tenant: their messages are then of a group (fair queues)."""
    interval: int = 60
    """The time from one pass of the supervisor to the next, in seconds."""
    profile: Annotated[str, Keyword("enum", PROFILES)] = "full"
    """The stack's parameter `Profile`: one of PROFILES."""


@dataclass(frozen=True, slots=True)
class BillLine:
    """One line of a bill."""

    service: str
    """The AWS service: `DynamoDB`."""
    what: str
    """What is paid for: `writes`."""
    amount: Annotated[float, Shown(unit=rounded(3))]
    """The number of units."""
    unit: str
    usd: Usd
    kind: Annotated[LineKind, Shown(name="for")]
    """PER_ORDER or STANDING."""


@dataclass(frozen=True)
class Bill:
    """A bill at list prices."""

    orders: float
    """The number of orders that it is for."""
    lines: tuple[BillLine, ...]

    def usd(self, kind: str | None = None) -> float:
        """Return the sum in USD of the lines of one kind; of all lines if `kind` is None."""
        return sum(line.usd for line in self.lines if kind in (None, line.kind))

    @property
    def usd_per_million(self) -> float:
        """The cost of a million orders in USD, without the STANDING lines; 0 without orders."""
        return self.usd(PER_ORDER) / self.orders * MILLION if self.orders else 0.0


@dataclass(frozen=True, slots=True)
class Units:
    """The AWS usage of one order."""

    write_units: Used
    read_units: Used
    sqs_requests: Used
    """The number of SQS requests, with those for statuses."""
    invocations: Used
    gb_seconds: Used
    log_bytes: Used


def units_of(wanted: Wanted, figures: Figures, prices: Prices) -> Units:
    """Return the usage of one order, at the rate of `wanted.orders_per_month`."""
    messages = _messages(wanted)
    count = sum(messages.values())
    busy, quiet = figures.orders["busy"], figures.orders["quiet"]
    apart = _seconds_apart(wanted, figures, prices)
    agents = wanted.steps / figures.roles["agent"].messages
    marked = agents * min(1.0, apart / MARKED_EVERY)
    refreshed = agents * min(1.0, apart / KEPT_IN_MIND)
    return Units(
        write_units=_writes(wanted, figures) + marked * (quiet.write_units - busy.write_units),
        read_units=_reads(wanted, figures) + refreshed * (quiet.read_units - busy.read_units),
        sqs_requests=_sqs_requests(wanted, count),
        invocations=count / wanted.batch,
        gb_seconds=wanted.memory / KB * sum(billed_ms(wanted, figures, prices).values()) / 1000,
        log_bytes=sum(
            number * _log_bytes(wanted, figures.roles[role], prices)
            for role, number in messages.items()
        ),
    )


def bill_of(wanted: Wanted, figures: Figures, prices: Prices) -> Bill:
    """Return the bill of one month."""
    lines = (*_for_orders(wanted, figures, prices), *_standing(wanted, figures, prices))
    return Bill(wanted.orders_per_month, lines)


def _for_orders(wanted: Wanted, figures: Figures, prices: Prices) -> Iterator[BillLine]:
    units, orders = units_of(wanted, figures, prices), wanted.orders_per_month
    stored = _stored_gb(wanted, figures)
    logged = units.log_bytes * orders / GB
    kept = logged * prices.assumed.logs_compressed_to * wanted.log_days / DAYS
    for service, what, price, amount in (
        ("DynamoDB", "writes", "dynamodb.write", units.write_units * orders),
        ("DynamoDB", "reads", "dynamodb.read", units.read_units * orders),
        ("DynamoDB", "storage", "dynamodb.storage", stored),
        ("DynamoDB", "point-in-time recovery", "dynamodb.backup", stored),
        ("SQS", "requests", "sqs.request", units.sqs_requests * orders),
        ("Lambda", "invocations", "lambda.request", units.invocations * orders),
        ("Lambda", "time", f"lambda.{wanted.architecture}", units.gb_seconds * orders),
        ("CloudWatch", "logs sent", "logs.ingested", logged),
        ("CloudWatch", "logs kept", "logs.stored", kept),
    ):
        yield line_of(prices, PER_ORDER, service, what, price, amount)
    if wanted.tenants:
        amount = units.sqs_requests * orders
        yield line_of(prices, PER_ORDER, "SQS", "fair queues, at most", "sqs.fair", amount)


def _standing(wanted: Wanted, figures: Figures, prices: Prices) -> Iterator[BillLine]:
    assumed, stands = prices.assumed, figures.standing[wanted.profile]
    one = stands.one_pass
    passes = assumed.month_seconds / wanted.interval
    invocations = min(passes, assumed.month_seconds / 60)
    polls = stands.event_sources * assumed.pollers * assumed.month_seconds / assumed.poll_seconds
    own = figures.times.supervisor / processor_share(SUPERVISOR_MEMORY, prices)
    waits = one.dynamodb_calls * assumed.dynamodb_ms + one.sqs_requests * assumed.sqs_ms
    metrics = stands.metrics * min(1.0, wanted.orders_per_month / HOURS)
    logged = passes * one.log_bytes + invocations * assumed.platform_log_bytes
    for service, what, price, amount in (
        ("SQS", "waiting for messages, at most", "sqs.request", polls),
        ("SQS", "the supervisor's counts", "sqs.request", passes * one.sqs_requests),
        ("DynamoDB", "the supervisor's writes", "dynamodb.write", passes * one.write_units),
        ("DynamoDB", "the supervisor's reads", "dynamodb.read", passes * one.read_units),
        ("Lambda", "the supervisor's invocations", "lambda.request", invocations),
        (
            "Lambda",
            "the supervisor's time",
            f"lambda.{wanted.architecture}",
            passes * (own + waits) / 1000 * SUPERVISOR_MEMORY / KB,
        ),
        ("EventBridge", "the supervisor's timer", "scheduler.invocation", invocations),
        ("CloudWatch", "the supervisor's logs", "logs.ingested", logged / GB),
        ("CloudWatch", "custom metrics", "metrics.custom", metrics),
        ("CloudWatch", "alarms", "alarms.standard", float(stands.alarms)),
        ("CloudWatch", "dashboards", "dashboards.custom", float(stands.dashboards)),
        ("KMS", "the alerts' key", "kms.key", float(stands.keys)),
    ):
        yield line_of(prices, STANDING, service, what, price, amount)


def line_of(
    prices: Prices, kind: LineKind, service: str, what: str, price: str, amount: float
) -> BillLine:
    """Return the line for `amount` units of a price. Raises KeyError for an unknown price."""
    unit = prices.prices[price].unit
    return BillLine(service, what, amount, unit, prices.usd(price, amount), kind)


def _messages(wanted: Wanted) -> dict[str, int]:
    """Return how many messages of an order the functions of each role handle."""
    return {"submission": 1, "scheduler": 1 + wanted.steps, "agent": wanted.steps}


def _sqs_requests(wanted: Wanted, messages: int) -> float:
    """Return the SQS requests of an order.

    A batch is sent, received and deleted with one request each, also the orders of the application.
    Each status is one request. For the replies, see `_sends_of_a_reply`.
    """
    apart = wanted.steps * (_sends_of_a_reply(wanted) - 1 / wanted.batch)
    return 3 * messages / wanted.batch + apart + wanted.statuses


def _sends_of_a_reply(wanted: Wanted) -> float:
    """Return the number of SQS send requests per reply, at most 1.

    An agent sends the replies of a batch together, but the oldest reply waits for at most
    WAITS_FOR. So if the service takes WAITS_FOR or longer, one request sends at most two replies.
    The model assumes that the requests of the batch were claimed within 0.75 s of each other.
    """
    if not wanted.service_ms:
        return 1 / wanted.batch
    together = min(wanted.batch, 1 + ceil(WAITS_FOR / wanted.service_ms))
    return ceil(wanted.batch / together) / wanted.batch


def stored_of(wanted: Wanted, figures: Figures) -> list[StoredBytes]:
    """Return what is stored of a task after each decision of its order."""
    return list(stored_after_each(wanted.steps, wanted.result_bytes, figures.record))


def _started(size: int, unit: int = KB) -> int:
    """Return how many units of `unit` bytes a size takes, the last one started."""
    return ceil(size / unit)


def _order_row(wanted: Wanted, figures: Figures) -> int:
    return figures.record.order_row if wanted.order_bytes is None else wanted.order_bytes


LIMITED = 3
"""The write units, and the read units, of an order that a limit counts and that does not wait."""


def _writes(wanted: Wanted, figures: Figures) -> float:
    """Return the write units of an order.

    A write in a transaction takes twice the units, also in the index. The index is written when the
    task is created and when it ends; a task that ends gives its rows their expiry. Each status adds
    a write of the task record. A limit writes its row twice, and the record once more. Each field
    of search is an entry of an index of the orders, which is one unit, and no more in a
    transaction.
    """
    stored = stored_of(wanted, figures)
    last = stored[-1]
    created = 2 * _started(_order_row(wanted, figures)) + 2 * _started(figures.record.birth) + 2
    decided = sum(
        2 * (_started(one.written) + _started(one.added)) if one.added else _started(one.written)
        for one in stored
    )
    ended = MOVED + sum(2 * _started(row) for row in last.rows)
    if last.rows:  # a transaction, so its record and its index entry count twice
        ended += _started(last.written) + MOVED
    sent = wanted.statuses * _started(last.record)
    limited = LIMITED * wanted.limited
    return created + decided + ended + sent + wanted.search_fields + limited


def _reads(wanted: Wanted, figures: Figures) -> float:
    """Return the read units of an order: all reads are eventually consistent (half a unit).

    Each decision reads the task record, with its rows, and the first request reads the order, which
    its instance keeps, as measured on one instance. A limit reads its row twice, consistently, and
    the index twice. With many instances, each request may read the
    order: with four steps, this costs 0.19 USD more per million orders.
    """
    read = [StoredBytes(figures.record.birth), *stored_of(wanted, figures)[:-1]]
    sizes = [size for one in read for size in (one.record, *one.rows)]
    read_once = [_order_row(wanted, figures), *sizes]
    limited = LIMITED * wanted.limited
    return sum(_started(size, READ_AT_ONCE) for size in read_once) / 2 + limited


def _stored_gb(wanted: Wanted, figures: Figures) -> float:
    """Return the stored GB in the steady state, when as many orders expire as come."""
    per_day = wanted.orders_per_month / DAYS
    last = stored_of(wanted, figures)[-1]
    task = (last.record + sum(last.rows)) * wanted.task_days
    order = _order_row(wanted, figures) + wanted.search_fields * SEARCH_ENTRY
    return per_day * (task + order * wanted.order_days) / GB


def billed_ms(wanted: Wanted, figures: Figures, prices: Prices) -> dict[str, float]:
    """Return the billed ms of one order by role; those of agents include `service_ms`."""
    return {
        role: number * message_ms(role, wanted, figures, prices)
        for role, number in _messages(wanted).items()
    }


def message_ms(role: str, wanted: Wanted, figures: Figures, prices: Prices) -> float:
    """Return the ms that one message takes: processor time at the function's share, and waiting."""
    assumed, calls = prices.assumed, figures.roles[role]
    share = _sends_of_a_reply(wanted) if role == "agent" else 1 / wanted.batch
    sends = calls.sqs_calls * share  # a batch sends its messages in one request
    stored = between(calls.dynamodb_calls, calls.dynamodb_calls_of_ten, wanted.batch)
    waits = stored * assumed.dynamodb_ms + sends * assumed.sqs_ms
    service = wanted.service_ms if role == "agent" else 0.0
    return processor_ms(role, wanted, figures, prices) + waits + service


def processor_ms(role: str, wanted: Wanted, figures: Figures, prices: Prices) -> float:
    """Return the ms for which one message uses the function's share of a processor."""
    times = figures.times
    own = between(times.alone[role], times.of_ten[role], wanted.batch)
    return own / processor_share(wanted.memory, prices)


def _seconds_apart(wanted: Wanted, figures: Figures, prices: Prices) -> float:
    """Return the time between two messages of an agent's instance.

    The number of instances is that which the rate of orders keeps busy (Little's law), and at least
    one.
    """
    orders = wanted.orders_per_month
    between_orders = prices.assumed.month_seconds / orders if orders else inf
    return max(between_orders, message_ms("agent", wanted, figures, prices) / 1000)


def processor_share(memory: float, prices: Prices) -> float:
    """Return the share of a processor at this memory; one thread uses at most one processor."""
    return min(1.0, memory / prices.assumed.processor_mb)


def _log_bytes(wanted: Wanted, role: Role, prices: Prices) -> float:
    """Return the log bytes of one message, with its share of the platform log per invocation."""
    lines = between(role.log_lines, role.log_lines_of_ten, wanted.batch)
    written = between(role.log_bytes, role.log_bytes_of_ten, wanted.batch)
    around = prices.assumed.platform_log_bytes / wanted.batch
    return written + lines * prices.assumed.log_line_overhead + around


def between(alone: float, of_ten: float, batch: float) -> float:
    """Interpolate the value per message for a batch of `batch` messages.

    The value is a part per message plus a part per batch, both derived from `alone` (a batch of
    one) and `of_ten` (a batch of ten).
    """
    shared = (alone - of_ten) / (1 - 1 / 10)
    return alone - shared + shared / batch


@dataclass(frozen=True, slots=True)
class Rival:
    """Another service that can run the same order, and its cost."""

    name: str
    usd_per_million: UsdPerMillion
    counted: str
    """How the cost was computed."""


def rivals_of(wanted: Wanted, figures: Figures, prices: Prices) -> tuple[Rival, ...]:
    """Return the costs on Step Functions Standard and on Lambda durable functions.

    Both are calculated for their best case: no retries, one state or operation per step and no
    others, and one Lambda invocation per step without duration. The logs and the compute time of
    their functions are not counted; those of Roundsman are.
    """
    steps = wanted.steps
    invocations = prices.usd("lambda.request", steps * MILLION)
    transitions = prices.usd("stepfunctions.transition", steps * MILLION)
    row = wanted.order_bytes or figures.record.order_row
    written = (row + steps * wanted.result_bytes) * MILLION / GB
    durable = (
        prices.usd("durable.operation", (steps + 1) * MILLION)
        + prices.usd("durable.written", written)
        + prices.usd("durable.retained", written * RETAINED_DAYS / DAYS)
        + prices.usd("lambda.request", MILLION)
    )
    return (
        Rival(
            "Step Functions Standard",
            transitions + invocations,
            f"{steps} state transitions and {steps} invocations per order",
        ),
        Rival(
            "Lambda durable functions",
            durable,
            f"{steps + 1} operations (the start and each step), what they write, and one "
            "invocation per order",
        ),
    )
