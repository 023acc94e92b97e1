"""`roundsman doctor`: checks a stack, reports problems, and repairs what is safe to repair."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from roundsman_console.base.errors import FAILED
from roundsman_console.base.hints import hinted_json
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson, Yes
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.terminal import progress, results
from roundsman_console.faces.cli.text.doctor import print_plan, print_report
from roundsman_console.facts.finding.doctor import Doctor
from roundsman_console.facts.finding.report import Finding

Deep = Annotated[
    bool, typer.Option("--deep", help="Read every row of the tasks and orders tables.")
]
Rate = Annotated[
    int, typer.Option(min=1, max=100_000, help="With --deep: maximum rows per second.")
]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of tasks to read per lane.")]
Fix = Annotated[bool, typer.Option("--fix", help="Repair what is safe to repair, after asking.")]
Wait = Annotated[float, typer.Option(min=0, max=900, help="Seconds to wait for the repairs.")]


def doctor_command(
    fix: Fix = False,
    deep: Deep = False,
    limit: Limit = 1_000,
    rate: Rate = 500,
    yes: Yes = False,
    wait: Wait = 15.0,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Find what is stuck, lost, inconsistent or misconfigured.

    Exits 0 if nothing is wrong, and 1 if something was found or could not be checked. With --fix
    it shows the safe repairs, asks, and makes them.

    Example: roundsman doctor

    Example: roundsman doctor --fix
    """
    with sentences():
        found = announced_stack(stack)
        doctor = Doctor(found, limit, rate if deep else None, progress(quiet=as_json))

        def confirmed(wanted: Sequence[Finding]) -> None:
            print_plan(wanted, Console(stderr=as_json, highlight=False))
            tasks = len({one.where for one in wanted})
            confirm(f"Repair {tasks} task{'s' if tasks > 1 else ''} as shown?", yes=yes)

        report = doctor.repair(confirmed, wait) if fix else doctor.check()
        if as_json:
            print(hinted_json(report.document()))
        else:
            print_report(report, results())
        if not report.well:
            raise typer.Exit(FAILED)
