"""At most so many orders of one value are under way at once; the others wait for their turn."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import Archive, Limit
from roundsman.model.json import Json
from roundsman.model.order_limit import LimitRow
from roundsman_testing import TaskState, World
from roundsman_testing.world.crashes import crash_everywhere
from roundsman_testing.world.queues import COMMANDS
from tests.world.at_every_call import DEATHS, Kinds, at_every_call
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow, deliver, meanwhile, waiting

reserve = a_step("reserve", compensation=FENCED)
charge = a_step("charge", reserve, compensation=FENCED)
STORY = a_workflow(reserve, charge, limit=Limit(by="input.customer"), on_failure=Archive())
SECOND = timedelta(seconds=1)
HALF = timedelta(seconds=30)


def order(order_id: str, customer: Json = "c-1") -> dict[str, Json]:
    return {"orderId": order_id, "customer": customer}


def submitted(world: World, *orders: str, customer: Json = "c-1") -> list[str]:
    """Submit orders a second apart."""
    for each in orders:
        world.submit(order(each, customer))
        world.run(for_=SECOND)
    return list(orders)


def begun(world: World, orders: Sequence[str]) -> list[str]:
    return [each for each in orders if world.task(each).step("reserve").started_at is not None]


def ends(world: World, orders: Sequence[str]) -> list[str]:
    """The orders, as they have ended."""
    return sorted(orders, key=lambda each: world.task(each).ended_at or 0)


def row(world: World, order_id: str) -> LimitRow:
    key = world.task(order_id).limit
    assert key is not None
    return world.processes.limits.read(key)


def test_orders_of_one_value_begin_one_after_the_other_as_they_came() -> None:
    world = World(STORY)
    world.on("reserve").takes(HALF, 100)
    orders = submitted(world, "a", "b", "c")
    assert begun(world, orders) == ["a"]
    assert row(world, "a") == LimitRow(("a",), last="c")
    assert world.task("b").state is TaskState.RETRY
    world.run(for_=2 * MINUTE)
    assert begun(world, orders) == orders
    world.run()
    assert ends(world, orders) == orders
    assert {world.task(each).state for each in orders} == {TaskState.COMPLETED}
    assert row(world, "a") == LimitRow(), "nothing is left"


def test_a_flood_of_one_value_does_not_delay_another_or_none() -> None:
    world = World(STORY)
    world.on("reserve").takes(HALF, 100)
    flood = submitted(world, *(f"f{number:02}" for number in range(20)))
    other = submitted(world, "other", customer="c-2")
    nobody = submitted(world, "nobody", customer=None)
    empty = submitted(world, "empty", customer="")
    assert begun(world, [*flood, *other, *nobody, *empty]) == ["f00", "other", "nobody", "empty"]
    assert world.task("nobody").limit is None
    world.run()
    assert ends(world, flood) == flood


def test_as_many_as_the_limit_says_are_under_way() -> None:
    world = World(replace(STORY, limit=Limit(by="input.customer", at_once=3)))
    world.on("reserve").takes(HALF, 100)
    orders = submitted(world, *"abcdefgh")
    assert begun(world, orders) == ["a", "b", "c"]
    most = 0
    while any(not world.task(each).ended for each in orders):
        world.run(for_=SECOND)
        under_way = [one for one in orders if world.task(one).has_turn]
        assert sorted(row(world, "a").holders) == under_way
        most = max(most, len(under_way))
    assert most == 3


def test_waiting_costs_nothing_and_the_time_of_an_order_stands_still() -> None:
    world = World(STORY)
    world.on("reserve").takes(timedelta(seconds=50), 9)
    world.on("charge").waits(timedelta(hours=30))
    [_, waits] = submitted(world, "a", "b")
    world.run(for_=MINUTE)
    before = Counter(world.faults.calls)
    world.run(for_=timedelta(minutes=50))
    spent = Counter(world.faults.calls) - before
    assert spent["save"] == 0
    world.run()
    assert world.task(waits).state is TaskState.COMPLETED


@pytest.mark.parametrize("at_once", [1, 2])
def test_two_orders_that_are_submitted_together_race_for_one_turn(at_once: int) -> None:
    world = World(replace(STORY, limit=Limit(by="input.customer", at_once=at_once)), instances=3)
    world.on("reserve").takes(HALF, 100)
    for each in "abc":
        world.submit(order(each))
    world.run(for_=SECOND)
    assert len(begun(world, "abc")) == at_once
    world.run()
    assert {world.task(each).state for each in "abc"} == {TaskState.COMPLETED}


def archived(world: World, *orders: str) -> None:
    world.on("charge").refuses("CardDeclined", times=1)
    world.on("reserve").takes(HALF, 100)
    submitted(world, *orders)
    world.run()
    assert world.task(orders[0]).state is TaskState.ARCHIVED


def test_an_archived_order_lets_others_begin_and_waits_again_once_it_is_resubmitted() -> None:
    world = World(STORY)
    archived(world, "a", "b")
    assert world.task("b").state is TaskState.COMPLETED
    submitted(world, "c", "d")
    world.operator.resubmit("a")
    world.run(for_=SECOND)
    assert not world.task("a").has_turn
    assert world.task("a").step("reserve").finished_at is not None
    world.run()
    assert ends(world, "acd") == ["c", "d", "a"]
    assert world.task("a").state is TaskState.COMPLETED
    assert row(world, "a") == LimitRow()


def test_a_resubmitted_order_is_counted_by_its_corrected_value() -> None:
    world = World(STORY)
    archived(world, "a", "b")
    submitted(world, "c")
    submitted(world, "d", customer="c-2")
    world.operator.resubmit("a", used=True, sets={"customer": "c-2"})
    world.run(for_=SECOND)
    assert (world.task("a").limit, world.task("a").has_turn) == (world.task("d").limit, False)
    world.run()
    assert {world.task(each).state for each in "abcd"} == {TaskState.COMPLETED}


def test_an_order_that_is_corrected_to_no_value_is_not_limited() -> None:
    world = World(STORY)
    archived(world, "a")
    submitted(world, "b")
    world.operator.resubmit("a", used=True, sets={"customer": None})
    world.run(for_=10 * SECOND)
    assert world.task("a").state is TaskState.COMPLETED
    world.run()


@pytest.mark.parametrize("which", ["a", "b", "c"])
def test_a_cancelled_order_delays_no_other_whether_it_waits_or_is_under_way(which: str) -> None:
    world = World(STORY)
    world.on("reserve").takes(HALF, 100)
    orders = submitted(world, "a", "b", "c", "d")
    world.cancel(which)
    world.run()
    assert world.task(which).state is TaskState.CANCELLED
    left = [one for one in orders if one != which]
    assert [one for one in ends(world, orders) if one != which] == left
    assert row(world, "a") == LimitRow()


def test_an_undo_does_not_wait_for_a_turn_and_a_completed_order_is_taken_back() -> None:
    world = World(replace(STORY, on_failure=a_workflow(reserve).on_failure))
    world.on("reserve").takes(HALF, 100)
    submitted(world, "a")
    world.run()
    submitted(world, "b")
    world.operator.undo("a")
    world.run(for_=10 * SECOND)
    assert world.task("a").state is TaskState.UNDONE
    assert world.task("b").has_turn
    world.run()
    assert world.task("b").state is TaskState.COMPLETED


def test_a_parked_first_step_has_its_condition_evaluated_once_and_its_items_known() -> None:
    skipped = replace(reserve, when="input.kind == 'gift'")
    each = replace(charge, after=(skipped,), for_each="input.items")
    world = World(replace(STORY, steps=(skipped, each)))
    world.on("charge").takes(HALF, 100)
    for one in "ab":
        world.submit({**order(one), "items": [1, 2], "kind": "other"})
        world.run(for_=SECOND)
    assert world.task("b").state is TaskState.RETRY
    assert world.task("b").step("charge[0]").started_at is None
    world.run()
    assert {world.task(one).state for one in "ab"} == {TaskState.COMPLETED}


def test_an_order_that_starts_later_takes_its_turn_then() -> None:
    world = World(STORY)
    world.on("reserve").takes(HALF, 100)
    world.submit({**order("later"), "processing": {"processIn": 60}})
    [now] = submitted(world, "now")
    assert begun(world, [now]) == ["now"]
    world.run()
    assert ends(world, ["later", "now"]) == ["now", "later"]


def test_an_order_that_is_let_begin_passes_the_limit_and_the_others_wait_on() -> None:
    world = World(STORY)
    world.on("reserve").takes(HALF, 100)
    orders = submitted(world, "a", "b", "c")
    world.let_begin("c")
    world.run(for_=SECOND)
    assert begun(world, orders) == ["a", "c"]
    world.run(for_=40 * SECOND)
    assert begun(world, orders) == ["a", "b", "c"]
    world.run()
    assert ends(world, orders) == ["a", "c", "b"]


def test_a_holder_whose_task_is_gone_is_found_by_the_check_of_one_that_waits() -> None:
    world = World(STORY)
    world.on("reserve").takes(HALF, 100)
    submitted(world, "a")
    key = world.task("a").limit
    assert key is not None
    limits = world.processes.limits
    limits.write(key, limits.read(key), LimitRow(("a", "never-was", "a#7")))
    submitted(world, "b")
    world.run(for_=timedelta(minutes=50))
    assert world.task("b").state is TaskState.RETRY, "it waits for those that are listed"
    world.run()
    assert world.task("b").state is TaskState.COMPLETED
    assert limits.read(key) == LimitRow()


def test_a_row_that_is_lost_is_listed_again_at_the_next_look_at_its_orders() -> None:
    world = World(STORY)
    world.on("reserve").takes(HALF, 100)
    world.on("charge").waits(timedelta(hours=1), timedelta(minutes=40))
    submitted(world, "a")
    key = world.task("a").limit
    assert key is not None
    limits = world.processes.limits
    limits.write(key, limits.read(key), LimitRow())
    world.run(for_=timedelta(minutes=1))
    world.post.send_inspects([("a", 0)])
    world.run(for_=SECOND)
    assert limits.read(key) == LimitRow(("a",))
    submitted(world, "b")
    assert begun(world, ["b"]) == []
    world.run()
    assert ends(world, "ab") == ["a", "b"]


SHORT = a_workflow(reserve, limit=Limit(by="input.customer"), retain_for=timedelta())


@at_every_call
def test_whatever_call_fails_each_order_gets_its_turn_and_nothing_is_left(kinds: Kinds) -> None:
    def story(world: World) -> None:
        world.on("reserve").takes(HALF, 100)
        orders = submitted(world, "a", "b", "c")
        world.run(for_=10 * MINUTE if kinds == DEATHS else timedelta(hours=4))
        key = world.task("a").limit
        assert {world.task(each).state for each in orders} == {TaskState.COMPLETED}
        assert key is not None
        assert world.processes.limits.read(key) == LimitRow()

    crash_everywhere(story, lambda faults: World(SHORT, faults=faults), faults=kinds)


@at_every_call
def test_whatever_call_fails_a_repaired_or_cancelled_order_lets_the_next_begin(
    kinds: Kinds,
) -> None:
    def story(world: World) -> None:
        world.on("charge").refuses("CardDeclined", times=2)
        submitted(world, "a")
        world.run()
        submitted(world, "b", "c")
        for _ in range(2):
            if world.task("a").state is TaskState.ARCHIVED:
                world.operator.resubmit("a")
                world.run(for_=SECOND)
        world.cancel("c")
        world.run()
        for one in "abc":
            if world.task(one).state is TaskState.ARCHIVED:
                world.operator.resubmit(one)
        world.run()
        key = world.task("a").limit
        assert key is not None
        assert world.processes.limits.read(key) == LimitRow()
        assert {world.task(each).state for each in "ab"} == {TaskState.COMPLETED}

    crash_everywhere(story, lambda faults: World(STORY, faults=faults), faults=kinds)


def test_a_raised_number_holds_for_new_orders_and_those_that_wait_are_not_passed_by() -> None:
    world = World(STORY)
    world.on("reserve").takes(HALF, 100)
    old = submitted(world, "a", "b")
    world.deploy(replace(STORY, limit=Limit(by="input.customer", at_once=3)))
    new = submitted(world, "c", "d", "e")
    assert begun(world, [*old, *new]) == ["a"], "b has waited for longer, and waits for a"
    world.run(for_=45 * SECOND)
    assert begun(world, [*old, *new]) == ["a", "b", "c", "d"]
    world.run()
    assert ends(world, [*old, *new]) == ["a", "b", "c", "d", "e"]


def test_a_lowered_number_lets_none_begin_until_there_is_room() -> None:
    world = World(replace(STORY, limit=Limit(by="input.customer", at_once=2)))
    world.on("reserve").takes(HALF, 2)
    world.on("reserve").takes(MINUTE, 2)
    old = submitted(world, "a", "b")
    world.deploy(STORY)
    submitted(world, "c")
    assert begun(world, [*old, "c"]) == ["a", "b"]
    while not world.task("c").has_turn:
        world.run(for_=SECOND)
    assert {world.task(each).state for each in old} == {TaskState.COMPLETED}
    world.run()


def test_an_order_that_is_moved_goes_by_the_number_of_its_new_plan_or_by_none() -> None:
    world = World(STORY)
    world.on("reserve").takes(HALF, 100)
    orders = submitted(world, "a", "b", "c")
    world.deploy(replace(STORY, limit=Limit(by="input.customer", at_once=2)))
    world.operator.move("b")
    world.run(for_=SECOND)
    assert begun(world, orders) == ["a", "b"]
    world.deploy(replace(STORY, limit=None))
    world.operator.move("c")
    world.run(for_=SECOND)
    assert begun(world, orders) == orders
    world.run()
    assert row(world, "a") == LimitRow()


def test_an_order_under_way_that_is_held_keeps_its_turn() -> None:
    world = World(STORY)
    world.hold_all(timedelta(hours=1))
    world.run(for_=11 * SECOND)
    orders = submitted(world, "a", "b")
    assert row(world, "a").holders == ("a",)
    world.run(for_=10 * MINUTE)
    world.release_all()
    world.run(for_=10 * MINUTE)
    assert ends(world, orders) == orders
    assert {world.task(each).state for each in orders} == {TaskState.COMPLETED}


def test_an_erased_order_has_no_key_of_its_value() -> None:
    world = World(STORY)
    submitted(world, "a")
    world.run(for_=MINUTE)
    world.operator.erase("a", "request 17")
    world.run(for_=MINUTE)
    assert world.task("a").erased_at is not None
    assert world.task("a").limit is None


def test_an_order_whose_expression_fails_is_rejected_with_the_reason() -> None:
    world = World(replace(STORY, limit=Limit(by="abs(input.customer)")))
    world.submit(order("a", "c-1"))
    world.submit(order("b", 7))
    world.run(for_=MINUTE)
    assert world.task("b").state is TaskState.COMPLETED
    assert "a" not in world.processes.watch.tasks
    assert world.processes.store.order("a") is None


def test_after_a_restore_each_order_has_its_turn() -> None:
    world = World(STORY)
    world.on("reserve").takes(HALF, 100)
    orders = submitted(world, "a", "b", "c")
    backup = world.backup()
    world.run(for_=MINUTE)
    world.restore(backup)
    world.run()
    assert {world.task(each).state for each in orders} == {TaskState.COMPLETED}
    assert row(world, "a") == LimitRow()


@pytest.mark.parametrize(("lag", "within"), [(1_000, 20 * SECOND), (3_000, 2 * MINUTE)])
def test_an_order_that_the_index_does_not_show_yet_is_woken_by_the_end_before_it(
    lag: int, within: timedelta
) -> None:
    world = World(STORY)
    world.processes.tables.index_lag = lag
    for each in "abc":
        world.submit(order(each))
    world.run(for_=within)
    assert {world.task(each).state for each in "abc"} == {TaskState.COMPLETED}


def test_an_order_that_waits_begins_if_another_has_ended_before_that_was_stored() -> None:
    world = World(STORY)
    world.on("reserve").takes(HALF, 100)
    submitted(world, "a")
    key = world.task("a").limit
    assert key is not None
    limits = world.processes.limits
    world.processes.watch.passes_limit.add("a")  # as if it had ended
    done = meanwhile(world, "save", lambda: limits.write(key, limits.read(key), LimitRow()))
    submitted(world, "b")
    assert done == ["save"]
    world.run(for_=5 * SECOND)
    assert begun(world, ["b"]) == ["b"]
    world.run()


def test_an_order_that_is_cancelled_as_it_begins_leaves_no_turn() -> None:
    world = World(SHORT)

    def cancelled() -> None:
        world.operator.cancel("a")
        deliver(world, next(one for one in waiting(world, COMMANDS) if "cancel" in one.body))

    done = meanwhile(world, "parked", cancelled)
    submitted(world, "a")
    world.run(for_=MINUTE)
    assert done == ["parked"]
    assert world.task("a").state is TaskState.CANCELLED
    assert row(world, "a") == LimitRow()
