"""The failures of an incident over time, as bars. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from roundsman.model.instants import MINUTE, SECOND, clock_time, format_duration

WIDTH, HEIGHT = 600, 48
LEAST_BARS, MOST_BARS = 20, 60
HOUR, DAY = 60 * MINUTE, 24 * 60 * MINUTE
PERIODS = (
    *(SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE),
    *(HOUR, 6 * HOUR, DAY, 7 * DAY),
)
"""What one bar can stand for, in ms."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The failures of one period."""

    x: float
    y: float
    width: float
    height: float
    words: str


@dataclass(frozen=True, slots=True)
class Curve:
    """The bars from the first failure until now."""

    bars: tuple[Bar, ...]
    every: str
    """What one bar stands for, in words."""
    most: int
    """The number of failures of the highest bar, which has the whole height."""
    first: str
    """When the first bar begins, in UTC: `02:39:00`."""


def failure_curve(failed_at: Sequence[int], now: int) -> Curve | None:
    """Return the drawing of failures at these instants (epoch ms); None if there is none."""
    if not failed_at:
        return None
    first, end = min(failed_at), max(now, *failed_at)
    period = next((one for one in PERIODS if end // one - first // one < MOST_BARS), PERIODS[-1])
    start = first // period
    places = min(end // period - start + 1, MOST_BARS)
    counts = Counter(min(at // period - start, places - 1) for at in failed_at)
    most, width = max(counts.values()), WIDTH / max(places, LEAST_BARS)
    bars = []
    for place, count in sorted(counts.items()):
        height = max(2.0, count * HEIGHT / most)
        words = f"{count} from {clock_time((start + place) * period)}"
        bars.append(Bar(place * width, HEIGHT - height, width - 2, height, words))
    return Curve(tuple(bars), format_duration(period), most, clock_time(start * period))
