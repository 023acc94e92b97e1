"""Numbers over time as columns: orders that ended in a day, failures of an incident. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from roundsman.model.instants import MINUTE, SECOND, clock_time, format_duration
from roundsman_console.aws.metrics import HOUR, PERIOD, PERIODS, Throughput

WIDTH, HEIGHT = 1200, 96
"""The size of the chart of a day without its labels."""
GAP = 3
HOURS_APART = 6
CURVE_WIDTH, CURVE_HEIGHT = 600, 48
"""The size of the curve of failures."""
LEAST_BARS, MOST_BARS = 20, 60
DAY = 24 * HOUR
EVERY = (
    *(SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE),
    *(HOUR, 6 * HOUR, DAY, 7 * DAY),
)
"""What one column of a curve can stand for, in ms."""


@dataclass(frozen=True, slots=True)
class Column:
    """What was counted in one period."""

    x: float
    y: float
    width: float
    height: float
    words: str
    state: str = ""
    """The state in which the orders ended; empty for failures."""


@dataclass(frozen=True, slots=True)
class Chart:
    """The columns of a day, the labels of the time below them, and the number of the highest."""

    bars: tuple[Column, ...]
    labels: tuple[tuple[float, str], ...]
    most: int


@dataclass(frozen=True, slots=True)
class Curve:
    """The columns from the first failure until now."""

    bars: tuple[Column, ...]
    every: str
    """What one column stands for, in words."""
    most: int
    """The number of failures of the highest, which has the whole height."""
    first: str
    """When the first column begins, in UTC: `02:39:00`."""


def chart(found: Throughput) -> Chart:
    """Return the drawing of a day, its ends on each other. The highest has the whole height."""
    totals = [sum(counts[n] for counts in found.ends.values()) for n in range(PERIODS)]
    most = max(totals)
    width = WIDTH / PERIODS
    bars = []
    for place in range(PERIODS):
        top, begins = float(HEIGHT), found.start + place * PERIOD
        for state, counts in found.ends.items():
            if not counts[place]:
                continue
            height = counts[place] * HEIGHT / most
            top -= height
            words = f"{counts[place]} {state} from {clock_time(begins)}"
            bars.append(Column(place * width, top, width - GAP, height, words, state))
    every = HOURS_APART * HOUR // PERIOD
    labels = tuple(
        (place * width, clock_time(found.start + place * PERIOD)[:5])
        for place in range(0, PERIODS, every)
    )
    return Chart(tuple(bars), labels, most)


def failure_curve(failed_at: Sequence[int], now: int) -> Curve | None:
    """Return the drawing of failures at these instants (epoch ms); None if there is none."""
    if not failed_at:
        return None
    first, end = min(failed_at), max(now, *failed_at)
    period = next((one for one in EVERY if end // one - first // one < MOST_BARS), EVERY[-1])
    start = first // period
    places = min(end // period - start + 1, MOST_BARS)
    counts = Counter(min(at // period - start, places - 1) for at in failed_at)
    most, width = max(counts.values()), CURVE_WIDTH / max(places, LEAST_BARS)
    bars = []
    for place, count in sorted(counts.items()):
        height = max(2.0, count * CURVE_HEIGHT / most)
        words = f"{count} from {clock_time((start + place) * period)}"
        bars.append(Column(place * width, CURVE_HEIGHT - height, width - 2, height, words))
    return Curve(tuple(bars), format_duration(period), most, clock_time(start * period))
