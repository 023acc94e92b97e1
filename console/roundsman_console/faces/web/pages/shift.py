"""The shift: what happened since a time and what is open now, on one page that can be printed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from roundsman_console.base.clock import now
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.base.result import COUNT, EPOCH_MS, shown_fields
from roundsman_console.faces.web.addresses import page_of_command, page_of_id
from roundsman_console.faces.web.readings.released import with_releases_here
from roundsman_console.facts.course.marks import within
from roundsman_console.facts.finding.table import DOCTOR
from roundsman_console.facts.shift.reading import USUAL, read_begin
from roundsman_console.facts.shift.report import Section, sections
from roundsman_console.inspector import Inspector

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

OFTEN = ("4h", "8h", "12h", "24h")
"""The times that are offered as links."""
WORDS = frozenset({"cause", "reason", "sentence", "words", "requests", "about"})
"""The fields with long texts."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    heading: str
    text: str
    at: int | None = None
    """An instant in epoch ms, which is shown in place of the text; None if it is none."""
    address: str = ""
    """The address of the page about it; empty if there is none."""
    kind: str = ""
    """The class of its column: `right` for a number, `words` for a long text."""


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the shift since the time that is asked for; a time that is wrong is said beside it."""
    since = given.get("since", "").strip() or USUAL
    shared = {"since": since, "often": OFTEN}
    try:
        begins = read_begin(since, now())
    except InvalidArgument as error:
        return {**shared, "wrong": str(error), "shift": None}
    found = inspector.shift(begins)
    holds = with_releases_here(inspector, found.holds, None, begins)
    found = replace(found, holds=within(holds, found.since, found.until + 1))
    return {
        **shared,
        "wrong": "",
        "shift": found,
        "sections": [(one, rows_of(one)) for one in sections(found)],
    }


def rows_of(section: Section) -> list[list[Cell]]:
    """Return the rows of a part, as the page shows them: without a column in which nothing is."""
    rows = [_cells(row) for row in section.rows]
    filled = {cell.heading for row in rows for cell in row if cell.text}
    return [[cell for cell in row if cell.heading in filled] for row in rows]


def _cells(row: "DataclassInstance") -> list[Cell]:
    found = []
    for name, shown in shown_fields(type(row)).items():
        value = getattr(row, name)
        kind = "words" if name in WORDS else "right" if shown.unit is COUNT else ""
        at = value if shown.unit is EPOCH_MS and isinstance(value, int) else None
        address = _address(name, value)
        text = _link_words(address) if name == "next" and address else shown.to_words(value)
        found.append(Cell(shown.label, text, at, address, kind))
    return found


def _link_words(address: str) -> str:
    """Return the words of a link to the page that shows what the next command shows."""
    page = re.split("[/?#]", address)[1]
    if page in ("groups", "orders") and address.startswith(f"/{page}/"):
        return f"Open the {page.removesuffix('s')}"
    return f"Open the {_PAGES.get(page, page.replace('-', ' '))}"


_PAGES = {"": "overview", "rejected": "rejected messages"}
"""The names of pages that are not those of their addresses."""


def _address(name: str, value: object) -> str:
    """Return the address of the page about the value of a field; empty if there is none."""
    if not isinstance(value, str):
        return ""
    if name == "order":
        return f"/orders/{quote(value, safe='')}"
    if name == "next":
        return page_of_command(value) or ("/doctor" if value == DOCTOR else "")
    return (page_of_id(value) or "") if name in ("group", "run", "about") else ""
