"""`roundsman changes`: shows what a deployment would change in AWS, and carries it out."""

from pathlib import Path
from typing import Annotated

import typer

from roundsman.command_line import command_line
from roundsman_console.base.errors import FAILED
from roundsman_console.base.hints import hinted_json
from roundsman_console.base.project_folder import find_project
from roundsman_console.base.result import document_of
from roundsman_console.faces.cli.errors import complain, sentences
from roundsman_console.faces.cli.terminal import progress, results, say
from roundsman_dev.changes.project_changes import ProjectChanges
from roundsman_dev.changes.review import Review
from roundsman_dev.changes.text import print_review, stop_sentence
from roundsman_dev.local.parameters import parse_assignments


def changes_command(
    config_env: Annotated[
        str, typer.Option(help="The environment of samconfig.toml, as for sam deploy.")
    ] = "default",
    param: Annotated[
        list[str] | None,
        typer.Option(help="A parameter of the template, as Key=Value; repeatable."),
    ] = None,
    execute_arn: Annotated[
        str | None,
        typer.Option("--execute", metavar="ARN", help="Carry out this change set."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="A table or queue that may be replaced or removed; repeatable."),
    ] = None,
    github_output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append change_set=ARN to a file: $GITHUB_OUTPUT."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what a deployment would change, in the nested stacks too, and which rights grow.

    Packages what sam build made, makes a change set, and changes nothing else. Exits 1 if a table
    or queue would be replaced or removed that no --allow names. With --execute it carries out a
    change set that it has made before, after the same check.

    Example: roundsman changes --config-env prod
    """
    with sentences():
        given = parse_assignments(param or ())
        project = ProjectChanges.of(
            find_project(Path.cwd()), config_env, given, progress(quiet=as_json)
        )
        if execute_arn is None:
            review = project.made(allow or ())
        else:
            review = project.found(execute_arn, allow or ())
        if not as_json:
            print_review(review, results())
        if execute_arn is not None and not review.stopped:
            review = project.carried_out(review)
        if github_output is not None:
            with github_output.open("a", encoding="utf-8") as file:
                file.write(f"change_set={review.change_set or ''}\n")
        if as_json:
            print(hinted_json(document_of(review)))
        if review.stopped:
            complain(stop_sentence(review))
            raise typer.Exit(FAILED)
        if not as_json:
            say(_next(review, config_env))


def _next(review: Review, environment: str) -> str | None:
    if review.executed:
        return f"{review.stack} is deployed."
    if review.change_set is None:
        return None
    where = () if environment == "default" else ("--config-env", environment)
    options = (*where, "--execute", review.change_set)
    return f"Carry it out: {command_line('changes', options=options)}"
