"""The list of orders: the filters of `roundsman ls`, its order, and pages in both directions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from roundsman.definition.plan import Plan
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.task import Task
from roundsman_console.base.errors import InvalidArgument, WrongFields
from roundsman_console.faces.web.choices import choices_of
from roundsman_console.faces.web.forms.bulk import commands_for, missing_in, verbs_on_many
from roundsman_console.faces.web.selection_fields import (
    LONGEST,
    choices_with,
    for_command,
    selection_of,
    typed_filters,
    wrong_filters,
)
from roundsman_console.facts.order.lookup import shown_tasks
from roundsman_console.facts.orders.counts import Count
from roundsman_console.facts.orders.filters import FILTERS
from roundsman_console.facts.orders.listing import (
    Page,
    SortedPage,
    count_matching,
    find_by_submission,
)
from roundsman_console.facts.orders.reasons import reasons_of
from roundsman_console.facts.orders.selection import Selection
from roundsman_console.facts.orders.step_marks import StepMark, marks_of
from roundsman_console.inspector import Inspector

ON_A_PAGE = 50
SORTS = {
    "": "newest end first",
    "oldest": "oldest end first",
    "submitted": "newest submission first",
    "submitted-oldest": "oldest submission first",
}
"""The orders of the list. In the first two of them, open orders are soonest due first."""
BY_SUBMISSION = ("submitted", "submitted-oldest")

MOST_LIVE = 5_000
"""A page that looks at more orders than this is not read again by itself: 5,000 entries of the
index every ten seconds are already some 700,000 read units a day."""

VIEWS: Sequence[tuple[str, Mapping[str, str]]] = (
    ("All", {}),
    ("Need a person", {"state": "Archived"}),
    ("Wait to try again", {"state": "Retry"}),
    ("Under way", {"state": "Active"}),
    ("Undone", {"state": "Undone"}),
    ("Completed", {"state": "Completed"}),
)
"""The views that the page offers. Any other is saved by its address."""

FIND = "find"
"""The field of the search, which has a page of its own."""
CHOSEN, DO = "order", "do"
"""The fields of the form that begins a bulk run over the orders whose boxes are ticked."""


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """An order as the list shows it."""

    task: Task
    reason: str
    marks: Sequence[StepMark]


def short_address(path: str, given: Iterable[tuple[str, str]]) -> str | None:
    """Return the address to go to instead of this one; None if it is short and shows the list.

    The search on each page sends FIND, the form of the filters empty fields, and the form of the
    boxes one field for each order. Raises InvalidArgument if there is no such command.
    """
    fields = list(given)
    find = next((text for name, text in fields if name == FIND and text.strip()), None)
    if find is not None:
        return _address("/find", urlencode({"text": find.strip()}))
    chosen = [text for name, text in fields if name == CHOSEN]
    command = next((text for name, text in fields if name == DO), None)
    if command is not None:
        if command not in verbs_on_many():
            raise InvalidArgument("There is no such command for many orders.")
        query = urlencode({"orders": "\n".join(chosen)}) if chosen else ""
        return _address(f"/commands/{command}", query)
    kept = [(name, text) for name, text in fields if text and name != CHOSEN]
    return None if kept == fields else _address(path, urlencode(kept))


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read a page of the orders that match the filters, those that need a person first.

    If a filter is wrong, no order is listed, and the form has what was typed.
    """
    typed, sort = typed_filters(given), given.get("sort", "")
    if sort not in SORTS:
        raise InvalidArgument(f"There is no such order. It is one of {', '.join(SORTS)[2:]}.")
    asked = {name: text if len(text) <= LONGEST else "" for name, text in typed.items()}
    filters = {name: text for name, text in asked.items() if text}
    kept = {**filters, **({"sort": sort} if sort else {})}
    wrong: Mapping[str, str] = wrong_filters(typed)
    found: Mapping[str, object] = {"words": "", "is_cheap": False}
    tasks: Sequence[Task] = ()
    plans: Mapping[str, Plan | None] = {}
    if not wrong:
        selection = selection_of(asked)
        try:
            listed = (
                _by_submission(inspector, selection, given, kept)
                if sort in BY_SUBMISSION
                else _by_end(inspector, selection, given, kept)
            )
        except WrongFields as error:
            wrong = error.reasons
        else:
            tasks = listed.tasks
            plans = plans_of(inspector, tasks)
            found = {
                "listed": listed,
                "rows": rows_of(inspector, tasks, plans),
                "words": selection.words() if filters else "",
                "export": _address("/export", urlencode(filters)),
                "on_all": [
                    (title, f"/commands/{name}?{urlencode(for_command(asked))}")
                    for name, title in commands_for(selection)
                ],
                "missing": missing_in(selection),
                "on_chosen": [
                    (name, verb.title.split()[0]) for name, verb in verbs_on_many().items()
                ],
                "first_page": _address("/orders", urlencode(kept)),
                "is_cheap": listed.looked_at <= MOST_LIVE,
            }
    choices = choices_of(inspector, ((task, plans[task.task_id]) for task in tasks))
    return {
        **found,
        "wrong": wrong,
        "asked": asked,
        "sort": sort,
        "sorts": SORTS,
        "views": [
            (title, _address("/orders", urlencode(view)), view == kept) for title, view in VIEWS
        ],
        "choices": choices_with(choices.by_field(), asked),
        "filters": [one for one in FILTERS.values() if not one.folded],
        "more_filters": [one for one in FILTERS.values() if one.folded],
        "more_asked": any(
            asked[name] or name in wrong for name, one in FILTERS.items() if one.folded
        ),
        "is_first": not any(given.get(name) for name in ("after", "before", "skip", "count")),
    }


@dataclass(frozen=True, slots=True)
class Listed:
    """The orders of one page, how many there are, and where the list goes on."""

    tasks: tuple[Task, ...]
    start: int
    """The number of orders on the pages before this one."""
    total: Count
    """The number of orders that match: right, or at least that many."""
    looked_at: int
    """The number of orders that were looked at until now, for the pages before this one too."""
    early: bool
    """Whether the page ended early because its time was over."""
    next_page: str | None
    previous_page: str | None
    count_address: str | None
    """Where all orders that match are counted; None if they are, or if that cannot be done."""
    unreadable: Mapping[str, str]
    sorted_of: int | None = None
    """The number of orders that were sorted; None if the index has the order of the page."""
    removed: Sequence[str] = ()
    """Orders that were found by a field, whose tasks have ended and were removed."""


def _by_end(
    inspector: Inspector, selection: Selection, given: Mapping[str, str], kept: Mapping[str, str]
) -> Listed:
    after, before = given.get("after") or None, given.get("before") or None
    page: Page = inspector.tasks(
        selection,
        after=after,
        before=before,
        limit=ON_A_PAGE,
        newest_first=given.get("sort", "") != "oldest",
    )
    seen = page.start + len(page.tasks)
    counted = count_matching(inspector.stack, selection) if given.get("count") else None
    total = counted or Count(seen, more=not page.whole)
    place = {"after": after} if after else {"before": before} if before else {}
    can_count = total.more and counted is None and selection.decided_by_index
    return Listed(
        page.tasks,
        page.start,
        total,
        page.looked_before + page.looked_at,
        not page.whole and len(page.tasks) < ON_A_PAGE,
        page.cursor and _address("/orders", urlencode({**kept, "after": page.cursor})),
        page.before and _address("/orders", urlencode({**kept, "before": page.before})),
        _address("/orders", urlencode({**kept, **place, "count": "yes"})) if can_count else None,
        page.unreadable,
        removed=page.removed,
    )


def _by_submission(
    inspector: Inspector, selection: Selection, given: Mapping[str, str], kept: Mapping[str, str]
) -> Listed:
    text = given.get("skip", "0") or "0"
    if not text.isdecimal() or len(text) > 6:
        raise InvalidArgument(
            "The parameter skip is the number of orders on the pages before: 0, 50, 100."
        )
    skip = int(text)
    page: SortedPage = find_by_submission(
        inspector.stack,
        selection,
        newest_first=given["sort"] == "submitted",
        skip=skip,
        limit=ON_A_PAGE,
    )

    def at(place: int) -> str:
        return _address("/orders", urlencode({**kept, **({"skip": place} if place > 0 else {})}))

    return Listed(
        shown_tasks(inspector.stack, page.tasks),
        skip,
        Count(page.found, more=not page.whole),
        page.looked_at,
        False,
        at(skip + ON_A_PAGE) if skip + ON_A_PAGE < page.found else None,
        at(skip - ON_A_PAGE) if skip else None,
        None,
        {},
        sorted_of=None if page.whole else page.found,
    )


def plans_of(inspector: Inspector, tasks: Sequence[Task]) -> Mapping[str, Plan | None]:
    """Return the plan of each order by its id; None if it cannot be read. Each is read once."""
    found: dict[str, Plan | None] = {}
    for plan in {task.plan for task in tasks}:
        try:
            found[plan] = inspector.stack.plans.plan(plan)
        except (SchemaTooNew, UnreadableRecord):
            found[plan] = None
    return {task.task_id: found[task.plan] for task in tasks}


def rows_of(
    inspector: Inspector, tasks: Sequence[Task], plans: Mapping[str, Plan | None]
) -> list[ListedOrder]:
    """Return the orders as the list shows them."""
    why = reasons_of(inspector.stack, tasks)
    return [
        ListedOrder(task, why[task.task_id], marks_of(task, plans.get(task.task_id)))
        for task in tasks
    ]


def _address(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path
