"""A step that runs once an item: its items, their requests, results and undo."""

import pytest

from roundsman.aws.dynamodb.codec import read_task, task_item
from roundsman.definition.plan import read_plan
from roundsman.definition.workflow import Archive, Retry, Undo
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.fan_out import count_items
from roundsman.engine.requests import agent_of, request_for
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, step_of
from tests.support.fan_out_stories import FENCED, lines, of, pick, picking
from tests.support.machine_world import T0, World, begun, plan, requests_in, states, step
from tests.support.steps import stored_step

P = ProcessState


def item(world: World, name: str) -> Json:
    return world.request(name).item


def results(world: World, name: str) -> object:
    return world.request(name).results


# --- The plan ------------------------------------------------------------------------------------


def test_the_expanded_plan_has_a_step_for_each_item_where_the_step_was() -> None:
    first = step("first")
    picked = pick(first, when="input.wanted", tolerate=0.5)
    made = plan(first, picked, step("ship", picked))
    expanded = made.expanded({"pick": 2})
    assert list(expanded.steps) == ["first", "pick[0]", "pick[1]", "ship"]
    assert expanded.steps["ship"].after == ("pick[0]", "pick[1]")
    assert expanded.steps["pick[1]"].after == ("first",)
    assert expanded.before("ship") == {"first", "pick[0]", "pick[1]"}
    assert expanded.before("pick[1]") == {"first"}
    one = expanded.steps["pick[1]"]
    assert (one.item_of, one.index, one.when, one.fans_out) == ("pick", 1, None, False)
    assert made.steps["pick"].fans_out
    assert not expanded.steps["ship"].fans_out
    assert expanded.hash == made.hash


def test_a_plan_is_expanded_once_for_each_count_and_always_from_the_stored_one() -> None:
    made = plan(pick(), step("ship", "pick"))
    expanded = made.expanded({"pick": 2})
    assert made.expanded({"pick": 2}) is expanded
    assert expanded.expanded({"pick": 3}) is made.expanded({"pick": 3})
    assert list(expanded.expanded({"pick": 3}).steps)[-2:] == ["pick[2]", "ship"]
    assert expanded.expanded({}) is made
    assert made.expanded({"pick": 0}) is made
    assert made.expanded({"of another plan": 3}) is made
    assert plan(step("a")).expanded({}).steps.keys() == {"a"}


def test_no_more_than_a_bounded_number_of_expansions_is_kept() -> None:
    made = plan(pick(), step("ship", "pick"))
    for count in range(1, 100):
        assert len(made.expanded({"pick": count}).steps) == count + 1
    assert len(made._expansions) <= 64


def test_a_fan_out_after_another_comes_after_all_its_items() -> None:
    picked = pick()
    packed = step("pack", picked, for_each="results.pick")
    made = plan(picked, packed, step("ship", packed))
    expanded = made.expanded({"pick": 2, "pack": 2})
    assert expanded.steps["pack[1]"].after == ("pick[0]", "pick[1]")
    assert expanded.before("ship") == {"pick[0]", "pick[1]", "pack[0]", "pack[1]"}
    assert read_plan(made.text) == made


# --- The items -----------------------------------------------------------------------------------


def test_every_item_is_claimed_at_once_with_its_own_record_and_request() -> None:
    world = World(plan(pick(), step("ship", "pick")), order=lines(3))
    decision = world.start()
    assert requests_in(decision) == ["pick[0]", "pick[1]", "pick[2]"]
    assert "pick: 3 items" in decision.reason
    assert world.task.fan_outs == {"pick": 3}
    assert states(world.task) == dict.fromkeys(requests_in(decision), P.PROCESSING)
    assert [item(world, f"pick[{n}]") for n in range(3)] == [
        {"sku": "KB-0"},
        {"sku": "KB-1"},
        {"sku": "KB-2"},
    ]
    request = world.request("pick[2]")
    assert request.step == "pick[2]"
    assert request.idempotency_key == "ord-1/pick[2]/perform"
    assert request.input == world.order
    assert agent_of(world.plan, world.task, "pick[2]") == "worker"
    assert step_of("pick[2]") == step_of("pick") == "pick"


def test_what_comes_after_starts_when_every_item_is_done_and_sees_their_answers_as_a_list() -> None:
    world = picking(2)
    world.succeeds("pick[1]", {"bin": "B"})
    assert world.state("ship") is P.PENDING
    world.succeeds("pick[0]", {"bin": "A"})
    assert world.state("ship") is P.PROCESSING
    assert results(world, "ship") == {"pick": [{"bin": "A"}, {"bin": "B"}]}
    assert item(world, "ship") is None
    world.succeeds("ship")
    assert world.task_state() is TaskState.COMPLETED
    assert world.task.results()["pick"] == [{"bin": "A"}, {"bin": "B"}]


def test_a_condition_sees_the_list_of_answers_once_it_is_whole() -> None:
    picked = pick()
    gift = step("gift", picked, when="length(results.pick) == `2`")
    world = of(plan(picked, gift), 2)
    world.succeeds("pick[0]")
    world.succeeds("pick[1]")
    assert world.state("gift") is P.PROCESSING


def test_no_items_skip_the_step_and_what_comes_after_sees_an_empty_list() -> None:
    world = picking(0)
    assert world.state("pick") is P.SKIPPED
    assert world.task.fan_outs == {"pick": 0}
    assert results(world, "ship") == {"pick": []}
    assert "pick: skipped, no items" in world.decisions[-1][2].reason
    world.succeeds("ship")
    assert world.task_state() is TaskState.COMPLETED


def test_a_false_condition_skips_the_step_as_a_whole_and_no_item_asks_again() -> None:
    skipped = of(plan(pick(when="input.no")), 2)
    assert states(skipped.task) == {"pick": P.SKIPPED}
    assert skipped.task.fan_outs == {}
    runs = of(plan(pick(when="length(input.lines) == `2`", retry=Retry(max_attempts=2))), 2)
    runs.order = {"lines": []}  # never looked at again
    runs.fails("pick[0]")
    runs.wait(10).start()
    assert runs.state("pick[0]") is P.PROCESSING


def test_items_may_come_from_what_steps_before_answered() -> None:
    quote = step("quote")
    world = begun(quote, pick(quote, for_each="results.quote.offers"), order={})
    world.succeeds("quote", {"offers": ["A", "B"]})
    assert [item(world, "pick[0]"), item(world, "pick[1]")] == ["A", "B"]


def test_what_a_step_beside_it_answers_later_changes_no_item() -> None:
    """`results` in a for_each is what the steps before answered, and nothing else."""
    beside = step("beside")
    world = begun(pick(for_each="results.* || input.lines"), beside, order=lines(2))
    world.succeeds("beside", {"a": 1})
    assert item(world, "pick[1]") == {"sku": "KB-1"}


def test_the_order_of_an_answers_keys_is_not_that_of_the_message_that_brought_it() -> None:
    """An agent in another language may send them in any order; stored they are sorted."""
    quote = step("quote")
    world = begun(quote, pick(quote, for_each="results.quote.*"), order={})
    world.succeeds("quote", {"b": "B", "a": "A"})
    records = [item(world, "pick[0]"), item(world, "pick[1]")]
    world.task = read_task(task_item(world.task))
    assert [item(world, "pick[0]"), item(world, "pick[1]")] == records == ["A", "B"]


def test_an_item_is_the_same_when_its_undo_is_made_again_after_all_else_is_undone() -> None:
    quote = step("quote", compensation=FENCED)
    picked = pick(quote, compensation=FENCED, for_each="results.quote")
    world = begun(quote, picked, step("ship", picked), on_failure=Undo(), order={})
    world.succeeds("quote", ["A", "B"])
    world.succeeds("pick[0]")
    world.succeeds("pick[1]", {"bin": 7})
    world.is_refused("ship")
    world.succeeds("pick[0]")
    world.is_refused("pick[1]")
    world.succeeds("quote")
    assert world.task_state() is TaskState.ARCHIVED
    world.resubmit()
    world.start()
    request = world.request("pick[1]")
    assert (request.operation, request.item) == ("undo", "B")
    assert request.perform_key == "ord-1/pick[1]/perform"


def test_an_undo_sees_what_its_item_answered_under_the_name_of_its_request() -> None:
    world = picking(1, compensation=FENCED)
    world.succeeds("pick[0]", {"bin": 7})
    world.is_refused("ship")
    assert world.state("pick[0]") is P.UNDOING
    assert results(world, "pick[0]") == {"pick[0]": {"bin": 7}}


@pytest.mark.parametrize(
    ("for_each", "kind", "message"),
    [
        ("input.total", "ForEachNotAList", "must give a list, not a string"),
        ("input", "ForEachNotAList", "must give a list, not an object"),
        ("input.none", "ForEachNotAList", "must give a list, not nothing"),
        ("`7`", "ForEachNotAList", "must give a list, not a number"),
        ("input.lines && `true`", "ForEachNotAList", "must give a list, not a boolean"),
        (
            "sort(input.total)",
            "ForEachFailed",
            "sort() takes array-string or array-number, not string",
        ),
        ("input.lines[].max_by(@, &sku)", "ForEachFailed", "max_by() takes array, not object"),
        ("[&a]", "ForEachFailed", "gives items that are not JSON"),
        ("input.large", "ItemTooLarge", "an item has 204803 bytes; 204800 fit"),
    ],
)
def test_a_list_that_cannot_be_run_over_fails_the_step_in_a_sentence(
    for_each: str, kind: str, message: str
) -> None:
    made = plan(pick(for_each=for_each), step("ship", "pick"), on_failure=Archive())
    order: Json = {"total": "secret", "lines": [{"sku": "secret"}], "large": ["x" * 204_801]}
    world = World(made, order=order)
    world.start()
    error = world.record("pick").error
    assert world.state("pick") is P.ERROR
    assert error is not None
    assert error.type == kind
    assert message in error.message
    assert world.decisions[-1][2].reason.startswith(f"pick: {error.message}")
    assert "secret" not in world.decisions[-1][2].reason
    assert world.task_state() is TaskState.ARCHIVED
    assert world.task.fan_outs == {}


@pytest.mark.parametrize(("count", "fits"), [(99, True), (100, False)])
def test_a_task_has_a_hundred_steps_at_most_items_included(count: int, fits: bool) -> None:
    world = picking(count, on_failure=Archive())
    if fits:
        assert len(world.task.steps) == 99
        return
    error = world.record("pick").error
    assert error == StepError("TooManyItems", "100 items beside 1 other steps; 100 fit in one task")


def test_the_items_of_a_second_fan_out_are_counted_with_those_of_the_first() -> None:
    packed = step("pack", for_each="input.lines")
    world = of(plan(pick(), packed, on_failure=Archive()), 51)
    assert world.task.fan_outs == {"pick": 51}
    error = world.record("pack").error
    assert error is not None
    assert error.message == "51 items beside 51 other steps; 100 fit in one task"


def test_a_step_that_was_asked_to_start_gives_way_to_its_items() -> None:
    """A person let it start, and its Start was lost: its record is no item's."""
    first = step("first", on_failure=Archive())
    world = of(plan(first, pick(first)), 2)
    world.is_refused("first")
    world.resolve("first", did=True)
    assert stored_step(world.record("pick")).complete_by is not None
    world.start()
    assert set(world.task.steps) == {"first", "pick[0]", "pick[1]"}


def test_a_changed_list_is_a_defect_and_no_request_is_made_of_it() -> None:
    world = picking(2)
    with pytest.raises(ValueError, match=r"pick\[1\]: the list of its items has changed"):
        request_for(world.plan, world.task, "pick[1]", lines(1), world.now)


def test_the_counts_survive_storing() -> None:
    world = picking(2)
    assert read_task(task_item(world.task)) == world.task
    assert world.task.fan_outs == {"pick": 2}


def test_a_step_that_does_not_fan_out_has_no_items() -> None:
    made = plan(step("a"))
    decision = DecisionBuilder(World(made).task, T0)
    context = DecisionContext(made, decision, None, {}, 0.0)
    assert count_items(context, made.steps["a"], None) == 0
