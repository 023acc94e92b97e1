"""Which rows the table of steps and the history of an order have, and in which order."""

from roundsman.model.states import ProcessState
from roundsman.model.task import StepError
from roundsman_console.faces.web.pages.order import (
    MOST_ROWS,
    StepRow,
    failed_steps,
    fold,
    rows_of_steps,
)
from roundsman_console.facts.order.failure import failures
from roundsman_console.facts.order.timeline import (
    Happening,
    HistoryEntry,
    entries,
    later_words,
    moment,
)
from tests.support.large_orders import MadeOrder, chain_of, fan_of, side_by_side
from tests.support.machine_world import T0
from tests.support.steps import step_record

DONE, FAILED, BUSY = ProcessState.PROCESSED, ProcessState.ERROR, ProcessState.PROCESSING


def row(name: str, state: ProcessState) -> StepRow:
    error = StepError("Gone", "no") if state is FAILED else None
    record = step_record(process_state=state, started_at=T0, error=error)
    return StepRow(name, record, "", "", "0", "", "", may_stand=False)


def rows(order: MadeOrder) -> list[StepRow]:
    return rows_of_steps(order.facts(), failures(order.facts()))


def names(found: tuple[StepRow, ...]) -> list[str]:
    return [one.name for one in found]


def test_many_items_of_a_fan_out_are_folded_and_those_that_failed_are_shown_first() -> None:
    items = [row(f"a[{place}]", BUSY if place < 10 else DONE) for place in range(30)]
    items[29] = row("a[29]", FAILED)
    found = fold([*items, row("b", DONE)])
    assert names(found.shown) == ["a[29]", *(f"a[{place}]" for place in range(7)), "b"]
    [folded] = found.folded
    assert (folded.step, len(folded.rows)) == ("a", 30)
    assert folded.states == ((FAILED, 1), (BUSY, 10), (DONE, 19))
    assert fold(items[:8]).folded == (), "a few are rows as any other"


def test_of_a_hundred_steps_the_failed_one_is_the_only_row_and_the_others_are_folded() -> None:
    found = fold(rows(chain_of(100, 77)))
    assert names(found.shown) == ["step_77_of_the_long_chain"]
    assert [(one.title, len(one.rows)) for one in found.folded] == [
        ("77 done", 77),
        ("22 pending", 22),
    ]
    assert (found.problems, found.whole) == (1, 100)


def test_the_step_at_which_an_undone_order_failed_comes_first_with_its_error() -> None:
    order = chain_of(5, 2, undo=True)
    found = fold(rows(order))
    assert names(found.shown)[:2] == ["step_02_of_the_long_chain", "step_00_of_the_long_chain"]
    first = found.shown[0]
    assert (first.failed, first.record.process_state) == (True, ProcessState.UNDONE)
    assert first.attempts == "1, for good"
    assert first.error.startswith("OutOfStock: the warehouse")
    assert [one.attempts for one in found.shown[1:]] == ["0"] * 4


def test_of_many_steps_that_go_on_the_rest_is_folded_after_the_failed_ones() -> None:
    found = fold(rows(side_by_side(98, done=60, failed=3)))
    assert len(found.shown) == MOST_ROWS
    assert names(found.shown)[:3] == ["line_60", "line_61", "line_62"]
    assert [one.title for one in found.folded] == ["26 more under way", "61 done", "1 pending"]


def test_only_problems_leaves_out_all_steps_that_need_no_look() -> None:
    found = fold(rows(fan_of(100, done=71, failed=7)), only_problems=True)
    assert names(found.shown) == [f"pick[{place}]" for place in range(71, 78)]
    assert (found.folded, found.problems, found.whole) == ((), 7, 100)


def test_a_step_that_is_tried_again_is_a_problem_and_did_not_fail_for_good() -> None:
    again = StepRow(
        *("a", step_record(error=StepError("Busy", "503"), not_before=T0, failure_count=1)),
        *("waits", "", "1 of 3", "Busy: 503", ""),
        may_stand=False,
    )
    assert (again.problem, again.kind) == (True, "waiting")
    assert not row("b", BUSY).problem
    order = fan_of(4, done=4, failed=0)
    assert failed_steps(failures(order.facts())) == []


def happening(at: int, why: str = "", by: str | None = None) -> Happening:
    return Happening(at, "resubmit", by=by, why=why)


def test_each_row_of_the_history_has_its_instant_and_the_time_since_the_row_before() -> None:
    day = 24 * 3_600_000
    found = entries(
        [happening(T0), happening(T0 + 12_500), happening(T0 + day), happening(T0 + day)]
    )
    assert [(one.moment, later_words(one.later)) for one in found] == [
        ("2027-01-16 08:00:00", "+0 ms"),
        ("08:00:00", "+23 h 59 min"),
        ("2027-01-15 08:00:12", "+12.5 s"),
        ("08:00:00", ""),
    ]


def test_a_moment_has_its_date_unless_it_is_beside_one_of_that_day() -> None:
    assert moment(T0) == "2027-01-15 08:00:00"
    assert moment(T0, T0 + 1) == "08:00:00"
    assert moment(T0, T0 - 9 * 3_600_000) == "2027-01-15 08:00:00"


def test_a_command_of_a_bulk_run_leads_to_the_run_and_words_of_a_service_do_not() -> None:
    why = "resubmit by amy: the carrier answers again (bulk b-121c921f)"
    [found] = entries([happening(T0, why, by="amy")])
    assert found.run == "b-121c921f"
    assert found.around_run == ("resubmit by amy: the carrier answers again (bulk ", ")")
    others: list[HistoryEntry] = entries(
        [happening(T0, why), happening(T0, "by amy (bulk b-1)", by="amy")]
    )
    assert [one.run for one in others] == [None, None]


def test_rows_less_than_a_second_apart_have_milliseconds() -> None:
    rows = [happening(T0 + away, "x") for away in (0, 200, 3_000, 5_000, 5_999, 7_000)]
    assert [one.moment for one in entries(rows)] == [
        "2027-01-15 08:00:07",
        "08:00:05.999",
        "08:00:05.000",
        "08:00:03",
        "08:00:00.200",
        "08:00:00.000",
    ]
    assert moment(T0 + 7, exact=True) == "2027-01-15 08:00:00.007"
