"""`roundsman schedules`: recurring orders, their next runs, and what became of the last ones."""

import typer

from roundsman_console.base.clock import now
from roundsman_console.base.hints import hinted_json
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.terminal import say
from roundsman_console.faces.cli.text.schedule import schedule_lines
from roundsman_console.faces.cli.verb_commands import add_commands
from roundsman_console.facts.schedule.reading import read_schedules

schedules_app = typer.Typer(
    name="schedules",
    help="Recurring orders: their next runs; pause, resume, run now, backfill.",
    no_args_is_help=True,
)


@schedules_app.command("ls")
def list_command(stack: StackOption = None, as_json: AsJson = False) -> None:
    """List the recurring orders with their next runs, and what became of the last ones.

    Example: roundsman schedules ls
    """
    with sentences():
        found = read_schedules(find_stack(stack), now())
        if as_json:
            print(hinted_json(found))
        else:
            say(*schedule_lines(found))


add_commands(schedules_app)
