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


app.command("init")(init_command)
app.add_typer(add_app, name="add")
app.command("check")(check_command)
app.command("upgrade")(upgrade_command)
app.command("submit")(submit_command)
app.command("show")(show_command)
app.command("ls")(ls_command)
app.command("timeline")(timeline_command)
app.command("why")(why_command)
app.command("stats")(stats_command)
app.command("watch")(watch_command)
app.command("export")(export_command)
app.command("resubmit")(resubmit_command)
app.command("undo")(undo_command)
app.command("cancel")(cancel_command)
app.command("resolve")(resolve_command)
app.command("answer")(answer_command)
app.command("extend")(extend_command)
app.command("run")(run_command)
app.add_typer(bulk_app, name="bulk")
app.command("agents")(agents_command)
app.command("hold")(hold_command)
app.command("release")(release_command)
app.command("cost")(cost_command)
app.command("alerts")(alerts_command)
app.add_typer(groups_app, name="groups")
app.add_typer(rejected_app, name="rejected")
app.add_typer(dlq_app, name="dlq")
app.command("doctor")(doctor_command)
app.add_typer(local_app, name="local")
app.command("services")(services_command)
