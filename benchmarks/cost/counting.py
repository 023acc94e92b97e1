"""Counts the inputs of `roundsman cost` with the real handlers; the counts are deterministic."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from math import ceil
from typing import cast

from benchmarks.harness.calls import calls_counted
from benchmarks.harness.meter import Counts, Meter
from benchmarks.harness.orders import counted, order
from benchmarks.harness.sizes import Value, item_bytes
from benchmarks.harness.stack import stack_on_the_engine
from benchmarks.harness.stand_ins import WorkflowShape, metered_stack
from roundsman.model.instants import SECOND
from roundsman_console.facts.cost.figures import IdleUse, OrderUse, Pass, RecordSize, Role
from roundsman_console.facts.cost.model import PROFILES
from roundsman_console.facts.cost.records import FEW_STEPS
from roundsman_dev.check.reading import is_made, mappings_in, of_type
from roundsman_dev.template import Document, mapping_of, part

AGE_OF_ALL_THAT_IS_KEPT = 11 * SECOND  # marks are written every 10 s, the rest is cached for 5 s
# A single order still sends one message at a time.
BATCHES = {f"{agent}.BatchSize": "10" for agent in ("Inventory", "Payment", "Shipping", "Mail")}
STEPS = 4
PASSES = 5  # between two looks at the queues of agents
LONG = 24  # steps of an order whose record is packed, and has no row beside it
ROLES = {"SubmissionFunction": "submission", "SchedulerFunction": "scheduler"}
AGENT = "agent"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Counted:
    """The counts of one order, or of several orders that were sent together."""

    counts: Counts
    orders: int = 1
    """The number of orders in `counts`."""

    def order(self) -> OrderUse:
        counts, orders = self.counts, self.orders
        return OrderUse(
            write_units=_tidy(counts.write_units / orders),
            read_units=_tidy(counts.read_units / orders),
            sqs_requests=_tidy(counts.sqs_requests / orders),
            statuses=_tidy(counts.statuses / orders),
            invocations=_tidy(sum(counts.invocations.values()) / orders),
            log_bytes=_tidy(sum(counts.log_bytes.values()) / orders),
        )


@dataclass(frozen=True)
class Everything:
    """All counts of one run."""

    counted: dict[str, Counted]
    """By the names of `Figures.orders`."""
    standing: dict[str, IdleUse]
    """By profile."""

    @property
    def orders(self) -> dict[str, OrderUse]:
        """The counts for one order, by name."""
        return {name: each.order() for name, each in self.counted.items()}

    @property
    def roles(self) -> dict[str, Role]:
        """The requests and log lines for a message, by the role of the function."""
        alone, ten = self.counted["busy"], self.counted["batch_10"]
        messages = by_role(alone.counts.receives)
        sqs_calls = by_role(alone.counts.sqs_calls)
        calls = by_role(alone.counts.dynamodb_calls), by_role(ten.counts.dynamodb_calls)
        lines = by_role(alone.counts.log_lines), by_role(ten.counts.log_lines)
        sizes = by_role(alone.counts.log_bytes), by_role(ten.counts.log_bytes)
        return {
            role: Role(
                messages=count,
                log_bytes=_tidy(sizes[0][role] / count),
                log_bytes_of_ten=_tidy(sizes[1][role] / count / ten.orders),
                log_lines=_tidy(lines[0][role] / count),
                log_lines_of_ten=_tidy(lines[1][role] / count / ten.orders),
                dynamodb_calls=_tidy(calls[0][role] / count),
                dynamodb_calls_of_ten=_tidy(calls[1][role] / count / ten.orders),
                sqs_calls=_tidy(sqs_calls[role] / count),
            )
            for role, count in messages.items()
        }


def by_role(counts: Mapping[str, int]) -> Counter[str]:
    """Return the sum over the functions of each role.

    Every function that is neither submission nor the scheduler is an agent's.
    """
    found: Counter[str] = Counter()
    for function, count in counts.items():
        if function.endswith("Function"):
            found[ROLES.get(function, AGENT)] += count
    return found


def count_everything(endpoint: str, say: Say = lambda _: None) -> Everything:
    """Return all counts, measured with the DynamoDB Local at `endpoint`."""
    orders: dict[str, Counted] = {}
    say("orders one at a time")
    standing: dict[str, IdleUse] = {}
    for profile in PROFILES:
        say(f"a stack that waits, profile {profile}")
        settings = {**BATCHES, "Engine.Profile": profile}
        with metered_stack(endpoint, parameters=settings) as meter:
            counted(meter, order("ord-0000"))
            standing[profile] = _standing(meter)
    with metered_stack(endpoint, parameters=BATCHES) as meter:
        stack = meter.stack
        orders["cold"] = Counted(counted(meter, order("ord-0001")))
        orders["busy"] = Counted(counted(meter, order("ord-0002")))
        stack.clock.now += AGE_OF_ALL_THAT_IS_KEPT
        orders["quiet"] = Counted(counted(meter, order("ord-0003")))
        with_statuses = order("ord-0004", replyTo=stack.reply_queue("shop"))
        orders["statuses"] = Counted(counted(meter, with_statuses))
        say("orders in batches")
        for size in (5, 10):
            events = [order(f"ord-2{size:02d}{number}") for number in range(size)]
            orders[f"batch_{size}"] = Counted(counted(meter, *events), size)
        return Everything(orders, standing)


def count_calls(endpoint: str) -> Counter[str]:
    """Return the calls of Python functions of an order alone, by group of `harness.calls`.

    Without a meter, which makes calls of its own in botocore.
    """
    with redirect_stdout(StringIO()), stack_on_the_engine(endpoint) as stack:
        for warm_up in range(2):
            stack.submit(order(f"ord-50{warm_up:02d}"))
            stack.run_until_idle()
        with calls_counted(stack) as found:
            stack.submit(order("ord-5100"))
            stack.run_until_idle()
    return found


def weigh_records(endpoint: str) -> RecordSize:
    """Return how a task record grows; the results of the stand-in agents have one size."""
    shape, long, large = (
        WorkflowShape(STEPS),
        WorkflowShape(LONG),
        WorkflowShape(FEW_STEPS + 1, result_bytes=1000),
    )
    with metered_stack(endpoint, shape, long, large) as meter:
        counts = counted(meter, order("ord-3000", workflow=shape.name))
        order_row = _order_row(meter, "ord-3000")
        packed = counted(meter, order("ord-3001", workflow=long.name)).records[:LONG]
        of_large = counted(meter, order("ord-3002", workflow=large.name))
    each, each_large = _slope(packed), _slope(of_large.records[:FEW_STEPS])
    share = (each_large - each) / (large.result_bytes - long.result_bytes)
    first, second, *_, last_but_one, last = counts.records
    return RecordSize(
        order_row=order_row,
        birth=counts.births[0],
        first=first,
        step=second - first - shape.result_bytes,
        end=last - last_but_one - shape.result_bytes,
        packed=round(packed[-1] - (LONG - 1) * each),
        packed_step=ceil(each - share * long.result_bytes),
        packed_share=_tidy(share),
        row=round(of_large.rows[0] - FEW_STEPS * each_large),
    )


def _slope(records: Sequence[int]) -> float:
    """Return what each step adds to a packed record; the first record is that of the start."""
    half, last = len(records) // 2 - 1, len(records) - 1
    return (records[last] - records[half]) / (last - half)


def _order_row(meter: Meter, order_id: str) -> int:
    table = meter.stack.stack.outputs["OrdersTableName"]
    found = meter.stack.dynamodb.get_item(TableName=table, Key={"OrderID": {"S": order_id}})
    return item_bytes(cast("dict[str, Value]", found["Item"]))


def _idle_pass(meter: Meter) -> Pass:
    """Count PASSES of an instance after its first ones, which take the leases and see the order."""
    for _ in range(2):
        meter.counts = counts = Counts()
        for _ in range(PASSES):
            meter.stack.supervise()
            meter.stack.clock.now += 60 * SECOND
    return Pass(
        write_units=_tidy(counts.write_units / PASSES),
        read_units=_tidy(counts.read_units / PASSES),
        dynamodb_calls=_tidy(sum(counts.dynamodb_calls.values()) / PASSES),
        log_bytes=_tidy(sum(counts.log_bytes.values()) / PASSES),
        sqs_requests=_tidy(sum(counts.sqs_calls.values()) / PASSES),
    )


def _standing(meter: Meter) -> IdleUse:
    document = meter.stack.stack.template.document
    kinds = Counter(
        str(mapping_of(resource)["Type"])
        for name, resource in part(document, "Resources").items()
        if is_made(document, name)
    )
    metrics = len(meter.metrics)  # of the order, before those of passes
    return IdleUse(
        one_pass=_idle_pass(meter),
        event_sources=len(meter.stack.stack.mappings),
        alarms=sum(
            _watched_metrics(alarm)
            for name, alarm in of_type(document, "AWS::CloudWatch::Alarm").items()
            if is_made(document, name)
        ),
        metrics=metrics,
        keys=kinds["AWS::KMS::Key"],
        dashboards=kinds["AWS::CloudWatch::Dashboard"],
    )


def _watched_metrics(alarm: Document) -> int:
    """What AWS charges an alarm for: each metric that it watches, also in an expression."""
    return sum("MetricStat" in one for one in mappings_in(alarm.get("Metrics"))) or 1


def _tidy(amount: float) -> float:
    return round(amount, 3)
