"""Measures a supervisor's pass by the number of stored tasks; 100 tasks are always overdue.

The stored records are real. One order runs to its end, another one stops while its first step is
Processing, and both records are stored many times under other IDs. Nine of ten tasks have ended.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from benchmarks.harness.meter import Counts, Meter, metered
from benchmarks.harness.orders import counted, order
from benchmarks.harness.stack import stack_on_the_engine
from benchmarks.report import Report, Setting, Table, amount
from roundsman.aws.dynamodb.codec import unpacked_item
from roundsman.model.instants import MINUTE, SECOND

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

OVERDUE = 100
OPEN_OF = 10  # one in ten is open, and due in an hour
SHARDS = 16
AT_ONCE = 25  # items of one BatchWriteItem
WRITERS = 4
MS = 1_000_000  # ns

Item = dict[str, "Value"]


@dataclass(frozen=True)
class Passed:
    """The counts of one pass."""

    stored: int
    """The number of stored tasks."""
    counts: Counts

    @property
    def requests(self) -> int:
        counts = self.counts
        return sum(counts.dynamodb_calls.values()) + sum(counts.sqs_calls.values())

    @property
    def processor_ms(self) -> float:
        return sum(self.counts.processor.values()) / MS


def measure(setting: Setting) -> Report:
    """Measure one pass for each number in `setting.stored`, each in a separate stack."""
    found = [passed(setting, stored) for stored in setting.stored]
    rows = [
        [
            f"{each.stored:,}",
            amount(each.requests),
            amount(each.counts.read_units),
            amount(each.counts.write_units),
            amount(each.processor_ms),
        ]
        for each in found
    ]
    headings = ("tasks stored", "requests", "read units", "write units", "ms of a processor")
    return Report(
        [Table(f"A supervisor's pass, {OVERDUE} tasks overdue", headings, rows)],
        {
            "supervisor_pass": {
                str(each.stored): {
                    "requests": each.requests,
                    "read_units": each.counts.read_units,
                    "write_units": each.counts.write_units,
                    "processor_ms": round(each.processor_ms, 1),
                }
                for each in found
            }
        },
    )


def passed(setting: Setting, stored: int) -> Passed:
    """Run a pass that takes the leases, make 100 tasks overdue, and count the next pass.

    `stored` is the number of stored tasks.
    """
    with stack_on_the_engine(setting.engine()) as stack, metered(stack) as meter:
        ended, stopped = _samples(meter)
        _store(meter, setting, stored, _others(ended, stopped, stack.clock(), stored - OVERDUE))
        stack.supervise()
        stack.clock.now += MINUTE
        _store(meter, setting, 0, _overdue(stopped, stack.clock()))
        meter.counts = Counts()
        stack.supervise()
        return Passed(stored, meter.counts)


def _samples(meter: Meter) -> tuple[Item, Item]:
    """Return a record that has ended and one whose first step is Processing; delete both."""
    stack = meter.stack
    counted(meter, order("ord-ended"))
    stack.submit(order("ord-open"))
    for queue in ("SubmissionQueue", "SchedulerQueue"):
        stack.run_one_batch(queue)
    stack.bodies(stack.url("InventoryRequestQueue"))
    table = stack.stack.outputs["TasksTableName"]
    found = []
    for task_id in ("ord-ended", "ord-open"):
        key: Item = {"TaskId": {"S": task_id}}
        found.append(stack.dynamodb.get_item(TableName=table, Key=key)["Item"])
        stack.dynamodb.delete_item(TableName=table, Key=key)
    ended, stopped = found
    return ended, stopped


def _others(ended: Item, stopped: Item, now: int, count: int) -> Iterator[Item]:
    """Yield `count` records that are not overdue.

    Their times rise, as in production. DynamoDB Local stores rising times twice as fast as falling
    ones.
    """
    for number in range(count):
        open_now = number % OPEN_OF == 0
        at = now + 60 * MINUTE + number if open_now else now - count + number
        yield _as(stopped if open_now else ended, f"other-{number:07d}", number, at)


def _overdue(stopped: Item, now: int) -> Iterator[Item]:
    """Yield the overdue records; the request of their first step is 5 s late."""
    stopped = unpacked_item(stopped)
    steps = stopped["Steps"].get("M", {})
    late = {
        name: {"M": {**step.get("M", {}), "CompleteBy": {"N": str(now - 5 * SECOND)}}}
        if "LockedBy" in step.get("M", {})
        else step
        for name, step in steps.items()
    }
    for number in range(OVERDUE):
        item = _as(stopped, f"late-{number:03d}", number, now - 5 * SECOND)
        yield {**item, "Steps": {"M": late}}


def _as(item: Item, task_id: str, number: int, due_at: int) -> Item:
    """Return a copy of the record with another ID and time; `number` determines the shard."""
    shard = number % SHARDS
    lane = str(item["Lane"].get("S", "")).partition("#")[0]
    return {
        **item,
        "TaskId": {"S": task_id},
        "Shard": {"N": str(shard)},
        "Lane": {"S": f"{lane}#{shard}"},
        "DueAt": {"N": str(due_at)},
    }


def _store(meter: Meter, setting: Setting, stored: int, items: Iterator[Item]) -> None:
    """Store the records with concurrent requests, because each request mostly waits."""
    stack = meter.stack
    table = stack.stack.outputs["TasksTableName"]

    def put(batch: list[Item]) -> int:
        requests = [{"PutRequest": {"Item": item}} for item in batch]
        stack.dynamodb.batch_write_item(RequestItems={table: requests})  # type: ignore[dict-item]
        return len(batch)

    done = 0
    with ThreadPoolExecutor(WRITERS) as writers:
        while some := list(islice(items, 10_000)):
            batches = [some[first : first + AT_ONCE] for first in range(0, len(some), AT_ONCE)]
            done += sum(writers.map(put, batches))
            if stored:
                setting.say(f"{done:,} of {stored:,} tasks stored")
