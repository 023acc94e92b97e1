"""Models what an order waits for in the system itself, on AWS: its path and its urgency.

The time of a function is its measured processor time at its share of a processor, plus an assumed
wait for each answer of AWS (`roundsman_console.cost.model.message_ms`). Services take no time in
the path, and 100 ms on average in the simulation of load. Lambda reads a queue by long polling, so
a message waits for the invocation only, as long as an instance is free
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html). AWS publishes no figure
for this; it is assumed (`PICK_UP`). The part `throughput` measures the same path on the emulator.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from benchmarks.report import Report, Setting, Table, amount
from benchmarks.scale.arrivals import lot
from roundsman.model.instants import MINUTE, SECOND
from roundsman_console.cost.figures import Figures, load_figures
from roundsman_console.cost.model import Wanted, message_ms
from roundsman_console.cost.prices import Prices, load_prices

PICK_UP = 15.0  # ms from a message's acceptance to the invocation of an idle instance; assumed
STEPS = 4
MEMORY = 256  # MB
SERVICE_MS = 100.0

SUBMISSION, SCHEDULER = "submission", "scheduler"
INSTANCES, URGENT_INSTANCES = 10, 5  # the defaults of the parameters <...>Concurrency
RATES = (10, 70, 100)  # orders a second; an agent with ten instances handles some 80
URGENT_OF = 100  # one order of this number is urgent
LASTS = 5 * MINUTE


@dataclass(frozen=True)
class Hop:
    """One message of an order: it is sent, picked up and handled."""

    message: str
    receiver: str
    """The function that handles it."""
    handled_ms: float
    """The time from the invocation to the acceptance of the messages that it causes."""


def path(steps: int, figures: Figures, prices: Prices, memory: int = MEMORY) -> list[Hop]:
    """Return the messages of an order of so many steps in a row, without the time of services."""
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


@dataclass
class Station:
    """A queue with the instances that read it, first come, first served."""

    instances: int
    busy: int = 0
    waiting: deque[tuple["SimulatedOrder", int]] = field(default_factory=deque)


@dataclass(frozen=True, eq=False)
class SimulatedOrder:
    """An order of the simulation; `hops` are its stations and the ms that each handles it for."""

    sent_at: float
    urgent: bool
    hops: tuple[tuple[Station, float], ...]


@dataclass
class Load:
    """Simulates orders on the default instances, one message an invocation."""

    hops: Sequence[Hop]
    rate: float
    """Orders a second."""
    own_queue: bool = True
    """Whether urgent orders have a queue and instances of their own at each agent."""
    took: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    """The time in ms of each order, without the services, by whether it is urgent."""

    def run(self, lasts: int = LASTS) -> "Load":
        """Simulate the arrivals of `lasts` ms, until the last of these orders ends."""
        numbers, events = count(), list[tuple[float, int, SimulatedOrder, int]]()
        for order in self._orders(lasts):
            heappush(events, (order.sent_at + PICK_UP, next(numbers), order, 0))
        leaving = list[tuple[float, int, SimulatedOrder, int]]()

        def begin(order: SimulatedOrder, hop: int, now: float) -> None:
            order.hops[hop][0].busy += 1
            heappush(leaving, (now + order.hops[hop][1], next(numbers), order, hop))

        while events or leaving:
            if events and (not leaving or events[0][0] <= leaving[0][0]):
                now, _, order, hop = heappop(events)
                station = order.hops[hop][0]
                if station.busy < station.instances:
                    begin(order, hop, now)
                else:
                    station.waiting.append((order, hop))
                continue
            now, _, order, hop = heappop(leaving)
            station = order.hops[hop][0]
            station.busy -= 1
            if station.waiting:
                begin(*station.waiting.popleft(), now)
            if hop + 1 < len(order.hops):
                heappush(events, (now + PICK_UP, next(numbers), order, hop + 1))
            else:
                self.took[order.urgent].append(now - order.sent_at)
        return self

    def _orders(self, lasts: int) -> Iterator[SimulatedOrder]:
        """Yield the orders in the order of their arrival; agents have a queue for urgent ones."""
        drawn, at = lot(1), 0.0
        shared = [Station(INSTANCES) for _ in self.hops]
        urgent = [
            Station(URGENT_INSTANCES) if self.own_queue and hop.receiver == "agent" else station
            for hop, station in zip(self.hops, shared, strict=True)
        ]
        while (at := at + drawn.expovariate(self.rate / SECOND)) < lasts:
            is_urgent = drawn.random() < 1 / URGENT_OF
            hops = tuple(
                (
                    station,
                    hop.handled_ms
                    + (drawn.expovariate(1 / SERVICE_MS) if hop.receiver == "agent" else 0.0),
                )
                for station, hop in zip(urgent if is_urgent else shared, self.hops, strict=True)
            )
            yield SimulatedOrder(at, is_urgent, hops)


def measure(setting: Setting) -> Report:
    """Return the path of an order and its time under load."""
    figures, prices = load_figures(), load_prices()
    hops = path(STEPS, figures, prices)
    setting.say("orders under load")
    loads = {rate: Load(hops, rate).run() for rate in RATES}
    return Report(
        [_path_table(hops), _shorter(figures, prices), _loads(loads)],
        {
            "latency": {
                "hops": len(hops),
                "waits_ms": round(waits_ms(hops)),
                "under_load_ms": {
                    str(rate): {
                        ("urgent" if urgent else "normal"): [*_middle_and_most(load.took[urgent])]
                        for urgent in (False, True)
                    }
                    for rate, load in loads.items()
                },
            }
        },
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
        f"{amount(round(waits_ms(hops)))} ms, at {MEMORY} MB",
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
        ("512 MB", path(STEPS, figures, prices, 512), PICK_UP),
        ("1,769 MB, a whole processor", path(STEPS, figures, prices, 1769), PICK_UP),
        ("if messages were picked up after 50 ms", now, 50.0),
    ]
    return Table(
        "What would shorten it",
        ("", "messages", "ms"),
        [[name, f"{len(hops)}", amount(round(waits_ms(hops, at)))] for name, hops, at in ways],
    )


def _loads(loads: dict[int, Load]) -> Table:
    rows = [
        [
            f"{rate} orders a second, {'urgent' if urgent else 'normal'}",
            f"{len(load.took[urgent]):,}",
            *(amount(ms) for ms in _middle_and_most(load.took[urgent])),
        ]
        for rate, load in loads.items()
        for urgent in (False, True)
    ]
    return Table(
        f"Orders under load for {LASTS // MINUTE} minutes, ms with services of "
        f"{SERVICE_MS:.0f} ms, default instances",
        ("", "orders", "p50", "p99"),
        rows,
    )


def _middle_and_most(found: Sequence[float]) -> tuple[int, int]:
    """Return the 50th and the 99th percentile, rounded."""
    ordered = sorted(found)
    return round(ordered[len(ordered) // 2]), round(ordered[int(len(ordered) * 0.99)])
