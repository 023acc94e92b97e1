"""`roundsman audit`: judges whether the orders of a stack followed the promises."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from roundsman.model.instants import second
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import FAILED, USAGE, ConsoleError
from roundsman_console.base.hints import hinted_json
from roundsman_console.base.typed_inputs import read_past
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson, Yes
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.faces.cli.text.audit import print_report
from roundsman_console.facts.audit.audit import audit_orders, audit_stack
from roundsman_console.facts.audit.reading import MOST, AuditCost, Scope, estimate
from roundsman_console.facts.audit.report import AuditReport
from roundsman_console.facts.audit.stored_document import LineWriter, read_lines
from roundsman_console.facts.audit.stored_order import StoredOrder
from roundsman_console.facts.cost.prices import load_prices
from roundsman_console.facts.orders.filters import LONGEST_AGE

Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Only orders submitted since then: 7d, 12h, 2027-01-15T08:00:00Z; all by default.",
    ),
]
Most = Annotated[int, typer.Option(min=1, max=1_000_000, help="Maximum number of orders to read.")]
Deep = Annotated[
    bool,
    typer.Option("--deep", help="Also count removed records: reads the whole orders table."),
]
To = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file to write what was read to, without contents."),
]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", help="A file that --to wrote, to judge instead."),
]

CENT = 0.01


def audit_command(
    since: Since = None,
    most: Most = MOST,
    deep: Deep = False,
    to: To = None,
    from_: From = None,
    yes: Yes = False,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Judge by the stored records whether orders followed the promises.

    Changes nothing. Says what the reading will cost, asks, and reads those that need a person
    first. Exits 0 if no promise was broken, and 1 if one was, or if the reading stopped early.

    Example: roundsman audit --since 7d

    Example: roundsman audit --since 7d --to orders.jsonl
    """
    with sentences():
        if from_ is not None:
            report = _of_file(from_, since=since, to=to, deep=deep)
        else:
            begins = None if since is None else read_past(since, now(), most=LONGEST_AGE)
            report = _of_stack(stack, Scope(begins, most, deep), to, yes, as_json)
        if as_json:
            print(hinted_json(report.document()))
        else:
            print_report(report, results())
        if not report.is_well:
            raise typer.Exit(FAILED)


def _of_stack(
    stack: str | None, scope: Scope, to: Path | None, yes: bool, as_json: bool
) -> AuditReport:
    found = announced_stack(stack)
    cost = estimate(found, scope)
    if not as_json:
        say(words_of(cost, scope))
    confirm(f"Read {counted(cost.orders, 'order')}?", yes=yes, nothing="Nothing was read.")
    with (
        _written(to) as keep,
        Console(stderr=True, quiet=as_json).status("Reading orders") as status,
    ):
        return audit_stack(found, scope, cost, keep=keep, progress=status.update)


def words_of(cost: AuditCost, scope: Scope) -> str:
    """Return what the reading will cost, in a sentence."""
    prices = load_prices()
    usd = prices.usd("dynamodb.read", cost.read_units)
    amount = f"about {usd:.2f}" if usd >= CENT else "less than 0.01"
    first = "the first " if cost.more else ""
    since = "" if scope.since is None else f" submitted since {second(scope.since)}"
    return (
        f"To read: {first}{counted(cost.orders, 'order')}{since}, about {cost.read_units:,} read "
        f"units of DynamoDB, {amount} USD at the list price of {prices.region}."
    )


def _of_file(path: Path, *, since: str | None, to: Path | None, deep: bool) -> AuditReport:
    if since is not None or to is not None or deep:
        raise ConsoleError("--from judges a file as a whole: leave out the other options.", USAGE)
    try:
        with path.open(encoding="utf-8") as file:
            return audit_orders(read_lines(file))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConsoleError(f"{path} cannot be read: {why}.", USAGE) from error


@contextmanager
def _written(to: Path | None) -> Iterator[Callable[[StoredOrder], None]]:
    """Open the file for what is read. Raises ConsoleError if it exists or cannot be written."""
    if to is None:
        yield lambda _: None
        return
    try:
        with to.open("x", encoding="utf-8") as file:
            writer = LineWriter()
            yield lambda order: file.writelines(writer.lines(order))
    except FileExistsError as error:
        raise ConsoleError(f"{to} already exists. Name another file.", USAGE) from error
    except OSError as error:
        raise ConsoleError(f"{to} cannot be written: {error.strerror}.", USAGE) from error
