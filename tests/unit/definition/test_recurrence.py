"""When a recurring order runs, by AWS's rules: clocks that change, days of the month, rates."""

from itertools import islice

import pytest

from roundsman.definition.recurrence import Recurrence
from roundsman.errors import DefinitionError
from roundsman.model.instants import MINUTE, read_instant, second


def runs(expression: str, after: str, zone: str = "UTC", most: int = 3, since: str = "") -> str:
    began = read_instant(since) if since else 0
    found = Recurrence(expression, zone).runs(read_instant(after), since=began)
    return " ".join(second(at).removesuffix(":00Z") for at in islice(found, most))


def test_a_cron_expression_runs_by_the_clock_of_its_time_zone() -> None:
    assert (
        runs("cron(0 9 ? * MON *)", "2026-12-01T00:00:00Z", "Europe/Brussels")
        == "2026-12-07T08:00 2026-12-14T08:00 2026-12-21T08:00"
    )
    assert runs("cron(0 9 ? * MON *)", "2026-12-01T00:00:00Z", most=1) == "2026-12-07T09:00"


def test_a_time_that_does_not_exist_is_skipped_when_clocks_are_put_forward() -> None:
    assert (
        runs("cron(30 2 * * ? *)", "2027-03-26T12:00:00Z", "Europe/Brussels")
        == "2027-03-27T01:30 2027-03-29T00:30 2027-03-30T00:30"
    )


def test_a_time_that_comes_twice_runs_once_when_clocks_are_put_back() -> None:
    twice = "2026-10-25T00:30"
    found = runs("cron(30 2 * * ? *)", "2026-10-24T12:00:00Z", "Europe/Brussels")
    assert found == f"{twice} 2026-10-26T01:30 2026-10-27T01:30"
    after = runs("cron(30 2 * * ? *)", f"{twice}:00Z", "Europe/Brussels", most=1)
    assert after == "2026-10-26T01:30"


def test_a_day_of_a_rate_is_24_hours_whatever_the_clocks_do() -> None:
    assert (
        runs("rate(1 day)", "2027-03-27T12:00:00Z", "Europe/Brussels", since="2027-03-01T08:00:00Z")
        == "2027-03-28T08:00 2027-03-29T08:00 2027-03-30T08:00"
    )


def test_a_rate_counts_from_its_start_forwards_and_backwards() -> None:
    since = "2026-12-01T09:07:00Z"
    assert runs("rate(5 minutes)", since, since=since, most=1) == "2026-12-01T09:12"
    assert (
        runs("rate(5 minutes)", "2026-12-01T09:00:00Z", since=since, most=2)
        == "2026-12-01T09:02 2026-12-01T09:07"
    )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("cron(0 0 L * ? *)", "2026-12-31T00:00 2027-01-31T00:00 2027-02-28T00:00"),
        ("cron(0 0 15W * ? *)", "2026-12-15T00:00 2027-01-15T00:00 2027-02-15T00:00"),
        ("cron(0 0 1W 5,8 ? *)", "2027-05-03T00:00 2027-08-02T00:00 2028-05-01T00:00"),
        ("cron(0 0 28W 2 ? *)", "2027-02-26T00:00 2028-02-28T00:00 2029-02-28T00:00"),
        ("cron(0 0 31W 4,5 ? *)", "2027-05-31T00:00 2028-05-31T00:00 2029-05-31T00:00"),
        ("cron(0 0 ? * FRI#2 *)", "2026-12-11T00:00 2027-01-08T00:00 2027-02-12T00:00"),
        ("cron(0 0 ? * 5L *)", "2026-12-31T00:00 2027-01-28T00:00 2027-02-25T00:00"),
        ("cron(0 0 ? * SAT-SUN *)", "2026-12-05T00:00 2026-12-06T00:00 2026-12-12T00:00"),
        ("cron(0/30 8-9 1 1 ? 2028)", "2028-01-01T08:00 2028-01-01T08:30 2028-01-01T09:00"),
        ("cron(0 0 29 2 ? *)", "2028-02-29T00:00 2032-02-29T00:00 2036-02-29T00:00"),
        ("at(2026-12-24T18:00:00)", "2026-12-24T18:00"),
        ("at(2026-11-24T18:00:00)", ""),
        ("cron(0 0 1 1 ? 2027)", "2027-01-01T00:00"),
    ],
)
def test_each_form_of_an_expression_gives_its_runs(expression: str, expected: str) -> None:
    assert runs(expression, "2026-12-01T00:00:00Z") == expected


def test_a_weekday_near_a_sunday_at_the_end_of_a_month_stays_in_it() -> None:
    assert runs("cron(0 0 31W 10 ? *)", "2027-10-01T00:00:00Z", most=1) == "2027-10-29T00:00"


@pytest.mark.parametrize(
    ("expression", "zone", "sentence"),
    [
        ("every day", "UTC", r"'every day': write it as rate\(1 day\)"),
        ("rate(1 days)", "UTC", "write day after 1"),
        ("cron(0 9 * * * *)", "UTC", "exactly one of day-of-month and day-of-week"),
        ("at(soon)", "UTC", "write it as at"),
        ("rate(1 day)", "Europe/Brussel", "'Europe/Brussel' is not known"),
        ("rate(1 day)", "../etc", "is not known"),
    ],
)
def test_what_aws_does_not_take_is_refused(expression: str, zone: str, sentence: str) -> None:
    with pytest.raises(DefinitionError, match=sentence):
        Recurrence(expression, zone)


def test_runs_are_later_than_the_instant_asked_for() -> None:
    at = read_instant("2026-12-01T09:00:00Z")
    minute = Recurrence("cron(* * * * ? *)")
    assert next(minute.runs(at)) == at + MINUTE
    assert next(minute.runs(at - 1)) == at
