"""Since when a step is worse, over tables of hours; and that unknown is never 0."""

import pytest

from roundsman.model.instants import DAY, MINUTE
from roundsman_console.aws.metrics import HOUR, StepSeries, StepTimes
from roundsman_console.aws.versions import Published
from roundsman_console.facts.workflow.health import (
    MOST_NAMED,
    MOST_SLICES,
    PERIODS,
    Health,
    StepHealth,
    health_of,
    usual_words,
    window_of,
    with_versions,
    worst_stretch,
)

AT = 1_800_000_000_000 + 20 * MINUTE
"""2027-01-15T08:20:00Z."""
WINDOW = window_of("24h", AT)
PAY = ("purchase", "pay")
EVERY_PART = frozenset([*WINDOW.earlier, *WINDOW.parts])


def hours(*text: str) -> tuple[dict[int, float], dict[int, float]]:
    """The attempts that succeeded and failed: `100`, `90-10` with failures, `.` for none.

    Of the earlier time there are 100 attempts an hour, of which one fails in each fifth; the texts
    are the last hours of the period, and the hours before them are as the earlier ones.
    """
    parts = [*WINDOW.earlier, *WINDOW.parts]
    succeeded = dict.fromkeys(parts, 100.0)
    failed = {part: float(place % 5 == 0) for place, part in enumerate(parts)}
    for part, one in zip(parts[-len(text) :], text, strict=True) if text else ():
        good, _, bad = one.partition("-")
        succeeded[part], failed[part] = float(good.strip(".") or 0), float(bad or 0)
    return succeeded, failed


def health(series: StepSeries, measured: frozenset[int] = EVERY_PART) -> Health:
    return health_of({PAY: (("payment",), 30_000)}, {}, {PAY: series}, measured, WINDOW)


def step(*text: str) -> StepHealth:
    (found,) = health(StepSeries(*hours(*text))).steps
    return found


def told(*text: str) -> str:
    found = step(*text).worse
    return found.words if found else ""


STRETCHES = [
    ("", None),
    ("...", None),
    ("?", None),
    ("x", (0, 0)),
    ("..xx", (2, 3)),
    ("..xxx..", (2, 4)),
    ("x.........xxxx", (10, 13)),
    ("..xx.xx", (2, 6)),
    ("..x??x", (2, 5)),
    ("?x", (1, 1)),
    ("xx......x", (0, 1)),
    ("x...x", (4, 4)),
    ("xxxx....x", (0, 3)),
]


@pytest.mark.parametrize(("text", "stretch"), STRETCHES)
def test_the_worst_stretch_has_most_bad_hours_beyond_the_others(
    text: str, stretch: tuple[int, int] | None
) -> None:
    bad = [{"x": True, ".": False, "?": None}[one] for one in text]
    assert worst_stretch(bad) == stretch


def test_a_step_that_fails_as_usual_is_not_worse() -> None:
    found = step()
    assert found.worse is None
    assert (found.attempts, found.failed) == (2_404, 4)
    assert found.usual_share == 0.0
    assert health(StepSeries(*hours())).sentence == "No step does worse than usual."


WORSE = [
    (["90-10", "85-15"], "12.5 %", "since 2027-01-15T07:00:00Z", False),
    (["90-10", "100", "85-15"], "", "since 2027-01-15T06:00:00Z", False),
    (["90-10", ".", "85-15"], "", "since 2027-01-15T06:00:00Z", False),
    (["90-10", "85-15", "100"], "", "since 2027-01-15T06:00:00Z", False),
    (["85-15", "100", "100", "100"], "15.0 %", "from 2027-01-15T05:00:00Z to 2027-01-15T06", True),
    (["99-1", "100", "100", "100", "100", "100", "80-20"], "20.0 %", "since 2027-01-15T08", False),
    (["0-5"], "100.0 %", "since 2027-01-15T08:00:00Z", False),
]


@pytest.mark.parametrize(("text", "share", "when", "is_over"), WORSE)
def test_a_step_is_worse_since_the_first_bad_hour_of_the_stretch_that_lasts(
    text: list[str], share: str, when: str, is_over: bool
) -> None:
    found = step(*text).worse
    assert found is not None
    assert found.failures
    assert share in found.words
    assert f"of the attempts {'failed' if is_over else 'have failed'} {when}" in found.words
    assert "usually 0.0 %" in found.words
    assert (found.until is not None) is is_over


@pytest.mark.parametrize(("failed", "is_told"), [(9, False), (10, True)])
def test_what_is_over_is_told_if_twice_as_many_failed(failed: int, is_told: bool) -> None:
    assert bool(told(f"90-{failed}", "100", "100", "100")) is is_told
    assert told(f"90-{failed}", "100", "100"), "it goes on"


@pytest.mark.parametrize(
    "text",
    [["96-4"], ["0-4"], ["99-1"], ["."], ["991-9"], ["99-1", "99-1", "99-1", "99-1"]],
    ids=["too few", "too few of few", "one", "none", "below the least share", "a little"],
)
def test_few_failures_and_small_shares_are_not_worse(text: list[str]) -> None:
    assert told(*text) == ""


def test_what_is_usual_is_the_median_of_the_hours_and_more_than_twice_of_it_is_worse() -> None:
    succeeded, failed = hours("90-10", "81-19")
    earlier = dict.fromkeys(WINDOW.earlier, 10.0)
    series = StepSeries({**succeeded, **dict.fromkeys(earlier, 90.0)}, {**failed, **earlier})
    assert health(series).steps[0].worse is None
    (found,) = health(StepSeries(series.succeeded, {**series.failed, WINDOW.parts[-1]: 40.0})).steps
    assert found.worse is not None
    assert found.usual_share == 0.1
    assert "since 2027-01-15T08:00:00Z: 40 of 121; usually 10.0 %" in found.worse.words


def test_one_bad_day_of_the_week_before_does_not_change_what_is_usual() -> None:
    succeeded, failed = hours("90-10", "90-10")
    failed |= dict.fromkeys([*WINDOW.earlier][:24], 50.0)
    (found,) = health(StepSeries(succeeded, failed)).steps
    assert found.usual_share == 0.0
    assert found.worse is not None


@pytest.mark.parametrize("days", [2, 6])
def test_a_step_that_got_worse_before_the_period_is_worse_since_then(days: int) -> None:
    succeeded, failed = hours()
    since = WINDOW.until - days * DAY - 5 * HOUR
    failed |= dict.fromkeys(range(since, WINDOW.until, HOUR), 20.0)
    found = health(StepSeries(succeeded, failed)).steps[0]
    assert found.worse is not None
    assert found.worse.since == since
    assert found.failed == 24 * 20, "the numbers of the table are those of the period"
    told = with_versions(
        health(StepSeries(succeeded, failed)), {"payment": [Published("Payment", 41, since + 1)]}
    )
    assert "Version 41 of payment was published" in told.sentence


@pytest.mark.parametrize("before", [["98-1"], ["98-1", "100"], ["98-1", "100", "98-1", "100"]])
def test_a_failure_by_chance_some_hours_before_is_no_begin(before: list[str]) -> None:
    found = step(*before, "100", "85-15", "85-15", "85-15").worse
    assert found is not None
    assert found.since == WINDOW.parts[-3]


def test_what_was_worse_only_before_the_period_is_not_told() -> None:
    succeeded, failed = hours()
    failed |= dict.fromkeys([*WINDOW.earlier][-40:-10], 50.0)
    assert health(StepSeries(succeeded, failed)).steps[0].worse is None
    failed[WINDOW.parts[-1]] = 50.0
    found = health(StepSeries(succeeded, failed)).steps[0].worse
    assert found is not None
    assert found.since == WINDOW.parts[-1]


def test_an_older_time_that_was_longer_is_another_one() -> None:
    succeeded, failed = hours()
    since = WINDOW.until - 30 * HOUR
    failed |= dict.fromkeys(range(since, WINDOW.until, HOUR), 50.0)
    failed |= dict.fromkeys([*WINDOW.earlier][:80], 50.0)
    found = health(StepSeries(succeeded, failed)).steps[0].worse
    assert found is not None
    assert found.since == since


@pytest.mark.parametrize(
    ("slow", "is_worse"), [((2_001,) * 3, True), ((2_000,) * 9, False), ((9_000,) * 2, False)]
)
def test_a_step_is_slow_if_99_of_100_take_more_than_twice_as_long_for_three_hours(
    slow: tuple[int, ...], is_worse: bool
) -> None:
    succeeded, failed = hours()
    most = dict.fromkeys(succeeded, 1_000.0)
    most |= zip(WINDOW.parts[-len(slow) :], slow, strict=True)
    (found,) = health(StepSeries(succeeded, failed, most)).steps
    assert (found.worse is not None) is is_worse
    if found.worse is not None:
        assert not found.worse.failures
        assert "have taken up to 2 s since 2027-01-15T06:00:00Z; usually 1 s" in found.worse.words


def slow(last: str, *, measured: frozenset[int] = EVERY_PART, earlier: int = 168) -> StepHealth:
    """A step of which 99 % took 1 s in so many hours before, and then so many s; `.` for none."""
    parts = [*[*WINDOW.earlier][-earlier:], *WINDOW.parts]
    most = dict.fromkeys(parts, 1_000.0)
    for part, one in zip(WINDOW.parts[-len(last) :], last, strict=True):
        del most[part]
        if one != ".":
            most[part] = float(one) * 1_000
    (found,) = health(StepSeries(*hours(), most), measured).steps
    return found


@pytest.mark.parametrize(
    ("last", "since"),
    [
        ("9.99", "have taken up to 9 s since 2027-01-15T05:00:00Z"),
        ("911999", "have taken up to 9 s since 2027-01-15T06:00:00Z"),
        ("99", ""),
        ("991111199", ""),
    ],
)
def test_an_hour_without_attempts_counts_neither_way_and_three_slow_ones_are_together(
    last: str, since: str
) -> None:
    worse = slow(last).worse
    assert (worse is not None) is bool(since)
    assert since in (worse.words if worse else "")


def test_a_step_is_slow_also_if_its_attempts_were_not_counted() -> None:
    found = slow("999", measured=frozenset())
    assert found.worse is not None
    assert found.failed_share is None


@pytest.mark.parametrize(("earlier", "is_known"), [(2, False), (3, True)])
def test_what_is_usual_takes_three_hours(earlier: int, is_known: bool) -> None:
    found = slow("999", earlier=earlier)
    assert (found.usual_nearly_all is not None) is is_known
    assert (found.worse is not None) is is_known


def test_a_stretch_that_fails_as_usual_on_the_whole_is_not_worse() -> None:
    assert told("90-10", "99000", "90-10", "85-15") == ""


def test_what_was_not_measured_is_unknown_and_what_was_is_0() -> None:
    half = frozenset([*WINDOW.earlier, *WINDOW.parts[:12]])
    (found,) = health(StepSeries(), half).steps
    assert found.attempts_by_part == [0] * 12 + [None] * 12
    assert found.failed_by_part == [0] * 12 + [None] * 12
    assert (found.attempts, found.failed, found.failed_share) == (0, 0, None)
    (found,) = health(StepSeries(), frozenset()).steps
    assert (found.attempts, found.failed, found.usual_share) == (None, None, None)
    nothing = health(StepSeries(), frozenset())
    assert nothing.sentence == "CloudWatch has no figure of this stack in this period."
    assert (
        health(StepSeries()).sentence == "CloudWatch has no attempt of these steps in this period."
    )


def test_without_enough_before_it_is_said_that_what_is_usual_is_not_known() -> None:
    succeeded, failed = hours("50-50")
    for part in [*WINDOW.earlier][:-2]:
        del succeeded[part], failed[part]
    found = health(StepSeries(succeeded, failed))
    assert found.steps[0].worse is None
    assert found.sentence == (
        "1 step cannot be compared: there were too few attempts in the 14 days before."
    )


def test_a_stack_without_the_metrics_says_why_and_nothing_else() -> None:
    found = health_of(
        {PAY: (("payment",), 1)}, {}, {}, frozenset(), WINDOW, missing="not measured in lean"
    )
    assert found.sentence == "How the steps did is not known: not measured in lean."
    assert (found.steps[0].attempts, found.has_figures) == (None, False)


@pytest.mark.parametrize("off", [-HOUR, HOUR])
def test_a_clock_that_is_an_hour_off_changes_neither_the_hours_nor_since_when(off: int) -> None:
    series = StepSeries(*hours("90-10", "85-15", "80-20"))
    window = window_of("24h", AT + off)
    found = health_of({PAY: ((), 1)}, {}, {PAY: series}, EVERY_PART, window).steps[0]
    assert found.worse is not None
    assert "since 2027-01-15T06:00:00Z" in found.worse.words
    last = found.attempts_by_part[-1]
    assert last == (None if off > 0 else 100), "an hour that has not begun is unknown"


def test_failures_come_before_slowness_and_what_goes_on_before_what_is_over() -> None:
    succeeded, _ = hours()
    half = dict.fromkeys(succeeded, 50.0)
    late = {**dict.fromkeys(succeeded, 1_000.0), **dict.fromkeys(WINDOW.parts[-3:], 9_000.0)}
    series = {
        ("w", "slow"): StepSeries(half, half, late),
        ("w", "over"): StepSeries(*hours("50-50", "100", "100", "100")),
        ("w", "unknown"): StepSeries({}, {}, late),
        ("w", "fails"): StepSeries(*hours("95-5")),
    }
    steps = dict.fromkeys(series, (("payment",), 1))
    found = health_of(steps, {}, series, EVERY_PART, WINDOW).steps
    assert [one.step for one in found] == ["fails", "slow", "unknown", "over"]


@pytest.mark.parametrize("worse", [MOST_NAMED, MOST_NAMED + 1])
def test_the_sentence_counts_only_the_steps_that_it_does_not_name(worse: int) -> None:
    steps = {("w", f"step{place}"): (("payment",), 1) for place in range(worse)}
    found = health_of(
        steps, {}, {key: StepSeries(*hours("50-50")) for key in steps}, EVERY_PART, WINDOW
    )
    assert ("other step" in found.sentence) is (worse > MOST_NAMED)
    assert found.sentence.endswith("too." if worse > MOST_NAMED else "usually 0.0 %.")


def test_steps_without_attempts_are_not_compared_and_not_unknown() -> None:
    succeeded, failed = hours("50-50")
    few = dict.fromkeys(WINDOW.parts, 9.0)
    series = {("w", "new"): StepSeries(few), ("w", "idle"): StepSeries()}
    steps = dict.fromkeys(series, (("payment",), 1))
    found = health_of(steps, {}, series, EVERY_PART, WINDOW)
    assert found.sentence.startswith("1 step cannot be compared:")
    then = ({part: one[part] for part in WINDOW.earlier} for one in (succeeded, failed))
    series = {("w", "new"): StepSeries(few), ("w", "gone"): StepSeries(*then)}
    steps = dict.fromkeys(series, (("payment",), 1))
    assert "No step" not in health_of(steps, {}, series, EVERY_PART, WINDOW).sentence


def test_each_column_has_the_attempts_of_its_own_parts() -> None:
    found = health(StepSeries(*hours("0-100", "0-100", "100", "100")))
    assert found.shares(found.steps[0])[-2:] == [1.0, 0.0]
    assert len(found.slices) == 12


def test_the_worst_steps_come_first_and_the_sentence_names_some() -> None:
    steps = {("w", f"step{place}"): (("payment",), 1) for place in range(7)}
    bad = {
        2: hours("85-15", "100", "100", "100"),
        4: hours("95-5"),
        5: hours("50-50"),
        6: hours("80-20"),
    }
    series = {("w", f"step{place}"): StepSeries(*bad.get(place, hours())) for place in range(7)}
    found = health_of(steps, {}, series, EVERY_PART, WINDOW)
    names = [one.step for one in found.steps]
    assert names == ["step5", "step6", "step4", "step2", "step0", "step1", "step3"]
    assert found.sentence.startswith("step5: 50.0 % of the attempts have failed since")
    assert found.sentence.count("of the attempts have failed") == MOST_NAMED
    assert found.sentence.endswith("1 other step did worse than usual, too.")


def test_times_and_numbers_of_the_whole_period_are_those_of_cloudwatch() -> None:
    times = {PAY: StepTimes(90, 10, 1_500, 28_000)}
    series = {PAY: StepSeries(*hours())}
    (found,) = health_of({PAY: ((), 1)}, times, series, EVERY_PART, WINDOW).steps
    assert (found.attempts, found.failed, found.failed_share) == (100, 10, 0.1)
    assert (found.half, found.nearly_all) == (1_500, 28_000)


def test_a_version_is_named_if_it_was_published_about_when_the_step_got_worse() -> None:
    found = health(StepSeries(*hours("90-10", "85-15")))
    began = WINDOW.parts[-2]
    published = [
        Published("Payment", 40, began - 3 * HOUR),
        Published("Payment", 41, began - 2 * MINUTE),
        Published("Payment", 42, began + HOUR),
    ]
    told = with_versions(found, {"payment": published, "mail": published[1:2]})
    assert told.steps[0].worse is not None
    said = "Version 41 of payment was published at 2027-01-15T06:58:00Z"
    assert told.steps[0].worse.words.endswith(said)
    assert f"{said}." in told.sentence
    assert "ersion 40" not in told.sentence
    assert "ersion 42" not in told.sentence
    assert with_versions(found, {"payment": published[:1]}) == found
    as_usual = health(StepSeries(*hours()))
    assert with_versions(as_usual, {"payment": published}) == as_usual
    just_before = [Published("Payment", 43, began - HOUR)]
    assert "ersion 43" in with_versions(found, {"payment": just_before}).sentence


@pytest.mark.parametrize("period", PERIODS)
def test_a_period_ends_with_the_present_part_and_has_few_slices(period: str) -> None:
    window = window_of(period, AT)
    assert window.until - window.every <= AT < window.until
    assert (window.until - window.since, window.since % window.every) == (PERIODS[period], 0)
    assert window.since - window.usual_since in (14 * DAY, 30 * DAY)
    measured = frozenset([*window.earlier, *window.parts])
    found = health_of(
        {PAY: ((), 1)}, {}, {PAY: StepSeries({window.parts[-1]: 9})}, measured, window
    )
    shares = found.shares(found.steps[0])
    assert len(shares) == len(found.slices) <= MOST_SLICES
    assert shares == [None] * (len(shares) - 1) + [0.0]
    part, days = ("days", 30) if period == "30d" else ("hours", 14)
    assert usual_words(found).startswith(f"Usual is the median of the {part} in the {days} days")
