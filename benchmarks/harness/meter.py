"""Counts the AWS requests and capacity units of orders while a stack processes them.

DynamoDB Local reports the capacity units (ReturnConsumedCapacity). SQS requests are those that AWS
bills: the sends of functions and applications, and the receives and deletes of event source
mappings, in units of 64 KiB. Processor time is that of the calling thread, without the time of
moto, which answers in this process.
"""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property
from time import thread_time_ns
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

import boto3

from benchmarks.harness.metric_filters import MetricFilter, metric_filters
from benchmarks.harness.sizes import Value, item_bytes
from roundsman.aws.dynamodb.settled import StoredItem, is_row
from roundsman_console.facts.cost.records import KB
from roundsman_dev.check.reading import is_made
from roundsman_dev.template import part
from roundsman_testing.stack import Context, Stack

if TYPE_CHECKING:
    from botocore.model import OperationModel

BILLED_PART = 64 * 1024
"""AWS bills each 64 KiB of an SQS request as one request; in bytes."""

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
Where = tuple[str, str]
"""An operation, and the table or index (`TasksTable/due`) whose units it consumed."""


@dataclass
class Counts:
    """The counts of one or more orders; mappings with one name as the key are by function."""

    writes: Counter[Where] = field(default_factory=Counter)
    """Write units times two, because units come in halves."""
    reads: Counter[Where] = field(default_factory=Counter)
    """Read units times two."""
    sends: Counter[str] = field(default_factory=Counter)
    """Billed requests, by sender: a function or the application."""
    statuses: int = 0
    """Statuses sent to reply queues; they are not in `sends`."""
    receives: Counter[str] = field(default_factory=Counter)
    """Billed requests, by the function that is invoked."""
    deletes: Counter[str] = field(default_factory=Counter)
    invocations: Counter[str] = field(default_factory=Counter)
    log_bytes: Counter[str] = field(default_factory=Counter)
    log_lines: Counter[str] = field(default_factory=Counter)
    dynamodb_calls: Counter[str] = field(default_factory=Counter)
    sqs_calls: Counter[str] = field(default_factory=Counter)
    other_calls: Counter[str] = field(default_factory=Counter)
    processor: Counter[str] = field(default_factory=Counter)
    """Processor time in ns."""
    records: list[int] = field(default_factory=list)
    """The size in bytes of each task record at each write after its creation."""
    births: list[int] = field(default_factory=list)
    """The size in bytes of each task record at its creation."""
    rows: list[int] = field(default_factory=list)
    """The size in bytes of each row of settled steps."""
    exchanges: Counter[str] = field(default_factory=Counter)
    """The part of `processor` from sending a DynamoDB request to its parsed response, in ns."""

    @property
    def write_units(self) -> float:
        return sum(self.writes.values()) / 2

    @property
    def read_units(self) -> float:
        return sum(self.reads.values()) / 2

    @property
    def sqs_requests(self) -> int:
        """All billed requests except the statuses, which are optional."""
        return sum(map(sum, (x.values() for x in (self.sends, self.receives, self.deletes))))


@dataclass
class Meter:
    """Counts into `counts`, which the user may replace at any time."""

    stack: Stack
    counts: Counts = field(default_factory=Counts)
    metrics: set[tuple[str, ...]] = field(default_factory=set)
    """The name and the dimension values of each custom metric that was sent."""
    _not_ours: int = 0
    _sizes: dict[str, int] = field(default_factory=dict)
    """The size in bytes of each item that was put, by its key."""
    _stopped_at: int = 0
    _sent_at: int = 0

    def listen(self) -> None:
        """Register for the calls of all clients that are created from now on.

        Raises ValueError if the stack is not deployed yet.
        """
        session = boto3.DEFAULT_SESSION
        if session is None:
            raise ValueError("the stack is not deployed yet")
        events = session.events
        events.register("before-parameter-build.dynamodb.*", self._ask_for_units)
        events.register("after-call.dynamodb.*", self._count_units)
        events.register("provide-client-params.*.*", self._count_call)
        events.register("provide-client-params.dynamodb.*", self._weigh)
        events.register_first("before-send", self._stop_the_watch)
        events.register_last("before-send", self._go_on)
        events.register_first("response-received.dynamodb.*", self._answered)

    # ---- DynamoDB ---------------------------------------------------------------------------

    def _ask_for_units(self, params: dict[str, object], **_rest: object) -> None:
        if self.stack.running:
            params["ReturnConsumedCapacity"] = "INDEXES"

    def _count_units(
        self, parsed: Mapping[str, object], model: "OperationModel", **_rest: object
    ) -> None:
        if not self.stack.running:
            return
        capacity = parsed.get("ConsumedCapacity")
        found = capacity if isinstance(capacity, list) else [capacity] if capacity else []
        into = self.counts.writes if model.name in WRITES else self.counts.reads
        for each in cast("list[dict[str, object]]", found):
            table = self.stack.stack.logical_id(str(each["TableName"]))
            if model.name != "TransactWriteItems":
                into[model.name, table] += _twice(each["Table"])
            indexes = cast("dict[str, object]", each.get("GlobalSecondaryIndexes", {}))
            for name, index in indexes.items():
                into[model.name, f"{table}/{name}"] += _twice(index)
            if model.name == "Query" and not each["CapacityUnits"]:
                into[model.name, table] += 1  # DynamoDB Local charges no empty page, AWS does

    def _weigh(self, params: Mapping[str, object], **_rest: object) -> None:
        if not self.stack.running:
            return
        self._weigh_put(cast("Mapping[str, Value]", params.get("Item", {})), self.counts.records)
        writes = cast("list[dict[str, dict[str, object]]]", params.get("TransactItems", []))
        is_new = any("OrderID" in str(write.get("Put")) for write in writes)
        for write in writes:
            ((_, one),) = write.items()
            item = cast("Mapping[str, Value]", one.get("Item", {}))
            key = item or cast("Mapping[str, Value]", one.get("Key", {}))
            before = self._sizes.get(_name(key), 1)
            self._weigh_put(item, self.counts.births if is_new else self.counts.records)
            # Counted here: DynamoDB Local adds up distinct numbers of units only, so that of items
            # of one size in one table it reports one. The larger size is billed, before or after.
            units = 2 * -(-max(before, self._sizes.get(_name(key), 1)) // KB)
            table = self.stack.stack.logical_id(str(one["TableName"]))
            self.counts.writes["TransactWriteItems", table] += 2 * units

    def _weigh_put(self, item: "Mapping[str, Value]", records: list[int]) -> None:
        """Note the size of an item that is put; `records` gets that of a task's record."""
        if not item:
            return
        size = self._sizes[_name(item)] = item_bytes(item)
        if "Lane" in item:
            records.append(size)
        elif is_row(cast("StoredItem", item)):
            self.counts.rows.append(size)

    # ---- all calls --------------------------------------------------------------------------

    def _count_call(self, params: Mapping[str, object], event_name: str, **_rest: object) -> None:
        function = self.stack.running
        if not function:
            return
        _, service, operation = event_name.split(".")
        counts = self.counts
        kinds = {"dynamodb": counts.dynamodb_calls, "sqs": counts.sqs_calls}
        kinds.get(service, counts.other_calls)[function] += 1
        if service != "sqs" or not operation.startswith("SendMessage"):
            return
        if self.stack.stack.outputs["ReplyQueuePrefix"] in str(params["QueueUrl"]):
            self.counts.statuses += 1
            return
        entries = cast("list[dict[str, object]]", params.get("Entries", [params]))
        size = sum(len(str(each["MessageBody"]).encode()) for each in entries)
        self.counts.sends[function] += billed(size)

    # ---- processor time ---------------------------------------------------------------------

    def _stop_the_watch(self, **_rest: object) -> None:
        self._stopped_at = thread_time_ns()

    def _go_on(self, **_rest: object) -> None:
        self._sent_at = thread_time_ns()
        self._not_ours += self._sent_at - self._stopped_at

    def _answered(self, **_rest: object) -> None:
        if self.stack.running:
            self.counts.exchanges[self.stack.running] += thread_time_ns() - self._sent_at

    def invoked(
        self,
        invoke: Callable[..., object],
        function: str,
        event: dict[str, object],
        context: object,
    ) -> object:
        """Call the stack's `invoke`, and count the invocation and the requests of its mapping."""
        records = cast("list[dict[str, object]]", event.get("Records", []))
        out = io.StringIO()
        not_ours_before, started_at = self._not_ours, thread_time_ns()
        try:
            with redirect_stdout(out):
                return invoke(function, event, context)
        finally:
            took = thread_time_ns() - started_at - (self._not_ours - not_ours_before)
            self._count_invocation(function, records, out.getvalue(), took)

    def _count_invocation(
        self, function: str, records: list[dict[str, object]], output: str, took: int
    ) -> None:
        counts = self.counts
        counts.invocations[function] += 1
        counts.processor[function] += took
        counts.log_bytes[function] += len(output.encode())
        counts.log_lines[function] += output.count("\n")
        for line in output.splitlines():
            self.metrics |= metrics_of(line)
            self.metrics |= self._filtered(function, line)
        if records:
            size = sum(len(str(record["body"]).encode()) for record in records)
            counts.receives[function] += billed(size)
            counts.deletes[function] += 1  # one request deletes a batch of up to ten messages

    def _filtered(self, function: str, line: str) -> set[tuple[str, ...]]:
        """Return the metrics that the stack's metric filters make of the line."""
        fields = json.loads(line)
        found = (each.measured(fields) for each in self._filters if each.function == function)
        return {(one.name, *(value for _, value in one.dimensions)) for one in found if one}

    @cached_property
    def _filters(self) -> list[MetricFilter]:
        document = self.stack.stack.template.document
        resources = part(document, "Resources").items()
        made = {name: body for name, body in resources if is_made(document, name)}
        return list(metric_filters({**document, "Resources": made}))


def metrics_of(line: str) -> set[tuple[str, ...]]:
    """Return the metrics in a line of CloudWatch's embedded metric format; none for other lines."""
    if '"_aws"' not in line:
        return set()
    fields = json.loads(line)
    return {
        (metric["Name"], *(str(fields[dimension]) for dimension in dimensions))
        for group in fields["_aws"]["CloudWatchMetrics"]
        for dimensions in group["Dimensions"]
        for metric in group["Metrics"]
    }


def billed(size: int) -> int:
    """Return the number of requests that AWS bills for one request of `size` bytes."""
    return max(1, -(-size // BILLED_PART))


def _name(key: Mapping[str, Value]) -> str:
    """A text that identifies an item of TasksTable, OrdersTable or HistoryTable."""
    return str([key.get(name) for name in ("TaskId", "OrderID", "Seq")])


def _twice(units: object) -> int:
    """Return the capacity units times two, because units come in halves."""
    found = cast("Mapping[str, float]", units)
    return round(2 * found["CapacityUnits"])


@contextmanager
def metered(stack: Stack) -> Iterator[Meter]:
    """Yield a meter for a stack; none of its functions may have been invoked yet."""
    meter = Meter(stack)
    meter.listen()
    invoke = stack.invoke

    def invoked(function: str, event: dict[str, object], context: Context | None = None) -> object:
        return meter.invoked(invoke, function, event, context)

    with patch.object(stack, "invoke", invoked):
        yield meter
