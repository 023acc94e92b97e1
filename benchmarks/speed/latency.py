"""Models what an order waits for in the system itself, on AWS: the path of its messages.

The time of a function is its measured processor time at its share of a processor, plus an assumed
wait for each answer of AWS (`message_ms` of the cost model). Services take no time in the path.
Lambda reads a queue by long polling, so a message waits for the invocation only, as long as an
instance is free (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html). AWS
publishes no figure for this; it is assumed (`PICK_UP`). The part `throughput` measures the same
path on the emulator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.report import Report, Setting, Table, amount
from roundsman_console.facts.cost.figures import Figures, load_figures
from roundsman_console.facts.cost.model import DEFAULT_MEMORY, Wanted, message_ms
from roundsman_console.facts.cost.prices import Prices, load_prices

PICK_UP = 15.0  # ms from a message's acceptance to the invocation of an idle instance; assumed
STEPS = 4

SUBMISSION, SCHEDULER = "submission", "scheduler"


@dataclass(frozen=True)
class Hop:
    """One message of an order: it is sent, picked up and handled."""

    message: str
    receiver: str
    """The function that handles it."""
    handled_ms: float
    """The time from the invocation to the acceptance of the messages that it causes."""


def path(steps: int, figures: Figures, prices: Prices, memory: int = DEFAULT_MEMORY) -> list[Hop]:
    """Return the messages of an order with this number of steps in a row, without services."""
    wanted = Wanted(1, memory=memory)
    takes = {
        role: message_ms(role, wanted, figures, prices) for role in (SUBMISSION, SCHEDULER, "agent")
    }
    hops = [
        Hop("the order", SUBMISSION, takes[SUBMISSION]),
        Hop("Start", SCHEDULER, takes[SCHEDULER]),
    ]
    for number in range(1, steps + 1):
        hops += [
            Hop(f"request {number}", "agent", takes["agent"]),
            Hop(f"reply {number}", SCHEDULER, takes[SCHEDULER]),
        ]
    return hops


def waits_ms(hops: Sequence[Hop], pick_up: float = PICK_UP) -> float:
    """Return what an order waits for in the system, in ms."""
    return sum(pick_up + hop.handled_ms for hop in hops)


def measure(_setting: Setting) -> Report:
    """Return the path of an order, and the ways to a shorter one."""
    figures, prices = load_figures(), load_prices()
    hops = path(STEPS, figures, prices)
    return Report(
        [_path_table(hops), _shorter(figures, prices)],
        [
            f"Assumed: {PICK_UP:.0f} ms from a message's acceptance to the invocation of an idle "
            f"instance, {prices.assumed.dynamodb_ms:.0f} ms for an answer of DynamoDB, "
            f"{prices.assumed.sqs_ms:.0f} ms for one of SQS. Cold starts are not included."
        ],
    )


def _path_table(hops: Sequence[Hop]) -> Table:
    rows = [
        [hop.message, hop.receiver, amount(round(PICK_UP)), amount(round(hop.handled_ms))]
        for hop in hops
    ]
    rows.append(["in all", "", amount(round(PICK_UP * len(hops))), amount(_handled(hops))])
    return Table(
        f"The path of an order of {len(hops) // 2 - 1} steps: {len(hops)} messages, "
        f"{amount(round(waits_ms(hops)))} ms, at {DEFAULT_MEMORY} MB",
        ("message", "handled by", "picked up after ms", "handled in ms"),
        rows,
    )


def _handled(hops: Sequence[Hop]) -> int:
    return round(sum(hop.handled_ms for hop in hops))


def _shorter(figures: Figures, prices: Prices) -> Table:
    """The ways to a shorter path, each by itself."""
    now = path(STEPS, figures, prices)
    ways: list[tuple[str, Sequence[Hop], float]] = [
        ("as it is", now, PICK_UP),
        ("two steps made one, at one agent", path(STEPS - 1, figures, prices), PICK_UP),
        ("submission claims the first step", [now[0], *now[2:]], PICK_UP),
        ("1,769 MB, a whole processor", path(STEPS, figures, prices, 1769), PICK_UP),
        ("if messages were picked up after 50 ms", now, 50.0),
    ]
    return Table(
        "What would shorten it",
        ("", "messages", "ms"),
        [[name, f"{len(hops)}", amount(round(waits_ms(hops, at)))] for name, hops, at in ways],
    )
