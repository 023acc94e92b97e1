"""The trace of a world: one line for each thing that happened. A failed run writes it to a file."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from traceback import format_exception

from roundsman.model.instants import SECOND
from roundsman_testing.invariants.rules import Blame, Broken
from roundsman_testing.trace_files import TRACE_FILES
from roundsman_testing.world.failed_run import one_line

KEPT = 10_000

NAMED = 3
"""How many of the broken invariants the end of a failed run names in full."""


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
    """Raised if an invariant is broken, or a run would never end.

    `broken` are the broken invariants, `seed` repeats the run, `trace` says what happened, and
    `cause` is the exception that broke the first of them, if one did. The text has at most ten
    lines, `about` of the order among them. It names a file with the whole trace.
    """

    def __init__(
        self,
        broken: Sequence[Broken],
        seed: int,
        trace: Trace,
        about: Sequence[str] = (),
        cause: Exception | None = None,
    ) -> None:
        self.broken = tuple(broken)
        self.seed = seed
        self.trace = trace
        self.cause = cause
        self._about = about
        super().__init__(*map(str, self.broken))

    @cached_property
    def _text(self) -> str:
        found = list(dict.fromkeys(map(str, self.broken)))
        lines, more = found[:NAMED], len(found) - NAMED
        if more > 0:
            lines.append(f"and {more} more, in the file with the trace")
        details = "".join(format_exception(self.cause)) if self.cause is not None else ""
        whole = "\n".join((*map(str, self.broken), "", details, str(self.trace)))
        return failed_text(lines, self._about, self.broken[0].blame, self.seed, whole)

    def __str__(self) -> str:
        return self._text


def failed_text(
    what: Iterable[str], about: Iterable[str], blame: Blame, seed: int, trace: str
) -> str:
    """The end of a failed run in words; `trace` is written to a file, which it names."""
    lines = (
        *map(one_line, what),
        *about,
        f"whose mistake it may be: {blame}",
        f"seed={seed} repeats the run; the whole trace: {TRACE_FILES.written(trace)}",
    )
    return "\n".join(lines)


def _since(passed: int) -> str:
    seconds, thousandths = divmod(passed, SECOND)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours:02}:{minutes:02}:{seconds:02}.{thousandths:03}"
