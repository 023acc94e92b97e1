"""What is known of orders over time, and the sentences about it."""

import pytest

from roundsman.model.instants import DAY, MINUTE
from roundsman_console.facts.course.course import (
    SETTLES,
    SPANS,
    Counts,
    OrdersOverTime,
    Series,
    counted_instants,
    group_sentence,
    measured_minutes,
    minute_counts,
    settled_at,
    stack_sentence,
    together,
    window,
)

AT = 1_800_000_000_000 + 20_000
START = 1_800_000_000_000
"""The minute of AT."""
LENGTH = 20
SINCE, UNTIL = window(AT, LENGTH * MINUTE)


def series(name: str, counts: Counts | None = None, missing: str | None = None) -> Series:
    found = (None,) * LENGTH if counts is None else counts
    return Series(name=name, label=name, source="metric X", missing=missing, counts=found)


def course(*found: Series) -> OrdersOverTime:
    return OrdersOverTime(
        since=SINCE, until=UNTIL, settled=settled_at(AT), sentence="", series=found, marks=()
    )


def numbers(**at: int) -> Counts:
    """Zeros, but for these minutes (`m3=5`), and nothing of the minutes that are not settled."""
    last = (settled_at(AT) - SINCE) // MINUTE
    found: list[int | None] = [0] * last + [None] * (LENGTH - last)
    for name, count in at.items():
        found[int(name[1:])] = count
    return tuple(found)


def minute(place: int) -> str:
    return f"2027-01-15T07:{41 + place:02}:00Z" if place < 19 else "2027-01-15T08:00:00Z"


def test_the_window_ends_with_the_present_minute() -> None:
    assert window(AT, SPANS["1h"]) == (START - 59 * MINUTE, START + MINUTE)
    assert window(START, MINUTE) == (START, START + MINUTE)


def test_a_minute_without_a_value_is_0_only_if_it_was_measured_and_is_settled() -> None:
    settled = settled_at(AT)
    assert AT - settled >= SETTLES
    measured = frozenset(range(SINCE, UNTIL, MINUTE)) - {SINCE + 2 * MINUTE}
    found = minute_counts({SINCE: 4.0, UNTIL - MINUTE: 1.0}, measured, SINCE, UNTIL, settled)
    assert found[:4] == (4, 0, None, 0), "not 0 where CloudWatch had nothing of the stack"
    assert found[-5:] == (0, None, None, None, 1), "not 0 where a value may still come"


def test_a_minute_is_measured_by_any_value_and_between_starts_of_the_supervisor() -> None:
    def measured(starts: list[int], interval: int) -> list[int]:
        found = measured_minutes([[7 * MINUTE], []], [one * MINUTE for one in starts], interval)
        return sorted(one // MINUTE for one in found)

    assert measured([], MINUTE) == [7]
    assert measured([1, 2, 4, 5], MINUTE) == [1, 2, 4, 5, 7], "no start in the third minute"
    assert measured([0, 5], 5 * MINUTE) == [0, 1, 2, 3, 4, 5, 7]
    assert measured([0, 10], 5 * MINUTE) == [0, 7, 10], "one start is missing between"
    assert measured([1, 2], 5_000) == [1, 2, 7], "it is started once a minute at most"


def test_failures_are_counted_by_the_minute_and_not_known_after_the_last_that_was_read() -> None:
    instants = [SINCE - 1, SINCE, SINCE + 59_999, SINCE + 3 * MINUTE, UNTIL]
    assert counted_instants(instants, SINCE, UNTIL)[:5] == (2, 0, 0, 1, 0)
    assert sum(one or 0 for one in counted_instants(instants, SINCE, UNTIL)) == 3
    cut = counted_instants(instants[:-1], SINCE, UNTIL, whole=False)
    assert cut[:4] == (2, 0, 0, None)
    assert {*cut[3:]} == {None}
    assert {*counted_instants([], SINCE, UNTIL)} == {0}
    assert {*counted_instants([SINCE - MINUTE], SINCE, UNTIL, whole=False)} == {None}


def test_a_sum_with_an_unknown_part_is_not_known() -> None:
    assert together((1, None, 0), (2, 1, 0)) == (3, None, 0)


def test_the_sentence_of_the_stack_says_how_many_and_since_when() -> None:
    found = course(
        series("accepted", numbers(m1=1_200)),
        series("completed", numbers(m4=5, m8=7, m9=1)),
        series("failed", numbers(m3=2, m8=1)),
    )
    assert stack_sentence(found, AT) == (
        "Orders of the last 20 min: 1,200 accepted, 13 completed, 3 failed. "
        f"The first failed at {minute(3)}; the last one failed at {minute(8)}, 11 min ago. "
        "Since then 1 order completed."
    )
    quiet = course(*(series(name, numbers()) for name in ("accepted", "completed", "failed")))
    assert stack_sentence(quiet, AT) == (
        "Orders of the last 20 min: 0 accepted, 0 completed, 0 failed."
    )


def test_what_is_not_known_is_said_and_is_no_0() -> None:
    lean = "not measured in lean"
    failed = numbers(m3=2)
    found = course(
        series("accepted", missing=lean),
        series("completed", missing=lean),
        series("failed", failed),
    )
    assert stack_sentence(found, AT) == (
        f"Orders of the last 20 min: how many accepted is not known ({lean}), how many completed "
        f"is not known ({lean}), 2 failed. The first failed at {minute(3)}."
    )
    nothing = course(series("accepted"), series("completed"), series("failed"))
    assert stack_sentence(nothing, AT) == (
        "How many orders were accepted and ended in the last 20 min is not known."
    )
    holes = tuple(None if place in (5, 6) else one for place, one in enumerate(failed))
    some = course(series("accepted", holes), series("completed", failed), series("failed", failed))
    assert stack_sentence(some, AT).endswith(" Of 2 minutes not everything is known.")


@pytest.mark.parametrize(
    ("succeeded", "said"),
    [
        (numbers(m9=3), " Since then 3 attempts of charge succeeded."),
        (numbers(m8=3), " Since then no attempt of charge succeeded."),
        (numbers(m9=3)[:12] + (None,) * 8, " Of 4 minutes not everything is known."),
    ],
)
def test_the_sentence_of_a_group_says_since_when_and_whether_it_is_over(
    succeeded: Counts, said: str
) -> None:
    found = course(series("stepSucceeded", succeeded))
    first, last = SINCE + 3 * MINUTE + 9_000, SINCE + 8 * MINUTE + 11_000
    assert group_sentence(found, "charge", first, last, AT) == (
        f"Orders failed with this reason from 07:44:09 to 07:49:11 UTC.{said}"
    )


def test_a_group_failed_from_one_instant_to_another_and_each_has_its_date_on_another_day() -> None:
    found = course(series("accepted", numbers()))
    first, last = AT - 30 * MINUTE, AT - 15 * MINUTE
    assert group_sentence(found, None, first, last, AT) == (
        "Orders failed with this reason from 07:30:20 to 07:45:20 UTC."
    )
    assert group_sentence(found, None, first, last, AT, since_is_known=False) == (
        "Orders failed with this reason from 07:30:20 or earlier to 07:45:20 UTC."
    )
    assert group_sentence(found, None, AT - DAY, AT, AT) == (
        "Orders failed with this reason from 2027-01-14 08:00:20 to 08:00:20 UTC."
    )
    assert group_sentence(found, None, AT, AT, AT) == (
        "Orders failed with this reason at 08:00:20 UTC."
    )
    assert group_sentence(found, None, None, None, AT) == "No order is in the group now."


def test_nothing_is_said_of_successes_before_the_course_began() -> None:
    found = course(series("stepSucceeded", numbers(m1=4)))
    assert found.counted_since("stepSucceeded", SINCE - 1) is None
    assert found.counted_since("stepSucceeded", None) is None
    assert found.counted_since("stepSucceeded", SINCE) == 4
