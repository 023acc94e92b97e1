"""What needs attention? All that stands wrong in a stack: alerts, the supervisor, the doctor."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from roundsman_console.base.counted import counted
from roundsman_console.base.unread import Unread
from roundsman_console.facts.finding.report import (
    Finding,
    Report,
    StandingAlerts,
    unread_of,
    worst_first,
)
from roundsman_console.facts.finding.table import FindingKind, Severity, Trouble
from roundsman_console.facts.finding.tasks import late_after
from roundsman_console.facts.overview.stats import Stats


@dataclass(frozen=True, slots=True)
class Attention:
    """What needs attention, as far as it could be read."""

    findings: tuple[Finding, ...]
    """The worst first; of one severity, the newest first."""
    unread: tuple[Unread, ...]
    """What could not be read. If there is any, more may need attention."""


def attention(
    alerts: StandingAlerts | None,
    stats: Stats | None,
    report: Report | None,
    interval: int,
) -> Attention:
    """Return what needs attention by what was read; None is what could not be read.

    `interval` is the time in ms from one pass of the supervisor to the next. What is None is not in
    `unread`: the part of the page says why.
    """
    found = [*alerts.standing] if alerts else []
    unread = unread_of(alerts.unseen) if alerts else []
    if stats:
        found += of_supervisor(stats.visited_at, stats.at, interval)
    if report:
        found += of_doctor(report.findings)
        unread += (replace(one, what=f"the doctor's check of {one.what}") for one in report.unread)
    return Attention(tuple(worst_first(found)), tuple(unread))


def of_supervisor(visited_at: int | None, at: int, interval: int) -> list[Finding]:
    """Find that no supervisor passes, at `at` (epoch ms); `interval` is in ms."""
    if visited_at is not None and at - visited_at <= late_after(interval):
        return []
    silent = "The supervisor does not run" if visited_at else "The supervisor has never run"
    sentence = f"{silent}: nothing that is overdue is found, and no alert is sent"
    return [Finding(FindingKind.SUPERVISOR_LATE, "", sentence, since=visited_at)]


def of_doctor(findings: Iterable[Finding]) -> list[Finding]:
    """Return the critical findings of the doctor, one for each kind.

    The supervisor's silence is `of_supervisor`'s.
    """
    found: dict[Trouble, list[str]] = {}
    for one in findings:
        if one.kind.severity is Severity.CRITICAL and one.kind is not FindingKind.SUPERVISOR_LATE:
            found.setdefault(one.kind, []).append(f"{one.where}: {one.evidence}")
    return [Finding(kind, "", f"{kind}: {_places(places)}") for kind, places in found.items()]


def _places(places: list[str]) -> str:
    return places[0] if len(places) == 1 else f"{counted(len(places), 'place')}, first {places[0]}"
