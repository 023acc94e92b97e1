"""The orders that ended over time, as bars that stand on each other. Pure."""

from dataclasses import dataclass

from roundsman.model.instants import clock_time
from roundsman_console.aws.metrics import HOUR, PERIOD, PERIODS, Throughput

WIDTH, HEIGHT = 1200, 96
"""The size of the drawing without its labels."""
GAP = 3
HOURS_APART = 6


@dataclass(frozen=True, slots=True)
class Column:
    """The orders of one period that came to one end."""

    state: str
    x: float
    y: float
    width: float
    height: float
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The bars, the labels of the time below them, and what the highest bar stands for."""

    bars: tuple[Column, ...]
    labels: tuple[tuple[float, str], ...]
    most: int


def chart(found: Throughput) -> Chart:
    """Return the drawing. The highest bar has the whole height."""
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
            bars.append(Column(state, place * width, top, width - GAP, height, words))
    every = HOURS_APART * HOUR // PERIOD
    labels = tuple(
        (place * width, clock_time(found.start + place * PERIOD)[:5])
        for place in range(0, PERIODS, every)
    )
    return Chart(tuple(bars), labels, most)
