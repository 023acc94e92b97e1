"""What an audit has found, as text."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from roundsman.command_line import command_line
from roundsman.model.instants import second
from roundsman_console.base.counted import counted
from roundsman_console.base.hints import hint
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.facts.audit.checks import Verdict
from roundsman_console.facts.audit.reading import REMOVED
from roundsman_console.facts.audit.report import AuditReport, Violation

SHOWN = 20
"""The number of violations in the text; the JSON has more."""


def print_report(report: AuditReport, console: Console) -> None:
    """Print the report for people."""
    if report.orders:
        _print_promises(report, console)
    for one in report.violations[:SHOWN]:
        _print_violation(one, console)
    if len(report.violations) > SHOWN:
        more = len(report.violations) - SHOWN
        console.print(plain(f"and {more} more; --json lists them"))
    for line in _unjudged(report):
        console.print(plain(f"not judged: {line}", "dim"), soft_wrap=True)
    console.print(plain(summary(report), "green" if report.is_well else "red"), soft_wrap=True)


def _print_promises(report: AuditReport, console: Console) -> None:
    """Print the promises that were not kept to every order in a table, and name the others."""
    kept = [
        promise.name
        for promise, count in report.promises.items()
        if count[Verdict.FOLLOWED] == report.orders
    ]
    if len(kept) < len(report.promises):
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("promise")
        for heading in ("followed", "broken", "not judged"):
            table.add_column(heading, justify="right")
        table.add_column("what it says", overflow="fold")
        for promise, count in report.promises.items():
            if promise.name not in kept:
                broken = count[Verdict.BROKEN]
                table.add_row(
                    plain(promise.name, "bold"),
                    f"{count[Verdict.FOLLOWED]:,}",
                    plain(f"{broken:,}", "bold red" if broken else ""),
                    f"{count[Verdict.UNKNOWN]:,}",
                    plain(promise.value),
                )
        console.print(table)
    if kept:
        console.print(plain(f"followed by all: {', '.join(kept)}"))
    console.print()


def _unjudged(report: AuditReport) -> Iterator[str]:
    """What cannot be judged, each with its reason."""
    for (promise, why), count in report.unknown.most_common():
        what = "nothing" if promise is None else promise.name
        example = report.examples[promise, why]
        yield f"{what} of {counted(count, 'order')}, such as {example}: {why}"
    if report.removed:
        yield f"nothing of {counted(report.removed, 'order')}: {REMOVED}"
    if report.shown_by_services:
        names = ", ".join(promise.name for promise in report.shown_by_services)
        yield f"{names}: only the records of the services show what they did"


def _print_violation(one: Violation, console: Console) -> None:
    rows = f"; rows {', '.join(map(str, one.found.rows))} of its history" if one.found.rows else ""
    line = f"broken: {one.promise.name}, {one.order_id} of {one.workflow}: {one.found.what}{rows}"
    console.print(plain(line, "red"), soft_wrap=True)
    console.print(plain(hint(f"  $ {command_line('show', one.order_id)}"), "bold"), soft_wrap=True)


def summary(report: AuditReport) -> str:
    """Return how many orders followed the promises, in sentences."""
    followed, partly = report.judged[Verdict.FOLLOWED], report.judged[Verdict.UNKNOWN]
    broken = report.judged[Verdict.BROKEN]
    since = "" if report.since is None else f" submitted since {second(report.since)}"
    found = [f"Judged {counted(report.orders, 'order')}{since}."]
    if report.orders:
        found.append(f"{followed:,} followed every promise that stored records show.")
    if partly:
        found.append(f"{partly:,} broke none, and a part of them cannot be judged.")
    if broken:
        found.append(f"{broken:,} broke a promise.")
    if report.unread:
        found.append(f"Of {report.unread:,} more nothing can be judged.")
    if report.more:
        found.append("More orders exist: raise --most.")
    if report.stopped is not None:
        found.append(f"Stopped: {report.stopped}.")
    return " ".join(found)
