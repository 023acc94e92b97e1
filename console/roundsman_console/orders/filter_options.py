"""The filter options, which are the same for all commands that take a filter.

A command declares its filter options with these types and passes them to `filters.read_selection`.
"""

from typing import Annotated, TypeAlias

import typer

from roundsman.model.states import TaskState

StateFilter: TypeAlias = Annotated[
    TaskState | None,
    typer.Option("--state", case_sensitive=False, help="Only tasks in this state."),
]
WorkflowFilter: TypeAlias = Annotated[
    str | None, typer.Option("--workflow", help="Only tasks of this workflow.", metavar="NAME")
]
StepFilter: TypeAlias = Annotated[
    str | None,
    typer.Option("--step", help="Only tasks at this step, or that failed at it.", metavar="NAME"),
]
ErrorFilter: TypeAlias = Annotated[
    str | None,
    typer.Option("--error", help="Only tasks with this error type: CardDeclined.", metavar="TYPE"),
]
OlderFilter: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--older", help="Only tasks submitted longer ago than this: 90s, 2h, 1d.", metavar="TIME"
    ),
]
NewerFilter: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--newer", help="Only tasks submitted more recently than this: 90s, 2h, 1d.", metavar="TIME"
    ),
]
GroupFilter: TypeAlias = Annotated[
    str | None,
    typer.Option("--group", help="Only tasks of this failure group: f-1a2b3c4d.", metavar="GROUP"),
]
TagFilter: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        help="Only orders with this value: tenant=shop-1, correlationId=web-7 or "
        "priority=urgent. May be repeated.",
        metavar="NAME=VALUE",
    ),
]
LeftOutFilter: TypeAlias = Annotated[
    bool, typer.Option("--left-out", help="Only orders that have left out an item that failed.")
]
AfterCursor: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--after", help="Continue after the page that printed this cursor.", metavar="CURSOR"
    ),
]
