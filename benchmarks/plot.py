"""Draws stacked horizontal bars as SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP = 860, 190, 60, 74
BAR, GAP = 26, 14
COLOURS = ("#31688e", "#6da7c4", "#b5c9d3", "#f0a202", "#c05746", "#8e5572", "#7a7a7a")
TEXT = 'font-family="sans-serif" font-size="13" fill="#222"'


@dataclass(frozen=True)
class Bar:
    """A bar: its name, and its parts from left to right."""

    name: str
    parts: Mapping[str, float]


def stacked(title: str, bars: Sequence[Bar]) -> str:
    """Return the SVG document; a part has the same colour in all bars."""
    names = list(dict.fromkeys(name for bar in bars for name in bar.parts))
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(names)}
    longest = max(sum(bar.parts.values()) for bar in bars)
    scale = (WIDTH - LEFT - RIGHT) / longest
    height = TOP + len(bars) * (BAR + GAP) + GAP
    drawn = [f'<text x="10" y="24" {TEXT} font-weight="bold">{escape(title)}</text>']
    drawn += _legend(colours)
    for at, bar in enumerate(bars):
        drawn += _bar(bar, TOP + at * (BAR + GAP), scale, colours)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            *drawn,
            "</svg>\n",
        ]
    )


def _legend(colours: Mapping[str, str]) -> list[str]:
    drawn, x = [], 10
    for name, colour in colours.items():
        drawn.append(f'<rect x="{x}" y="40" width="12" height="12" fill="{colour}"/>')
        drawn.append(f'<text x="{x + 17}" y="51" {TEXT}>{escape(name)}</text>')
        x += 30 + 8 * len(name)
    return drawn


def _label(total: float) -> str:
    return f"{total:.2f}" if total < 10 else f"{total:.0f}"


def _bar(bar: Bar, y: int, scale: float, colours: Mapping[str, str]) -> list[str]:
    middle = y + BAR / 2 + 5
    drawn = [
        f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end" {TEXT}>{escape(bar.name)}</text>'
    ]
    x = float(LEFT)
    for name, value in bar.parts.items():
        width = value * scale
        drawn.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colours[name]}">'
            f"<title>{escape(name)}: {value:.2f}</title></rect>"
        )
        x += width
    total = sum(bar.parts.values())
    drawn.append(f'<text x="{x + 6:.1f}" y="{middle}" {TEXT}>{_label(total)}</text>')
    return drawn
