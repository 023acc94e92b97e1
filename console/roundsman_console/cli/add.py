"""`roundsman add`: adds an agent or a workflow to the application in this folder."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from roundsman_console.cli_errors import sentences
from roundsman_console.local.project import find_project
from roundsman_console.project.agents import TEMPLATE, undeclared
from roundsman_console.project.create import add_agent, add_workflow, agents_of
from roundsman_console.project.files import read_text
from roundsman_console.project.workflows import FOLDER, event_of

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
        print(
            "`roundsman local deploy` adds it to a local AWS; `roundsman services` has its service."
        )


@add_app.command("workflow")
def add_workflow_command(
    name: Annotated[str, typer.Argument(help="The name of the workflow, such as purchase.")],
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            help="An agent that gets a step; repeat it. All by default, after a question.",
        ),
    ] = None,
) -> None:
    """Add a workflow with a step for each agent. Doing it twice changes nothing.

    Example: roundsman add workflow purchase --agent stock --agent payment
    """
    with sentences():
        project = find_project(Path.cwd())
        written = add_workflow(project, name, agent or _all_agents(project, name))
    _report(written, f"The workflow {name} is there already.")
    if written:
        print(
            f"Next: say in layers/workflows/workflows/{name}.py what an order must be, and make "
            f"{event_of(name)} such an order: the tests send it."
        )


def _all_agents(project: Path, workflow: str) -> list[str]:
    """Return all agents of the application. If there are several, a person is asked first."""
    agents = agents_of(project)
    if (
        len(agents) > 1
        and not (project / FOLDER / f"{workflow}.py").exists()
        and sys.stdin.isatty()
    ):
        typer.confirm(
            f"Without --agent, {workflow} gets a step for each agent: {', '.join(agents)}. "
            "Write functions into the code of all of them?",
            abort=True,
        )
    return agents


def _report(written: list[Path], nothing: str) -> None:
    if not written:
        print(nothing)
    for path in written:
        print(f"wrote {path}")
