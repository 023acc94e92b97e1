"""A broken axis of time: where an instant is drawn, with the long gaps folded. Pure.

Between two neighbouring moments nothing begins and nothing ends. Where that lasts long in
comparison with the rest, the gap has a fixed width and says how long it is. All other gaps have one
scale.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from roundsman.model.instants import DAY, MINUTE, SECOND, format_duration

SCALE = 1000.0
"""The width of the axis in units of the drawing."""
FOLD = 60.0
"""The width of a folded gap: its duration fits in it."""
MOST_FOLDS = 8
"""So many gaps are folded at most: the rest of the axis keeps half of its width."""
QUIET_SHARE = 1 / 4
"""A gap in which no attempt goes on is folded if it is longer than this share of all others in
which one does."""
ANY_SHARE = 9 / 10
"""Any gap is folded if it is longer than this share of all that is not folded: a wait of days for a
callback beside attempts of milliseconds."""
BETWEEN_LABELS = 90.0
"""Two labels of the axis are so far apart."""
PARTS = 4
"""The largest number of whole parts of an axis without a folded gap."""
PART_LENGTHS = (
    *(digit * 10**power for power in range(5) for digit in (1, 2, 5)),
    *(minutes * MINUTE for minutes in (1, 2, 5, 10, 20, 30, 60, 120, 180, 360, 720)),
)
"""The lengths of a part, in ms; one that is longer is a whole number of days."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the axis. Instants are epoch ms."""

    since: int
    until: int
    x: float
    width: float
    folded: bool = False

    @property
    def words(self) -> str:
        """How long the stretch is."""
        return format_duration(self.until - self.since)


@dataclass(frozen=True, slots=True)
class Axis:
    """The stretches of time from left to right, and the labels below them."""

    pieces: tuple[Piece, ...]
    ticks: tuple[tuple[float, str], ...]
    """Where a line of the axis is, and the time since its start in words."""

    @property
    def start(self) -> int:
        """The instant at its left end (epoch ms)."""
        return self.pieces[0].since

    @property
    def folds(self) -> tuple[Piece, ...]:
        """The stretches that are folded."""
        return tuple(piece for piece in self.pieces if piece.folded)

    def place(self, instant: int) -> float:
        """Return where an instant (epoch ms) is; one outside of the axis is at its nearer end."""
        first, last = self.pieces[0], self.pieces[-1]
        if instant <= first.since:
            return first.x
        if instant >= last.until:
            return last.x + last.width
        piece = self.pieces[bisect_right(self.pieces, instant, key=lambda one: one.since) - 1]
        return piece.x + piece.width * (instant - piece.since) / (piece.until - piece.since)


def axis_of(start: int, end: int, moments: Iterable[int], busy: Sequence[tuple[int, int]]) -> Axis:
    """Return the axis from `start` to `end` (epoch ms).

    `moments` are the instants at which something begins or ends, and `busy` are the times in which
    an attempt goes on.
    """
    end = max(end, start + 1)
    inner = {one for one in moments if start < one < end}
    edges = sorted({start, end, *inner})
    gaps = [*pairwise(edges)]
    folded = _folded(gaps, _are_busy(gaps, busy))
    rest = sum(until - since for place, (since, until) in enumerate(gaps) if place not in folded)
    width = SCALE - len(folded) * FOLD
    x, pieces = 0.0, list[Piece]()
    for place, (since, until) in enumerate(gaps):
        wide = FOLD if place in folded else width * (until - since) / rest
        pieces.append(Piece(since, until, x, wide, place in folded))
        x += wide
    return Axis(tuple(pieces), tuple(_ticks(pieces)))


def _are_busy(gaps: Sequence[tuple[int, int]], busy: Sequence[tuple[int, int]]) -> list[bool]:
    """Whether an attempt goes on in each of the gaps, which are in the order of time."""
    found, until, left = list[bool](), 0, sorted(busy, reverse=True)
    for since, end in gaps:
        while left and left[-1][0] < end:
            until = max(until, left.pop()[1])
        found.append(until > since)
    return found


def _folded(gaps: Sequence[tuple[int, int]], busy: Sequence[bool]) -> set[int]:
    """The places of the gaps to fold, the longest first. One gap at least is not folded."""
    lengths = [until - since for since, until in gaps]
    rest, at_work = (
        sum(lengths),
        sum(length for length, one in zip(lengths, busy, strict=True) if one),
    )
    folded = set[int]()
    for place in sorted(range(len(gaps)), key=lambda one: -lengths[one]):
        if len(folded) == min(MOST_FOLDS, len(gaps) - 1):
            break
        length = lengths[place]
        quiet = not busy[place] and at_work and length > QUIET_SHARE * at_work
        if quiet or length > ANY_SHARE * rest:
            folded.add(place)
            rest -= length
            at_work -= length if busy[place] else 0
    return folded


def _ticks(pieces: Sequence[Piece]) -> list[tuple[float, str]]:
    """The labels: at round times if nothing is folded, else at the edges of what is."""
    start, last = pieces[0].since, pieces[-1]
    end = last.x + last.width
    if not any(piece.folded for piece in pieces):
        length = last.until - start
        least = length / PARTS
        every = next((one for one in PART_LENGTHS if one >= least), ceil(least / DAY) * DAY)
        return [(end * at / length, time_label(at)) for at in range(0, length + 1, every)]
    edges = [
        (piece.x, piece.since)
        for before, piece in pairwise(pieces)
        if before.folded != piece.folded
    ]
    found = [(0.0, time_label(0))]
    for x, instant in edges:
        if x - found[-1][0] >= BETWEEN_LABELS and end - x >= BETWEEN_LABELS:
            found.append((x, time_label(instant - start)))
    return [*found, (end, time_label(last.until - start))]


def time_label(time: int) -> str:
    """Return a time in ms in words that are as exact as the place of their label: `1.75 s`."""
    if time < SECOND or time >= 60 * MINUTE:
        return format_duration(time)
    if time < 2 * MINUTE:
        return f"{round(time / SECOND, 2 if time < 10 * SECOND else 1):g} s"
    seconds = time // SECOND % 60
    return format_duration(time) + (f" {seconds} s" if seconds else "")
