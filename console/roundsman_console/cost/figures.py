"""What an order was counted to ask for, as `figures.json` says it.

`python -m benchmarks record` counts and writes that file; tests/benchmarks hold it against what the
code does today. Nothing of it is typed by hand.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).with_name("figures.json")


@dataclass(frozen=True, slots=True)
class Order:
    """One order of four steps in a row, counted from its sending to its end.

    `sqs_requests` are without `statuses`; `log_bytes` without what Lambda itself logs.
    """

    write_units: float
    read_units: float
    sqs_requests: float
    statuses: float
    invocations: float
    log_bytes: float


@dataclass(frozen=True, slots=True)
class Role:
    """What one message asks of the functions of one role, handled alone and ten in a batch.

    Agents call their service besides. A batch makes the same
    calls of DynamoDB, one after the other, and one of SQS for all.
    """

    messages: int  # that an order of four steps sends there
    log_bytes: float
    log_bytes_of_ten: float
    log_lines: float
    log_lines_of_ten: float
    dynamodb_calls: float
    sqs_calls: float


@dataclass(frozen=True, slots=True)
class RecordSize:
    """Bytes of what is stored: `first`, after the first claim; `step`, what each done one adds
    besides its result; `end`, what the end adds.
    """

    order_row: int
    birth: int
    first: int
    step: int
    end: int


@dataclass(frozen=True, slots=True)
class Shape:
    """What an order of another shape was counted to ask for, to hold the model against."""

    steps: int
    result_bytes: int
    write_units: float
    read_units: float
    sqs_requests: float


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of the supervisor that finds nothing."""

    write_units: float
    read_units: float
    dynamodb_calls: float
    log_bytes: float


@dataclass(frozen=True, slots=True)
class IdleUse:
    """What is there whether orders come or not. `metrics` are those that healthy orders make."""

    event_sources: int
    alarms: int
    metrics: int
    keys: int


@dataclass(frozen=True, slots=True)
class Times:
    """Processor time in ms a message, alone and of ten; of the machine that is named."""

    machine: str
    alone: Mapping[str, float]
    of_ten: Mapping[str, float]
    supervisor: float


@dataclass(frozen=True)
class Figures:
    """All of it. `orders` are in stacks that are `busy` (everything known), `quiet` (nobody came
    for longer than anything is kept in mind), `cold` (new instances), by `batch_5` and `batch_10`,
    and with three `statuses`. `roles` are submission, scheduler and agent.
    """

    recorded_on: str
    orders: Mapping[str, Order]
    roles: Mapping[str, Role]
    record: RecordSize
    shapes: tuple[Shape, ...]
    idle_pass: Pass
    standing: IdleUse
    times: Times


def load_figures(path: Path = FILE) -> Figures:
    """The figures that come with this console."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return Figures(
        recorded_on=found["recorded_on"],
        orders={name: Order(**each) for name, each in found["orders"].items()},
        roles={name: Role(**each) for name, each in found["roles"].items()},
        record=RecordSize(**found["record"]),
        shapes=tuple(Shape(**each) for each in found["shapes"]),
        idle_pass=Pass(**found["idle_pass"]),
        standing=IdleUse(**found["standing"]),
        times=Times(**found["times"]),
    )


def save_figures(figures: Figures, path: Path = FILE) -> None:
    """Write them as they are read."""
    path.write_text(json.dumps(asdict(figures), indent=2) + "\n", encoding="utf-8")
