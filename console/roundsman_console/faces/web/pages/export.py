"""The download of orders: the filters of the Orders page, as the JSON lines of `roundsman export`.

A download that is not whole ends with a line that says so, because nothing else of it can: the one
object in the file with the field `export`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from roundsman.model.instants import iso
from roundsman_console.base.clock import now
from roundsman_console.base.errors import sentence_of
from roundsman_console.base.result import document_of
from roundsman_console.faces.web.readings.unreadable_parts import AWS_ERRORS
from roundsman_console.faces.web.selection_fields import asked_of, selection_of
from roundsman_console.facts.orders.export import Exported, ExportedPage, Lines, export_pages
from roundsman_console.inspector import Inspector

MOST = 100_000
"""The maximum number of orders in one download."""


def read(_inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Describe the download before it begins. Nothing is asked of AWS."""
    asked = asked_of(given)
    return {
        "selection": selection_of(asked).words(),
        "kept": {name: text for name, text in asked.items() if text},
        "most": MOST,
    }


def file_name(inspector: Inspector) -> str:
    """Return the name of the file: letters, digits, dots and hyphens only."""
    stack = re.sub(r"[^A-Za-z0-9-]", "-", inspector.stack.name)
    return f"{stack}-orders-{re.sub('[^0-9TZ]', '', iso(now()).partition('.')[0])}.jsonl"


def download(inspector: Inspector, given: Mapping[str, str]) -> Iterator[str]:
    """Return the text of the download in pieces, the first of which is read already.

    So an error of the first page is raised here, before an answer has begun: ConsoleError for a
    wrong filter, InvalidCursor, and the errors of AWS.
    """
    selection = selection_of(asked_of(given))
    lines = Lines(inspector.stack, with_orders=given.get("orders") == "yes")
    pages = export_pages(lines, selection, after=given.get("after") or None, limit=MOST)
    first = next(pages)
    return _text(chain([first], pages))


def _text(pages: Iterator[ExportedPage]) -> Iterator[str]:
    progress = Exported()
    try:
        for page in pages:
            progress = page.progress
            yield page.text
    except AWS_ERRORS as error:
        progress = replace(progress, stopped=sentence_of(error).removesuffix("."))
    if not progress.whole or progress.unreadable:
        yield end_line(progress)


def end_line(progress: Exported) -> str:
    """Return the last line of a download that lacks orders: why, and the cursor to go on from."""
    on = " Continue with: roundsman export, the same filter and --after with this cursor."
    sentence = progress.sentence + ("" if progress.whole else on)
    document = {**document_of(progress), "sentence": sentence}
    return json.dumps({"export": document}, separators=(",", ":")) + "\n"
