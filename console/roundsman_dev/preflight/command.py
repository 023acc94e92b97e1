"""`roundsman preflight`: checks the project and the AWS account before a deployment."""

from pathlib import Path
from typing import Annotated

import typer

from roundsman_console.base.errors import FAILED
from roundsman_console.base.hints import hinted_json
from roundsman_console.base.project_folder import find_project
from roundsman_console.base.result import document_of
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.terminal import progress, results
from roundsman_dev.local.parameters import parse_assignments
from roundsman_dev.preflight.preflight import run_preflight
from roundsman_dev.preflight.text import print_report
from roundsman_dev.sam import sam_module


def preflight_command(
    config_env: Annotated[
        str, typer.Option(help="The environment of samconfig.toml, as for sam deploy.")
    ] = "default",
    param: Annotated[
        list[str] | None,
        typer.Option(help="A parameter that sam deploy will be given, as Key=Value; repeatable."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail at a warning, and at what was not checked.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check the project and the AWS account before a deployment. Changes nothing.

    Exits 0 if there is no fault, and 1 if there is one. A warning, or what could not be checked
    because a right is missing, is no fault without --strict.

    Example: roundsman preflight --config-env prod
    """
    with sentences():
        sam_module("samcli")
        from roundsman_dev.project.planned import planned_stack

        project = find_project(Path.cwd())
        given = parse_assignments(param or ())
        planned = planned_stack(project, config_env, given)
        report = run_preflight(planned, strict=strict, progress=progress(quiet=as_json))
        if as_json:
            print(hinted_json(document_of(report)))
        else:
            print_report(report, results())
        if not report.ready:
            raise typer.Exit(FAILED)
