"""The drawing of orders over time: rows, gaps, marks and the table."""

import re

from roundsman.model.instants import MINUTE
from roundsman_console.faces.web.drawings.course import HEIGHT, LINES, MOST_COLUMNS, draw
from roundsman_console.facts.course.course import SPANS, Counts, OrdersOverTime, Series
from roundsman_console.facts.course.marks import EventMark, MarkKind

SINCE = 1_800_000_000_000


def drawn_course(
    counts: Counts, missing: str | None = None, marks: tuple[EventMark, ...] = ()
) -> OrdersOverTime:
    end = SINCE + len(counts) * MINUTE
    one = Series(name="failed", label="orders", source="x", missing=missing, counts=counts)
    return OrdersOverTime(
        since=SINCE, until=end, settled=end, sentence="", series=[one], marks=marks
    )


def heights(path: str) -> list[float]:
    return [HEIGHT - float(one) for one in re.findall(r"V([0-9.]+)H", path)]


def test_the_highest_minute_has_the_whole_height_and_equal_ones_are_one_column() -> None:
    [row] = draw(drawn_course((0, 4, 4, 8, 0))).rows
    assert heights(row.path) == [0, HEIGHT / 2, HEIGHT, 0]
    assert re.findall(r"H([0-9.]+)", row.path) == ["200.0", "600.0", "800.0", "1000.0"]
    assert row.most == "at most 8 a minute"
    [few] = draw(drawn_course((1, 100_000))).rows
    assert heights(few.path)[0] == 2, "a single order is seen"


def test_what_is_not_known_is_a_gap_and_no_line_at_0() -> None:
    [row] = draw(drawn_course((3, None, None, 0, 3))).rows
    [gap] = row.gaps
    assert (gap.x, gap.width, gap.label) == (200, 400, "unknown")
    assert gap.words == "unknown from 08:01 to 08:03"
    assert re.findall(r"M([0-9.]+)", row.path) == ["0.0", "600.0"]
    [nothing] = draw(drawn_course((None, None), "not measured in lean")).rows
    assert [one.label for one in nothing.gaps] == ["not measured in lean"]
    assert (nothing.path, nothing.most) == ("", "")
    [quiet] = draw(drawn_course((0, 0))).rows
    assert quiet.most == "none"


def test_a_day_has_few_columns_each_with_its_highest_minute() -> None:
    counts = tuple(place % 7 for place in range(SPANS["24h"] // MINUTE))
    drawing = draw(drawn_course(counts))
    assert len(heights(drawing.rows[0].path)) <= MOST_COLUMNS
    assert max(heights(drawing.rows[0].path)) == HEIGHT
    assert drawing.every == "4 min"
    assert len(drawing.rows[0].path) < 6_000


def test_marks_are_where_they_were_and_their_numbers_do_not_lie_on_each_other() -> None:
    ats = (0, 5, 5, 5, 10)
    marks = tuple(
        EventMark(at=SINCE + at * MINUTE, kind=MarkKind.BULK_RUN, about="b", words="x", by=None)
        for at in ats
    )
    drawing = draw(drawn_course((1,) * 10, marks=marks))
    assert [one.x for one in drawing.marks] == [0, 500, 500, 500, 1000]
    assert [one.line for one in drawing.marks] == [0, 0, 1, 2, 0]
    assert {one.kind for one in drawing.marks} == {"bulk-run"}
    assert LINES == 3


def test_the_table_has_the_same_numbers() -> None:
    counts = (1,) * 30 + (None,) * 10 + (2,) * 20
    slices = draw(drawn_course(counts)).slices
    assert len(slices) == 12
    assert (slices[0].since, slices[0].until, slices[0].numbers) == ("08:00", "08:05", ("5",))
    assert [one.numbers[0] for one in slices[5:8]] == ["5", "unknown", "unknown"]
    partly = draw(drawn_course((1, None) * 30)).slices
    assert partly[0].numbers == ("3, and 2 min unknown",)
