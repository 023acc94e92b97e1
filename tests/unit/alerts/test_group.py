"""Failure groups: which alert is due, decided from a census and the clock alone."""

from dataclasses import replace

import pytest

from roundsman.alerts.group import (
    ANY_GROWTH_AFTER,
    CLEAR_FOR,
    LONGEST_BETWEEN_LOOKS,
    LONGEST_MESSAGE,
    MIN_COUNT_INTERVAL,
    MIN_UPDATE_INTERVAL,
    SENDING_LEASE,
    UNDONE_WITHIN,
    AlertKind,
    Census,
    alerted,
    census_of,
    counted_since,
    evaluate,
    is_due,
    opened,
    rejoined,
)
from roundsman.model.failure import Failure, Group
from roundsman.model.instants import MINUTE
from roundsman.ports import Member
from tests.support.machine_world import T0

MANY = 20


def failed(how: str = "archived") -> Failure:
    return Failure("order_fulfilment", "charge_card", how, "CardDeclined", "declined")


def new(how: str = "archived") -> Group:
    return opened(failed(how), agent="payment", task_id="ord-1", since=T0, now=T0)


def alerted_group(how: str = "archived", count: int = 1) -> Group:
    return alerted(replace(new(how), count=count), count, T0)


def of(count: int, *, more: bool = False) -> Census:
    return Census(count=count, more=more, first_at=T0, last_at=T0 + count, samples=("ord-1",))


def news(group: Group, count: int, at: int, *, undone_count: int = MANY) -> AlertKind | None:
    return evaluate(group, of(count) if count else Census(), at, undone_count=undone_count).news


# ---- the first alert ---------------------------------------------------------------------


def test_whoever_opens_a_group_alerts_of_it_and_others_leave_it_to_them_for_a_while() -> None:
    assert not is_due(new(), T0 + SENDING_LEASE - 1)
    assert is_due(new(), T0 + SENDING_LEASE), "it has died, it seems"


@pytest.mark.parametrize("count", [0, 1, 200])
def test_a_group_without_an_alert_gets_one_whatever_became_of_its_members(count: int) -> None:
    verdict = evaluate(new(), of(count), T0 + SENDING_LEASE, undone_count=MANY)
    assert verdict.news is AlertKind.FIRST
    assert verdict.group.alerting_until == T0 + 2 * SENDING_LEASE
    assert verdict.group.alerted_at is None, "not before the alert was sent"


def test_a_group_of_one_text_however_long_is_small() -> None:
    long = opened(
        replace(failed(), message="m" * 5_000), agent="", task_id="ord-1", since=T0, now=T0
    )
    assert len(long.message) == LONGEST_MESSAGE


# ---- updates -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("knew", "count", "after", "expected"),
    [
        (1, 3, MIN_COUNT_INTERVAL, None),
        (1, 4, MIN_COUNT_INTERVAL - 1, None),
        (1, 4, MIN_COUNT_INTERVAL, AlertKind.UPDATE),
        (10, 39, MIN_UPDATE_INTERVAL, None),
        (10, 40, MIN_UPDATE_INTERVAL - 1, None),
        (10, 40, MIN_UPDATE_INTERVAL, AlertKind.UPDATE),
        (10, 11, ANY_GROWTH_AFTER - 1, None),
        (10, 11, ANY_GROWTH_AFTER, AlertKind.UPDATE),
        (10, 10, 10 * ANY_GROWTH_AFTER, None),
        (10, 3, 10 * ANY_GROWTH_AFTER, None),
    ],
)
def test_an_update_is_sent_after_fourfold_growth_or_after_hours_of_any(
    knew: int, count: int, after: int, expected: AlertKind | None
) -> None:
    assert news(alerted_group(count=knew), count, T0 + after) is expected


def test_a_hundred_thousand_failures_in_a_row_make_ten_alerts() -> None:
    group, at, alerts = alerted_group(), T0, 1
    for count in range(1, 100_001, 50):
        at += MINUTE
        verdict = evaluate(group, of(count), at, undone_count=MANY)
        group = verdict.group
        if verdict.news is not None:
            alerts += 1
            group = alerted(group, count, at)
    assert alerts == 1 + 9


def test_growth_counts_from_how_few_there_were_in_between() -> None:
    fewer = evaluate(
        alerted_group(count=200), of(3), T0 + MIN_UPDATE_INTERVAL, undone_count=MANY
    ).group
    assert fewer.alerted_count == 3
    assert news(fewer, 12, T0 + MIN_UPDATE_INTERVAL) is AlertKind.UPDATE


# ---- the all-clear -----------------------------------------------------------------------


def test_the_all_clear_comes_once_no_member_was_there_for_some_minutes() -> None:
    calm = evaluate(alerted_group(), Census(), T0 + MINUTE, undone_count=MANY)
    assert (calm.news, calm.group.clear_since) == (None, T0 + MINUTE)
    waits = evaluate(calm.group, Census(), T0 + MINUTE + CLEAR_FOR - 1, undone_count=MANY)
    assert (waits.news, waits.group.closed_at) == (None, None)
    assert waits.group.look_at == T0 + MINUTE + CLEAR_FOR
    closed = evaluate(waits.group, Census(), T0 + MINUTE + CLEAR_FOR, undone_count=MANY)
    assert (closed.news, closed.group.closed_at) == (AlertKind.CLEAR, T0 + MINUTE + CLEAR_FOR)
    assert is_due(closed.group, closed.group.alerting_until), "until the alert is sent"


def test_a_canary_that_fails_takes_the_calm_back_and_is_no_news() -> None:
    calm = evaluate(alerted_group(count=3), Census(), T0 + MINUTE, undone_count=MANY).group
    back = evaluate(calm, of(1), T0 + 2 * MINUTE, undone_count=MANY)
    assert (back.news, back.group.clear_since) == (None, None)


def test_one_more_failure_takes_the_calm_back_before_the_group_can_be_closed() -> None:
    assert rejoined(alerted_group(), T0) is None, "nothing is written for it"
    calm = evaluate(alerted_group(), Census(), T0 + MINUTE, undone_count=MANY).group
    back = rejoined(calm, T0 + 2 * MINUTE)
    assert back is not None
    assert (back.clear_since, back.version) == (None, calm.version + 1)


# ---- undone orders -----------------------------------------------------------------------


def test_undone_orders_are_news_once_there_are_many_at_once() -> None:
    group = new("undone")
    assert not is_due(group, T0 + MIN_COUNT_INTERVAL - 1)
    assert news(group, MANY - 1, T0 + MIN_COUNT_INTERVAL) is None
    assert news(group, MANY, T0 + MIN_COUNT_INTERVAL) is AlertKind.FIRST
    assert news(group, 1, T0 + MIN_COUNT_INTERVAL, undone_count=1) is AlertKind.FIRST
    assert group.severity == "warning"


def test_undone_orders_are_never_news_where_the_stack_says_so() -> None:
    assert news(new("undone"), 10_000, T0 + MIN_COUNT_INTERVAL, undone_count=0) is None


def test_of_undone_orders_the_latest_count() -> None:
    assert counted_since(new("undone"), T0) == T0 - UNDONE_WITHIN
    assert counted_since(new(), T0) == 0


def test_undone_orders_calm_down_at_half_the_number_that_alerts() -> None:
    group = alerted_group("undone", MANY)
    assert evaluate(group, of(MANY // 2), T0 + MINUTE, undone_count=MANY).group.clear_since is None
    calm = evaluate(group, of(MANY // 2 - 1), T0 + MINUTE, undone_count=MANY).group
    assert calm.clear_since == T0 + MINUTE
    assert news(calm, MANY // 2 - 1, T0 + MINUTE + CLEAR_FOR) is AlertKind.CLEAR


def test_a_group_that_nobody_heard_of_ends_without_a_word() -> None:
    quiet = evaluate(new("undone"), Census(), T0 + MIN_COUNT_INTERVAL, undone_count=MANY).group
    verdict = evaluate(quiet, Census(), T0 + MIN_COUNT_INTERVAL + CLEAR_FOR, undone_count=MANY)
    assert verdict.news is None
    assert verdict.group.closed_at is not None


# ---- how often to look -------------------------------------------------------------------


def test_a_group_is_looked_at_the_less_often_the_longer_nothing_changes() -> None:
    group, at, looks = alerted_group(), T0, list[int]()
    for _ in range(7):
        at = group.look_at
        looks.append((at - group.looked_at) // MINUTE if group.looked_at else 0)
        group = evaluate(group, of(1), at, undone_count=MANY).group
    assert looks == [0, 0, 1, 3, 6, 10, 10]
    assert evaluate(group, of(2), at, undone_count=MANY).group.look_at == at + MIN_COUNT_INTERVAL, (
        "it changed"
    )
    assert group.look_at - at == LONGEST_BETWEEN_LOOKS


def test_severity_says_how_bad_it_is() -> None:
    kinds = ("archived", "undo_failed", "unreadable", "undone")
    assert [new(how).severity for how in kinds] == ["error", "critical", "critical", "warning"]


# ---- the census --------------------------------------------------------------------------


def test_a_census_names_the_oldest_the_newest_and_one_between() -> None:
    found = [Member(f"ord-{n}", T0 + n, T0 + 100 - n) for n in range(9)]
    census = census_of(reversed(found), more=True)
    assert census.samples == ("ord-0", "ord-4", "ord-8")
    assert (census.first_at, census.last_at, census.complete_by) == (T0, T0 + 8, T0 + 92)
    assert (census.count, census.count_text) == (9, "more than 9")


def test_a_census_of_few_names_each_once() -> None:
    one = Member("ord-1", T0, 0)
    assert census_of([one]).samples == ("ord-1",)
    assert census_of([one]).complete_by is None
    assert census_of([]) == Census()
    assert census_of([one]).count_text == "1"
