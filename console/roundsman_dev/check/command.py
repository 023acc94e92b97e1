"""`roundsman check`: compares the workflows and agents of an application with its template."""

import json
from pathlib import Path
from typing import Annotated

import typer

from roundsman_console.base.counted import counted
from roundsman_console.base.errors import FAILED, ConsoleError
from roundsman_console.base.project_folder import find_project
from roundsman_console.faces.cli.errors import sentences
from roundsman_dev.check.documents import CheckDocument
from roundsman_dev.project.upgrade import edited_files


def check_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check the definitions against the template: blocks, functions, schedules, outputs, events.

    The exit code is 0 only if there is no problem. A file of stacks/ that was edited is a warning.

    Example: roundsman check
    """
    with sentences():
        project = find_project(Path.cwd())
        problems = check_project(project)
        for path in edited_files(project):
            typer.echo(
                f"Warning: {path} was edited, so `roundsman upgrade` will refuse to replace it. "
                "Move what you changed to template.yaml.",
                err=True,
            )
    if as_json:
        document: CheckDocument = {"problems": problems}
        print(json.dumps(document))
    else:
        for problem in problems:
            print(problem)
        print("No problem." if not problems else f"{counted(len(problems), 'problem')}.")
    if problems:
        raise typer.Exit(FAILED)


def check_project(project: Path) -> list[str]:
    """Return the problems of an application. Raises ConsoleError if it cannot be read."""
    try:
        # The rules need the packages of the extra `testing`.
        from samtranslator.model.exceptions import (  # type: ignore[import-untyped]
            InvalidDocumentException,
        )
        from yaml import YAMLError

        from roundsman_dev.check import RULES
        from roundsman_dev.check.project import read_project
        from roundsman_dev.template import TemplateProblem
    except ImportError as error:
        raise ConsoleError(
            f"roundsman check needs {error.name}: install roundsman[testing]."
        ) from error
    try:
        application = read_project(project)
    except TemplateProblem as error:
        raise ConsoleError(f"{error}.") from error
    except (InvalidDocumentException, YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ConsoleError(
            f"template.yaml or a file of stacks/ is no template: {reason}"
        ) from error
    return [problem for rule in RULES for problem in rule(application)]
