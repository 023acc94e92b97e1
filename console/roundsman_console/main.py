"""`roundsman`: the command-line application with all its commands."""

from typing import Annotated

import typer

from roundsman_console.cli.add import add_app
from roundsman_console.cli.agents import agents_command
from roundsman_console.cli.alerts import alerts_command
from roundsman_console.cli.answer import answer_command
from roundsman_console.cli.bulk import bulk_app
from roundsman_console.cli.check import check_command
from roundsman_console.cli.cost import cost_command
from roundsman_console.cli.dlq import dlq_app
from roundsman_console.cli.doctor import doctor_command
from roundsman_console.cli.export import export_command
from roundsman_console.cli.groups import groups_app
from roundsman_console.cli.hold import hold_command, release_command
from roundsman_console.cli.init import init_command
from roundsman_console.cli.local import local_app
from roundsman_console.cli.ls import ls_command
from roundsman_console.cli.operate import (
    cancel_command,
    extend_command,
    resolve_command,
    resubmit_command,
    run_command,
    undo_command,
)
from roundsman_console.cli.rejected import rejected_app
from roundsman_console.cli.services import services_command
from roundsman_console.cli.show import show_command
from roundsman_console.cli.stats import stats_command
from roundsman_console.cli.submit import submit_command
from roundsman_console.cli.timeline import timeline_command
from roundsman_console.cli.upgrade import upgrade_command
from roundsman_console.cli.watch import watch_command
from roundsman_console.cli.why import why_command
from roundsman_console.project.release import release

# The groups of commands in `roundsman --help`.
DEVELOP, LOOK, REPAIR = "Develop and run", "Look", "Repair and operate"


def _print_version(asked: bool) -> None:
    if asked:
        print(f"roundsman {release()}")
        raise typer.Exit


app = typer.Typer(
    name="roundsman",
    help="Multi-step tasks on AWS that complete, or are undone, as a whole.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # local variables contain order data
)


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Multi-step tasks on AWS that complete, or are undone, as a whole."""


app.command("init", rich_help_panel=DEVELOP)(init_command)
app.add_typer(add_app, name="add", rich_help_panel=DEVELOP)
app.command("check", rich_help_panel=DEVELOP)(check_command)
app.command("upgrade", rich_help_panel=DEVELOP)(upgrade_command)
app.add_typer(local_app, name="local", rich_help_panel=DEVELOP)
app.command("services", rich_help_panel=DEVELOP)(services_command)
app.command("submit", rich_help_panel=DEVELOP)(submit_command)
app.command("show", rich_help_panel=LOOK)(show_command)
app.command("ls", rich_help_panel=LOOK)(ls_command)
app.command("timeline", rich_help_panel=LOOK)(timeline_command)
app.command("why", rich_help_panel=LOOK)(why_command)
app.command("stats", rich_help_panel=LOOK)(stats_command)
app.command("watch", rich_help_panel=LOOK)(watch_command)
app.command("export", rich_help_panel=LOOK)(export_command)
app.command("alerts", rich_help_panel=LOOK)(alerts_command)
app.add_typer(groups_app, name="groups", rich_help_panel=LOOK)
app.command("agents", rich_help_panel=LOOK)(agents_command)
app.command("doctor", rich_help_panel=LOOK)(doctor_command)
app.command("cost", rich_help_panel=LOOK)(cost_command)
app.command("resubmit", rich_help_panel=REPAIR)(resubmit_command)
app.command("undo", rich_help_panel=REPAIR)(undo_command)
app.command("cancel", rich_help_panel=REPAIR)(cancel_command)
app.command("resolve", rich_help_panel=REPAIR)(resolve_command)
app.command("answer", rich_help_panel=REPAIR)(answer_command)
app.command("extend", rich_help_panel=REPAIR)(extend_command)
app.command("run", rich_help_panel=REPAIR)(run_command)
app.add_typer(bulk_app, name="bulk", rich_help_panel=REPAIR)
app.add_typer(rejected_app, name="rejected", rich_help_panel=REPAIR)
app.add_typer(dlq_app, name="dlq", rich_help_panel=REPAIR)
app.command("hold", rich_help_panel=REPAIR)(hold_command)
app.command("release", rich_help_panel=REPAIR)(release_command)
