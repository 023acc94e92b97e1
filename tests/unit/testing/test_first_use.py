"""What somebody meets who tests a workflow for the first time: mistakes are reported."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from roundsman import (
    Agent,
    Compensation,
    DefinitionError,
    Json,
    PermanentError,
    Retry,
    Step,
    StepRequest,
    Undo,
    Workflow,
)
from roundsman.model.states import ProcessState
from roundsman.model.task import UNTOUCHED
from roundsman_testing import FOR_EVER, Fault, Faults, Mishaps, TaskState, World, crash_everywhere

HALF_A_MINUTE = timedelta(seconds=30)
FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=8))

THRICE = Retry(max_attempts=3)

book = Step(
    name="book",
    agent="desk",
    complete_within=HALF_A_MINUTE,
    retry=THRICE,
    compensation=FENCED,
)
quote = Step(name="quote", agent="rates", complete_within=HALF_A_MINUTE, retry=THRICE)
greet = Step(
    name="greet",
    agent="desk",
    after=(book, quote),
    when="input.vip",
    complete_within=HALF_A_MINUTE,
    retry=THRICE,
    compensation=FENCED,
)
pack = Step(
    name="pack",
    agent="shelf",
    after=(book, quote),
    for_each="input.bags",
    complete_within=HALF_A_MINUTE,
    retry=THRICE,
    compensation=FENCED,
)
TRIP = Workflow(
    name="trip",
    steps=(book, quote, greet, pack),
    complete_within=timedelta(hours=2),
    on_failure=Undo(),
    retain_for=timedelta(days=1),
)


def rates(answer: Callable[[StepRequest], Json]) -> Agent:
    agent = Agent("rates")
    agent.performs(quote)(answer)
    return agent


def finished(world: World) -> None:
    order_id = world.submit({"vip": True, "bags": ["red", "blue"]})
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert sorted(world.standing(order_id)) == ["book", "greet", "pack[0]", "pack[1]", "quote"]


@pytest.mark.exhaustive
def test_a_new_workflow_of_all_kinds_of_steps_survives_a_crash_at_every_call() -> None:
    assert crash_everywhere(finished, lambda faults: World(TRIP, faults=faults)).runs > 100


def test_an_exception_of_an_authors_function_is_in_the_trace_with_its_place() -> None:
    def forgets(request: StepRequest) -> Json:
        return request.input["price"]

    world = World(TRIP, agents=[rates(forgets)])
    order_id = world.submit({"bags": []})
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE
    trace = str(world.trace)
    assert "KeyError: 'price'" in trace
    assert 'return request.input["price"]' in trace
    assert not any("price" in row.reason for row in world.history(order_id))


def test_a_permanent_error_without_a_type_ends_the_test() -> None:
    def refuses(_: StepRequest) -> Json:
        raise PermanentError("no room is left")

    world = World(TRIP, agents=[rates(refuses)])
    world.submit({"bags": []})
    with pytest.raises(
        ValueError,
        match=r"^quote: PermanentError\('no room is left'\) has a sentence in place of its type; "
        r"write PermanentError\(\"CardDeclined\", 'no room is left'\) with a type of yours$",
    ):
        world.run()


def test_a_step_that_a_workflow_does_not_have_is_refused_with_those_it_has() -> None:
    world = World(TRIP)
    order_id = world.submit({"bags": ["red"]})
    world.run()
    task = world.task(order_id)
    assert task.step("greet").process_state is ProcessState.SKIPPED
    assert task.step("pack[0]").process_state is ProcessState.PROCESSED
    for name, message in (
        ("boook", "workflow 'trip' has no step 'boook'; it has book, quote, greet, pack"),
        ("book[0]", r"step 'book' has no for_each, so there is no 'book\[0\]'"),
        ("pack[1]", r"step 'pack' has 1 items, so there is no 'pack\[1\]'"),
    ):
        with pytest.raises(ValueError, match=message):
            task.step(name)


def test_a_step_that_has_not_begun_is_untouched() -> None:
    world = World(TRIP)
    order_id = world.submit({"bags": ["red"]})
    world.run(until=lambda: order_id in world.processes.watch.tasks)
    assert world.task(order_id).step("pack[7]") == UNTOUCHED
    assert world.task(order_id) == world.task(order_id)


def test_an_order_is_what_json_makes_of_it_at_the_moment_it_is_sent() -> None:
    bags: list[Json] = ["red"]
    world = World(TRIP)
    first = world.submit({"bags": bags})
    second = world.submit({"bags": cast("Json", ("red", "blue"))})
    bags.append("green")
    world.run()
    assert world.standing(first).count("pack[1]") == 0
    assert "pack[1]" in world.standing(second)


@pytest.mark.parametrize("value", [datetime(2027, 1, 1, tzinfo=UTC), {1}, float("nan")])
def test_an_order_that_is_no_json_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="an order must be a JSON object"):
        World(TRIP).submit({"at": cast("Json", value)})


def test_a_rule_about_mail_that_is_used_up_leaves_the_next_its_turn() -> None:
    world = World(TRIP)
    world.mail("replies").is_lost()
    world.mail("replies").is_lost()
    order_id = world.submit({"bags": []})
    world.run()
    task = world.task(order_id)
    assert task.state is TaskState.COMPLETED
    assert [task.step(name).failure_count for name in ("book", "quote")] == [1, 1]


def test_what_is_waited_for_and_never_so_fails_the_test() -> None:
    world = World(TRIP)
    world.submit({"bags": []})
    with pytest.raises(AssertionError, match="the condition in `until` never holds"):
        world.run(until=lambda: False)
    assert world.run(for_=HALF_A_MINUTE, until=lambda: False) is world


def test_an_order_that_was_not_run_yet_says_so() -> None:
    world = World(TRIP)
    order_id = world.submit({"bags": []})
    with pytest.raises(LookupError, match=r"never taken; run\(\) has it taken"):
        world.task(order_id)


def test_a_step_that_was_never_begun_cannot_be_resolved() -> None:
    world = World(TRIP)
    world.on("book").fails(times=FOR_EVER)
    order_id = world.submit({"bags": []})
    world.run(for_=timedelta(seconds=1))
    with pytest.raises(ValueError, match="has begun no step 'boook'; it has book"):
        world.operator.resolve(order_id, "boook", did=True)
    assert "boook" not in world.standing(order_id)


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a call that there is not": (
        lambda: Faults().on("savee", Fault.CRASH_BEFORE),
        "no call is named 'savee'; there are create, save",
    ),
    "a fault that cannot be": (
        lambda: Faults().on("load", Fault.ANSWER_LOST),
        "ANSWER_LOST cannot hit load",
    ),
    "a loss of what is no message": (
        lambda: Faults().on("save", Fault.SWALLOWED),
        "SWALLOWED cannot hit save",
    ),
    "call 0": (lambda: Faults().at(0, Fault.CRASH_BEFORE), "counted from 1"),
    "the 0th save": (lambda: Faults().on("save", Fault.UNKNOWN, nth=0), "counted from 1"),
    "an agent of no step": (
        lambda: World(TRIP, agents=[Agent("press")]),
        "no step of this world is of agent 'press'; the steps' are desk, rates, shelf",
    ),
    "two agents of one name": (
        lambda: World(TRIP, agents=[Agent("desk"), Agent("desk")]),
        "two agents are named 'desk'",
    ),
    "no supervisor": (lambda: World(TRIP, supervisors=0), "needs a supervisor"),
    "no interval": (lambda: World(TRIP, interval=timedelta()), "needs a supervisor"),
    "a clock of nobody": (
        lambda: World(TRIP, skew={"agent": HALF_A_MINUTE}),
        "no part 'agent' has a clock; there are submission, scheduler, supervisor",
    ),
    "more than always": (lambda: Mishaps(crashes=3), "crashes must be a share from 0 to 1"),
    "less than never": (lambda: Mishaps.some().but(losses=-1), "losses must be a share"),
    "no times": (lambda: World(TRIP).on("book").fails(times=0), "times must be 1 or more"),
    "a hold of no kind": (
        lambda: World(TRIP).hold("desk", HALF_A_MINUTE, kind="shut"),
        "kind operator or breaker, not 'shut'",
    ),
    "a sentence in place of a type": (
        lambda: World(TRIP).on("book").refuses("no room is left"),
        r"'no room is left' is not a type; write refuses\(\"CardDeclined\", 'no room is left'\)",
    ),
    "an answer without a type": (
        lambda: World(TRIP).answer("ord-1", "book", error=PermanentError("no room is left")),
        r"book: PermanentError\('no room is left'\) has a sentence in place of its type",
    ),
    "a release of nobody": (lambda: World(TRIP).release("dsk"), "no agent 'dsk'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_would_silently_come_to_nothing_is_refused(mistake: str) -> None:
    make, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=message):
        make()


def test_an_agent_without_a_function_of_its_step_is_refused_by_the_world() -> None:
    with pytest.raises(DefinitionError, match="step 'book' of workflow 'trip' has no function"):
        World(TRIP, agents=[Agent("desk")])


def test_a_story_without_a_call_to_crash_at_proves_nothing_and_fails() -> None:
    with pytest.raises(ValueError, match="of 0 calls none has one of these faults"):
        crash_everywhere(lambda _: None, lambda faults: World(TRIP, faults=faults))
    with pytest.raises(ValueError, match="no fault can be tried"):
        crash_everywhere(finished, lambda faults: World(TRIP, faults=faults), faults=[])


def test_worlds_that_are_not_given_the_faults_are_found_out() -> None:
    with pytest.raises(AssertionError, match="has `make` given the faults to its World"):
        crash_everywhere(finished, lambda _: World(TRIP))
