"""Draws figures against a rate as a small SVG that is readable on a light and a dark page."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import log10

WIDTH, HEIGHT = 360, 250
LEFT, TOP, RIGHT, BOTTOM = 62, 40, 22, 46
"""The margins of a panel, where its labels are."""
STYLE = (
    ":root{--ink:#24292f;--page:#fff;--grid:#d0d7de;--one:#0b5cad;--two:#b3410e}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--page:#0d1117;--grid:#3d444d;"
    "--one:#6cb6ff;--two:#f0883e}}"
    "text{fill:var(--ink);font:12px sans-serif}path{fill:none;stroke-width:2}"
    ".page{fill:var(--page)}.grid{stroke:var(--grid);stroke-width:1}"
    ".a{stroke:var(--one)}.b{stroke:var(--two);stroke-dasharray:7 4}"
    ".c{stroke:var(--ink);stroke-dasharray:2 4}"
)
LINES = "abc"
"""The classes of a panel's lines in turn; they differ in their dashes too."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line, with its name in the legend."""

    name: str
    values: Sequence[float]
    """One for each rate."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines against the rates, over one axis."""

    title: str
    """What the axis shows, with its unit."""
    ticks: Sequence[float]
    """The labels of the axis; the lowest is its lower end, the highest the upper one."""
    lines: Sequence[Line]
    logarithmic: bool = False

    def y(self, value: float) -> float:
        """Return where a value is; one outside of the axis is at its end."""
        low, high = self.ticks[0], self.ticks[-1]
        value = min(high, max(low, value))
        share = (value - low) / (high - low)
        if self.logarithmic:
            share = log10(value / low) / log10(high / low)
        return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)


def drawn(title: str, description: str, rates: Sequence[float], panels: Sequence[Panel]) -> str:
    """Return the panels side by side, each above an axis of the rates (orders a second)."""
    wide = WIDTH * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {HEIGHT}" role="img" '
        'aria-labelledby="t d">',
        f'<title id="t">{escape(title)}</title>',
        f'<desc id="d">{escape(description)}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{wide}" height="{HEIGHT}"/>',
    ]
    for place, panel in enumerate(panels):
        parts += [
            f'<g transform="translate({place * WIDTH} 0)">',
            *_axes(panel, rates),
            *_lines(panel, rates),
            "</g>",
        ]
    return "\n".join([*parts, "</svg>", ""])


def _x(rate: float, rates: Sequence[float]) -> float:
    return LEFT + rate / max(rates) * (WIDTH - LEFT - RIGHT)


def _axes(panel: Panel, rates: Sequence[float]) -> list[str]:
    end, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
    found = [f'<text x="{LEFT}" y="16">{escape(panel.title)}</text>']
    for tick in panel.ticks:
        y = panel.y(tick)
        found += [
            f'<path class="grid" d="M{LEFT} {y:.1f}H{end}"/>',
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:,g}</text>',
        ]
    for quarter in range(5):
        rate = max(rates) * quarter / 4
        place = f'x="{_x(rate, rates):.1f}" y="{floor + 17}"'
        found.append(f'<text {place} text-anchor="middle">{rate:,g}</text>')
    middle = (LEFT + end) / 2
    label = "orders a second that come"
    found.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{label}</text>')
    return found


def _lines(panel: Panel, rates: Sequence[float]) -> list[str]:
    found = []
    for number, (kind, line) in enumerate(zip(LINES, panel.lines, strict=False)):
        points = [
            f"{_x(rate, rates):.1f} {panel.y(value):.1f}"
            for rate, value in zip(rates, line.values, strict=True)
        ]
        x = LEFT + number * 100
        found += [
            f'<path class="{kind}" d="M{"L".join(points)}"/>',
            f'<path class="{kind}" d="M{x} 28h22"/>',
            f'<text x="{x + 27}" y="32">{escape(line.name)}</text>',
        ]
    return found
