"""The search: what has a name, or starts with a text, that somebody typed or copied."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.task import TASK_ID, Task
from roundsman_console.base.clock import now
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.faces.web.addresses import page_of_id
from roundsman_console.faces.web.choices import Choices, choices_of
from roundsman_console.faces.web.form_registry import GOES_TO
from roundsman_console.faces.web.pages.orders import plans_of, rows_of
from roundsman_console.facts.orders.filters import FILTERS
from roundsman_console.facts.orders.listing import Page
from roundsman_console.facts.orders.selection import Selection
from roundsman_console.inspector import Inspector

LONGEST = 128
"""The number of characters of the longest name that can be found."""
MOST = 20
"""The number of orders that the search shows."""


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Find what the text names, or go to its page if it is the whole name of one thing."""
    text = given.get("text", "").strip()
    if not text:
        return {GOES_TO: "/orders"}
    if "=" in text:  # no name has one: it is the value of a field
        return {GOES_TO: "/orders?" + urlencode({"where": text})}
    if len(text) > LONGEST:
        raise InvalidArgument(
            f"The text to search for has {len(text):,} characters; no name has more than {LONGEST}."
        )
    if address := page_of_id(text):
        return {GOES_TO: address}
    if _is_an_order(inspector, text):
        return {GOES_TO: f"/orders/{quote(text, safe='')}"}
    page = _orders(inspector, text)
    tasks: Sequence[Task] = page.tasks if page else ()
    plans = plans_of(inspector, tasks)
    choices = choices_of(inspector, ((task, plans[task.task_id]) for task in tasks))
    return {
        "text": text,
        "named": _named(choices, text),
        "groups": [group for group in choices.groups if _starts(group.id, text)],
        "page": page,
        "rows": rows_of(inspector, tasks, plans),
        "every_order": "/orders?" + urlencode({"starts": text}),
    }


def _is_an_order(inspector: Inspector, text: str) -> bool:
    if not TASK_ID.fullmatch(text):
        return False
    stack = inspector.stack
    try:
        found = stack.tasks.load(text, now()) is not None or stack.tasks.order(text) is not None
    except (SchemaTooNew, UnreadableRecord):
        return True
    return found


def _orders(inspector: Inspector, text: str) -> Page | None:
    """The orders whose id starts with the text; None if no id can."""
    if not TASK_ID.fullmatch(text):
        return None
    return inspector.tasks(Selection(starts=text), limit=MOST, newest_first=True)


def _named(choices: Choices, text: str) -> list[tuple[str, str, str]]:
    """The kind, the name and the address of each workflow, step, error type and agent."""
    return [
        (FILTERS[field].label, name, "/orders?" + urlencode({field: name}))
        for field, names in choices.by_field().items()
        for name in names
        if _starts(name, text)
    ]


def _starts(name: str, text: str) -> bool:
    """Whether a name, or a word of it, starts with the text, in small or in large letters."""
    wanted = text.lower()
    words = [name, *name.split("_"), *re.findall(r"[A-Z][a-z0-9]*", name)]
    return any(word.lower().startswith(wanted) for word in words)
