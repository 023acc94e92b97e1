"""Reads and writes `figures.json`: the measured counts of the AWS usage of an order.

`python -m benchmarks record` measures the counts and writes the file; no value is entered by hand.
The tests in tests/benchmarks compare the file with the current code.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("figures.json")


@dataclass(frozen=True, slots=True)
class OrderUse:
    """The usage of one order of four steps in sequence, from its submission to its end."""

    write_units: float
    """DynamoDB write request units."""
    read_units: float
    """DynamoDB read request units."""
    sqs_requests: float
    """SQS requests, without those of `statuses`."""
    statuses: float
    """Status messages sent."""
    invocations: float
    """Lambda invocations."""
    log_bytes: float
    """Bytes that the functions log, without the log of the Lambda platform."""


@dataclass(frozen=True, slots=True)
class Role:
    """The usage of one message by the functions of one role: alone, and in a batch of ten.

    Values are per message. A batch makes one call to SQS for all its messages. An agent's call to
    its service is not included.
    """

    messages: int
    """The number of messages of an order of four steps that functions of this role handle."""
    log_bytes: float
    log_bytes_of_ten: float
    log_lines: float
    log_lines_of_ten: float
    dynamodb_calls: float
    """Calls to DynamoDB, for a message alone."""
    dynamodb_calls_of_ten: float
    """Fewer in a batch, whose starts read their tasks and orders together."""
    sqs_calls: float
    """Calls to SQS by the function, for a message alone."""


@dataclass(frozen=True, slots=True)
class RecordSize:
    """The sizes of an order row and of a task record, in bytes."""

    order_row: int
    birth: int
    """The task record when it is created."""
    first: int
    """The task record after the first claim."""
    step: int
    """What each completed step adds, without its result."""
    end: int
    """What the last decision adds, without the result of the last step."""
    packed: int
    """A packed record, which replaces any above 1 KB, without its completed steps."""
    packed_step: int
    """What each completed step adds to a packed record, without its result."""
    packed_share: float
    """What is left of the bytes of a result in a packed record. The measured results are random
    digits; texts and names take less."""
    row: int
    """A row of settled steps, without the steps."""


@dataclass(frozen=True, slots=True)
class ShapeUse:
    """The usage of an order with other steps or results; tests compare the model with it."""

    steps: int
    result_bytes: int
    """The size of each step's result in bytes."""
    write_units: float
    read_units: float
    sqs_requests: float


@dataclass(frozen=True, slots=True)
class Pass:
    """The usage of one pass of the supervisor that finds nothing to do."""

    write_units: float
    read_units: float
    dynamodb_calls: float
    log_bytes: float
    sqs_requests: float
    """The requests that count the messages of queues; 0 where alarms watch the queues."""


@dataclass(frozen=True, slots=True)
class IdleUse:
    """What a stack of one profile costs even if no orders come."""

    one_pass: Pass
    """On average, of passes that find nothing to do."""

    event_sources: int
    """Event source mappings."""
    alarms: int
    """The metrics that alarms watch: AWS charges an alarm for each."""
    metrics: int
    """The custom metrics that orders without failures produce. One costs nothing in an hour in
    which it has no value."""
    keys: int
    """KMS keys."""
    dashboards: int


@dataclass(frozen=True, slots=True)
class Times:
    """Measured processor times in ms."""

    machine: str
    """The machine on which they were measured."""
    alone: Mapping[str, float]
    """The time per message that is handled alone, by role."""
    of_ten: Mapping[str, float]
    """The time per message in a batch of ten, by role."""
    supervisor: float
    """The time of one pass of the supervisor."""


@dataclass(frozen=True)
class Figures:
    """The contents of `figures.json`."""

    recorded_on: str
    """The date of the measurement: `2026-11-22`."""
    orders: Mapping[str, OrderUse]
    """The usage of one order, by the condition of the stack: `busy` (all caches are fresh), `quiet`
    (all caches have expired, because no order came for a while), `cold` (new instances), `batch_5`
    and `batch_10` (batches of that size), `statuses` (an order with three statuses)."""
    roles: Mapping[str, Role]
    """By role: `submission`, `scheduler` or `agent`."""
    record: RecordSize
    shapes: tuple[ShapeUse, ...]
    standing: Mapping[str, IdleUse]
    """By profile: `lean`, `standard` or `full`."""
    times: Times


def load_figures(path: Path = FILE) -> Figures:
    """Read the figures; by default those of this version of the console."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return Figures(
        recorded_on=found["recorded_on"],
        orders={name: OrderUse(**each) for name, each in found["orders"].items()},
        roles={name: Role(**each) for name, each in found["roles"].items()},
        record=RecordSize(**found["record"]),
        shapes=tuple(ShapeUse(**each) for each in found["shapes"]),
        standing={name: _idle_use(each) for name, each in found["standing"].items()},
        times=Times(**found["times"]),
    )


def _idle_use(found: dict[str, Any]) -> IdleUse:
    return IdleUse(**{**found, "one_pass": Pass(**found["one_pass"])})


def save_figures(figures: Figures, path: Path = FILE) -> None:
    """Write the figures in the format that `load_figures` reads."""
    path.write_text(json.dumps(asdict(figures), indent=2) + "\n", encoding="utf-8")
