"""A broken axis of time: which gaps are folded, and where an instant is drawn."""

from itertools import pairwise

import pytest

from roundsman.model.instants import DAY, SECOND
from roundsman_console.faces.web.drawings.axis import (
    BETWEEN_LABELS,
    FOLD,
    MOST_FOLDS,
    SCALE,
    Axis,
    axis_of,
    time_label,
)

T0 = 1_800_000_000_000


def axis(end: int, *busy: tuple[int, int]) -> Axis:
    """The axis of attempts that begin and end so many ms after its start."""
    times = [(T0 + since, T0 + until) for since, until in busy]
    return axis_of(T0, T0 + end, [at for one in times for at in one], times)


def folds(found: Axis) -> list[tuple[int, int]]:
    return [(one.since - T0, one.until - T0) for one in found.folds]


def test_a_label_says_the_time_of_its_place() -> None:
    found = axis(3_018, (0, 1_500), (1_500, 3_018))
    assert [words for _, words in found.ticks] == ["0 ms", "1 s", "2 s", "3 s"]
    places = [found.place(T0 + at) for at in (0, 1_000, 2_000, 3_000)]
    assert [x for x, _ in found.ticks] == pytest.approx(places)
    labels = [axis(end, (0, end)).ticks[1][1] for end in (7, 1_500, 9_000, 150_000, 40 * DAY)]
    assert labels == ["2 ms", "500 ms", "5 s", "50 s", "240 h"]
    assert time_label(62_640) == "62.6 s"
    assert (time_label(1_754), time_label(150_000)) == ("1.75 s", "2 min 30 s")


def test_without_a_long_gap_the_axis_has_one_scale_and_equal_parts() -> None:
    found = axis(40 * SECOND, (0, 20_000), (20_100, 40_000))
    assert found.folds == ()
    assert [found.place(T0 + at) for at in (0, 10_000, 40_000)] == [0, 250, 1000]
    assert found.ticks == ((0, "0 ms"), (250, "10 s"), (500, "20 s"), (750, "30 s"), (1000, "40 s"))


def test_the_waits_between_short_attempts_are_folded_and_the_attempts_are_seen() -> None:
    found = axis(62_600, (0, 100), (2_100, 2_200), (6_200, 6_300), (14_300, 14_400))
    assert folds(found) == [(100, 2_100), (2_200, 6_200), (6_300, 14_300), (14_400, 62_600)]
    assert [one.words for one in found.folds] == ["2 s", "4 s", "8 s", "48 s"]
    assert all(one.width == FOLD for one in found.folds)
    widths = {one.width for one in found.pieces if not one.folded}
    assert widths == {(SCALE - 4 * FOLD) / 4}, "attempts of one length are equally wide"


def test_a_wait_that_is_short_beside_the_attempts_is_not_folded() -> None:
    assert folds(axis(21_000, (0, 10_000), (11_000, 21_000))) == []


def test_a_wait_of_days_at_an_agent_is_folded_too() -> None:
    found = axis(30 * DAY, (0, 200), (200, 30 * DAY))
    assert folds(found) == [(200, 30 * DAY)]
    assert found.place(T0 + 200) > SCALE / 2


def test_one_step_that_is_longer_than_the_others_together_is_not_folded() -> None:
    assert folds(axis(3_000, (0, 2_400), (2_400, 2_700), (2_700, 3_000))) == []


def test_at_most_so_many_gaps_are_folded_and_they_are_the_longest() -> None:
    busy = [(place * 10_000, place * 10_000 + 10) for place in range(10)]
    busy += [(200_000 + place * 1_000, 200_000 + place * 1_000 + 10) for place in range(10)]
    found = axis(210_000, *busy)
    assert len(found.folds) == MOST_FOLDS
    assert min(until - since for since, until in folds(found)) > 1_000


def test_the_places_grow_with_time_and_fill_the_axis() -> None:
    found = axis(62_600, (0, 100), (2_100, 2_200), (6_200, 6_300), (14_300, 14_400))
    places = [found.place(T0 + at) for at in range(0, 62_601, 50)]
    assert all(before < after for before, after in pairwise(places))
    assert (places[0], places[-1]) == (0, SCALE)
    assert (found.place(T0 - 5), found.place(T0 + 99_999)) == (0, SCALE), "outside: at the ends"


def test_no_two_labels_overlap() -> None:
    busy = [(place * 10_000, place * 10_000 + 10) for place in range(12)]
    labels = [x for x, _ in axis(125_000, *busy).ticks]
    assert all(after - before >= BETWEEN_LABELS for before, after in pairwise(labels))


def test_an_order_in_which_nothing_has_happened_has_an_axis() -> None:
    found = axis_of(T0, T0, [T0, T0], [])
    assert (found.place(T0), found.place(T0 + 1), found.folds) == (0, SCALE, ())
