"""`roundsman export`: writes the tasks that match a filter as JSON lines; resumable by cursor."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.console import Console

from roundsman_console.base.errors import FAILED, USAGE, ConsoleError
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.filter_options import AfterCursor, with_filters
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.facts.orders.documents import ExportDocument
from roundsman_console.facts.orders.export import Exported, Lines, export_pages
from roundsman_console.facts.orders.selection import Selection


@with_filters()
def export_command(
    *,
    to: Annotated[
        str | None, typer.Option(help="The file to write; with --after, the file to append to.")
    ] = None,
    with_orders: Annotated[
        bool,
        typer.Option(
            "--with-orders", help="Include the contents of orders and the results of steps."
        ),
    ] = False,
    selection: Selection,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of tasks to write; all by default.")
    ] = None,
    after: AfterCursor = None,
    stack: StackOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --to: print one JSON object about the export.")
    ] = False,
) -> None:
    """Write tasks as JSON lines. The contents of orders are left out unless you ask for them.

    Example: roundsman export --state Archived --to archived.jsonl
    """
    with sentences():
        if as_json and to is None:
            raise ConsoleError(
                "--json requires --to. Without --to, the tasks themselves are printed, one "
                "JSON object per line.",
                USAGE,
            )
        found = find_stack(stack)
        lines = Lines(found, with_orders=with_orders)
        with _opened(to, on=after is not None) as file:
            progress = _export(lines, selection, file, after, limit)
        if as_json:
            document: ExportDocument = {"to": to or "", **progress.document()}
            print(json.dumps(document))
        _say(progress)


def _export(
    lines: Lines, selection: Selection, file: IO[str], after: str | None, limit: int | None
) -> Exported:
    """Write the tasks page by page, and return the progress.

    If the export is interrupted or fails, the progress contains the reason and the cursor to
    continue from. Raises CallRefused only if no task was read yet, and BrokenPipeError if the
    reader of the output has closed the pipe.
    """
    progress = Exported(cursor=after)
    with Console(stderr=True).status("Reading tasks") as status:
        try:
            for page in export_pages(lines, selection, after=after, limit=limit):
                # Write a page in one piece, so that its cursor matches the content of the file.
                file.write(page.text)
                file.flush()
                progress = page.progress
                status.update(f"{progress.exported} tasks written, {progress.looked_at} examined")
        except KeyboardInterrupt:
            return replace(progress, stopped="interrupted")
        except BrokenPipeError:
            raise  # the reader of the pipe has closed it; not an error of the file
        except OSError as error:
            return replace(progress, stopped=f"the file cannot be written: {error.strerror}")
    return progress


@contextmanager
def _opened(to: str | None, *, on: bool) -> Iterator[IO[str]]:
    """Open the output: a new file, or standard output if `to` is None.

    With `on`, append to the file instead. Raises ConsoleError if the file cannot be opened, if it
    exists and `on` is false, or if it does not exist and `on` is true.
    """
    if to is None:
        yield sys.stdout
        return
    with ExitStack() as closing:
        try:
            file = closing.enter_context(_existing(to) if on else _new(to))
        except FileExistsError as error:
            raise ConsoleError(
                f"{to} already exists. Name another file, or continue with --after CURSOR.", USAGE
            ) from error
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            hint = " With --after, name the file that the export began." if on else ""
            raise ConsoleError(f"{to} cannot be written: {why}.{hint}", USAGE) from error
        yield file


def _new(name: str) -> IO[str]:
    """Create a file. Raises FileExistsError if it exists."""
    return Path(name).open("x", encoding="utf-8")


def _existing(name: str) -> IO[str]:
    """Open a file to append to it. Raises FileNotFoundError if it does not exist."""

    def without_creation(path: str, flags: int) -> int:
        return os.open(path, flags & ~os.O_CREAT)

    return open(name, "a", encoding="utf-8", opener=without_creation)


def _say(progress: Exported) -> None:
    """Print the outcome on standard error, because standard output may contain the tasks.

    Raises typer.Exit if the export stopped early.
    """
    sentence = progress.sentence
    if not progress.whole:
        going_on = f"--after {progress.cursor}" if progress.cursor else "the same command"
        sentence = f"{sentence} Continue with the same filter and {going_on}"
    Console(stderr=True, highlight=False, soft_wrap=True).print(sentence, markup=False)
    if progress.stopped is not None:
        raise typer.Exit(130 if progress.stopped == "interrupted" else FAILED)
