"""Lists of 50,000 orders: how far a page reads, in which order, and what it says of the rest."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace

import pytest

from roundsman.engine.due import Lane, lane_key, shard_of
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.facts.orders import listing
from roundsman_console.facts.orders.counts import Count
from roundsman_console.facts.orders.listing import Page, count_matching, find, find_by_submission
from roundsman_console.facts.orders.selection import Selection
from tests.console.many_orders import ManyOrders
from tests.console.shelves import archived, open_task
from tests.console.step_samples import AT

MANY = 50_000
ARCHIVED, OPEN = 1_005, 3_000
COMPLETED = MANY - ARCHIVED - OPEN
RARE = 40_000
"""The place of one order of another workflow."""


@pytest.fixture(autouse=True)
def at_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "now", lambda: AT)


@pytest.fixture(scope="module")
def kept() -> dict[str, Task]:
    failed, born = archived("a"), open_task("a")
    done = replace(failed, state=TaskState.COMPLETED, ending=None, failure=None, steps={})
    tasks = {}
    for place in range(MANY):
        task_id = f"ord-{place:05}"
        shard = shard_of(task_id, 16)
        if place < ARCHIVED:
            base, lane, at = failed, Lane.ARCHIVED, AT - place * 1_000
        elif place < ARCHIVED + OPEN:
            base, lane, at = born, Lane.OPEN, AT + place
        else:
            base, lane, at = done, Lane.DONE, AT - place * 10
        tasks[task_id] = replace(
            base,
            task_id=task_id,
            workflow="rare" if place == RARE else "story",
            shard=shard,
            lane=lane_key(lane, shard),
            due_at=at,
            created_at=AT - 60_000 - (place * 7_919) % MANY,
            ended_at=None if lane is Lane.OPEN else at,
        )
    return tasks


@pytest.fixture
def many(kept: dict[str, Task]) -> ManyOrders:
    return ManyOrders(kept)


def a_second_of(looks: int) -> Callable[[], float]:
    """A clock by which a second is over after so many looks at it."""
    seen = [0]

    def clock() -> float:
        seen[0] += 1
        return seen[0] / looks

    return clock


def ids(page: Page) -> list[str]:
    return [task.task_id for task in page.tasks]


@pytest.mark.exhaustive
def test_the_one_order_of_a_workflow_is_found_among_50_000_in_one_page(many: ManyOrders) -> None:
    page = find(many.stack(), Selection(workflow="rare"))
    assert (ids(page), page.whole, page.looked_at) == ([f"ord-{RARE}"], True, MANY)
    assert many.requests == {"Query": 112, "BatchGetItem": 1}, "no other record is read"


@pytest.mark.exhaustive
def test_a_page_that_is_not_full_ends_after_its_time_and_the_next_goes_on(
    many: ManyOrders,
) -> None:
    rare, looked = Selection(workflow="rare"), 0
    found: list[str] = []
    page = find(many.stack(), rare, within=1, clock=a_second_of(4))
    assert not page.whole
    assert 0 < page.looked_at < MANY
    pages = 1
    while True:
        assert page.looked_before == looked
        looked, found = looked + page.looked_at, found + ids(page)
        if page.cursor is None:
            break
        page = find(many.stack(), rare, after=page.cursor, within=1, clock=a_second_of(4))
        pages += 1
    assert found == [f"ord-{RARE}"]
    assert pages > 2
    assert MANY / 2 < looked <= MANY, "what a page read too early is read, and counted, by the next"


@pytest.mark.exhaustive
@pytest.mark.parametrize("newest_first", [False, True])
def test_a_page_without_any_time_still_goes_on_also_among_entries_of_one_instant(
    newest_first: bool,
) -> None:
    tasks = [
        replace(archived(f"ord-{place:04}"), shard=place % 2, lane=f"archived#{place % 2}")
        for place in range(600)
    ]
    tasks[300] = replace(tasks[300], workflow="rare")
    stack, found, cursor = ManyOrders.of(tasks).stack(2), list[str](), None
    for selection in (Selection(workflow="rare"), Selection(error="None"), Selection()):
        found, cursor = [], None
        for _ in range(1_000):
            page = find(stack, selection, after=cursor, within=0, newest_first=newest_first)
            found += ids(page)
            assert page.whole or page.cursor != cursor, "each page goes on from the one before"
            cursor = page.cursor
            if page.whole:
                break
        assert page.whole
        wanted = {"rare": 1, None: 600}[selection.workflow] if selection.error is None else 0
        assert len(found) == len({*found}) == wanted


@pytest.mark.exhaustive
def test_a_filter_that_only_records_decide_reads_on_until_its_time_is_over(
    many: ManyOrders,
) -> None:
    page = find(many.stack(), Selection(error="Timeout"), within=1, clock=a_second_of(20))
    assert (ids(page), page.whole) == ([], False)
    assert 300 < page.looked_at < MANY
    page = find(many.stack(), Selection(error="CardDeclined"), within=1, clock=a_second_of(20))
    assert len(page.tasks) == 50


@pytest.mark.exhaustive
def test_completed_orders_are_listed_without_a_look_at_those_that_are_not_due(
    many: ManyOrders, kept: dict[str, Task]
) -> None:
    page = find(many.stack(), Selection(state=TaskState.COMPLETED), newest_first=True)
    newest = f"ord-{ARCHIVED + OPEN:05}"
    assert (ids(page)[0], len(page.tasks)) == (newest, 50)
    assert many.requests == {"Query": 16, "BatchGetItem": 1}
    assert many.scanned <= 16 * listing.FIRST_PAGE_FILTERED
    oldest = find(many.stack(), Selection(state=TaskState.COMPLETED))
    assert ids(oldest)[0] == f"ord-{MANY - 1}"


@pytest.mark.exhaustive
def test_pages_lead_on_and_back_to_the_same_orders_in_both_orders(many: ManyOrders) -> None:
    for newest_first in (False, True):
        for selection in (Selection(), Selection(state=TaskState.ARCHIVED)):
            stack = many.stack()
            pages = [find(stack, selection, newest_first=newest_first)]
            assert (pages[0].before, pages[0].start) == (None, 0)
            for _ in range(3):
                page = find(stack, selection, after=pages[-1].cursor, newest_first=newest_first)
                pages.append(page)
            assert [page.start for page in pages] == [0, 50, 100, 150]
            back = pages[-1]
            for wanted in reversed(pages[:-1]):
                assert back.before is not None
                back = find(stack, selection, before=back.before, newest_first=newest_first)
                assert (ids(back), back.start) == (ids(wanted), wanted.start)
                again = find(stack, selection, after=back.cursor, newest_first=newest_first)
                assert again.start == wanted.start + 50
            assert back.before is None


@pytest.mark.exhaustive
def test_a_page_back_over_the_edge_of_two_lanes_is_that_which_led_there(many: ManyOrders) -> None:
    stack, page = many.stack(), find(many.stack(), Selection(), limit=1_000)
    across = find(stack, Selection(), after=page.cursor, limit=1_000)
    states = {task.state for task in across.tasks}
    assert states == {TaskState.ARCHIVED, open_task("a").state}
    third = find(stack, Selection(), after=across.cursor, limit=1_000)
    assert third.before is not None
    assert ids(find(stack, Selection(), before=third.before, limit=1_000)) == ids(across)


@pytest.mark.exhaustive
def test_open_orders_come_soonest_due_first_in_either_order_of_the_others(many: ManyOrders) -> None:
    soonest = f"ord-{ARCHIVED:05}"
    for newest_first in (False, True):
        page = find(many.stack(), Selection(state=open_task("a").state), newest_first=newest_first)
        assert ids(page)[0] == soonest


@pytest.mark.exhaustive
def test_orders_are_sorted_by_submission_within_what_was_read(
    many: ManyOrders, kept: dict[str, Task]
) -> None:
    page = find_by_submission(many.stack(), Selection(), newest_first=True, within=None)
    assert (page.found, page.looked_at, page.whole) == (MANY, MANY, True)
    wanted = sorted(kept.values(), key=lambda task: (task.created_at, task.task_id), reverse=True)
    assert [task.task_id for task in page.tasks] == [task.task_id for task in wanted[:50]]
    second = find_by_submission(
        many.stack(), Selection(), newest_first=True, within=None, skip=50, limit=10
    )
    assert [task.task_id for task in second.tasks] == [task.task_id for task in wanted[50:60]]
    partly = find_by_submission(many.stack(), Selection(), within=1, clock=a_second_of(10))
    assert not partly.whole
    assert 500 < partly.found == partly.looked_at < 20_000


@pytest.mark.exhaustive
def test_a_count_is_right_or_a_bound_or_not_given(many: ManyOrders) -> None:
    stack = many.stack()
    assert count_matching(stack, Selection()) == Count(MANY)
    assert count_matching(stack, Selection(state=TaskState.ARCHIVED)) == Count(ARCHIVED)
    assert count_matching(stack, Selection(state=TaskState.COMPLETED)) == Count(COMPLETED)
    assert count_matching(stack, Selection(state=TaskState.UNDONE)) == Count(0)
    assert count_matching(stack, Selection(workflow="rare")) == Count(1)
    assert count_matching(stack, Selection(), most=100) == Count(100, more=True)
    assert count_matching(stack, Selection(error="CardDeclined")) is None
    assert many.requests["BatchGetItem"] == 0


def test_the_calls_for_a_page_are_made_in_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
    page: ContextVar[str] = ContextVar("page", default="another")
    seen = []
    query = ManyOrders.query

    def noted(many: ManyOrders, **asked: object) -> dict[str, object]:
        seen.append(page.get())
        return query(many, **asked)

    monkeypatch.setattr(ManyOrders, "query", noted)
    page.set("this")
    find(ManyOrders.of([archived("a")]).stack(), Selection(state=TaskState.ARCHIVED))
    assert {*seen} == {"this"}, "a limit of time of the page holds for each of its calls"
