"""Counts what orders ask of AWS while a stack carries them.

Capacity units are what the engine itself says it consumed (ReturnConsumedCapacity). SQS requests
are those that AWS bills: what functions and applications send, and what event source mappings
receive and delete, each of 64 KiB at most. Processor time is the calling thread's, without what
moto spends on answering in this process.
"""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from time import thread_time_ns
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

import boto3

from benchmarks.sizes import Value, item_bytes
from roundsman.testing.stack import Context, Stack

if TYPE_CHECKING:
    from botocore.model import OperationModel

BILLED_PART = 64 * 1024
"""Bytes of one SQS request, as billed: a longer one is several."""

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
Where = tuple[str, str]
"""An operation, and the table or index (`TasksTable/due`) whose units it consumed."""


@dataclass
class Counts:
    """What so many orders have asked for. Processor time in ns, by function."""

    writes: Counter[Where] = field(default_factory=Counter)  # in units, twice the number
    reads: Counter[Where] = field(default_factory=Counter)
    sends: Counter[str] = field(default_factory=Counter)  # by who sends, in billed requests
    statuses: int = 0
    receives: Counter[str] = field(default_factory=Counter)  # by who is woken
    deletes: Counter[str] = field(default_factory=Counter)
    invocations: Counter[str] = field(default_factory=Counter)
    log_bytes: Counter[str] = field(default_factory=Counter)
    log_lines: Counter[str] = field(default_factory=Counter)
    dynamodb_calls: Counter[str] = field(default_factory=Counter)
    sqs_calls: Counter[str] = field(default_factory=Counter)
    other_calls: Counter[str] = field(default_factory=Counter)
    processor: Counter[str] = field(default_factory=Counter)
    records: list[int] = field(default_factory=list)
    """The size in bytes of each task record that was written after its birth."""
    births: list[int] = field(default_factory=list)
    exchanges: Counter[str] = field(default_factory=Counter)
    """Of `processor`, what calls of DynamoDB took from the wire to their answer, read."""

    @property
    def write_units(self) -> float:
        return sum(self.writes.values()) / 2

    @property
    def read_units(self) -> float:
        return sum(self.reads.values()) / 2

    @property
    def sqs_requests(self) -> int:
        """All but the statuses, which an order may ask for."""
        return sum(map(sum, (x.values() for x in (self.sends, self.receives, self.deletes))))


@dataclass
class Meter:
    """Counts into `counts`, which a reader replaces at will."""

    stack: Stack
    counts: Counts = field(default_factory=Counts)
    metrics: set[tuple[str, ...]] = field(default_factory=set)
    """Each custom metric that was ever sent: its name, and the values of its dimensions."""
    _not_ours: int = 0
    _stopped_at: int = 0
    _sent_at: int = 0

    def listen(self) -> None:
        """Hear of all calls by the clients that are made from now on."""
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
        said = parsed.get("ConsumedCapacity")
        found = said if isinstance(said, list) else [said] if said else []
        into = self.counts.writes if model.name in WRITES else self.counts.reads
        for each in cast("list[dict[str, object]]", found):
            table = self.stack.stack.logical_id(str(each["TableName"]))
            into[model.name, table] += _twice(each["Table"])
            indexes = cast("dict[str, object]", each.get("GlobalSecondaryIndexes", {}))
            for name, index in indexes.items():
                into[model.name, f"{table}/{name}"] += _twice(index)
            if model.name == "Query" and not each["CapacityUnits"]:
                into[model.name, table] += 1  # this engine gives an empty page away; AWS does not

    def _weigh(self, params: Mapping[str, object], **_rest: object) -> None:
        if not self.stack.running:
            return
        item = cast("Mapping[str, Value]", params.get("Item", {}))
        if "Lane" in item:
            self.counts.records.append(item_bytes(item))
        for write in cast("list[dict[str, dict[str, object]]]", params.get("TransactItems", [])):
            item = cast("Mapping[str, Value]", write.get("Put", {}).get("Item", {}))
            if "Lane" in item:
                self.counts.births.append(item_bytes(item))

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
        """Stands around the stack's `invoke`, as the event source mapping stands there."""
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
        self, function: str, records: list[dict[str, object]], said: str, took: int
    ) -> None:
        counts = self.counts
        counts.invocations[function] += 1
        counts.processor[function] += took
        counts.log_bytes[function] += len(said.encode())
        counts.log_lines[function] += said.count("\n")
        for line in said.splitlines():
            self.metrics |= metrics_of(line)
        if records:
            size = sum(len(str(record["body"]).encode()) for record in records)
            counts.receives[function] += billed(size)
            counts.deletes[function] += 1  # ten of them fit into one request, as into one batch


def metrics_of(line: str) -> set[tuple[str, ...]]:
    """The metrics in a line of CloudWatch's embedded metric format; none in any other line."""
    if '"_aws"' not in line:
        return set()
    said = json.loads(line)
    return {
        (metric["Name"], *(str(said[dimension]) for dimension in dimensions))
        for group in said["_aws"]["CloudWatchMetrics"]
        for dimensions in group["Dimensions"]
        for metric in group["Metrics"]
    }


def billed(size: int) -> int:
    """How many requests AWS bills for one of so many bytes."""
    return max(1, -(-size // BILLED_PART))


def _twice(units: object) -> int:
    """Units come in halves."""
    found = cast("Mapping[str, float]", units)
    return round(2 * found["CapacityUnits"])


@contextmanager
def metered(stack: Stack) -> Iterator[Meter]:
    """A meter on a stack none of whose functions has been called yet."""
    meter = Meter(stack)
    meter.listen()
    invoke = stack.invoke

    def invoked(function: str, event: dict[str, object], context: Context | None = None) -> object:
        return meter.invoked(invoke, function, event, context)

    with patch.object(stack, "invoke", invoked):
        yield meter
