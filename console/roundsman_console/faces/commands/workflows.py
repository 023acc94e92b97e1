"""`roundsman workflows`: how the steps of a workflow do, and since when worse."""

from typing import Annotated

import typer

from roundsman_console.base.clock import now
from roundsman_console.base.hints import hinted_json
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.text.health import show_health
from roundsman_console.faces.cli.verb_commands import add_commands
from roundsman_console.facts.workflow.health import PERIODS
from roundsman_console.facts.workflow.reading import (
    newest_plan_of,
    read_health,
    read_period,
    steps_of,
)

workflows_app = typer.Typer(
    name="workflows",
    help="How the steps of a workflow do, since when worse, and by agent version.",
    no_args_is_help=True,
)


@workflows_app.command("health")
def health_command(
    workflow: Annotated[str, typer.Argument(help="The workflow's name.")],
    since: Annotated[
        str,
        typer.Option(metavar="TIME", help=f"The time until now: {', '.join(PERIODS)}."),
    ] = "24h",
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Show how each step of a workflow did until now, and since when it does worse.

    It shows attempts, the share that failed, and how long they took, beside what is usual; the
    worst steps first. The metrics are of all versions of the workflow.

    Example: roundsman workflows health order_fulfilment

    Example: roundsman workflows health order_fulfilment --since 7d
    """
    with sentences():
        period, found = read_period(since), find_stack(stack)
        health = read_health(found, steps_of(newest_plan_of(found, workflow)), period, now())
        if as_json:
            print(hinted_json(health))
        else:
            show_health(health)


add_commands(workflows_app)
