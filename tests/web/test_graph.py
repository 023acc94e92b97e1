"""Where the drawing of a workflow has its steps and edges."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Signal, Sleep, SleepUntil
from roundsman.model.states import ProcessState
from roundsman.model.task import StepToAdd
from roundsman_console.faces.web.drawings.graph import (
    FIRST_LINE,
    HEIGHT,
    IN_A_ROW,
    SECOND_LINE,
    WIDTH,
    Drawing,
    draw,
    layout,
    name_lines,
)
from roundsman_console.faces.web.templates import Templates
from roundsman_console.faces.web.whereabouts import Whereabouts
from tests.support.large_orders import chain_of, fan_of, loop_of, side_by_side
from tests.support.machine_world import World, plan, step
from tests.support.quorum_stories import asked, items
from tests.support.steps import step_record

DIAMOND = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}


def test_a_step_is_right_of_all_its_predecessors() -> None:
    places = layout(DIAMOND)
    for name, befores in DIAMOND.items():
        assert all(places[other].x + WIDTH < places[name].x for other in befores)


def test_no_two_steps_overlap() -> None:
    chain = {f"c{place}": (f"c{place - 1}",) if place else () for place in range(12)}
    alone = {f"alone{place}": () for place in range(7)}
    apart = {**DIAMOND, **alone, "x": (), "y": ("x",), **chain}
    places = list(layout(apart).values())
    assert len(places) == len(apart)
    for number, one in enumerate(places):
        for other in places[:number]:
            assert abs(one.x - other.x) >= WIDTH or abs(one.y - other.y) >= HEIGHT


def test_a_drawing_holds_all_its_steps() -> None:
    drawn = draw(plan(step("a"), step("b", "a"), step("c", "a")))
    assert [node.name for node in drawn.nodes] == ["a", "b", "c"]
    assert all(node.x + WIDTH <= drawn.width for node in drawn.nodes)
    assert all(node.y + HEIGHT <= drawn.height for node in drawn.nodes)
    assert [(edge.before, edge.after) for edge in drawn.edges] == [("a", "b"), ("a", "c")]


def test_each_step_has_the_state_of_its_record() -> None:
    world = World(plan(step("a"), step("b", "a")))
    world.start()
    assert [node.state for node in draw(world.plan, world.task).nodes] == ["Processing", "Pending"]


def test_a_sleep_has_its_time_where_another_step_has_its_agent() -> None:
    nap = Sleep(name="nap", for_=timedelta(minutes=5))
    until = SleepUntil("input.departure", name="until", after=(nap,))
    world = World(plan(nap, until))
    notes = ["sleeps for 5 min", "sleeps until input.departure"]
    assert [node.note for node in draw(world.plan).nodes] == notes
    world.start()
    drawn = draw(world.plan, world.task).nodes
    assert [node.note for node in drawn] == notes
    assert (drawn[0].kind, drawn[0].situation) == ("waiting", "asleep")


def test_a_step_that_waits_for_a_signal_has_its_name_where_another_step_has_its_agent() -> None:
    world = World(plan(Signal("paid", name="rest", within=timedelta(minutes=5))))
    [node] = draw(world.plan).nodes
    assert node.note == "waits for the signal paid for 5 min"
    world.start()
    [node] = draw(world.plan, world.task).nodes
    assert (node.kind, node.situation) == ("waiting", "awaits its signal")
    assert node.note == "waits for the signal paid for 5 min"


def test_a_fan_out_is_one_node_with_its_items_by_state() -> None:
    made = plan(step("a", for_each="input.lines"))
    world = World(made, order={"lines": [1, 2, 3]})
    done, failed = (
        step_record(process_state=ProcessState.PROCESSED),
        step_record(process_state=ProcessState.ERROR),
    )
    items = {"a[0]": done, "a[1]": failed, "a[2]": done}
    task = replace(world.task, steps=items, fan_outs={"a": 3})
    (node,) = draw(made.expanded({"a": 3}), task).nodes
    assert (node.state, node.note) == ("Error", "1 failed, 2 done")


def test_added_steps_stand_between_their_adder_and_what_comes_after_it() -> None:
    made = plan(step("a"), step("b", "a"), may_add=(step("leg"),))
    world = World(made)
    world.start()
    world.adds("a", StepToAdd("leg[x]"))
    world.adds("leg[x]", StepToAdd("leg[y]"))
    world.is_refused("leg[y]")
    drawn = draw(made.for_task(world.task), world.task, ["leg[y]"])
    assert [(node.name, node.state, node.failed) for node in drawn.nodes] == [
        ("a", "Processed", False),
        ("leg[x]", "Processed", False),
        ("leg[y]", "Error", True),
        ("b", "Pending", False),
    ]
    assert [(edge.before, edge.after) for edge in drawn.edges] == [
        ("a", "leg[x]"),
        ("leg[x]", "leg[y]"),
        ("leg[y]", "b"),
    ]
    assert [node.name for node in draw(made).nodes] == ["a", "b"]


def test_of_a_thousand_steps_of_a_loop_the_failed_one_is_seen() -> None:
    order = loop_of(1_000)
    drawn = draw(order.plan, order.task, ["leg[n0999]"])
    assert [node.name for node in drawn.nodes] == ["1000 done", "leg[n0999]", "pay"]
    assert [(edge.before, edge.after) for edge in drawn.edges] == [
        ("find", "leg[n0999]"),
        ("leg[n0999]", "pay"),
    ]


def test_the_lines_to_a_step_are_found_by_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = list[object]()
    search = Plan.before_any

    def counted(plan: Plan, names: Iterable[str]) -> frozenset[str]:
        searches.append(names)
        return search(plan, names)

    monkeypatch.setattr(Plan, "before_any", counted)
    order = loop_of(50)
    draw(order.plan, order.task)
    assert len(searches) <= len(order.plan.steps)


def test_a_long_chain_goes_on_below_and_is_straight_in_each_row() -> None:
    after = {f"c{place:02}": (f"c{place - 1:02}",) if place else () for place in range(23)}
    places = layout(after)
    rows = [places[f"c{place:02}"].row for place in range(23)]
    assert rows == [place // IN_A_ROW for place in range(23)]
    for row in range(5):
        inside = [one for one in places.values() if one.row == row]
        assert len({one.y for one in inside}) == 1
        assert [one.x for one in inside] == sorted(one.x for one in inside)
    assert {one.x for one in places.values() if one.row == 0} == {
        one.x for one in places.values() if one.row == 1
    }


def test_a_row_is_not_divided_where_more_than_one_line_leads_on() -> None:
    left = {f"l{place}": (f"l{place - 1}",) if place else ("a",) for place in range(9)}
    right = {f"r{place}": (f"r{place - 1}",) if place else ("a",) for place in range(9)}
    places = layout({"a": (), **left, **right, "z": ("l8", "r8"), "end": ("z",)})
    # The first line that leads on alone is that from `z` to `end`.
    assert {name for name, one in places.items() if one.row == 1} == {"end"}


def test_steps_side_by_side_stand_in_the_order_of_the_workflow() -> None:
    names = [f"w_{place:02}" for place in range(30)]
    places = layout({"a": (), **dict.fromkeys(names, ("a",)), "z": tuple(names)})
    assert sorted(names, key=lambda name: places[name].y) == names


def test_a_hundred_steps_in_a_row_are_three_nodes_with_their_numbers() -> None:
    order = chain_of(100, 77)
    drawn = draw(order.plan, order.task, ["step_77_of_the_long_chain"])
    assert [(node.name, node.state) for node in drawn.nodes] == [
        ("77 done", "Processed"),
        ("step_77_of_the_long_chain", "Error"),
        ("22 pending", "Pending"),
    ]
    assert drawn.trouble == "step_77_of_the_long_chain"
    assert drawn.summary == "100 steps: 1 failed, 77 done, 22 pending"
    assert len({node.y for node in drawn.nodes}) == 1, "a straight line"
    whole = draw(order.plan, order.task, whole=True)
    assert (len(whole.nodes), whole.folded, drawn.folded) == (100, False, True)


def test_of_a_hundred_steps_side_by_side_the_failed_ones_are_seen() -> None:
    order = side_by_side(98, done=60, failed=3)
    drawn = draw(order.plan, order.task, ["line_60", "line_61", "line_62"])
    assert [node.name for node in drawn.nodes] == [
        *("begin", "60 done", "line_60", "line_61", "line_62", "35 under way", "finish")
    ]
    assert drawn.trouble == "line_60"


def test_an_undone_step_at_which_the_order_failed_is_marked_and_not_folded() -> None:
    order = chain_of(40, 17, undo=True)
    drawn = draw(order.plan, order.task, ["step_17_of_the_long_chain"])
    assert [(node.name, node.failed_before) for node in drawn.nodes] == [
        ("17 undone", False),
        ("step_17_of_the_long_chain", True),
        ("22 pending", False),
    ]
    assert drawn.nodes[1].words == "step_17_of_the_long_chain failed, Undone · worker"


def test_the_items_of_a_fan_out_are_counted_and_no_count_is_cut() -> None:
    order = fan_of(100, done=71, failed=7)
    (node,) = draw(order.plan, order.task, ["pick[71]"]).nodes
    assert node.notes == ("7 failed, 22 under way,", "71 done")
    assert (node.name, node.failed) == ("pick", True)


def test_the_name_of_a_step_is_whole_in_its_two_lines() -> None:
    assert name_lines("reserve_stock") == ("reserve_stock",)
    assert name_lines("step_00_of_the_long_chain") == ("step_00_of_the_long_", "chain")
    for name in (
        "a" * 40,
        f"ab_{'c' * 37}",
        f"{'a' * 19}_{'b' * 20}",
        "the_name_of_a_step_that_is_very_long_now",
    ):
        lines = name_lines(name)
        assert "".join(lines) == name
        assert len(lines[0]) <= FIRST_LINE
        assert len(lines[1]) <= SECOND_LINE


def test_a_step_after_enough_of_many_says_how_many_and_so_does_a_fan_out() -> None:
    drawn = draw(asked(enough=2).plan)
    assert [(node.name, node.enough) for node in drawn.nodes] == [
        *(("air", ""), ("sea", ""), ("road", "")),
        ("book", "2 of 3"),
    ]
    assert drawn.nodes[3].words == "book worker, 2 of 3 have to succeed"
    world = items(enough=2, count=4)
    assert [node.enough for node in draw(world.plan.stored or world.plan).nodes] == ["2 items", ""]
    (pick, _) = draw(world.plan, world.task).nodes
    assert pick.words == "pick 4 under way, 2 of 4 items have to succeed"


def html_of(drawn: Drawing) -> str:
    text = '{% import "drawings.html" as d %}{{ d.graph(drawn, "shop") }}'
    return Templates(Whereabouts("shop"))._environment.from_string(text).render(drawn=drawn)


def test_how_many_is_in_the_drawing_itself() -> None:
    assert html_of(draw(asked(enough=2).plan)).count('class="note">2 of 3</text>') == 1


def test_an_end_looks_unlike_a_step() -> None:
    drawn = draw(plan(step("a"), when_undone=(step("tell"),)))
    assert html_of(drawn).count('class="node end"') == 1
    assert html_of(drawn).count('class="node"') == 2
