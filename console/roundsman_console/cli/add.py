"""`roundsman add`: adds an agent or a workflow to the application in this folder."""

from pathlib import Path
from typing import Annotated

import typer

from roundsman_console.cli_errors import sentences
from roundsman_console.local.project import find_project
from roundsman_console.project.agents import TEMPLATE, undeclared
from roundsman_console.project.create import add_agent, add_workflow
from roundsman_console.project.files import read_text

add_app = typer.Typer(help="Add an agent or a workflow to this application.", no_args_is_help=True)


@add_app.command("agent")
def add_agent_command(
    name: Annotated[str, typer.Argument(help="The name of the agent, such as payment_backup.")],
) -> None:
    """Add an agent: its code, and its block in template.yaml. Doing it twice changes nothing.

    Example: roundsman add agent payment
    """
    with sentences():
        project = find_project(Path.cwd())
        written = add_agent(project, name)
    _report(written, f"The agent {name} is there already.")
    for parameter in undeclared(read_text(project, TEMPLATE)) if written else ():
        print(f"template.yaml has no parameter {parameter}: name another in the block of {name}.")
    if written:
        print(f"Next: bind steps to it in functions/agents/{name}/app.py, or add a workflow.")


@add_app.command("workflow")
def add_workflow_command(
    name: Annotated[str, typer.Argument(help="The name of the workflow, such as purchase.")],
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", help="An agent that gets a step; repeat it. All by default."),
    ] = None,
) -> None:
    """Add a workflow with a step for each agent. Doing it twice changes nothing.

    Example: roundsman add workflow purchase --agent stock --agent payment
    """
    with sentences():
        project = find_project(Path.cwd())
        written = add_workflow(project, name, agent or ())
    _report(written, f"The workflow {name} is there already.")
    if written:
        print(f"Next: say in layers/workflows/workflows/{name}.py what an order must be.")


def _report(written: list[Path], nothing: str) -> None:
    if not written:
        print(nothing)
    for path in written:
        print(f"wrote {path}")
