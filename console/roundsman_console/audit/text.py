"""What an audit has found, as text."""

from rich.console import Console
from rich.table import Table

from roundsman.command_line import command_line
from roundsman.model.instants import second
from roundsman_console.audit.checks import Verdict
from roundsman_console.audit.report import Report, Violation
from roundsman_console.cells import plain
from roundsman_console.counted import counted
from roundsman_console.hints import hint

SHOWN = 20
"""The number of violations in the text; the JSON has more."""


def print_report(report: Report, console: Console) -> None:
    """Print the report for people."""
    if report.orders:
        console.print(_promises(report))
        console.print()
    for one in report.violations[:SHOWN]:
        _print_violation(one, console)
    if len(report.violations) > SHOWN:
        more = len(report.violations) - SHOWN
        console.print(plain(f"and {more} more; --json lists them"))
    if report.violations:
        console.print()
    for (promise, why), count in report.unknown.most_common():
        what = "nothing of them" if promise is None else promise.name
        example = report.examples[promise, why]
        line = f"not judged: {what}, of {counted(count, 'order')}, such as {example}: {why}"
        console.print(plain(line, "dim"), soft_wrap=True)
    if report.removed:
        removed = f"not judged: {counted(report.removed, 'order')} whose record was removed"
        console.print(plain(f"{removed}, after its retention", "dim"), soft_wrap=True)
    if report.shown_by_services:
        names = ", ".join(promise.name for promise in report.shown_by_services)
        line = f"not judged: {names}: only the records of the services show what they did"
        console.print(plain(line, "dim"), soft_wrap=True)
    console.print(plain(summary(report), "green" if report.is_well else "red"), soft_wrap=True)


def _promises(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("promise")
    for heading in ("followed", "broken", "not judged"):
        table.add_column(heading, justify="right")
    table.add_column("what it says", overflow="fold")
    for promise, count in report.promises.items():
        broken = count[Verdict.BROKEN]
        table.add_row(
            plain(promise.name, "bold"),
            f"{count[Verdict.FOLLOWED]:,}",
            plain(f"{broken:,}", "bold red" if broken else ""),
            f"{count[Verdict.UNKNOWN]:,}",
            plain(promise.value),
        )
    return table


def _print_violation(one: Violation, console: Console) -> None:
    rows = f"; rows {', '.join(map(str, one.found.rows))} of its history" if one.found.rows else ""
    line = f"broken: {one.promise.name}, {one.order_id} of {one.workflow}: {one.found.what}{rows}"
    console.print(plain(line, "red"), soft_wrap=True)
    console.print(plain(hint(f"  $ {command_line('show', one.order_id)}"), "bold"), soft_wrap=True)


def summary(report: Report) -> str:
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
