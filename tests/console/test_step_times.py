"""When the attempts of a step began and ended, from the record and history that the engine made."""

from dataclasses import replace
from datetime import timedelta

from roundsman.definition.workflow import Compensation, Signal, Sleep, Undo
from roundsman.model.events import HistoryRow
from roundsman_console.facts.order.step_times import StepTime, open_times, retry_at, step_times
from tests.support.large_orders import FENCED, facts_of, history_of
from tests.support.machine_world import T0, World, plan, step

SLOW_TO_UNDO = Compensation(fences_late_performs=False, complete_within=timedelta(seconds=30))


def times_of(world: World, name: str) -> list[StepTime]:
    at = world.now if world.task.ended_at is None else world.task.ended_at
    return step_times(facts_of(world).step(name), at)


def told(world: World, name: str) -> list[tuple[str, int, int, str]]:
    """Each time: its kind, its begin and its end in ms since T0, and how it ended.

    A begin or an end that is not known has a `?` after the kind.
    """
    return [
        (
            one.kind + ("" if one.since_known and one.until_known else "?"),
            one.since - T0,
            one.until - T0,
            one.end,
        )
        for one in times_of(world, name)
    ]


def test_a_healthy_step_has_the_attempt_of_its_record() -> None:
    world = World(plan(step("a")))
    world.start()
    world.now += 40
    assert told(world, "a") == [("attempt", 0, 40, "goes on")]
    world.now += 60
    world.succeeds("a")
    world.now += 500
    assert told(world, "a") == [("attempt", 0, 100, "done")]
    assert history_of(world) == [], "a healthy order has no row"


def test_each_failed_attempt_and_each_wait_before_the_next_one_is_a_time() -> None:
    world = World(plan(step("a")))
    world.start()
    world.now += 2_000
    world.fails("a", retry_after=10_000)
    assert told(world, "a") == [
        ("attempt", 0, 2_000, "failed"),
        ("wait", 2_000, 2_000, "goes on"),
    ]
    world.now += 10_000
    world.inspect()
    world.now += 300
    world.start()
    world.now += 700
    world.fails("a", retry_after=20_000)
    world.now += 5_000
    assert told(world, "a") == [
        # The record has the start of the last attempt only.
        ("attempt?", 0, 2_000, "failed"),
        ("wait", 2_000, 12_000, "done"),
        ("attempt", 12_300, 13_000, "failed"),
        ("wait", 13_000, 18_000, "goes on"),
    ]
    assert [one.attempt for one in times_of(world, "a")] == [1, 1, 2, 2]


def test_a_wait_ends_when_a_person_runs_the_step_now() -> None:
    world = World(plan(step("a")))
    world.start()
    world.fails("a", retry_after=60_000)
    world.now += 5_000
    world.run_now()
    world.start()
    world.now += 100
    world.succeeds("a")
    assert told(world, "a") == [
        ("attempt?", 0, 0, "failed"),
        ("wait", 0, 5_000, "done"),
        ("attempt", 5_000, 5_100, "done"),
    ]


def test_an_undone_step_has_its_attempt_and_its_undo() -> None:
    world = World(plan(step("a", compensation=FENCED), step("b", "a"), on_failure=Undo()))
    world.start()
    world.now += 300
    world.succeeds("a")
    world.start()
    world.now += 400
    world.is_refused("b")
    world.now += 50
    world.start()
    world.now += 250
    world.succeeds("a")
    # The record of `a` has the start of its undo; it was done before `b` failed, not known when.
    assert told(world, "a") == [
        ("attempt?", 0, 700, "not known"),
        ("undo", 700, 1_000, "done"),
    ]
    assert told(world, "b") == [("attempt", 300, 700, "failed")]


def test_an_undo_that_waits_until_no_request_can_act_has_that_wait() -> None:
    world = World(plan(step("a", compensation=SLOW_TO_UNDO), on_failure=Undo()))
    world.start()
    world.now += 1_000
    world.is_refused("a")
    world.now += 4_000
    [attempt, wait] = times_of(world, "a")
    assert (attempt.kind, attempt.end, attempt.until - T0) == ("attempt", "failed", 1_000)
    assert (wait.kind, wait.end, wait.since - T0, wait.until - T0) == (
        *("wait", "goes on"),
        *(1_000, 5_000),
    )


def test_a_hold_goes_on_until_the_next_attempt_and_its_end_is_known_from_the_record() -> None:
    world = World(plan(step("a"), step("b", "a")))
    world.start()
    world.hold("worker", 60)
    world.succeeds("a")
    world.now += 30_000
    assert told(world, "b") == [("held", 0, 30_000, "goes on")]
    world.release("worker")
    world.inspect()
    world.start()
    world.now += 200
    world.is_refused("b")
    assert told(world, "b") == [
        ("held", 0, 30_000, "done"),
        ("attempt", 30_000, 30_200, "failed"),
    ]


def test_a_resubmitted_order_keeps_the_times_of_its_first_try_and_has_the_next_round() -> None:
    world = World(plan(step("a", compensation=FENCED), on_failure=Undo()))
    world.start()
    world.now += 100
    world.is_refused("a")
    world.start()
    world.now += 100
    world.succeeds("a")
    world.now += 60_000
    world.resubmit(again=True)
    world.now += 50
    world.start()
    world.now += 100
    world.succeeds("a")
    assert told(world, "a") == [
        ("attempt?", 0, 100, "failed"),
        ("undo?", 100, 200, "done"),
        ("attempt", 60_250, 60_350, "done"),
    ]
    assert [one.round for one in times_of(world, "a")] == [None, None, 2]
    opened = open_times(facts_of(world), world.now)
    assert [(one.since - T0, one.until - T0, one.end) for one in opened] == [
        (0, 200, "failed"),
        (60_200, 60_350, "done"),
    ]


def test_a_sleep_is_a_wait_from_the_end_of_what_came_before_it() -> None:
    first = step("first")
    nap = Sleep(name="nap", for_=timedelta(minutes=2), after=(first,))
    world = World(plan(first, nap, step("a", nap)))
    world.start()
    world.wait(10).succeeds("first")
    world.wait(60)
    assert told(world, "nap") == [("wait", 10_000, 70_000, "goes on")]
    world.wait(60).inspect()
    world.wait(60)
    assert told(world, "nap") == [("wait?", 10_000, 130_000, "done")]


def test_a_wait_for_a_signal_lasts_from_the_end_of_what_came_before_it() -> None:
    first = step("first")
    paid = Signal("paid", within=timedelta(minutes=2), after=(first,))
    world = World(plan(first, paid, step("a", paid)))
    world.start()
    world.wait(10).succeeds("first")
    world.wait(60)
    assert told(world, "paid") == [("wait", 10_000, 70_000, "goes on")]
    world.signal("paid")
    world.wait(60)
    assert told(world, "paid") == [("wait?", 10_000, 70_000, "done")]


def test_what_a_person_stated_is_no_attempt() -> None:
    world = World(plan(step("a")))
    world.start()
    world.now += 100
    world.is_refused("a")
    world.now += 1_000
    world.resolve("a")
    assert told(world, "a") == [("attempt", 0, 100, "failed")]


def test_a_step_that_fails_without_a_request_has_no_attempt() -> None:
    world = World(plan(step("a", for_each="input.lines")), order={"lines": "none"})
    world.start()
    assert [row.kind for row in history_of(world)] == ["failed"]
    assert told(world, "a") == []


def test_no_time_is_after_the_instant_that_is_asked_about() -> None:
    row = HistoryRow(1, T0 + 10, "failed", "a", 1, "a: failed; retried at 2027-01-15T09:00:00Z")
    world = World(plan(step("a")))
    found = step_times(replace(facts_of(world), history=[row]).step("a"), T0 + 5)
    assert [(one.since - T0, one.until - T0) for one in found] == [(0, 5)]


def test_an_instant_in_the_words_of_a_service_is_not_taken_for_the_next_attempt() -> None:
    assert retry_at("a: failed; retried at 2027-01-15T08:00:05Z") == T0 + 5_000
    assert retry_at("a: failed; retried at 2027-99-99T99:00:00Z") is None
    assert retry_at("a: failed for good: Busy: x; retried at 2027-01-15T08:00:05Z") is None
    assert retry_at("a (undo): failed for good: x; retried at 2027-01-15T08:00:05Z") is None
    of_the_service = "a: attempt 1 failed: Busy: x; retried at 2099-01-01T00:00:00Z"
    assert retry_at(f"{of_the_service}; retried at 2027-01-15T08:00:05Z") == T0 + 5_000
