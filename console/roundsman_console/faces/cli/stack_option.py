"""The option --stack."""

from typing import Annotated

import typer

from roundsman_console.base.hints import remember_stack

StackOption = Annotated[
    str | None,
    typer.Option(
        "--stack",
        envvar="ROUNDSMAN_STACK",
        show_envvar=False,
        callback=remember_stack,
        help="The stack's name; ROUNDSMAN_STACK, or the one in samconfig.toml, by default.",
    ),
]
