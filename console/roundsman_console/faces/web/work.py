"""Work that takes longer than a page: it runs in a thread, and a page shows how far it is.

The work belongs to the process of the console: it ends with Ctrl-C. So only work is begun here that
may end anywhere, and of which the rest can be asked for again.
"""

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias
from weakref import WeakKeyDictionary

from roundsman_console.base.clock import now
from roundsman_console.base.errors import InspectorError, NotFound, sentence_of
from roundsman_console.faces.web.readings.unreadable_parts import AWS_ERRORS
from roundsman_console.inspector import Inspector

MOST_AT_ONCE = 3
"""The number of works that run at the same time."""
MOST_KEPT = 20
"""The number of works whose page can be read; those that ended first are forgotten first."""
MOST_LINES = 500
"""The number of lines of progress that are kept."""


@dataclass(frozen=True, slots=True)
class WorkResult:
    """How a work ended, for people."""

    sentence: str
    good: bool
    """Whether it ended as it should."""
    notes: Sequence[str] = ()
    """What else is to be known."""
    next: str | None = None
    """The command to run next; None if there is nothing to do."""
    page: str = ""
    """The address of the page to look at next; empty if there is none."""
    page_title: str = "Show the order"


@dataclass(eq=False)
class Work:
    """One work, under way or ended. Its thread changes it, and pages read it."""

    title: str
    back: str
    """The address of the page that it was begun on."""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    began_at: int = field(default_factory=now)
    """In epoch ms."""
    lines: list[str] = field(default_factory=list)
    """What happened, the oldest first."""
    count: str = ""
    """How far it is, in words; empty if it does not count."""
    done: str = ""
    """A sentence about what was done when it began; empty if nothing was."""
    result: WorkResult | None = None
    """None while it runs."""
    thread: threading.Thread | None = field(default=None, repr=False)

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self.result is None

    def add_line(self, line: str) -> None:
        """Add a line of progress."""
        if len(self.lines) < MOST_LINES:
            self.lines.append(line)

    def counts(self, words: str) -> None:
        """Replace the words for how far it is."""
        self.count = words


Do: TypeAlias = Callable[[Work], WorkResult]
"""Does a work, and reports the progress to it."""

BROKEN = WorkResult(
    "It ended with an error of the console itself, which is in the terminal of `roundsman ui`.",
    good=False,
)


class Works:
    """The works of one console."""

    def __init__(self) -> None:
        self._works: dict[str, Work] = {}
        self._lock = threading.Lock()

    def start(self, title: str, back: str, do: Do, *, done: str = "") -> Work:
        """Begin a work in a thread. Raises InspectorError if MOST_AT_ONCE run already.

        `done` is a sentence about what was done already.
        """
        work = Work(title, back, done=done)
        # What it sends is sent for the person who began it (`roundsman_console.acts.actor`).
        context, run = copy_context(), partial(_run, work, do)
        work.thread = threading.Thread(target=context.run, args=(run,), name=title, daemon=True)
        with self._lock:
            if sum(one.runs for one in self._works.values()) >= MOST_AT_ONCE:
                raise InspectorError(
                    f"{MOST_AT_ONCE} such works run already. Nothing was sent. Wait until one ends."
                )
            self._works[work.id] = work
            ended = [one.id for one in self._works.values() if not one.runs]
            for forgotten in ended[: max(0, len(self._works) - MOST_KEPT)]:
                del self._works[forgotten]
        work.thread.start()
        return work

    def forget(self, work: Work) -> None:
        """Forget a work whose page nobody has seen."""
        with self._lock:
            self._works.pop(work.id, None)

    def find(self, work_id: str) -> Work:
        """Return the work with this id. Raises NotFound if it is not known, or not any more."""
        found = self._works.get(work_id)
        if found is None:
            raise NotFound(
                "This work is not known: the console was started again, or it ended long ago."
            )
        return found


def _run(work: Work, do: Do) -> None:
    result = BROKEN
    try:
        result = do(work)
    except AWS_ERRORS as error:
        result = WorkResult(sentence_of(error), good=False)
    finally:
        work.result = result


_WORKS: WeakKeyDictionary[Inspector, Works] = WeakKeyDictionary()


def works_of(inspector: Inspector) -> Works:
    """Return the works of the console of this inspector."""
    return _WORKS.setdefault(inspector, Works())


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the page of one work; nothing is asked of AWS. Raises NotFound if it is not known."""
    work = works_of(inspector).find(given["work"])
    return {"work": work, "result": work.result, "lines": tuple(work.lines)}
