"""Finding tasks by a filter: what fits, in which order, and how a page in part goes on."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, StepRecord, Task, Termination
from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.faces.cli.errors import exit_code
from roundsman_console.facts.orders import listing
from roundsman_console.facts.orders.filters import read_tags
from roundsman_console.facts.orders.listing import Page, find
from roundsman_console.facts.orders.selection import Selection, matches, read_selection
from roundsman_console.inspector import InvalidArgument
from tests.console.shelves import DECLINED, Shelves, archived, open_task
from tests.console.step_samples import AT
from tests.support.steps import step_record

ALL = Selection()


@pytest.fixture(autouse=True)
def at_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "now", lambda: AT)


def ids(page: Page) -> list[str]:
    return [task.task_id for task in page.tasks]


def refused(after: str, selection: Selection = ALL, shelves: Shelves | None = None) -> str:
    with pytest.raises(InvalidArgument) as error:
        find((shelves or Shelves()).stack(), selection, after=after)
    return str(error.value)


def test_what_needs_a_person_comes_first_then_what_is_open_each_by_age() -> None:
    shelves = Shelves()
    shelves.put(open_task("open", AT - 9_000), archived("b", AT - 1_000), archived("a", AT - 2_000))
    page = find(shelves.stack(), ALL)
    assert (ids(page), page.whole, page.looked_at) == (["a", "b", "open"], True, 3)


@pytest.mark.exhaustive
@given(
    ages=st.lists(st.integers(0, 3), max_size=12),
    limit=st.integers(1, 4),
    budget=st.integers(1, 5),
)
def test_pages_one_after_the_other_have_every_task_once(
    ages: list[int], limit: int, budget: int
) -> None:
    shelves = Shelves()
    for place, age in enumerate(ages):
        make = archived if place % 2 else open_task
        shelves.put(make(f"ord-{place}", AT - age * 1_000))
    found: list[str] = []
    after = None
    for _ in range(len(ages) + 1):
        page = find(shelves.stack(), ALL, after=after, limit=limit, budget=budget)
        assert len(page.tasks) <= limit
        assert page.looked_at <= budget
        found += ids(page)
        after = page.cursor
        if page.whole:
            break
    assert page.whole
    assert sorted(found) == sorted(shelves.tasks)


def test_a_rare_filter_gives_a_page_that_says_it_is_partial_and_goes_on() -> None:
    shelves = Shelves()
    shelves.put(*(archived(f"ord-{place:03}", AT + place) for place in range(30)))
    shelves.put(replace(archived("rare", AT + 25), workflow="other"))
    rare = Selection(workflow="other")
    page = find(shelves.stack(), rare, budget=10)
    assert (ids(page), page.looked_at, page.whole) == ([], 10, False)
    page = find(shelves.stack(), rare, budget=10, after=page.cursor)
    page = find(shelves.stack(), rare, budget=10, after=page.cursor)
    assert (ids(page), page.looked_at, page.whole) == (["rare"], 10, False)
    page = find(shelves.stack(), rare, budget=10, after=page.cursor)
    assert (ids(page), page.looked_at, page.whole) == ([], 1, True)


def test_entries_of_one_instant_are_each_on_one_page() -> None:
    shelves = Shelves()
    shelves.put(*(archived(f"ord-{place}") for place in range(8)))
    first = find(shelves.stack(), ALL, limit=3)
    assert ids(first) == ["ord-0", "ord-1", "ord-2"]
    rest = find(shelves.stack(), ALL, after=first.cursor)
    assert sorted(ids(first) + ids(rest)) == sorted(shelves.tasks)


def test_a_full_page_reads_one_task_more_and_no_hundred() -> None:
    shelves = Shelves()
    shelves.put(*(archived(f"ord-{place:03}", AT + place) for place in range(30)))
    page = find(shelves.stack(), ALL, limit=5)
    assert [len(many) for many in shelves.looked] == [6]
    assert (len(page.tasks), page.looked_at, page.whole) == (5, 5, False)
    assert find(shelves.stack(), ALL, limit=30).whole


def test_a_cursor_of_another_filter_or_stack_is_refused() -> None:
    shelves = Shelves()
    shelves.put(archived("a"), archived("b"))
    cursor = find(shelves.stack(), ALL, limit=1).cursor
    assert cursor is not None
    assert "another filter, order or stack" in refused(cursor, Selection(workflow="w"), shelves)
    elsewhere = replace(shelves.stack(), name="other")
    with pytest.raises(InvalidArgument, match="another filter, order or stack"):
        find(elsewhere, ALL, after=cursor)


@pytest.mark.parametrize(
    "strange", ["", "x", "é", "eyJh", "W10", "A" * 700, "WzEsIm0iLDEsMCwwLCJhL2IiXQ", "bnVsbA=="]
)
def test_what_is_no_cursor_is_refused(strange: str) -> None:
    assert "This is not a cursor" in refused(strange)


def test_a_cursor_that_was_changed_is_refused() -> None:
    shelves = Shelves()
    shelves.put(archived("a"), archived("b"))
    cursor = find(shelves.stack(), ALL, limit=1).cursor
    assert cursor is not None
    for changed in (cursor[:-1], cursor + "=", cursor + "A", f" {cursor}"):
        assert refused(changed, ALL, shelves)


def test_ages_are_judged_by_the_instant_of_the_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    shelves = Shelves()
    shelves.put(open_task("a", AT - 50_000), open_task("b", AT - 40_000))
    young = Selection(newer=60_000)
    first = find(shelves.stack(), young, limit=1)
    monkeypatch.setattr(listing, "now", lambda: AT + 3_600_000)
    assert ids(find(shelves.stack(), young, after=first.cursor)) == ["b"]
    assert ids(find(shelves.stack(), young)) == []


def test_lanes_of_what_is_over_are_not_read_from_before_the_youngest() -> None:
    shelves = Shelves()
    find(shelves.stack(1), Selection(newer=60_000))
    assert shelves.begun_at == [AT - 60_000, 0, AT - 60_000]


def test_an_ended_task_that_still_owes_a_status_is_found_in_the_open_lane() -> None:
    shelves = Shelves()
    owing = replace(open_task("owing"), state=TaskState.COMPLETED, due_at=AT + 30_000)
    later = replace(open_task("later"), due_at=AT + 3_600_000)
    shelves.put(owing, later)
    page = find(shelves.stack(), Selection(state=TaskState.COMPLETED))
    assert (ids(page), page.looked_at) == (["owing"], 1), "one that is due later owes nothing"


def test_a_page_goes_forward_or_back_from_a_cursor_not_both() -> None:
    with pytest.raises(InvalidArgument, match="not both"):
        find(Shelves().stack(), ALL, after="x", before="y")


def test_a_record_that_cannot_be_read_is_reported_and_hides_no_other() -> None:
    shelves = Shelves(unreadable={"a": "it is newer"})
    shelves.put(archived("a"), archived("b"))
    page = find(shelves.stack(), ALL)
    assert (ids(page), page.unreadable, page.looked_at) == (["b"], {"a": "it is newer"}, 2)


def test_a_task_in_two_lanes_of_a_lagging_index_is_listed_once() -> None:
    shelves = Shelves()
    shelves.put(archived("a"))
    moved = replace(shelves.tasks["a"], lane="open#0", due_at=AT)
    shelves.tasks["again"] = moved  # the entry that the index has not taken out yet
    assert ids(find(shelves.stack(), ALL)) == ["a"]


def test_a_group_is_found_by_its_index_in_pages_and_by_what_the_records_say_now() -> None:
    shelves = Shelves()
    shelves.put(*(archived(f"ord-{place}", AT + place // 3) for place in range(7)))
    group = shelves.tasks["ord-0"].failure
    other = replace(archived("other", AT), failure="f-00000000")
    shelves.put(other, open_task("open"))
    of_group = Selection(group=group)
    first = find(shelves.stack(), of_group, limit=4)
    assert ids(first) == ["ord-0", "ord-1", "ord-2", "ord-3"]
    # One has been resubmitted since: the index may lag, the record does not.
    shelves.tasks["stale"] = replace(shelves.tasks["ord-5"], task_id="ord-5")
    shelves.tasks["ord-5"] = replace(shelves.tasks["ord-5"], failure=None)
    rest = find(shelves.stack(), of_group, after=first.cursor)
    assert (ids(rest), rest.whole) == (["ord-4", "ord-6"], True)
    assert shelves.begun_at == []


WAITS = step_record(failure_count=1, not_before=AT, error=StepError("TransientError", "503"))
ITEM = step_record(process_state=ProcessState.PROCESSING, started_at=AT)
SKIPPED = step_record(process_state=ProcessState.SKIPPED, error=StepError("Full", "no room"))


@pytest.mark.parametrize(
    ("task", "selection", "fits"),
    [
        (archived("a"), Selection(state=TaskState.ARCHIVED), True),
        (archived("a"), Selection(state=TaskState.UNDONE), False),
        (archived("a"), Selection(step="charge"), True),
        (archived("a"), Selection(step="pick"), False),
        (archived("a"), Selection(error=DECLINED.type), True),
        (archived("a"), Selection(error="Timeout"), False),
        (archived("a"), Selection(step="pick", error=DECLINED.type), False),
        (replace(archived("a"), steps={}), Selection(step="charge", error="CardDeclined"), True),
        (archived("ord-1"), Selection(group=archived("ord-2").failure), True),
        (archived("a"), Selection(group="f-00000000"), False),
        (archived("a"), Selection(older=60_000), True),
        (archived("a"), Selection(older=60_001), False),
        (archived("a"), Selection(newer=60_000), False),
        (archived("a"), Selection(newer=60_001), True),
        (archived("a"), Selection(tags={"tenant": "shop-1"}), True),
        (archived("a"), Selection(tags={"tenant": "shop-1", "correlationId": "x"}), False),
        (archived("a"), Selection(tags={"priority": "normal"}), True),
        (open_task("a", steps={"charge": WAITS}), Selection(step="charge"), True),
        (open_task("a", steps={"charge": StepRecord()}), Selection(step="charge"), False),
        (open_task("a", steps={"pick[3]": ITEM}), Selection(step="pick"), True),
        (open_task("a", steps={"pick[3]": ITEM}), Selection(step="pick[3]"), True),
        (open_task("a", steps={"pick[3]": ITEM}), Selection(step="pick[2]"), False),
        (
            replace(open_task("a", steps={"pick[3]": SKIPPED}), fan_outs={"pick": 4}),
            Selection(left_out=True),
            True,
        ),
        (open_task("a", steps={"pick": SKIPPED}), Selection(left_out=True), False),
        (archived("a"), Selection(left_out=True), False),
        (
            replace(open_task("a"), ending=Termination(TaskState.ARCHIVED, "too late")),
            Selection(step="none"),
            True,
        ),
    ],
)
def test_what_a_filter_looks_at(task: Task, selection: Selection, fits: bool) -> None:
    assert matches(task, selection, AT) is fits


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"older": "2h", "newer": "1h"}, "No order is older than 2 h and newer than 1 h"),
        ({"older": "1h", "newer": "1h"}, "--newer must be the greater"),
        ({"older": "soon"}, "is not a duration"),
        ({"group": "f-1"}, "'f-1' is not a failure group id"),
        ({"group": "f-1A2B3C4D"}, "is not a failure group id"),
        ({"group": "f-1a2b3c4d", "state": TaskState.ACTIVE}, "No Active task is in"),
        ({"state": TaskState.SCHEDULED, "step": "charge"}, "A Scheduled task is at no step"),
        ({"workflow": " "}, "--workflow requires a name"),
        ({"error": "x" * 201}, "--error requires a name"),
        ({"state": "Lost"}, "There is no such state. It must be one of Scheduled, "),
        ({"priority": "low"}, "Unknown priority 'low'"),
    ],
)
def test_a_filter_that_can_fit_no_task_is_refused_with_a_sentence(
    typed: dict[str, str], message: str
) -> None:
    with pytest.raises((ConsoleError, InvalidArgument)) as error:
        read_selection(typed)
    assert exit_code(error.value) == USAGE
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["tenant"], "--tag 'tenant' requires a name and a value"),
        (["tenant="], "requires a name and a value"),
        (
            ["shop=1"],
            "Unknown tag 'shop'. The tags of an order are tenant, correlationId, priority",
        ),
        (["tenant=a", "tenant=b"], "An order has only one tenant"),
    ],
)
def test_a_tag_that_no_order_has_is_refused_with_a_sentence(typed: list[str], message: str) -> None:
    with pytest.raises(ConsoleError) as error:
        read_tags(typed)
    assert exit_code(error.value) == USAGE
    assert message in str(error.value)


def test_a_filter_is_printed_in_words_and_for_scripts() -> None:
    assert read_tags(["tenant=a", "tenant=a"]) == {"tenant": "a"}
    selection = read_selection(
        {"state": "archived", "step": "charge", "older": "2h", "tenant": "a", "error": None}
    )
    assert selection.words() == "Archived, at charge, older than 2 h, tenant a"
    assert ALL.words() == "all tasks"
    assert ALL.everything
    assert not selection.everything
    assert selection.document() == {
        "state": "Archived",
        "workflow": None,
        "step": "charge",
        "error": None,
        "agent": None,
        "olderThan": 7200,
        "newerThan": None,
        "group": None,
        "foundBy": None,
        "tags": {"tenant": "a"},
        "leftOut": False,
        "startsWith": None,
    }
    left_out = read_selection({"left_out": "yes"})
    assert not left_out.everything
    assert left_out.words() == "with items left out"
    assert left_out.document()["leftOut"] is True
