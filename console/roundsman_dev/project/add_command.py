"""`roundsman add`: adds an agent or a workflow to the application in this folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from roundsman_console.base.project_folder import find_project
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.errors import sentences
from roundsman_dev.project.agents import TEMPLATE, undeclared
from roundsman_dev.project.create import add_agent, plan_workflow
from roundsman_dev.project.files import read_text, replace_files
from roundsman_dev.project.workflows import event_of

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
            help="An agent that gets a step; repeat it. All by default. Agents with commas between "
            "them are alternatives for one step.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Edit existing files without a question.")
    ] = False,
) -> None:
    """Add a workflow with a step for each agent. Doing it twice changes nothing.

    It asks before it edits the registry and the code of the agents.

    Example: roundsman add workflow purchase --agent stock --agent payment
    """
    with sentences():
        project = find_project(Path.cwd())
        planned = plan_workflow(project, name, agent or ())
        _ask(project, planned, yes=yes)
        replace_files(project, planned)
    written = sorted(planned)
    _report(written, f"The workflow {name} is there already.")
    if written:
        print(
            f"Next: say in layers/workflows/workflows/{name}.py what an order must be, and make "
            f"{event_of(name)} such an order: the tests send it."
        )


def _ask(project: Path, planned: Iterable[Path], *, yes: bool) -> None:
    """Ask whether the files that exist may be edited. Raises ConsoleError if not."""
    edited = [str(path) for path in sorted(planned) if (project / path).exists()]
    question = f"This edits {', '.join(edited)}. Edit them?"
    confirm(question, yes=yes or not edited, nothing="Nothing was written.")


def _report(written: list[Path], nothing: str) -> None:
    if not written:
        print(nothing)
    for path in written:
        print(f"wrote {path}")
