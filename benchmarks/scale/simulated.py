"""Simulates the limits of the page on scale, and two stacks from an easy rate to too high a one.

The figures are stored in `simulated.json`, since they take minutes; the page, its table of limits
and its plots are made of them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.report import Report, Setting, Table
from benchmarks.scale import stacks
from benchmarks.scale.lanes import let_through, unlucky
from benchmarks.scale.plan import PROFILES, Measured, limits, load_measured
from benchmarks.scale.plot import Line, Panel, drawn
from benchmarks.scale.simulation import DUE, Simulation, Stack, most_carried
from roundsman.model.instants import SECOND

FIGURES = Path(__file__).with_name("simulated.json")
IMAGES = Path(__file__).parents[2] / "docs" / "images"
LARGEST = next(each for each in reversed(PROFILES) if each.stacks == 1)
"""The profile of the largest stack of the plan."""
ORDERS_OF_A_RUN, LEAST_SECONDS = 16_000, 12
"""A run of a search: enough for a queue to reach the length that it keeps, or to grow."""
AFTERWARDS = 600
"""Seconds without an order after those of a curve, in which what waits or is hidden ends."""
EASY, TOO_MUCH = 0.7, 1.2
"""A search is between these shares of the planned rate."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A stack at some rates, each for `seconds` s, of which the first `warm_up` do not count."""

    name: str
    title: str
    rates: Sequence[int]
    seconds: int
    warm_up: int
    latencies: Sequence[float]
    """The labels of the axis of latencies, in s."""
    orders: Sequence[float]
    """The labels of the axis of orders a second."""


CURVES = (
    Curve(
        "default", "The stack as it comes", (10, 20, 40, 60, 70, 75, 78, 80, 85, 90, 100, 120),
        120, 30, (0.5, 1, 2, 5, 10, 20, 50, 100), (0, 30, 60, 90, 120),
    ),
    Curve(
        "largest", f"The stack for {LARGEST.rate:,.0f} orders a second",
        (500, 1_000, 2_000, 2_500, 3_000, 3_600, 4_000, 4_400, 4_800),
        18, 6, (0.5, 1, 2, 5, 10, 20, 50, 100), (0, 1_200, 2_400, 3_600, 4_800),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """What a stack did at one rate."""

    rate: float
    """Orders a second that came."""
    completed: float
    """Orders a second."""
    median_ms: float
    p99_ms: float
    throttled: float
    """The share of the tries to write."""
    fullest: str
    used: float
    """The share of the fullest that was used."""


@dataclass(frozen=True)
class Figures:
    """What was simulated."""

    carried: Mapping[str, float]
    """The highest rate, in orders a second, by `Limit.id`, or `planned` or `at most` for a whole
    stack."""
    curves: Mapping[str, Sequence[Point]]


def load_simulated() -> Figures:
    """Read what was simulated last from `simulated.json`."""
    found = json.loads(FIGURES.read_text(encoding="utf-8"))
    return Figures(
        carried=found["carried"],
        curves={
            name: [Point(**each) for each in points] for name, points in found["curves"].items()
        },
    )


def measure(setting: Setting) -> Report:
    """Simulate everything, store the figures and the plots, and return the tables."""
    figures = simulate(setting)
    text = json.dumps(asdict(figures), indent=1)
    FIGURES.write_text(text + "\n", encoding="utf-8")
    for name, plot in plots(figures).items():
        (IMAGES / name).write_text(plot, encoding="utf-8")
    return report(figures)


def simulate(setting: Setting) -> Figures:
    """Return the figures of all searches and curves. The same code gives the same figures."""
    measured = load_measured()
    carried = {}
    for name, stack, plan in _searches(measured):
        setting.say(f"how much is carried: {name}")
        carried[name] = _most(stack, plan)
    curves = {}
    for curve in CURVES:
        setting.say(f"{curve.title}, {curve.rates[0]} to {curve.rates[-1]} orders a second")
        stack = _stack_of(curve.name, measured)
        curves[curve.name] = [point(stack, curve, rate) for rate in curve.rates]
    return Figures(carried, curves)


def _searches(measured: Measured) -> Iterator[tuple[str, Stack, float]]:
    """Each stack whose highest rate is sought, and its planned rate."""
    for limit in limits(measured):
        if limit.known == "simulated":
            yield limit.id, stacks.alone(limit.id, measured), limit.as_it_comes
    yield "planned", _stack_of("largest", measured), end_of_planned(measured)
    yield "at most", stacks.at_most(measured), end_at_most(measured)


def end_at_most(measured: Measured) -> float:
    """Return the planned rate at which one stack ends, whatever its settings."""
    return min(limit.at_most for limit in limits(measured))


def end_of_planned(measured: Measured) -> float:
    """Return the planned rate at which the stack of LARGEST ends: its due index is full first."""
    stack = _stack_of("largest", measured)
    return let_through(stack.shards, stack.partitions[DUE], stack.partition_writes)


def _stack_of(name: str, measured: Measured) -> Stack:
    if name == "default":
        return stacks.as_it_comes(measured)
    return stacks.planned(LARGEST, measured, stacks.concurrencies())


def _most(stack: Stack, planned: float) -> float:
    seconds = max(LEAST_SECONDS, ORDERS_OF_A_RUN / planned)
    low, high = EASY * planned, TOO_MUCH * planned
    return round(most_carried(stack, low, high, seconds, _draw_of(stack)), 1)


def _draw_of(stack: Stack) -> int:
    """The seed of the draw by which the plan goes."""
    return unlucky(stack.shards, stack.partitions[DUE])


def point(stack: Stack, curve: Curve, rate: int) -> Point:
    """Return what the stack does at this rate; the same whenever it is simulated."""
    found = Simulation(stack, _draw_of(stack)).run(rate, curve.seconds, curve.warm_up, AFTERWARDS)
    return Point(
        rate=rate,
        completed=round(found.completed / found.seconds, 1),
        median_ms=round(found.median_ms),
        p99_ms=round(found.p99_ms),
        throttled=round(found.throttled, 4),
        fullest=found.fullest,
        used=round(found.used, 3),
    )


def report(figures: Figures) -> Report:
    """Return the tables of the page."""
    return Report(
        [_whole(figures), *(_table(curve, figures.curves[curve.name]) for curve in CURVES)],
        ["Both draw which lanes share a partition; 99 of 100 draws let through at least as much."],
    )


def _whole(figures: Figures) -> Table:
    measured = load_measured()
    largest, most = _stack_of("largest", measured), stacks.at_most(measured)
    rows = [
        [
            f"{what}: {stack.shards} shards, warm for "
            f"{stack.partitions[DUE] * stack.partition_writes:,} units",
            f"{planned:,.0f}",
            f"{figures.carried[name]:,.0f}",
        ]
        for name, what, stack, planned in (
            ("planned", f"for {LARGEST.rate:,.0f}", largest, end_of_planned(measured)),
            ("at most", "the largest", most, end_at_most(measured)),
        )
    ]
    return Table(
        "The most of one stack, in orders a second", ("settings", "planned", "simulated"), rows
    )


def _table(curve: Curve, points: Sequence[Point]) -> Table:
    rows = [
        [
            f"{point.rate:,.0f}",
            f"{point.completed:,.0f}",
            f"{point.median_ms / SECOND:.2f} s",
            f"{point.p99_ms / SECOND:.2f} s",
            f"{point.throttled:.1%}",
            f"{point.used:.0%}",
            point.fullest,
        ]
        for point in points
    ]
    title = f"{curve.title}: orders come for {curve.seconds} s, from an empty start"
    headings = ("orders a second", "completed", "median", "p99", "throttled", "used", "of")
    return Table(title, headings, rows)


def plots(figures: Figures) -> dict[str, str]:
    """Return the plot of each curve, by its file's name."""
    return {f"scale-{curve.name}.svg": _plot(curve, figures.curves[curve.name]) for curve in CURVES}


def _plot(curve: Curve, points: Sequence[Point]) -> str:
    rates = [point.rate for point in points]
    said = "; ".join(
        f"at {point.rate:,.0f} orders a second {point.completed:,.0f} are completed a second, "
        f"the median is {point.median_ms / SECOND:.1f} s and p99 {point.p99_ms / SECOND:.1f} s"
        for point in (points[0], points[len(points) // 2], points[-1])
    )
    return drawn(
        f"{curve.title}: completed orders and latency by the orders that come",
        f"Two line charts of a simulation of {curve.seconds} seconds: {said}.",
        rates,
        [
            Panel(
                "orders a second",
                curve.orders,
                [
                    Line("completed", [point.completed for point in points]),
                    Line("that came", rates),
                ],
            ),
            Panel(
                "from arrival to end, in s",
                curve.latencies,
                [
                    Line("median", [point.median_ms / SECOND for point in points]),
                    Line("p99", [point.p99_ms / SECOND for point in points]),
                ],
                logarithmic=True,
            ),
        ],
    )
