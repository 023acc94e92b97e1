"""What an undo leaves behind: the record and the history, when it begins and when it is over."""

from roundsman.definition.workflow import Compensation, Retry, Undo
from roundsman.engine.due import START_WITHIN
from roundsman.engine.requests import agent_of
from roundsman.model.events import AgentView, Decision
from roundsman.model.instants import SECOND, SKEW
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect
from tests.support.coping_stories import FENCED, ONCE, routed
from tests.support.fan_out_stories import one_is_left_out
from tests.support.machine_world import T0, World, begun, step
from tests.support.steps import stored_step

THREE = ("first", "second", "third")
UNFENCED = Compensation()
FENCED_TWICE = Compensation(fences_late_performs=True, retry=Retry(max_attempts=2))
THRICE = Compensation(fences_late_performs=True, retry=Retry(max_attempts=3))


def failing(compensation: Compensation, attempts: int = 3) -> World:
    made = step("a", compensation=compensation, retry=Retry(max_attempts=attempts))
    return begun(made, on_failure=Undo())


def kinds(decision: Decision) -> list[str]:
    return [row.kind for row in decision.history]


# --- when it begins -------------------------------------------------------------------------------


def test_what_was_proven_of_a_perform_is_not_known_of_its_undo() -> None:
    world = failing(UNFENCED)
    world.is_refused("a", effect=Effect.NONE)
    assert world.state("a") is ProcessState.UNDOING
    assert world.record("a").effect is None
    assert world.record("a").outcome_unknown


def test_an_unfenced_undo_is_started_in_time_counted_from_the_end_of_its_wait() -> None:
    world = failing(UNFENCED)
    world.fails("a", retry_after=9 * SECOND)
    assert world.record("a").acts_until == T0 + 30 * SECOND
    world.ask_undo()
    record = world.record("a")
    assert record.not_before == T0 + 30 * SECOND + SKEW
    assert stored_step(record).complete_by == record.not_before + START_WITHIN
    assert record.acts_until is None


def test_an_undo_has_none_of_the_time_that_was_added_to_its_perform() -> None:
    world = failing(FENCED)
    world.extend(60, "a")
    world.overdue("a")
    assert world.record("a").granted == 60 * SECOND
    world.ask_undo()
    assert (world.state("a"), world.record("a").granted) == (ProcessState.UNDOING, 0)

    world = failing(FENCED)
    world.extend(60, "a")
    world.overdue("a")
    world.start()
    world.fails("a", retry_after=60 * SECOND)
    assert world.record("a").granted == 60 * SECOND
    world.ask_undo()
    assert (world.state("a"), world.record("a").granted) == (ProcessState.UNDOING, 0)


def test_what_was_excused_of_a_perform_is_not_counted_for_its_undo() -> None:
    world = failing(FENCED)
    world.agents = {"worker/normal": AgentView(unread=True)}
    world.overdue("a")
    assert world.record("a").uncounted_timeouts == 1
    world.ask_undo()
    assert world.record("a").uncounted_timeouts == 0


# --- when it is over ------------------------------------------------------------------------------


def test_an_undone_step_has_its_end_and_neither_an_error_nor_a_wait() -> None:
    world = failing(UNFENCED)
    world.is_refused("a")
    world.wait(60).start()
    world.fails("a", retry_after=60 * SECOND)
    assert None not in (world.record("a").error, world.record("a").not_before)
    decision = world.wait(7).resolve("a")
    record = world.record("a")
    assert (record.process_state, record.finished_at) == (ProcessState.UNDONE, world.now)
    assert (record.error, record.not_before) == (None, None)
    assert "undone" in kinds(decision)


def test_an_item_that_is_undone_and_left_out_has_its_end_and_a_row() -> None:
    world = one_is_left_out(FENCED_TWICE)
    world.fails("pick[1]", retry_after=60 * SECOND)
    assert world.record("pick[1]").not_before is not None
    decision = world.wait(7).resolve("pick[1]")
    assert world.state("pick[1]") is ProcessState.SKIPPED
    assert kinds(decision) == ["undone", "resolve"]
    record = world.record("pick[1]")
    assert (record.finished_at, record.not_before) == (world.now, None)


def test_a_step_that_is_settled_begins_afresh_at_the_next_agent() -> None:
    made = step("a", agents=("first", "second"), compensation=THRICE, retry=ONCE)
    world = begun(made, on_failure=Undo())
    world.fails("a")
    world.start()
    world.fails("a", retry_after=0)
    world.start()
    world.agents = {"first/normal": AgentView(read_up_to=world.now - 1)}
    world.overdue("a")
    assert (world.record("a").failure_count, world.record("a").uncounted_timeouts) == (1, 1)
    world.start()
    decision = world.wait(1).resolve("a")
    record = world.record("a")
    assert agent_of(world.plan, world.task, "a") == "second"
    assert (record.failure_count, record.uncounted_timeouts) == (0, 0)
    assert record.outcome_unknown is False
    assert "rerouted" in kinds(decision)


def test_a_step_that_is_undone_for_a_fresh_key_begins_afresh_under_it() -> None:
    world = begun(step("a", compensation=THRICE, retry=ONCE))
    world.fails("a")
    world.resubmit(fresh_key=True)
    world.start()
    world.fails("a", retry_after=0)
    world.start()
    world.agents = {"worker/normal": AgentView(read_up_to=world.now - 1)}
    world.overdue("a")
    record = world.record("a")
    assert (record.failure_count, record.uncounted_timeouts) == (1, 1)
    decision = world.resolve("a")
    record = world.record("a")
    assert (record.failure_count, record.uncounted_timeouts, record.round) == (0, 0, 2)
    assert (record.outcome_unknown, record.effect) == (False, Effect.NONE)
    assert (record.after_undo, record.process_state) == (None, ProcessState.PENDING)
    assert "undone" in kinds(decision)


def test_a_task_that_is_undone_meanwhile_needs_no_fresh_key() -> None:
    world = begun(step("a", compensation=FENCED, retry=ONCE))
    world.fails("a")
    world.resubmit(fresh_key=True)
    world.start()
    world.ask_undo()
    world.succeeds("a")
    assert (world.state("a"), world.task_state()) == (ProcessState.UNDONE, TaskState.UNDONE)


def test_an_undo_goes_on_afresh_at_the_agent_before() -> None:
    made = step("a", agents=THREE, compensation=THRICE, retry=ONCE)
    world = begun(made, on_failure=Undo())
    for _ in range(2):
        world.fails("a")
        world.start()
        world.succeeds("a")
    assert world.record("a").tried == ("first", "second")
    world.is_refused("a")
    world.fails("a", retry_after=0)
    world.start()
    world.agents = {"third/normal": AgentView(read_up_to=world.now - 1)}
    world.overdue("a")
    assert (world.record("a").failure_count, world.record("a").uncounted_timeouts) == (1, 1)
    world.start()
    decision = world.succeeds("a")
    record = world.record("a")
    assert (record.agent, record.tried) == ("second", ("first",))
    assert (record.failure_count, record.uncounted_timeouts, record.error) == (0, 0, None)
    assert "undone" in kinds(decision)
    request = world.request("a")
    assert (request.operation, request.attempt) == ("undo", 1)


def test_an_undo_that_failed_at_one_agent_and_was_made_by_hand_goes_on() -> None:
    world = routed()
    world.fails("a")
    world.start()
    world.succeeds("a")
    world.is_refused("a")
    world.fails("a")
    assert world.state("a") is ProcessState.UNDO_ERROR
    world.resolve("a")
    assert world.state("a") is ProcessState.UNDOING
    assert agent_of(world.plan, world.task, "a") == "first"
