"""The doctor's findings as text."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from roundsman_console.base.hints import hint
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.facts.finding.report import INSPECTS, Finding, Repair, Report
from roundsman_console.facts.finding.table import Severity

SHOWN = 5
"""The number of findings of one kind in the text; the JSON has all."""

STYLES = {Severity.CRITICAL: "bold red", Severity.WARNING: "yellow", Severity.NOTICE: "cyan"}


def print_report(report: Report, console: Console) -> None:
    """Print the report for people.

    The findings must be sorted by kind (`in_order`). Each kind is printed once, with its
    meaning, its first findings, the repair and the commands.
    """
    if report.repairs is not None:
        _print_repairs(report.repairs, console)
    for _, group in groupby(report.findings, key=lambda one: one.kind):
        _print_kind(list(group), console)
    for one in report.unseen:
        style = "dim" if one.lacking else "yellow"
        console.print(plain(f"not checked: {one.what}: {one.why}", style))
    console.print(plain(_summary(report), "green" if report.well else ""))


def _print_kind(findings: Sequence[Finding], console: Console) -> None:
    kind = findings[0].kind
    heading = plain(kind.severity, STYLES[kind.severity])
    heading.append(f"  {kind}", style="bold")
    heading.append(f"  {len(findings)}" if len(findings) > 1 else "", style="")
    console.print(heading)
    console.print(Padding(plain(kind.means), (0, 0, 0, 2), expand=False))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", max_width=32)
    table.add_column(overflow="fold")
    for one in findings[:SHOWN]:
        table.add_row(plain(one.where, "bold"), plain(one.evidence))
    console.print(Padding(table, (0, 0, 0, 2), expand=False))
    if len(findings) > SHOWN:
        console.print(plain(f"  and {len(findings) - SHOWN} more; --json lists them all"))
    console.print(Padding(plain(hint(kind.repair)), (0, 0, 0, 2), expand=False))
    for command in dict.fromkeys(one.command for one in findings[:SHOWN] if one.command):
        console.print(plain(hint(f"  $ {command}"), "bold"), soft_wrap=True)
    console.print()


def _print_repairs(repairs: Sequence[Repair], console: Console) -> None:
    for repair in sorted(repairs, key=lambda one: one.mended)[: 4 * SHOWN]:
        outcome = repair.problem or (
            "repaired" if repair.mended else "not yet fixed; run doctor again in a minute"
        )
        style = "green" if repair.mended else "yellow"
        console.print(plain(f"{repair.finding.kind}  {repair.finding.where}: {outcome}", style))
    console.print(plain(f"Repaired {sum(one.mended for one in repairs)} of {len(repairs)}."))
    console.print()


def _summary(report: Report) -> str:
    looked = report.looked
    tasks = " and ".join(f"{looked.tasks.get(lane, 0)} {lane}" for lane in ("open", "archived"))
    seen = f"Checked {tasks} tasks"
    if looked.rows is not None:
        seen += f", and each of {looked.rows} rows"
    if looked.cut:
        seen += f"; more {' and '.join(looked.cut)} tasks exist (raise --limit)"
    number = len(report.findings)
    if report.well:
        return f"{seen}. Nothing is wrong{' in what was checked' if looked.cut else ''}."
    if not number:
        return f"{seen}. Nothing is wrong in what could be checked."
    return f"{seen}. {number} finding{'s' if number > 1 else ''}."


def print_plan(findings: Sequence[Finding], console: Console) -> None:
    """Print the repairs that `--fix` will make, before it asks for confirmation."""
    console.print(plain("To repair:"))
    for one in findings[: 4 * SHOWN]:
        console.print(plain(f"  {one.kind}  {one.where}: {INSPECTS}"))
    if len(findings) > 4 * SHOWN:
        console.print(plain(f"  and {len(findings) - 4 * SHOWN} more of the same"))
