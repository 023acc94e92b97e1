"""A restore or a deletion as text: the plan before it, and what it has made."""

from collections.abc import Callable, Sequence

from roundsman_console.acts.table.steps import TableStep
from roundsman_console.faces.cli.terminal import progress, say
from roundsman_console.facts.table.record import Record


def plan_of(record: Record, steps: Sequence[TableStep]) -> list[str]:
    """Return the plan as lines: the exact names, and the steps with those that are done."""
    named = [
        f"- {one.output.removesuffix('Name')}: {one.name}"
        + (f", from {one.source}" if one.source else "")
        for one in record.tables
    ]
    todo = [f"- {'done' if one.name in record.done else 'to do'}: {one.does}" for one in steps]
    return [f"Tables of {record.stack}:", *named, "Steps:", *todo]


def shown(*, as_json: bool) -> Callable[[str], None]:
    """Return what is called with each step as it begins."""
    return progress(quiet=True) if as_json else lambda text: say(f"{text} ...")


def say_tables(record: Record) -> None:
    """Print how many items each table has, and its backup."""
    for one in record.tables:
        of_source = f"; {one.source}: {one.source_items} items" if one.source else ""
        say(f"{one.name}: {one.items} items, backup {one.backup}{of_source}")
