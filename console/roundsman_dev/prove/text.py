"""What a proof prints: its plan, and what it has found."""

from collections.abc import Iterator
from io import StringIO
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.table import Table

from roundsman.model.instants import SECOND
from roundsman_console.base.counted import counted
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.facts.audit.checks import Verdict
from roundsman_dev.prove.deployment import Place
from roundsman_dev.prove.document import FaultOutcome
from roundsman_dev.prove.duration import estimated_minutes, longest_minutes
from roundsman_dev.prove.faults import FAULTS, NOT_LOCAL
from roundsman_dev.prove.price import estimated_usd
from roundsman_dev.prove.report import ProofReport, ReportedFault

SHOWN = 20
"""The number of violations in the text; the JSON has all."""
WIDTH = 132
"""The width of the text in a file, in letters."""

NOT_TRIED: Final = "not tried here, because"
NOT_REPORTED: Final = "not reported yet"
SENTENCES: Final = {
    "kept": "Every promise that could be judged was kept.",
    "broken": "A promise was broken.",
    "unfinished": "No promise was found broken, and the proof did not see everything.",
}
"""What each verdict means."""


def print_plan(run: str, place: Place, orders: int, minutes: int, console: Console) -> None:
    """Print what will be made, what will be done, and what will be left.

    `minutes` is the longest time from the first order until all have ended.
    """
    console.print(plain(f"Stack {run} in {place.words}, beside what is there.", "bold"))
    console.print(
        plain(f"{counted(orders, 'order')} of eight workflows, with these faults meanwhile:")
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("fault", "what happens", "rights beside those of a deployment"):
        table.add_column(heading, overflow="fold")
    for fault in FAULTS:
        here = fault.local or not place.local
        needs = ", ".join(fault.needs) or "none"
        table.add_row(
            plain(fault.name),
            plain(fault.does),
            plain(needs if here else f"{NOT_TRIED} {NOT_LOCAL}"),
        )
    console.print(table)
    if not place.local:
        cost = f"costs about {estimated_usd(orders):.2f} USD at list prices"
        takes = f"takes about {estimated_minutes(orders)} minutes"
        console.print(plain(f"By calculation it {cost}, and {takes}."))
        lasts = longest_minutes(minutes)
        console.print(
            plain(
                f"Credentials of a session must last {lasts} minutes: without them nothing is "
                "removed."
            )
        )
    console.print(
        plain(
            "The stack, its tables and its uploads are removed at the end, also after Ctrl-C. "
            "SAM's own bucket stays (stack aws-sam-cli-managed-default)."
        ),
        soft_wrap=True,
    )


def report_text(report: ProofReport) -> str:
    """Return what `print_report` prints, as the text of a file."""
    console = Console(file=StringIO(), record=True, width=WIDTH)
    print_report(report, console)
    return console.export_text()


def print_report(report: ProofReport, console: Console) -> None:
    """Print what was found, for people."""
    followed = [one for one in report.promises if one.verdict is Verdict.FOLLOWED]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("promise", "judged", "broken", "not judged", "what it says"):
        table.add_column(heading, overflow="fold")
    others = [one for one in report.promises if one.verdict is not Verdict.FOLLOWED]
    for one in others:
        table.add_row(
            plain(one.promise, "bold"),
            f"{one.judged:,}",
            plain(f"{one.violations:,}", "bold red" if one.violations else ""),
            f"{one.unknown:,}",
            plain(one.says),
        )
    if others:
        console.print(table)
    names = ", ".join(one.promise for one in followed)
    console.print(plain(f"followed by all: {names or 'none'}"), soft_wrap=True)
    for line in _lines(report):
        console.print(plain(line), soft_wrap=True)
    good = report.verdict == "kept"
    ended = ", ".join(f"{number:,} {state}" for state, number in report.ended.items())
    console.print(
        plain(
            f"{SENTENCES[report.verdict]} {report.sent:,} orders were sent, "
            f"{report.stored:,} are stored: {ended or 'none'}. "
            f"{report.effects:,} effects stand.",
            "green" if good else "red",
        ),
        soft_wrap=True,
    )


def _cost(report: ProofReport) -> str:
    """What it cost by service, as far as it is reported."""
    if report.unpriced:
        return f"cost so far: not known: {report.unpriced}"
    parts = []
    for service, lines in groupby(report.spent, key=lambda one: one.service):
        usd = [one.usd for one in lines]
        known = [one for one in usd if one is not None]
        part = " in part" if len(known) < len(usd) else ""
        parts.append(f"{service} {f'{sum(known):.4f} USD{part}' if known else NOT_REPORTED}")
    return f"cost so far, by CloudWatch's counts and list prices: {', '.join(parts)}"


def _lines(report: ProofReport) -> Iterator[str]:
    for one in report.faults:
        yield f"fault {one.fault}: {_outcome_of(one)}"
    for latency in report.latencies:
        times = (latency.p50, latency.p99, latency.longest)
        half, most, longest = (f"{one / SECOND:,.1f}" for one in times)
        orders = f"{counted(latency.orders, 'order')} of which {latency.treatment}"
        yield f"{orders}: half ended within {half} s, 99 % within {most} s, all within {longest} s"
    yield _cost(report)
    for failure in report.function_failures:
        made = failure.because or "nothing that was made"
        often = f"{failure.function}, {counted(failure.times, 'time')}"
        yield f"failed: {often}: {failure.what}, by {made}"
    for violation in report.violations[:SHOWN]:
        order = violation.order or "the run"
        yield f"broken: {violation.promise}, {order}: {violation.what}"
    if len(report.violations) > SHOWN:
        yield f"and {len(report.violations) - SHOWN} more; the report lists them"
    for unknown in report.not_judged:
        yield f"not judged: {unknown.promise}, {unknown.times:,} times: {unknown.why}"
    yield f"not shown by records or by the ledger: {', '.join(report.unjudged)}"
    run = report.run
    yield f"proved: release {run.version} on {run.runtime}, by what was seen: {run.seen}"


def _outcome_of(fault: ReportedFault) -> str:
    """What became of a fault, in words."""
    match fault.outcome:
        case FaultOutcome.MADE:
            return f"made, for {fault.seconds / SECOND:,.0f} s"
        case FaultOutcome.REFUSED:
            return f"a right is missing: {fault.why}"
        case FaultOutcome.NOT_HERE:
            return f"{NOT_TRIED} {fault.why}"
        case FaultOutcome.FAILED:
            return f"failed: {fault.why}"
