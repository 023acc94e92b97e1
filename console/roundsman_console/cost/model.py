"""The bill of a month, from how many orders of which kind come. Pure: figures and prices come in.

A message is handled once: failed attempts and operators' acts are extra. A remote service's own
time is `service_ms`; all other time is the functions' own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from roundsman.aws.sqs.send_buffer import WAITS_FOR
from roundsman_console.cost.figures import Figures, Role
from roundsman_console.cost.prices import Prices

KB = 1024
GB = 1024**3
READ_AT_ONCE = 4 * KB  # bytes that one read unit reads consistently, or half a unit eventually
KEPT_IN_MIND = 5  # seconds for which instances keep marks, holds and circuits
DAYS = 365 / 12  # of a month
TO_AND_FRO = 2  # messages that a step takes: its request and its reply
AROUND = 2  # messages besides those of steps: the order's and its start
PER_ORDER, STANDING = "orders", "standing"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be carried. Sizes in bytes, memory in MB, times in ms."""

    orders_per_month: float
    steps: int = 4
    batch: float = 1.0  # messages that one invocation takes, on average
    statuses: int = 0
    order_bytes: int | None = None  # None: as the order that was counted
    result_bytes: int = 40
    service_ms: float = 0.0
    memory: int = 256
    architecture: str = "arm64"
    task_days: float = 7.0
    order_days: float = 30.0
    log_days: float = 30.0
    interval: int = 60  # seconds between two passes of the supervisor


@dataclass(frozen=True, slots=True)
class Line:
    """One part of the bill: so many units of what, for orders or for standing ready."""

    service: str
    what: str
    amount: float
    unit: str
    usd: float
    kind: str


@dataclass(frozen=True)
class Bill:
    """A month's bill."""

    wanted: Wanted
    lines: tuple[Line, ...]

    def usd(self, kind: str | None = None) -> float:
        """The sum, of one kind or of all."""
        return sum(line.usd for line in self.lines if kind in (None, line.kind))

    @property
    def usd_per_million(self) -> float:
        """What a million orders add; what stands there anyway is not among it."""
        return self.usd(PER_ORDER) / self.wanted.orders_per_month * 1_000_000


@dataclass(frozen=True, slots=True)
class Units:
    """What one order asks for."""

    write_units: float
    read_units: float
    sqs_requests: float
    invocations: float
    gb_seconds: float
    log_bytes: float


def units_of(wanted: Wanted, figures: Figures, prices: Prices) -> Units:
    """What one order of this kind asks for, while its stack has this much to do."""
    messages = _messages(wanted)
    count = sum(messages.values())
    busy, quiet = figures.orders["busy"], figures.orders["quiet"]
    first = _first_of_an_instance(wanted, figures, prices)
    refreshed = wanted.steps / figures.roles["agent"].messages * first
    return Units(
        write_units=_writes(wanted, figures) + refreshed * (quiet.write_units - busy.write_units),
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
    """A month of such orders."""
    return Bill(
        wanted, (*_for_orders(wanted, figures, prices), *_standing(wanted, figures, prices))
    )


def _for_orders(wanted: Wanted, figures: Figures, prices: Prices) -> Iterator[Line]:
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
        yield _line(prices, PER_ORDER, service, what, price, amount)


def _standing(wanted: Wanted, figures: Figures, prices: Prices) -> Iterator[Line]:
    assumed, stands, one = prices.assumed, figures.standing, figures.idle_pass
    passes = assumed.month_seconds / wanted.interval
    invocations = min(passes, assumed.month_seconds / 60)
    polls = stands.event_sources * assumed.pollers * assumed.month_seconds / assumed.poll_seconds
    own = figures.times.supervisor / _share(wanted.memory, prices)
    busy_ms = own + one.dynamodb_calls * assumed.dynamodb_ms
    logged = passes * one.log_bytes + invocations * assumed.platform_log_bytes
    for service, what, price, amount in (
        ("SQS", "waiting for messages, at most", "sqs.request", polls),
        ("DynamoDB", "the supervisor's writes", "dynamodb.write", passes * one.write_units),
        ("DynamoDB", "the supervisor's reads", "dynamodb.read", passes * one.read_units),
        ("Lambda", "the supervisor's invocations", "lambda.request", invocations),
        (
            "Lambda",
            "the supervisor's time",
            f"lambda.{wanted.architecture}",
            passes * busy_ms / 1000 * wanted.memory / KB,
        ),
        ("EventBridge", "the supervisor's timer", "scheduler.invocation", invocations),
        ("CloudWatch", "the supervisor's logs", "logs.ingested", logged / GB),
        ("CloudWatch", "custom metrics", "metrics.custom", float(stands.metrics)),
        ("CloudWatch", "alarms", "alarms.standard", float(stands.alarms)),
        ("KMS", "the alerts' key", "kms.key", float(stands.keys)),
    ):
        yield _line(prices, STANDING, service, what, price, amount)


def _line(prices: Prices, kind: str, service: str, what: str, price: str, amount: float) -> Line:
    unit = prices.prices[price].unit
    return Line(service, what, amount, unit, prices.usd(price, amount), kind)


def _messages(wanted: Wanted) -> dict[str, int]:
    """How many messages functions of each role handle for an order."""
    return {"submission": 1, "scheduler": 1 + wanted.steps, "agent": wanted.steps}


def _sqs_requests(wanted: Wanted, messages: int) -> float:
    """A batch is sent, received and deleted at once, the application's orders too.

    Each status goes alone, and replies as `_sends_of_a_reply` says.
    """
    apart = wanted.steps * (_sends_of_a_reply(wanted) - 1 / wanted.batch)
    return 3 * messages / wanted.batch + apart + wanted.statuses


def _sends_of_a_reply(wanted: Wanted) -> float:
    """An agent's replies wait for its next attempts only as long as the oldest is young.

    So of a batch whose service takes WAITS_FOR or more, no more than two go together. Taken as
    given is that its requests were claimed within three quarters of a second of each other.
    """
    if not wanted.service_ms:
        return 1 / wanted.batch
    together = min(wanted.batch, 1 + ceil(WAITS_FOR / wanted.service_ms))
    return ceil(wanted.batch / together) / wanted.batch


def record_sizes(wanted: Wanted, figures: Figures) -> list[int]:
    """Bytes of the task's record: at its birth, then after each decision, to its end."""
    record = figures.record
    step = record.step + wanted.result_bytes
    open_ones = [record.first + done * step for done in range(wanted.steps)]
    return [record.birth, *open_ones, open_ones[-1] + record.end + wanted.result_bytes]


def _order_row(wanted: Wanted, figures: Figures) -> int:
    return figures.record.order_row if wanted.order_bytes is None else wanted.order_bytes


def _writes(wanted: Wanted, figures: Figures) -> float:
    """A transaction counts twice, its index too; the index is written again at the end."""
    birth, *decided = record_sizes(wanted, figures)
    row = _order_row(wanted, figures)
    created = 2 * ceil(row / KB) + 2 * ceil(birth / KB) + 2
    told = wanted.statuses * ceil(decided[-1] / KB)
    return created + sum(ceil(size / KB) for size in decided) + 2 + told


def _reads(wanted: Wanted, figures: Figures) -> float:
    """Each decision reads the record, the first request the order; neither must be consistent.

    As it was counted, on one instance, which keeps the order. Where messages are spread over many,
    each request may read it: of four, 0.19 USD more for a million orders.
    """
    *seen, _ = record_sizes(wanted, figures)
    order = ceil(_order_row(wanted, figures) / READ_AT_ONCE)
    return (sum(ceil(size / READ_AT_ONCE) for size in seen) + order) / 2


def _stored_gb(wanted: Wanted, figures: Figures) -> float:
    """What lies there once as many are removed as come."""
    per_day = wanted.orders_per_month / DAYS
    record = record_sizes(wanted, figures)[-1] * wanted.task_days
    return per_day * (record + _order_row(wanted, figures) * wanted.order_days) / GB


def billed_ms(wanted: Wanted, figures: Figures, prices: Prices) -> dict[str, float]:
    """Of the functions of each role for one order, agents' with what their services take."""
    return {
        role: number * message_ms(role, wanted, figures, prices)
        for role, number in _messages(wanted).items()
    }


def message_ms(role: str, wanted: Wanted, figures: Figures, prices: Prices) -> float:
    """What one message takes: own work at the function's share of a processor, and waiting."""
    assumed, times, calls = prices.assumed, figures.times, figures.roles[role]
    share = _sends_of_a_reply(wanted) if role == "agent" else 1 / wanted.batch
    sends = calls.sqs_calls * share  # of a whole batch in one request
    waits = calls.dynamodb_calls * assumed.dynamodb_ms + sends * assumed.sqs_ms
    own = between(times.alone[role], times.of_ten[role], wanted.batch)
    service = wanted.service_ms if role == "agent" else 0.0
    return own / _share(wanted.memory, prices) + waits + service


def _first_of_an_instance(wanted: Wanted, figures: Figures, prices: Prices) -> float:
    """The part of all orders that an instance of an agent meets first after KEPT_IN_MIND.

    There are as many instances as a rate keeps busy (Little's law), and one at least.
    """
    between_orders = prices.assumed.month_seconds / wanted.orders_per_month
    busy_for = message_ms("agent", wanted, figures, prices) / 1000
    return min(1.0, max(between_orders, busy_for) / KEPT_IN_MIND)


def _share(memory: float, prices: Prices) -> float:
    """The part of a processor that goes with that memory; one thread uses no more than one."""
    return min(1.0, memory / prices.assumed.processor_mb)


def _log_bytes(wanted: Wanted, role: Role, prices: Prices) -> float:
    """Of one message: its lines, and its part of what is logged for each invocation."""
    lines = between(role.log_lines, role.log_lines_of_ten, wanted.batch)
    written = between(role.log_bytes, role.log_bytes_of_ten, wanted.batch)
    around = prices.assumed.platform_log_bytes / wanted.batch
    return written + lines * prices.assumed.log_line_overhead + around


def between(alone: float, of_ten: float, batch: float) -> float:
    """What a message takes in a batch of that size: a part of its own, and one that all share."""
    shared = (alone - of_ten) / (1 - 1 / 10)
    return alone - shared + shared / batch
