"""The checks before a deployment as text."""

from rich.console import Console
from rich.padding import Padding

from roundsman_console.base.hints import hint
from roundsman_console.faces.cli.inert_text import plain
from roundsman_dev.preflight.documents import CheckStatus, PreflightReport

SHOWN = 10
"""The number of details of one check in the text; the JSON has all."""

STYLES = {
    CheckStatus.OK: "green",
    CheckStatus.WARNING: "yellow",
    CheckStatus.FAULT: "bold red",
    CheckStatus.UNCHECKED: "cyan",
}
_WORDS = {CheckStatus.UNCHECKED: "not checked"}
_WIDTH = max(len(_WORDS.get(status, status)) for status in CheckStatus)


def print_report(report: PreflightReport, console: Console) -> None:
    """Print each check with its result, its details, and what to do."""
    for one in report.checks:
        line = plain(_WORDS.get(one.status, one.status).ljust(_WIDTH), STYLES[one.status])
        line.append(f"  {one.check}", style="bold")
        console.print(line.append_text(plain(f"  {one.sentence}")))
        for detail in one.details[:SHOWN]:
            console.print(Padding(plain(f"- {detail}"), (0, 0, 0, _WIDTH + 2), expand=False))
        if len(one.details) > SHOWN:
            more = f"and {len(one.details) - SHOWN} more; --json lists them all"
            console.print(Padding(plain(more), (0, 0, 0, _WIDTH + 2), expand=False))
        if one.do is not None:
            console.print(Padding(plain(hint(one.do)), (0, 0, 0, _WIDTH + 2), expand=False))
    count = dict.fromkeys(CheckStatus, 0)
    for one in report.checks:
        count[one.status] += 1
    counts = ", ".join(f"{number} {_WORDS.get(status, status)}" for status, number in count.items())
    ready = "Ready to deploy" if report.ready else "Not ready to deploy"
    style = "green" if report.ready else "bold red"
    console.print(plain(f"{ready} {report.stack}: {counts}.", style))
