"""The doctor's check of a stack for pages that do not wait for it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock, Thread
from weakref import WeakKeyDictionary

from roundsman_console.base.clock import now
from roundsman_console.faces.web.readings.unreadable_parts import Part, part
from roundsman_console.facts.finding.report import Report
from roundsman_console.inspector import Inspector

PENDING: Part[Report] = Part(None)
"""What is known before the first check has ended."""


def in_background(check: Callable[[], None]) -> None:
    """Make a check in a thread of its own, which ends with the process."""
    Thread(target=check, name="the doctor's check", daemon=True).start()


@dataclass(slots=True)
class _Checked:
    at: int = 0
    """When the last check began, in epoch ms."""
    report: Part[Report] = PENDING
    is_running: bool = False


@dataclass(eq=False)
class BackgroundChecks:
    """Reports of stacks. Each is made anew when it is asked for and older than `keep` ms."""

    keep: int
    _checked: WeakKeyDictionary[Inspector, _Checked] = field(default_factory=WeakKeyDictionary)
    _lock: Lock = field(default_factory=Lock)

    def report(self, inspector: Inspector) -> Part[Report]:
        """Return the last report, or PENDING. It may begin a check, and does not wait for it."""
        with self._lock:
            checked = self._checked.setdefault(inspector, _Checked())
            begins = not checked.is_running and not 0 <= now() - checked.at < self.keep
            checked.is_running = checked.is_running or begins
        if begins:
            in_background(lambda: self._check(inspector, checked))
        return checked.report

    def forget(self, inspector: Inspector) -> None:
        """Check the stack again when its report is asked for next."""
        self._checked.pop(inspector, None)

    def _check(self, inspector: Inspector, checked: _Checked) -> None:
        at = now()
        try:
            checked.report = part(inspector.check, "the doctor's checks")
            # A check that could not read everything is made again with the next page.
            value = checked.report.value
            checked.at = 0 if value is None or value.unread else at
        finally:
            checked.is_running = False
