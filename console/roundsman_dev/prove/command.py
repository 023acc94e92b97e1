"""`roundsman prove`: proves the promises in the user's own account."""

import json
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Annotated

import typer

from roundsman_console.base.errors import FAILED, USAGE, ConsoleError
from roundsman_console.base.process import stopped_by_signals, uninterrupted
from roundsman_console.base.result import document_of
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson, Yes
from roundsman_console.faces.cli.terminal import results, say
from roundsman_dev.prove.deployment import Place, ProofProject, place
from roundsman_dev.prove.duration import seconds_of_orders
from roundsman_dev.prove.removal import ProofRecord, forget, proofs_left, remove
from roundsman_dev.prove.report import ProofReport, report_of
from roundsman_dev.prove.run import Proof, new_run
from roundsman_dev.prove.stored_lines import lines_of, read_proof
from roundsman_dev.prove.text import print_plan, print_report, report_text

SEEN, REPORT, TEXT = "seen.jsonl", "report.json", "report.txt"
ORDERS, MOST_ORDERS = 1_000, 10_000
LEAST_MINUTES, MOST_MINUTES = 35, 240
CLEAN_UP = "roundsman prove --clean-up"
STOPPED = "Stopped. Removing what was made; this takes some minutes."

Orders = Annotated[
    int | None,
    typer.Option(min=1, max=MOST_ORDERS, help="How many orders to send; 1,000 by default."),
]
Within = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_MINUTES,
        metavar="MINUTES",
        help="Longest time from the first order until all have ended; by default as long as by "
        "calculation and half as long again, and at least 35 minutes.",
    ),
]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", help="A file seen.jsonl of a proof, to judge again."),
]
CleanUp = Annotated[
    bool, typer.Option("--clean-up", help="Only remove what proofs have left behind.")
]


def prove_command(
    orders: Orders = None,
    within: Within = None,
    from_: From = None,
    clean_up: CleanUp = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Prove the promises in your account, with a stack of its own that removes itself.

    Shows a plan and asks. Sends orders, makes faults meanwhile, and judges every order by its
    records and by what stands at the services. Exits 0 if every promise was kept, and 1 if one was
    broken, if not every order has ended, or if something is left behind. The report is in a new
    folder.

    Example: roundsman prove

    Example: roundsman prove --orders 200 --yes --json
    """
    with sentences():
        if from_ is not None:
            if orders is not None or within is not None or clean_up:
                raise ConsoleError("--from judges a file: leave out the other options.", USAGE)
            _finish(_of_file(from_), as_json=as_json)
        elif clean_up:
            if orders is not None or within is not None or as_json:
                raise ConsoleError("--clean-up only removes: leave out the other options.", USAGE)
            _clean_up(yes=yes)
        else:
            chosen = ORDERS if orders is None else orders
            minutes = minutes_for(chosen) if within is None else within
            _finish(*_prove(chosen, minutes, yes=yes, as_json=as_json), as_json=as_json)


def minutes_for(orders: int) -> int:
    """Return the longest time for so many orders, in minutes."""
    return max(LEAST_MINUTES, ceil(1.5 * seconds_of_orders(orders) / 60))


def _prove(orders: int, minutes: int, *, yes: bool, as_json: bool) -> tuple[ProofReport, list[str]]:
    """Make a proof; return what it has found, and what is left behind."""
    here = place()
    run = new_run()
    folder = Path.cwd() / run
    if not as_json:
        print_plan(run, here, orders, minutes, results())
    confirm(f"Make this proof in {here.words}?", yes=yes, nothing="Nothing was made.")
    progress = _progress(quiet=as_json)
    project = ProofProject(run=run, folder=folder, place=here, progress=progress)
    record = ProofRecord(run, here.account, here.region)
    record.write(folder)  # before anything is made
    proof = Proof(
        project=project, record=record, orders=orders, within=60 * minutes, progress=progress
    )
    left: list[str] = []
    try:
        with stopped_by_signals(STOPPED):
            document = proof.course()
            report = report_of(document)
            _write(folder / SEEN, "".join(lines_of(document)))
            _write(folder / REPORT, json.dumps(document_of(report), indent=2) + "\n")
            _write(folder / TEXT, report_text(report))
    finally:
        with uninterrupted():
            left += _removed(record, folder, progress)
            project.forget()
            _say_left(left)
    if not as_json:
        say(f"The report is {folder / TEXT}, and what was seen {folder / SEEN}.")
    return report, left


def _removed(
    record: ProofRecord, folder: Path | None, progress: Callable[[str], None]
) -> list[str]:
    """Remove what a proof has made, and return what is left."""
    left = remove(record, progress)
    if folder is None:
        return left
    if left:
        record.write(folder)  # with the names that were found meanwhile
    else:
        forget(folder)
    return left


def _say_left(left: list[str]) -> None:
    for one in left:
        typer.echo(f"Left behind: {one}", err=True)
    if left:
        typer.echo(f"To remove it: {CLEAN_UP}", err=True)


def _clean_up(*, yes: bool) -> None:
    here: Place = place()
    found = proofs_left(Path.cwd(), here.account, here.region)
    if not found:
        say(f"No proof has left anything in {here.words}, as far as this folder and tags show.")
        return
    for record, folder in found:
        where = "by its tag" if folder is None else f"by {folder}"
        tables = f", with {len(record.tables)} tables" if record.tables else ""
        say(f"{record.run}, found {where}{tables}")
    confirm(f"Remove all of it in {here.words}?", yes=yes, nothing="Nothing was removed.")
    left: list[str] = []
    for record, folder in found:
        left += _removed(record, folder, _progress(quiet=False))
    _say_left(left)
    if left:
        raise typer.Exit(FAILED)
    say("Everything is removed.")


def _finish(report: ProofReport, left: list[str] | None = None, *, as_json: bool) -> None:
    """Print what was found, and exit by it."""
    if as_json:
        print(json.dumps(document_of(report), indent=2))
    else:
        print_report(report, results())
    if report.verdict != "kept" or left:
        raise typer.Exit(FAILED)


def _of_file(path: Path) -> ProofReport:
    try:
        with path.open(encoding="utf-8") as file:
            return report_of(read_proof(file))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConsoleError(f"{path} cannot be read: {why}.", USAGE) from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConsoleError(f"{path} cannot be written: {error.strerror}.") from error


def _progress(*, quiet: bool) -> Callable[[str], None]:
    """A line on standard error for each stage, once; a count only when it changes."""
    last = ""

    def show(text: str) -> None:
        nonlocal last
        if text != last and not quiet:
            typer.echo(text, err=True)
        last = text

    return show
