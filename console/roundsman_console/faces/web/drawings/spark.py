"""The share of a step's attempts that failed, as a small drawing in a row of a table. Pure.

A time of which the share is not known has a frame, and is never drawn as 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 150, 24
LEAST = 2.0
"""The height of a column in which any attempt failed."""


@dataclass(frozen=True, slots=True)
class Spark:
    """The columns as the path of a surface, and the frames."""

    path: str
    """Empty if no attempt failed."""
    gaps: tuple[tuple[float, float], ...]
    """The left edge and the width of each time that is not known."""
    words: str
    """The same in words."""
    most: float | None = None
    """The share of the highest column; None if nothing is known."""


def spark(shares: Sequence[float | None]) -> Spark:
    """Return the drawing of these shares, each from 0 to 1; the highest has the whole height."""
    width = WIDTH / max(1, len(shares))
    most = max((one for one in shares if one is not None), default=None)
    path, gaps = "", list[tuple[float, float]]()
    for place, share in enumerate(shares):
        x = place * width
        if share is None:
            if gaps and abs(gaps[-1][0] + gaps[-1][1] - x) < 1:
                gaps[-1] = (gaps[-1][0], round(x + width - gaps[-1][0], 1))
            else:
                gaps.append((round(x, 1), round(width, 1)))
        elif share and most:
            height = max(LEAST, share * HEIGHT / most)
            path += f"M{x:.1f},{HEIGHT}v{-height:.1f}h{width:.1f}V{HEIGHT}z"
    return Spark(path, tuple(gaps), _words(shares, most), most)


def _words(shares: Sequence[float | None], most: float | None) -> str:
    if most is None:
        return "nothing is known"
    unknown = sum(one is None for one in shares)
    said = f"at most {most * 100:.1f} % failed" if most else "none failed"
    return f"{said}; {unknown} of {len(shares)} parts unknown" if unknown else said
