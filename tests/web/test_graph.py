"""Where the drawing of a workflow has its steps and edges."""

from dataclasses import replace

from roundsman.model.states import ProcessState
from roundsman_console.web.drawings.graph import HEIGHT, WIDTH, draw, positions
from tests.support.machine_world import World, plan, step
from tests.support.steps import step_record

DIAMOND = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}


def test_a_step_is_right_of_all_its_predecessors() -> None:
    places = positions(DIAMOND)
    for name, befores in DIAMOND.items():
        assert all(places[other][0] + WIDTH < places[name][0] for other in befores)


def test_no_two_steps_overlap() -> None:
    apart = {**DIAMOND, "alone": (), "x": (), "y": ("x",)}
    places = list(positions(apart).values())
    assert len(places) == len(apart)
    for number, (x, y) in enumerate(places):
        for other_x, other_y in places[:number]:
            assert abs(x - other_x) >= WIDTH or abs(y - other_y) >= HEIGHT


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
    assert (node.state, node.note) == ("Error", "1 Error, 2 Processed")
