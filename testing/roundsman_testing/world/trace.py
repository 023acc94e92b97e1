"""The trace of a world: one line for each thing that happened. A failed test prints it."""

from collections import deque
from collections.abc import Iterable, Iterator

from roundsman.model.instants import SECOND
from roundsman_testing.invariants.rules import Broken

KEPT = 10_000


class Trace:
    """The last KEPT lines of a world. Texts are formatted on demand, since most are never read.

    `dropped` is the number of earlier lines that are not kept.
    """

    def __init__(self, began_at: int) -> None:
        self._began_at = began_at
        self._lines: deque[tuple[int, str, tuple[object, ...]]] = deque(maxlen=KEPT)
        self.dropped = 0

    def note(self, at: int, text: str, *values: object) -> None:
        """Add a line for the instant `at` (epoch ms): `text`, with a `{}` for each value."""
        if len(self._lines) == KEPT:
            self.dropped += 1
        self._lines.append((at, text, values))

    def lines(self) -> Iterator[str]:
        """The lines, oldest first, each with the time since the start of the world."""
        if self.dropped:
            yield f"({self.dropped} earlier lines are not kept)"
        for at, text, values in self._lines:
            yield f"{_since(at - self._began_at)}  {text.format(*values)}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


class InvariantBroken(AssertionError):
    """Raised if an invariant is broken.

    `broken` are the broken invariants, `seed` repeats the run, and `trace` says what happened.
    """

    def __init__(self, broken: Iterable[Broken], seed: int, trace: Trace) -> None:
        self.broken = tuple(broken)
        self.seed = seed
        self.trace = trace
        what = "\n".join(map(str, self.broken))
        super().__init__(f"{what}\n\nWhat happened (seed={seed} repeats it):\n{trace}")


def _since(passed: int) -> str:
    seconds, thousandths = divmod(passed, SECOND)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours:02}:{minutes:02}:{seconds:02}.{thousandths:03}"
