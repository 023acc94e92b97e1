"""The times of an order as bars: which lines there are, and what each bar is."""

from dataclasses import replace

import pytest

from roundsman.definition.workflow import Undo
from roundsman.model.events import HistoryRow
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman_console.faces.web.drawings.axis import SCALE
from roundsman_console.faces.web.drawings.gantt import MOST_ITEMS, NARROWEST, Bars, bars
from roundsman_console.facts.order.failure import failures
from roundsman_console.facts.order.order_facts import OrderFacts
from tests.support.large_orders import (
    FENCED,
    MadeOrder,
    chain_of,
    facts_of,
    fan_of,
    loop_of,
    side_by_side,
)
from tests.support.machine_world import T0, World, plan, step
from tests.support.steps import step_record

PLAN = plan(step("a"), step("b", "a"))


def drawn(order: MadeOrder) -> Bars:
    facts = order.facts(max(row.at for row in order.history))
    return bars(facts, [name for one in failures(facts) for name in one.steps])


def test_the_items_of_a_fan_out_share_one_line_of_times() -> None:
    made = plan(step("a", for_each="input.lines"))
    record = step_record(process_state=ProcessState.PROCESSED, started_at=T0, finished_at=T0 + 10)
    steps = {"a[0]": record, "a[1]": replace(record, started_at=T0 + 20, finished_at=T0 + 30)}
    task = replace(World(made, order={"lines": [1, 2]}).task, steps=steps, fan_outs={"a": 2})
    task = replace(task, created_at=T0, ended_at=T0 + 30)
    row = HistoryRow(1, T0 + 15, "reminded", "a[1]", 1, "no")
    (order, line) = bars(OrderFacts(task, made.expanded({"a": 2}), [row], at=T0 + 100)).lines
    assert (order.step, line.step, line.state) == ("the order", "a", "Processed")
    (bar,) = line.bars
    assert (bar.x, bar.width) == (0, 1000)
    assert bar.words == "a: attempt, done, 2 of 2 items, 30 ms"
    assert [(mark.x, mark.failure) for mark in line.marks] == [(500, False)]


@pytest.mark.parametrize(
    ("undone", "lines"), [(False, ["100 done", "leg[n0099]"]), (True, ["101 undone"])]
)
def test_the_steps_of_a_loop_share_a_line_although_each_adds_the_next(
    undone: bool, lines: list[str]
) -> None:
    found = drawn(loop_of(100, undone=undone)).lines
    assert [line.step for line in found] == ["the order", *lines]


def test_the_axis_of_times_is_from_the_submission_to_the_end() -> None:
    task = replace(World(PLAN).task, ended_at=T0 + 40 * SECOND)
    found = bars(OrderFacts(replace(task, created_at=T0), PLAN, at=T0 + 60 * SECOND))
    assert [words for _, words in found.axis.ticks] == ["0 ms", "10 s", "20 s", "30 s", "40 s"]
    assert [x for x, _ in found.axis.ticks] == [0, 250, 500, 750, 1000]
    assert found.not_begun == ("a", "b")


def test_each_attempt_wait_undo_and_resubmission_is_a_bar() -> None:
    world = World(plan(step("a", compensation=FENCED), on_failure=Undo()))
    world.start()
    world.now += 500
    world.fails("a", retry_after=60_000)
    world.now += 60_000
    world.inspect()
    world.start()
    world.now += 500
    world.is_refused("a")
    world.start()
    world.now += 400
    world.succeeds("a")
    world.now += 100_000
    world.resubmit(again=True)
    world.start()
    world.now += 600
    world.succeeds("a")
    found = bars(facts_of(world))
    order, line = found.lines
    assert [bar.end for bar in order.bars] == ["failed", "done"]
    assert "open again, resubmit by ann" in order.bars[1].words
    assert [(bar.kind, bar.end, bar.exact) for bar in line.bars] == [
        ("attempt", "failed", False),
        ("wait", "done", True),
        ("attempt", "failed", False),
        ("undo", "done", False),
        ("attempt", "done", True),
    ]
    assert [one.words for one in found.axis.folds] == ["59 s", "100 s"], "to the second"
    assert "failed" in line.bars[0].words
    assert "retried at" in line.bars[0].words, "a bar says what its row of the history says"
    assert [row.what for row in found.rows] == [
        *("attempt 1, failed", "wait", "attempt 2, failed", "undo, done"),
        "attempt of round 2, done",
    ]
    assert [row.since for row in found.rows][:2] == ["after 08:00:00.000", "08:00:00.500"]
    assert found.rows[0].lasted == "at most 500 ms"
    assert [mark.kind for mark in line.marks] == ["failed", "failed"]


def test_a_hold_is_folded_though_it_is_not_known_when_the_next_attempt_began() -> None:
    world = World(PLAN)
    world.start()
    world.now += 500
    world.hold("worker", 60)
    world.succeeds("a")
    world.now += 60_000
    world.release("worker")
    world.inspect()
    world.start()
    world.now += 500
    world.fails("b", retry_after=5_000)
    world.now += 5_000
    world.inspect()
    world.start()
    world.now += 400
    found = bars(facts_of(world))
    assert [(bar.kind, bar.exact) for bar in found.lines[2].bars] == [
        *(("held", False), ("attempt", False), ("wait", True), ("attempt", True)),
    ]
    assert [one.words for one in found.axis.folds] == ["60 s", "5 s"]


def test_a_hundred_steps_in_a_row_are_a_few_lines() -> None:
    found = drawn(chain_of(100, 77))
    assert [line.step for line in found.lines] == [
        "the order",
        "77 done",
        "step_77_of_the_long_chain",
    ]
    assert len(found.not_begun) == 22
    assert len(found.rows) == 78, "as a table, each is there"


def test_an_undone_chain_has_one_line_for_what_was_undone_and_one_for_the_failure() -> None:
    found = drawn(chain_of(40, 17, undo=True))
    assert [line.step for line in found.lines] == [
        "the order",
        "17 undone",
        "step_17_of_the_long_chain",
    ]
    attempts, undos = found.lines[1].bars
    assert (attempts.kind, attempts.exact, undos.kind) == ("attempt", False, "undo")
    assert attempts.x + attempts.width <= undos.x, "what was undone was done before"


def test_failed_items_have_lines_of_their_own_and_the_others_share_one() -> None:
    found = drawn(fan_of(100, done=71, failed=20))
    assert [line.step for line in found.lines] == [
        *("the order", "pick"),
        *(f"pick[{place}]" for place in range(71, 71 + MOST_ITEMS)),
    ]
    assert [(bar.end, bar.words.split(", ")[2]) for bar in found.lines[1].bars] == [
        ("done", "71 of 100 items"),
        ("failed", "20 of 100 items"),
        ("goes on", "9 of 100 items"),
    ]


def test_steps_that_go_on_side_by_side_share_a_line() -> None:
    found = drawn(side_by_side(98, done=60, failed=3))
    assert [line.step for line in found.lines] == [
        *("the order", "61 done", "line_60", "line_61", "line_62", "35 under way")
    ]


@pytest.mark.exhaustive
def test_no_bar_is_outside_and_the_shortest_one_is_seen() -> None:
    for order in (chain_of(100, 77), fan_of(100, 71, 7), chain_of(40, 17, undo=True)):
        for line in drawn(order).lines:
            for bar in line.bars:
                assert bar.x >= 0
                assert bar.width >= NARROWEST
                assert bar.x + bar.width <= SCALE + NARROWEST


def test_a_long_name_keeps_its_end_beside_the_bars() -> None:
    line = drawn(chain_of(40, 17)).lines[-1]
    assert line.label == "step_17_of_the_long_chain"
    assert replace(line, step="a" * 30 + "_the_end").label == "aaaaaaaaaaaaaa…aaa_the_end"


def test_the_line_of_the_order_has_its_state() -> None:
    order = chain_of(40, 17, undo=True)
    assert drawn(order).lines[0].state == TaskState.UNDONE
