"""What needs attention? All that stands wrong in a stack: alerts, the supervisor, the doctor."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from urllib.parse import quote

from roundsman.model.instants import MINUTE
from roundsman_console.base.counted import counted
from roundsman_console.base.unread import Unread
from roundsman_console.faces.web.addresses import page_of_command
from roundsman_console.facts.alert.documents import AlertSeverity
from roundsman_console.facts.alert.reading import StandingAlerts
from roundsman_console.facts.alert.standing import StandingAlert
from roundsman_console.facts.doctor.documents import FindingKind, Severity
from roundsman_console.facts.doctor.report import Report
from roundsman_console.facts.overview.stats import Stats

SEVERITIES = ("critical", "error", "warning", "info")
"""The severities of what needs attention, the worst first."""

MISSED_PASSES = 2
"""So many passes of the supervisor may be missed before that needs attention; the doctor allows as
many."""


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing that needs attention."""

    severity: AlertSeverity
    sentence: str
    page: str
    """The address of the page of the console to look at."""
    since: int | None = None
    """When it began, in epoch ms; None if that is not known."""


@dataclass(frozen=True, slots=True)
class Attention:
    """What needs attention, as far as it could be read."""

    concerns: tuple[Concern, ...]
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
    found = [_of_alert(one) for one in alerts.standing] if alerts else []
    unread = [*alerts.missed] if alerts else []
    if stats:
        found += of_supervisor(stats.visited_at, stats.at, interval)
    if report:
        found += of_doctor(report)
        checks = (replace(one, what=f"the doctor's check of {one.what}") for one in report.unread)
        unread += checks
    return Attention(tuple(worst_first(found)), tuple(unread))


def worst_first(found: Iterable[Concern]) -> list[Concern]:
    """Sort by severity, and those of one severity by their time, the newest first."""
    return sorted(
        found,
        key=lambda one: (SEVERITIES.index(one.severity), one.since is None, -(one.since or 0)),
    )


def of_supervisor(visited_at: int | None, at: int, interval: int) -> list[Concern]:
    """Return the concern that no supervisor passes, at `at` (epoch ms); `interval` is in ms."""
    if visited_at is not None and at - visited_at <= MISSED_PASSES * max(MINUTE, interval):
        return []
    silent = "The supervisor does not run" if visited_at else "The supervisor has never run"
    sentence = f"{silent}: nothing that is overdue is found, and no alert is sent"
    return [Concern("critical", sentence, "/doctor", visited_at)]


def of_doctor(report: Report) -> list[Concern]:
    """Return the critical findings of the doctor, one concern for each kind.

    The supervisor's silence is `of_supervisor`'s.
    """
    found: dict[FindingKind, list[str]] = {}
    for one in report.findings:
        if one.entry.severity is Severity.CRITICAL and one.kind is not FindingKind.SUPERVISOR_LATE:
            found.setdefault(one.kind, []).append(f"{one.where}: {one.evidence}")
    return [
        Concern("critical", f"{kind}: {_places(places)}", "/doctor")
        for kind, places in found.items()
    ]


def _places(places: list[str]) -> str:
    return places[0] if len(places) == 1 else f"{counted(len(places), 'place')}, first {places[0]}"


def _of_alert(alert: StandingAlert) -> Concern:
    return Concern(alert.severity, alert.sentence, _page_of(alert), alert.since)


def _page_of(alert: StandingAlert) -> str:
    """Return the page that shows what the next command of an alert shows."""
    if alert.kind == "group":
        return f"/groups/{quote(alert.about, safe='')}"
    return page_of_command(alert.look) or "/doctor"
