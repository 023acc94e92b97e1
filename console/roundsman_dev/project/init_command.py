"""`roundsman init`: makes a new application in a new folder."""

import json
from pathlib import Path
from typing import Annotated

import typer

from roundsman_console.base.errors import InvalidArgument
from roundsman_console.base.release import (
    NO_WHEEL,
    installed_wheel,
    is_on_no_index,
    release,
)
from roundsman_console.faces.cli.errors import sentences
from roundsman_dev.project.create import create
from roundsman_dev.project.documents import InitDocument
from roundsman_dev.project.names import stack_name


def init_command(
    name: Annotated[
        str, typer.Argument(help="The application's name; the folder is made with this name.")
    ],
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            help="An agent, which gets a step; repeat it for several steps. Agents with commas "
            "between them are alternatives for one step: payment,payment_backup.",
        ),
    ] = None,
    workflow: Annotated[
        list[str] | None,
        typer.Option("--workflow", help="The name of a workflow; repeat it for several."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make an application in a new folder: workflows, agents, template, tests.

    Example: roundsman init shop --agent payment --agent stock --workflow purchase
    """
    with sentences():
        if len(Path(name).parts) > 1 or ".." in name:
            raise InvalidArgument(
                f"{name!r} is a path, and NAME is the name of a folder that is made in this one. "
                "Change to the folder that it belongs in, and give the name alone."
            )
        folder = Path.cwd() / name
        made = create(
            folder,
            agents=agent or (),
            workflows=workflow or (),
            version=release(),
            wheel=installed_wheel(),
        )
    if as_json:
        document: InitDocument = {"folder": str(folder), "files": [str(path) for path in made]}
        print(json.dumps(document))
        return
    if is_on_no_index():
        print(NO_WHEEL)
    stack = stack_name(folder.name)
    named = "" if stack == folder.name else f" Its stack is named {stack}."
    print(f"Made {folder.name} with {len(made)} files.{named} Next:")
    for line in (f"cd {name}", "make test", "roundsman local up"):
        print(f"  {line}")
