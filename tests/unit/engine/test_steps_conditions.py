"""`when`: evaluated once, when a step first becomes ready, and kept as what the step became."""

from roundsman.definition.workflow import Undo
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from tests.support.machine_world import World, plan, requests_in, states, step

P = ProcessState
LARGE: Json = {"total": "150.00", "gift": False}

check = step("check", when="input.total > `100`")
pack = step("pack", check)
both = plan(check, pack)


def test_a_condition_that_holds_lets_the_step_run() -> None:
    world = World(both, order=LARGE)
    assert requests_in(world.start()) == ["check"]


def test_a_condition_that_does_not_hold_skips_the_step_and_what_follows_runs() -> None:
    world = World(both, order={"total": "99.99"})
    decision = world.start()
    assert states(world.task) == {"check": P.SKIPPED, "pack": P.PROCESSING}
    assert requests_in(decision) == ["pack"]
    assert "check: skipped, input.total > `100` is false" in decision.reason
    assert world.record("check").finished_at == world.now
    world.succeeds("pack")
    assert world.task_state() is TaskState.COMPLETED
    assert world.task.results() == {"pack": None}


def test_a_chain_of_skipped_steps_is_one_decision() -> None:
    steps = [step("s0", when="input.gift")]
    for number in range(1, 10):
        steps.append(step(f"s{number}", steps[-1], when="input.gift"))
    world = World(plan(*steps, step("last", steps[-1])), order=LARGE)
    assert requests_in(world.start()) == ["last"]
    assert world.task.version == 2


def test_a_condition_reads_the_results_of_the_steps_before() -> None:
    made = plan(step("stock"), step("order_more", "stock", when="results.stock.left < `3`"))
    for left, state in ((2, P.PROCESSING), (3, P.SKIPPED)):
        world = World(made)
        world.start()
        world.succeeds("stock", {"left": left})
        assert world.state("order_more") is state


def test_a_condition_is_evaluated_once_and_its_outcome_kept() -> None:
    """A later attempt runs though the condition would be false by now, and the other way."""
    world = World(both, order=LARGE)
    world.start()
    world.order = {"total": "1.00"}
    world.overdue("check")
    assert requests_in(world.start()) == ["check"]
    world.fails("check")
    assert requests_in(world.wait(60).start()) == ["check"]

    skipped = World(both, order={"total": "1.00"})
    skipped.start()
    skipped.order = LARGE
    skipped.start()
    skipped.succeeds("pack")
    assert skipped.task_state() is TaskState.COMPLETED


def test_a_condition_that_fails_ends_the_task_as_the_step_says_and_reveals_no_order_contents() -> (
    None
):
    made = plan(step("a", when="abs(input.total)", on_failure=Undo()))
    world = World(made, order={"total": "4111-1111"})
    decision = world.start()
    assert world.state("a") is P.ERROR
    assert world.task_state() is TaskState.UNDONE
    sentence = "when 'abs(input.total)' cannot be evaluated: abs() takes number, not string"
    assert world.record("a").error == StepError("ConditionFailed", sentence)
    assert decision.reason == f"a: {sentence}"
    assert "4111" not in repr(decision)
    assert world.record("a").started_at is None
    assert decision.history[0].attempt is None


def test_nothing_is_claimed_beside_a_condition_that_fails() -> None:
    made = plan(step("a", when="abs(input.total)"), step("b"), step("c", when="input.gift"))
    world = World(made, order=LARGE)
    decision = world.start()
    assert requests_in(decision) == []
    assert states(world.task) == {"a": P.ERROR}
    assert world.task_state() is TaskState.ARCHIVED


def test_what_was_claimed_before_a_condition_failed_is_watched_to_its_end() -> None:
    world = World(plan(step("b"), step("a", when="abs(input.total)")), order=LARGE)
    assert requests_in(world.start()) == ["b"]
    assert world.task_state() is TaskState.ACTIVE
    world.succeeds("b")
    assert world.task_state() is TaskState.ARCHIVED


def test_a_condition_that_fails_after_a_reply_does_not_lose_the_reply() -> None:
    made = plan(step("a"), step("b", "a", when="abs(results.a)"))
    world = World(made)
    world.start()
    world.succeeds("a", "text")
    assert states(world.task) == {"a": P.PROCESSED, "b": P.ERROR}
    assert world.task_state() is TaskState.ARCHIVED


def test_a_condition_is_not_asked_again_for_having_been_held() -> None:
    world = World(plan(step("a", when="input.wanted")), order={"wanted": True})
    world.hold("worker", 60).start()
    world.order = {"wanted": False}
    world.wait(90).inspect()
    world.start()
    assert world.lock("a")
