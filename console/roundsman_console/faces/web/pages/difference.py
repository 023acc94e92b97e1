"""An order beside another one: the one that is asked for, or the last one that completed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundsman_console.base.errors import InvalidArgument, NotFound
from roundsman_console.facts.order.difference import PARTS, Difference, PartOfOrder
from roundsman_console.facts.order.lookup import load_task
from roundsman_console.facts.orders.compared import read_difference
from roundsman_console.inspector import Inspector

MOST_ROWS = 50
"""The number of differences of a part that are shown."""


@dataclass(frozen=True, slots=True)
class ShownPart:
    """What differs in one part of the orders."""

    part: PartOfOrder
    heading: str
    rows: Sequence[Difference]
    more: int
    """The number of differences that are not shown."""


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read what differs between an order and another one; why there is none is said on the page.

    Raises NotFound if there is no such order.
    """
    order, other = given["order"], given.get("with", "").strip()
    load_task(inspector.stack, order)
    shared = {"order": order, "asked": other}
    try:
        found = read_difference(inspector.stack, order, other or None)
    except (NotFound, InvalidArgument) as error:
        return {**shared, "found": None, "parts": [], "wrong": str(error)}
    parts = []
    for part, heading in PARTS.items():
        rows = found.of(part)
        if rows:
            shown = rows[:MOST_ROWS]
            parts.append(ShownPart(part, heading, shown, len(rows) - len(shown)))
    return {**shared, "found": found, "parts": parts, "wrong": ""}
