"""Resubmission under another plan: what continues, what begins anew, and what is refused."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.plan import Plan, plan_of
from roundsman.definition.workflow import AnyOf, Compensation, Retry, Step, Undo
from roundsman.engine.due import due
from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.requests import agent_of, request_for
from roundsman.errors import Refused
from roundsman.model.events import Resubmit
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.priority import Priority
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect
from tests.support.fan_out_stories import lines, pick
from tests.support.machine_world import World, begun, plan, requests_in, states, step, workflow
from tests.support.operator_stories import FENCED, HOUR, ONCE, archived, refusal, undone
from tests.support.steps import changed_step, step_record, stored_step

P = ProcessState
UNFENCED = Compensation(fences_late_performs=False)


def steps_of_archived() -> tuple[Step, Step, Step]:
    """The steps of the story `archived`: `a` is done, `b` was refused, `c` has not begun."""
    a = step("a", compensation=FENCED)
    b = step("b", "a", compensation=FENCED, retry=ONCE)
    return a, b, step("c", "b")


def why_not(world: World, under: Plan) -> list[str]:
    """The reasons why the task cannot continue under the plan."""
    reason = refusal(world, lambda: world.resubmit(under=under))
    begin = f"it cannot continue under the plan {under.hash[:12]}: "
    assert reason.startswith(begin)
    return reason.removeprefix(begin).split("; ")


def test_a_task_continues_under_the_plan_where_it_stood() -> None:
    world = archived()
    before = world.plan.hash
    a, b, c = steps_of_archived()
    fixed = plan(
        a, replace(b, retry=Retry(max_attempts=9)), step("d", "b"), replace(c, agent="new")
    )
    decision = world.resubmit(under=fixed)
    assert world.task.plan == fixed.hash
    (row,) = decision.history
    assert (row.kind, row.by) == ("resubmit", "ann")
    reason = f"resubmit by ann; its plan changes from {before[:12]} to {fixed.hash[:12]}"
    assert row.reason == reason
    assert world.record("a").result == "r"
    assert requests_in(world.start()) == ["b"]
    request = request_for(fixed, world.task, "b", None, world.now)
    assert (request.idempotency_key, request.attempt) == ("ord-1/b/perform", 1)
    world.fails("b")
    assert world.task_state() is TaskState.RETRY, "the new plan has attempts left"
    world.wait(HOUR / 2).inspect()
    world.start()
    assert requests_in(world.succeeds("b")) == ["d", "c"]
    assert agent_of(fixed, world.task, "c") == "new"
    world.succeeds("c")
    world.succeeds("d")
    assert world.task_state() is TaskState.COMPLETED


def test_under_its_own_plan_a_task_continues_as_without_one() -> None:
    world = archived()
    own = world.plan
    (row,) = world.resubmit("b", under=own).history
    assert row.reason == "resubmit by ann"
    assert world.task.plan == own.hash


def test_a_plan_that_is_not_stored_is_refused() -> None:
    world = archived()
    other = plan(*steps_of_archived(), retain_for=timedelta(days=1))
    for stored in (None, world.plan):
        world.next_plan = stored
        event = Resubmit(world.asked(), plan=other.hash)
        reason = refusal(world, lambda: world.apply(event))  # noqa: B023  # called at once
        assert reason == f"the plan {other.hash[:12]} is not stored"


def test_a_plan_of_another_workflow_is_refused() -> None:
    world = archived()
    other = plan_of(replace(workflow(step("a")), name="another"))
    reason = refusal(world, lambda: world.resubmit(under=other))
    assert reason == f"the plan {other.hash[:12]} is of the workflow another"


def test_failed_steps_are_not_named_under_another_plan() -> None:
    world = archived()
    other = plan(*steps_of_archived(), retain_for=timedelta(days=1))
    reason = refusal(world, lambda: world.resubmit("b", under=other))
    assert reason == "under another plan every failed step is attempted: do not name steps"


# --- Steps of which something has happened -----------------------------------------------------


def changed(**changes: object) -> Plan:
    """The plan of the story with other values for its finished step."""
    a, b, c = steps_of_archived()
    return plan(replace(a, **changes), b, c)  # type: ignore[arg-type]  # fields of a step


@pytest.mark.parametrize(
    ("under", "reason"),
    [
        (changed(agent="other"), "its first agent is other, not worker"),
        (changed(when="input.a"), "its condition (when) is another"),
        (changed(for_each="input.a"), "its list of items (for_each) is another"),
        (changed(reads=("total",)), "its list of fields of the input (reads) is another"),
        (changed(compensation=None), "it has no compensation"),
        (changed(compensation=UNFENCED), "it has a compensation that does not fence late performs"),
    ],
)
def test_a_finished_step_must_be_the_same(under: Plan, reason: str) -> None:
    assert why_not(archived(), under) == [f"a is done, but in that plan {reason}"]


def test_a_finished_step_may_have_other_times_and_limits() -> None:
    world = archived()
    slow = Compensation(complete_within=timedelta(minutes=9), fences_late_performs=True)
    other = changed(
        complete_within=timedelta(seconds=40),
        retry=Retry(max_attempts=2),
        compensation=slow,
        result_limit=1,
        on_failure=Undo(),
        agents=("worker", "second"),
    )
    world.resubmit(under=other)
    assert world.task.plan == other.hash


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (None, UNFENCED, "a compensation that does not fence late performs"),
        (UNFENCED, FENCED, "a compensation that fences late performs"),
    ],
)
def test_a_compensation_that_comes_later_is_refused(
    before: Compensation | None, after: Compensation, reason: str
) -> None:
    world = archived(before)
    a = step("a", compensation=after)
    b = step("b", "a", compensation=before, retry=ONCE)
    found = why_not(world, plan(a, b, step("c", "b")))
    assert found == [f"a is done, but in that plan it has {reason}"]


def test_every_reason_is_given_at_once() -> None:
    a = step("a", agent="other")
    found = why_not(archived(), plan(a))
    assert found == [
        "a is done, but in that plan its first agent is other, not worker",
        "a is done, but in that plan it has no compensation",
        "b was sent to its agent, and that plan does not have it",
    ]


def test_a_skipped_step_is_finished_too() -> None:
    a = step("a", when="input.wanted")
    world = begun(a, step("b", "a"), order={"wanted": False})
    world.is_refused("b")
    assert why_not(world, plan(step("b"))) == ["a was skipped, and that plan does not have it"]
    a = step("a", when="input.other")
    assert why_not(world, plan(a, step("b", "a"))) == [
        "a was skipped, but in that plan its condition (when) is another"
    ]


@pytest.mark.parametrize("happened", [False, True])
def test_a_step_that_may_have_had_its_effect_stays(happened: bool) -> None:
    world = begun(step("a"))
    lock = world.lock("a")
    world.is_refused("a")
    if happened:
        world.succeeds("a", lock=lock)
    assert why_not(world, plan(step("b"))) == [
        "a was sent to its agent, and that plan does not have it"
    ]
    assert why_not(world, plan(step("a", agent="other"))) == [
        "a was sent to its agent, but in that plan its first agent is other, not worker"
    ]


def test_a_step_that_waits_for_its_next_attempt_stays() -> None:
    a, b = step("a"), step("b", retry=ONCE)
    world = begun(a, b)
    world.fails("a")
    world.is_refused("b")
    assert (world.task_state(), world.state("a")) == (TaskState.ARCHIVED, P.PENDING)
    assert why_not(world, plan(b)) == ["a was sent to its agent, and that plan does not have it"]


def test_a_refused_step_without_effect_may_be_removed_or_replaced() -> None:
    for after in (step("b", agent="other", compensation=UNFENCED), step("d")):
        world = begun(step("a"), step("b", "a", retry=ONCE))
        world.succeeds("a")
        world.is_refused("b", effect=Effect.NONE)
        world.resubmit(under=plan(step("a"), replace(after, after=("a",))))
        assert set(world.task.steps) <= {"a", after.name}
        assert requests_in(world.start()) == [after.name]
        assert agent_of(world.plan, world.task, after.name) == after.agent
        world.succeeds(after.name)
        assert world.task_state() is TaskState.COMPLETED


def test_a_replaced_step_begins_under_a_new_key_and_its_condition_is_evaluated() -> None:
    world = begun(step("a", retry=ONCE), order={"wanted": True})
    world.is_refused("a", effect=Effect.NONE)
    world.resubmit(under=plan(step("a", when="input.wanted")))
    assert world.record("a") == changed_step(
        step_record(round=2), complete_by=stored_step(world.record("a")).complete_by
    )
    assert requests_in(world.start()) == ["a"]
    assert world.request("a").idempotency_key == "ord-1/a/perform/2"


def test_a_step_whose_condition_failed_gets_the_condition_of_the_new_plan() -> None:
    a = step("a")
    world = begun(a, step("b", "a", when="abs(input.total)"), order={"total": "x"})
    world.succeeds("a")
    assert (world.task_state(), world.state("b")) == (TaskState.ARCHIVED, P.ERROR)
    world.resubmit(under=plan(a, step("b", "a", when="input.total")))
    assert requests_in(world.start()) == ["b"]


def test_the_last_step_that_failed_may_be_gone_and_the_task_is_complete() -> None:
    a = step("a")
    world = begun(a, step("b", "a"))
    world.succeeds("a")
    world.is_refused("b", effect=Effect.NONE)
    decision = world.resubmit(under=plan(a))
    assert world.task_state() is TaskState.COMPLETED
    assert decision.actions == ()
    assert states(world.task) == {"a": P.PROCESSED}


def sent_to_two_agents() -> World:
    """`a` failed at `two` and was undone there; `three` refused it, without effect."""
    a = step("a", agents=("one", "two", "three"), compensation=FENCED, retry=ONCE)
    world = World(plan(a)).hold("one", HOUR)
    world.start()
    world.fails("a")
    world.start()
    world.succeeds("a")
    world.start()
    world.is_refused("a", effect=Effect.NONE)
    record = world.record("a")
    assert (record.tried, record.agent, record.effect) == (("two",), "three", Effect.NONE)
    return world


def test_a_step_whose_agents_were_tried_stays_and_keeps_them() -> None:
    world = sent_to_two_agents()
    for agents, missing in ((("one", "three"), "two"), (("one", "two"), "three")):
        found = why_not(world, plan(step("a", agents=agents, compensation=FENCED)))
        assert found == [f"a was sent to {missing}, but in that plan it has no such agent"]
    assert why_not(world, plan(step("b"))) == [
        "a was sent to its agent, and that plan does not have it"
    ]
    more = step("a", agents=("one", "four", "three", "two"), compensation=FENCED)
    world.resubmit(under=plan(more))


def test_a_refused_step_that_means_the_same_keeps_its_key() -> None:
    world = begun(step("a", retry=ONCE))
    world.is_refused("a", effect=Effect.NONE)
    world.resubmit(under=plan(step("a")))
    world.start()
    assert world.request("a").idempotency_key == "ord-1/a/perform"


def held_beside_a_failure() -> World:
    """`a` waits for its agent, which is on hold, and `b` failed."""
    world = World(plan(step("a", agent="held"), step("b", retry=ONCE))).hold("held", HOUR)
    world.start()
    world.is_refused("b")
    assert world.record("a").held_since is not None
    assert world.task_state() is TaskState.ARCHIVED
    return world


def test_a_step_that_only_waited_for_its_agent_may_be_gone() -> None:
    world = held_beside_a_failure()
    world.resubmit(under=plan(step("b")))
    assert set(world.task.steps) == {"b"}


def test_a_step_that_waited_for_its_agent_waits_for_a_new_step_instead() -> None:
    world = held_beside_a_failure()
    world.resubmit(under=plan(step("x"), step("a", "x", agent="held"), step("b")))
    record = world.record("a")
    assert (record.held_since, stored_step(record).complete_by, record.not_before) == (
        None,
        None,
        None,
    )
    assert requests_in(world.start()) == ["x", "b"]


def test_a_step_that_may_begin_still_waits_for_its_time() -> None:
    a, b = step("a"), step("b", retry=ONCE)
    world = begun(a, b)
    world.fails("a", retry_after=10 * MINUTE)
    waits = world.record("a").not_before
    world.is_refused("b")
    world.resubmit(under=plan(replace(a, retry=Retry(max_attempts=9)), b))
    assert world.record("a").not_before == waits


# --- The order of the steps --------------------------------------------------------------------


def test_a_new_step_before_a_finished_one_is_refused() -> None:
    x = step("x")
    a = step("a", "x", compensation=FENCED)
    b = step("b", "a", compensation=FENCED, retry=ONCE)
    assert why_not(archived(), plan(x, a, b, step("c", "b"))) == [
        "a is done, but in that plan it comes after x, which is not"
    ]


def test_a_finished_step_does_not_come_after_a_failed_one() -> None:
    b = step("b", compensation=FENCED, retry=ONCE)
    a = step("a", "b", compensation=FENCED)
    assert why_not(archived(), plan(b, a)) == [
        "a is done, but in that plan it comes after b, which is not",
        "b came after a, but in that plan it does not",
    ]


def test_steps_that_were_done_one_after_the_other_stay_in_order() -> None:
    a = step("a", compensation=FENCED)
    b = step("b", compensation=FENCED, retry=ONCE)
    assert why_not(archived(), plan(a, b)) == ["b came after a, but in that plan it does not"]


def test_two_finished_steps_may_be_put_in_order() -> None:
    a, b = step("a", compensation=FENCED), step("b", compensation=FENCED)
    world = begun(a, b, step("c", "a", "b", on_failure=Undo()))
    world.succeeds("a")
    world.succeeds("b")
    world.is_refused("c")
    assert world.task_state() is TaskState.UNDOING
    world = begun(a, b, step("c", "a", "b"))
    world.succeeds("a")
    world.succeeds("b")
    world.is_refused("c")
    later = replace(b, after=("a",))
    world.resubmit(under=plan(a, later, step("c", "b", on_failure=Undo())))
    world.start()
    world.is_refused("c")
    assert world.state("a") is P.PROCESSED, "b is undone first, as the new plan has it"
    assert world.state("b") is P.UNDOING


def test_a_failed_step_waits_for_a_new_step_before_it_and_no_alert_calls_it_late() -> None:
    world = archived()
    a, b, c = steps_of_archived()
    x = step("x", "a")
    world.resubmit(under=plan(a, x, replace(b, after=("a", "x")), c))
    assert sorted(requests_in(world.start())) == ["b", "x"]
    assert world.state("b") is P.UNDOING, "its next request has another result in it"
    world.succeeds("b")
    record = world.record("b")
    assert (stored_step(record).complete_by, record.not_before, record.held_since) == (
        None,
        None,
        None,
    )
    assert due(world.task, world.now) == stored_step(world.record("x")).complete_by
    world.wait(29)
    assert world.inspect().task is world.task
    assert requests_in(world.succeeds("x", "checked")) == ["b"]
    request = world.request("b")
    assert (request.idempotency_key, request.results["x"]) == ("ord-1/b/perform/2", "checked")
    world.succeeds("b")
    world.is_refused("c")
    world.ask_undo()
    assert requests_in(world.start()) == ["b"], "what came last is undone first"


def test_a_refused_step_without_effect_gets_a_new_key_with_a_new_step_before_it() -> None:
    world = begun(step("b"))
    world.is_refused("b", effect=Effect.NONE)
    world.resubmit(under=plan(step("x"), step("b", "x")))
    assert requests_in(world.start()) == ["x"]
    assert requests_in(world.succeeds("x")) == ["b"]
    assert world.request("b").idempotency_key == "ord-1/b/perform/2"


def test_a_refused_step_keeps_its_key_with_the_same_steps_before_it() -> None:
    world = archived()
    a, b, c = steps_of_archived()
    world.resubmit(under=plan(a, replace(b, retry=Retry(max_attempts=9)), c))
    assert requests_in(world.start()) == ["b"]
    assert world.record("b").round == 1


def test_a_sent_step_that_cannot_be_undone_does_not_come_after_a_new_step() -> None:
    world = begun(step("b"))
    world.is_refused("b")
    under = plan(step("x"), step("b", "x"))
    assert "b: it may have had its effect under its key, and has no compensation" in refusal(
        world, lambda: world.resubmit(under=under)
    )


def test_a_step_whose_undo_failed_does_not_come_after_a_new_step() -> None:
    once = Compensation(fences_late_performs=True, retry=ONCE)
    a = step("a", compensation=once, retry=ONCE)
    world = begun(a)
    world.is_refused("a")
    world.resubmit(fresh_key=True)
    world.start()
    world.is_refused("a")
    assert world.state("a") is P.UNDO_ERROR
    assert why_not(world, plan(step("x"), replace(a, after=("x",)))) == [
        "the undo of a failed, but in that plan a comes after x"
    ]


def test_a_step_that_its_new_plan_has_no_agent_for_begins_at_an_agent_of_the_plan() -> None:
    a = step("a", agents=("one", "two"), retry=ONCE)
    world = World(plan(a))
    world.hold("one", 60)
    world.start()
    assert world.record("a").agent == "two"
    world.is_refused("a", effect=Effect.NONE)
    world.release("one")
    under = plan(step("a", agents=("one",), retry=ONCE))
    world.resubmit(under=under)
    world.start()
    assert agent_of(under, world.task, "a") == "one"


def test_a_step_that_waits_for_its_time_waits_for_a_new_step_instead() -> None:
    a, b = step("a", compensation=FENCED), step("b", retry=ONCE)
    world = begun(a, b)
    world.fails("a", retry_after=10 * MINUTE)
    world.is_refused("b")
    x = step("x")
    world.resubmit(under=plan(x, replace(a, after=("x",)), b))
    assert world.record("a").not_before is None
    world.start()
    world.succeeds("x")
    assert requests_in(world.succeeds("a")) == ["a"]
    assert world.record("a").round == 2


def moved_to_another_agent(*after: str) -> World:
    """`c` failed; `b` waits for its first attempt at another agent, after one at the first."""
    a, b = step("a"), step("b", *after, agents=("worker", "other"), compensation=FENCED)
    world = begun(a, b, step("c", retry=ONCE))
    world.succeeds("a")
    world.fails("b")
    world.is_refused("c")
    later = world.now + 10 * MINUTE
    moved = step_record(
        agent="other", tried=("worker",), complete_by=later, not_before=later, held_since=world.now
    )
    world.task = replace(world.task, steps={**world.task.steps, "b": moved})
    return world


def test_a_step_that_waits_at_another_agent_waits_for_a_new_step_instead() -> None:
    world = moved_to_another_agent()
    b = step("b", "x", agents=("worker", "other"), compensation=FENCED)
    world.resubmit(under=plan(step("a"), step("x"), b, step("c", retry=ONCE)))
    record = world.record("b")
    assert (stored_step(record).complete_by, record.not_before, record.held_since) == (
        None,
        None,
        None,
    )
    assert (record.tried, record.round) == (("worker",), 2)


def test_a_step_that_waits_at_another_agent_keeps_its_times_if_nothing_new_comes_before_it() -> (
    None
):
    world = moved_to_another_agent("a")
    before = world.record("b")
    b = step("b", "a", agents=("worker", "other"), compensation=FENCED)
    world.resubmit(under=plan(step("a"), b, step("c", retry=Retry(max_attempts=9))))
    assert world.record("b") == before


def test_a_step_whose_agent_is_in_the_new_plan_stays_there_under_its_key() -> None:
    world = World(plan(step("a", agents=("one", "two"), retry=ONCE))).hold("one", 60)
    world.start()
    world.is_refused("a", effect=Effect.NONE)
    world.resubmit(under=plan(step("a", agents=("one", "two"), retry=Retry(max_attempts=9))))
    assert (world.record("a").agent, world.record("a").round) == ("two", 1)


def test_a_step_under_a_new_key_is_due_if_all_before_it_is_done_and_waits_else() -> None:
    a, b, c = steps_of_archived()
    for before, x_before_b in (((a,), False), ((a, step("x", "a")), True)):
        world = archived()
        changed = replace(b, after=tuple(each.name for each in before))
        world.resubmit(fresh_key=True, under=plan(*before, changed, c))
        world.start()
        assert world.state("b") is P.UNDOING
        world.hold("worker", HOUR)
        world.succeeds("b")
        assert (stored_step(world.record("b")).complete_by is None) == x_before_b


def test_a_step_that_came_after_nothing_and_comes_after_a_new_step_waits_for_no_time() -> None:
    world = begun(step("b", compensation=FENCED, retry=ONCE))
    world.is_refused("b")
    world.resubmit(under=plan(step("x"), step("b", "x", compensation=FENCED)))
    world.start()
    world.succeeds("b")
    assert (world.state("b"), stored_step(world.record("b")).complete_by) == (P.PENDING, None)


def test_the_new_steps_before_a_failed_undo_are_named_in_order() -> None:
    once = Compensation(fences_late_performs=True, retry=ONCE)
    world = begun(step("a", compensation=once, retry=ONCE))
    world.is_refused("a")
    world.resubmit(fresh_key=True)
    world.start()
    world.is_refused("a")
    names = [f"x{number}" for number in range(9)]
    under = plan(*map(step, names), step("a", *reversed(names), compensation=once, retry=ONCE))
    assert why_not(world, under) == [
        f"the undo of a failed, but in that plan a comes after {name}" for name in names
    ]


# --- Fan-outs ----------------------------------------------------------------------------------


def one_item_left_out(*, undo_fails: bool = False) -> World:
    """`pick[0]` is done and `pick[1]` was left out, or its undo failed; `ship` was refused."""
    compensation = Compensation(fences_late_performs=True, retry=ONCE) if undo_fails else None
    made = pick(tolerate=0.5, compensation=compensation, retry=ONCE)
    world = begun(made, step("ship", "pick", retry=ONCE), order=lines(2))
    world.succeeds("pick[0]")
    world.is_refused("pick[1]")
    world.is_refused("pick[1]" if undo_fails else "ship")
    assert world.task_state() is TaskState.ARCHIVED
    return world


def test_a_fan_out_of_which_one_item_was_left_out_is_done() -> None:
    assert why_not(one_item_left_out(), plan(step("ship"))) == [
        "pick is done, and that plan does not have it"
    ]


def test_a_fan_out_whose_one_undo_failed_does_not_come_after_a_new_step() -> None:
    world = one_item_left_out(undo_fails=True)
    once = Compensation(fences_late_performs=True, retry=ONCE)
    made = pick("x", tolerate=0.5, compensation=once, retry=ONCE)
    assert why_not(world, plan(step("x"), made, step("ship", "pick"))) == [
        "the undo of pick failed, but in that plan pick comes after x",
        "pick is done, but in that plan it comes after x, which is not",
    ]


def test_the_items_of_a_fan_out_with_another_list_begin_under_new_keys() -> None:
    world = begun(pick(retry=ONCE), order=lines(1))
    world.is_refused("pick[0]", effect=Effect.NONE)
    world.resubmit(under=plan(pick(retry=ONCE, for_each="input.lines[:1]")))
    assert world.task.used_rounds == {}
    world.start()
    assert world.record("pick[0]").round == 2


def picking_failed(effect: Effect | None = None) -> World:
    """`pick[0]` is done, `pick[1]` failed."""
    world = begun(pick(retry=ONCE), step("ship", "pick"), order=lines(2))
    world.succeeds("pick[0]", {"n": 0})
    world.is_refused("pick[1]", effect=effect)
    assert world.task_state() is TaskState.ARCHIVED
    return world


def test_a_fan_out_keeps_its_items_and_those_that_are_done() -> None:
    world = picking_failed()
    other = plan(pick(tolerate=0.5), step("ship", "pick"))
    world.resubmit(under=other)
    assert dict(world.task.fan_outs) == {"pick": 2}
    assert requests_in(world.start()) == ["pick[1]"]
    assert request_for(other, world.task, "pick[1]", world.order, world.now).item == {"sku": "KB-1"}
    world.is_refused("pick[1]")
    assert world.state("pick[1]") in (P.SKIPPED, P.UNDOING), "the new plan tolerates it"


def test_a_fan_out_with_one_finished_item_keeps_the_others_too() -> None:
    world = picking_failed(Effect.NONE)
    world.resubmit(under=plan(pick(tolerate=0.5), step("ship", "pick")))
    assert dict(world.task.fan_outs) == {"pick": 2}
    assert world.record("pick[0]").result == {"n": 0}
    world.start()
    assert world.request("pick[1]").idempotency_key == "ord-1/pick[1]/perform"


def test_a_plan_that_is_expanded_already_is_compared_as_it_is_stored() -> None:
    world = picking_failed()
    world.plan = world.plan.for_task(world.task)
    assert why_not(world, plan(step("ship"))) == [
        "pick was sent to its agent, and that plan does not have it"
    ]
    world.resubmit(under=plan(pick(tolerate=0.5), step("ship", "pick")))
    assert requests_in(world.start()) == ["pick[1]"]


def test_a_finished_step_does_not_come_after_a_fan_out_that_is_partly_done() -> None:
    world = begun(pick(retry=ONCE), step("a"), order=lines(2))
    world.succeeds("a")
    world.succeeds("pick[0]")
    world.is_refused("pick[1]")
    assert why_not(world, plan(pick(retry=ONCE), step("a", "pick"))) == [
        "a is done, but in that plan it comes after pick, which is not"
    ]


def test_a_fan_out_with_a_finished_item_keeps_its_list_and_its_place() -> None:
    world = picking_failed()
    again = pick(retry=ONCE)
    assert why_not(world, plan(replace(again, for_each="input.others"))) == [
        "pick was sent to its agent, but in that plan its list of items (for_each) is another"
    ]
    assert why_not(world, plan(step("other"))) == [
        "pick was sent to its agent, and that plan does not have it"
    ]
    first = step("first")
    assert why_not(world, plan(first, replace(again, after=("first",)))) == [
        "pick is done, but in that plan it comes after first, which is not"
    ]


def test_a_fan_out_without_effect_gets_its_list_anew() -> None:
    world = begun(pick(retry=ONCE), step("ship", "pick"), order=lines(2))
    world.is_refused("pick[0]", effect=Effect.NONE)
    world.is_refused("pick[1]", effect=Effect.NONE)
    world.order = lines(3)
    world.resubmit(under=plan(pick(tolerate=0.5), step("ship", "pick")))
    assert dict(world.task.fan_outs) == {}
    assert requests_in(world.start()) == ["pick[0]", "pick[1]", "pick[2]"]
    assert world.request("pick[0]").idempotency_key == "ord-1/pick[0]/perform/2"


def test_another_fan_out_keeps_its_items() -> None:
    first = replace(pick(retry=ONCE), name="first")
    world = begun(first, pick(retry=ONCE), order=lines(1))
    world.succeeds("first[0]")
    world.is_refused("pick[0]", effect=Effect.NONE)
    world.resubmit(under=plan(first, pick(tolerate=0.5)))
    assert dict(world.task.fan_outs) == {"first": 1}


def test_a_fan_out_without_effect_may_become_one_step() -> None:
    world = begun(pick(retry=ONCE), order=lines(1))
    world.is_refused("pick[0]", effect=Effect.NONE)
    world.resubmit(under=plan(step("pick")))
    assert requests_in(world.start()) == ["pick"]
    world.succeeds("pick")
    assert states(world.task) == {"pick": P.PROCESSED}
    assert world.task_state() is TaskState.COMPLETED


def test_a_plan_with_too_many_steps_beside_the_items_is_refused() -> None:
    world = begun(pick(retry=ONCE), step("ship", "pick"), order=lines(60))
    world.succeeds("pick[0]")
    world.is_refused("pick[1]")
    for number in range(2, 60):
        world.succeeds(f"pick[{number}]")
    many = [step(f"s{number}", "pick") for number in range(41)]
    assert why_not(world, plan(pick(retry=ONCE), *many)) == [
        "it would have 101 steps with the items of its fan-outs, but 100 fit"
    ]
    world.resubmit(under=plan(pick(retry=ONCE), *many[:-1]))


# --- How the task ends -------------------------------------------------------------------------


def past_the_point(point: str) -> World:
    a = step("a", compensation=FENCED)
    b = step("b", "a")
    c = step("c", "b", retry=ONCE)
    found = {"a": a, "b": b, "c": c}
    world = begun(a, b, c, point_of_no_return=found[point], on_failure=Undo())
    world.succeeds("a")
    world.succeeds("b")
    world.is_refused("c")
    return world


def with_point(point: str | None) -> Plan:
    a = step("a", compensation=FENCED)
    b = step("b", "a")
    c = step("c", "b", retry=Retry(max_attempts=2))
    found = {"a": a, "b": b, "c": c, None: None}
    return plan(a, b, c, point_of_no_return=found[point], on_failure=Undo())


@pytest.mark.parametrize("point", [None, "c"])
def test_a_task_past_its_point_of_no_return_stays_past_it(point: str | None) -> None:
    world = past_the_point("b")
    assert why_not(world, with_point(point)) == [
        "the task is past its point of no return, b, but in that plan it would not be"
    ]


@pytest.mark.parametrize("point", ["a", "b"])
def test_the_point_of_no_return_is_that_of_the_new_plan(point: str) -> None:
    world = past_the_point("b")
    world.resubmit(under=with_point(point))
    world.start()
    world.is_refused("c")
    assert world.task_state() is TaskState.ARCHIVED


def test_a_failure_under_the_new_plan_ends_as_the_new_plan_says() -> None:
    world = archived()
    a, b, c = steps_of_archived()
    world.resubmit(under=plan(a, b, c, on_failure=Undo()))
    world.start()
    world.is_refused("b")
    assert world.task_state() is TaskState.UNDOING


def test_the_failed_undos_of_a_task_are_made_again_under_the_new_plan() -> None:
    a = step("a", compensation=FENCED)
    b = step("b", "a", compensation=FENCED)
    world = begun(a, b, on_failure=Undo())
    world.succeeds("a")
    world.is_refused("b")
    world.start()
    world.is_refused("b")
    world.start()
    world.succeeds("a")
    assert (world.task_state(), world.state("b")) == (TaskState.ARCHIVED, P.UNDO_ERROR)
    slow = Compensation(
        complete_within=timedelta(minutes=5),
        retry=Retry(max_attempts=1),
        fences_late_performs=True,
    )
    other = plan(a, replace(b, compensation=slow), step("c", "b"), on_failure=Undo())
    world.resubmit(under=other)
    assert requests_in(world.start()) == ["b"]
    assert stored_step(world.record("b")).complete_by == world.now + 5 * MINUTE
    world.succeeds("b")
    assert world.task_state() is TaskState.UNDONE


# --- Times -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "extended", "expected"),
    [
        (None, 0, 2 * HOUR),
        (None, 60, 2 * HOUR + 60),
        (HOUR * SECOND // 2, 0, HOUR // 2),
        (3 * HOUR * SECOND, 0, 4 * HOUR),
    ],
)
def test_the_time_limit_is_that_of_the_new_plan_unless_the_order_asked_for_less(
    own: int | None, extended: int, expected: int
) -> None:
    a = step("a", retry=ONCE)
    world = begun(a, asked=ProcessingOptions(complete_within=own))
    if extended:
        world.extend(extended)
    world.is_refused("a")
    world.wait(7).resubmit(under=plan(a, complete_within=timedelta(hours=2)))
    assert world.task.complete_by == world.now + expected * SECOND


def test_a_step_is_not_to_be_complete_after_its_task() -> None:
    a = step("a", complete_within=timedelta(minutes=10))
    b = step("b", "a", retry=ONCE)
    world = begun(a, b)
    world.succeeds("a")
    world.is_refused("b")
    world.resubmit(
        under=plan(
            replace(a, complete_within=timedelta(seconds=20)),
            replace(b, complete_within=timedelta(seconds=20)),
            complete_within=timedelta(seconds=20),
        )
    )
    assert world.record("b").claim_by == world.task.complete_by == world.now + 20 * SECOND


def test_retention_and_priority_are_those_of_the_new_plan_unless_the_order_chose_its_own() -> None:
    a = step("a", retry=ONCE)
    other = plan(a, retain_for=timedelta(days=2), priority=Priority.URGENT)
    for options, kept, priority in (
        (ProcessingOptions(), timedelta(days=2), "urgent"),
        (
            ProcessingOptions(retain_for=5 * MINUTE, priority="urgent"),
            timedelta(minutes=5),
            "urgent",
        ),
    ):
        world = begun(a, asked=options)
        world.is_refused("a")
        world.resubmit(under=other)
        assert world.task.retain_for == kept // timedelta(milliseconds=1)
        assert world.task.priority == priority
    urgent = begun(a, asked=ProcessingOptions(priority="urgent"))
    urgent.is_refused("a")
    urgent.resubmit(under=plan(a, retain_for=timedelta(days=2)))
    assert urgent.task.priority == "urgent"


def test_an_undo_waits_for_requests_of_the_old_plan() -> None:
    """A request that was sent under the old plan may act as long as the old plan lets it."""
    a = step("a", compensation=UNFENCED, complete_within=timedelta(minutes=10))
    b = step("b", "a", retry=ONCE)
    world = begun(a, b)
    acts_until = stored_step(world.record("a")).complete_by
    assert acts_until is not None
    world.succeeds("a")
    world.is_refused("b")
    short = replace(a, complete_within=timedelta(seconds=20))
    world.resubmit(
        under=plan(
            short,
            replace(b, complete_within=timedelta(seconds=20)),
            complete_within=timedelta(seconds=20),
            on_failure=Undo(),
        )
    )
    world.start()
    world.is_refused("b")
    assert world.record("a").not_before == acts_until + 5 * SECOND


def test_undos_that_failed_keep_their_times() -> None:
    a = step("a", compensation=FENCED)
    b = step("b", "a", compensation=FENCED)
    world = begun(a, b, on_failure=Undo())
    world.succeeds("a")
    world.is_refused("b")
    for name in ("b", "a"):
        world.start()
        world.is_refused(name)
    world.resubmit(under=plan(a, b, step("c", "b"), on_failure=Undo()))
    assert [world.state(name) for name in "ab"] == [P.UNDOING, P.UNDOING]
    assert [stored_step(world.record(name)).complete_by for name in "ab"] == [
        world.now + 30 * SECOND
    ] * 2


# --- Undone and cancelled tasks ----------------------------------------------------------------


def test_an_undone_task_begins_anew_under_the_new_plan_whatever_its_steps_were() -> None:
    world = undone()
    other = plan(step("b", agent="other"), step("z", "b"))
    world.resubmit(again=True, under=other)
    assert set(world.task.steps) == {"b"}
    assert requests_in(world.start()) == ["b"]
    request = request_for(other, world.task, "b", None, world.now)
    assert (request.idempotency_key, agent_of(other, world.task, "b")) == (
        "ord-1/b/perform/2",
        "other",
    )
    world.succeeds("b")
    world.succeeds("z")
    assert world.task_state() is TaskState.COMPLETED


def test_a_cancelled_task_whose_effects_stand_does_not_begin_anew_under_any_plan() -> None:
    world = archived()
    world.cancel(undo=False)
    reason = refusal(world, lambda: world.resubmit(again=True, under=plan(step("z"))))
    assert reason.startswith("the effects of a, b may stand and would happen twice")


def test_an_undone_fan_out_begins_anew_as_one_step() -> None:
    world = begun(pick(retry=ONCE), on_failure=Undo(), order=lines(2))
    world.succeeds("pick[0]")
    world.is_refused("pick[1]")
    world.start()
    while world.task_state() is TaskState.UNDOING:
        world.start()
        for name in ("pick[0]", "pick[1]"):
            if world.record(name).under_way:
                world.succeeds(name)
    world.resubmit(again=True, under=plan(step("pick")))
    assert set(world.task.steps) <= {"pick"}
    assert dict(world.task.fan_outs) == {}
    assert requests_in(world.start()) == ["pick"]


def test_an_undone_fan_out_begins_anew_under_new_keys() -> None:
    world = begun(pick(retry=ONCE), on_failure=Undo(), order=lines(1))
    world.is_refused("pick[0]")
    assert world.task_state() is TaskState.UNDONE
    world.resubmit(again=True, under=plan(pick(tolerate=0.5)))
    assert requests_in(world.start()) == ["pick[0]"]
    assert world.request("pick[0]").idempotency_key == "ord-1/pick[0]/perform/2"


def test_a_task_that_begins_anew_is_before_its_point_of_no_return_again() -> None:
    a = step("a")
    world = begun(a, step("b", "a"), point_of_no_return=a)
    world.succeeds("a")
    world.is_refused("b")
    world.cancel(undo=False)
    world.resubmit(again=True, under=plan(a, step("b", "a")))
    assert requests_in(world.start()) == ["a"]


def test_a_step_that_was_removed_and_is_added_again_begins_under_a_new_key() -> None:
    a, b, c = step("a", compensation=FENCED), step("b", "a"), step("c", "b", retry=ONCE)
    with_b = plan(a, b, c, on_failure=Undo())
    world = World(with_b)
    world.start()
    world.succeeds("a")
    world.is_refused("b", effect=Effect.NONE)
    world.start()
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE
    world.resubmit(again=True, under=plan(a, replace(c, after=("a",)), on_failure=Undo()))
    assert world.task.used_rounds == {"b": 1}
    assert "b" not in world.task.steps
    world.start()
    world.succeeds("a")
    world.is_refused("c", effect=Effect.NONE)
    world.start()
    world.succeeds("a")
    world.resubmit(again=True, under=with_b)
    world.start()
    world.succeeds("a")
    assert world.request("b").idempotency_key == "ord-1/b/perform/2"


def test_an_item_that_was_removed_begins_under_a_new_key_too() -> None:
    listed = plan(pick(retry=ONCE), on_failure=Undo())
    world = World(listed, order=lines(1))
    world.start()
    world.is_refused("pick[0]")
    world.resubmit(again=True, under=plan(step("pick", retry=ONCE), on_failure=Undo()))
    assert world.task.used_rounds == {"pick[0]": 1}
    world.start()
    world.is_refused("pick", effect=Effect.NONE)
    world.resubmit(again=True, under=listed)
    assert requests_in(world.start()) == ["pick[0]"]
    assert world.request("pick[0]").idempotency_key == "ord-1/pick[0]/perform/2"


def test_the_name_of_a_removed_step_that_was_never_sent_is_free() -> None:
    world = archived()
    a, b, c = steps_of_archived()
    world.resubmit(under=plan(a, b))
    assert world.task.used_rounds == {}
    assert c.name not in world.task.steps


def test_a_step_that_was_sent_keeps_how_many_before_it_have_to_succeed() -> None:
    air, sea = (step(name, agent=name, compensation=FENCED) for name in ("air", "sea"))
    world = begun(air, sea, step("book", AnyOf(air, sea)))
    world.succeeds("air")
    with pytest.raises(Refused, match="another number of the steps before it has to succeed"):
        world.move(plan(air, sea, step("book", AnyOf(air, sea, enough=2))))


def test_items_that_were_sent_keep_how_many_of_them_have_to_succeed() -> None:
    picked = step("pick", for_each="input.lines", enough=2, compensation=FENCED)
    world = World(plan(picked), order={"lines": [1, 2, 3]})
    world.start()
    with pytest.raises(Refused, match="another number of its items has to succeed"):
        world.move(plan(replace(picked, enough=1)))


def test_before_it_is_sent_the_number_may_be_another() -> None:
    air, sea = (step(name, agent=name, compensation=FENCED) for name in ("air", "sea"))
    world = begun(air, sea, step("book", AnyOf(air, sea, enough=2)))
    world.succeeds("air")
    assert world.record("book").started_at is None
    world.move(plan(air, sea, step("book", AnyOf(air, sea))))
    world.start()
    assert world.record("book").started_at is not None


# --- Steps of which enough have to succeed --------------------------------------------------------


def carriers(enough: int, when: str | None = None) -> Plan:
    """Of three carriers, so many are enough for `book`; `road` is asked under a condition."""
    air, sea = (step(name, agent=name, compensation=FENCED) for name in ("air", "sea"))
    road = step("road", agent="road", compensation=FENCED, when=when)
    return plan(air, sea, road, step("book", AnyOf(air, sea, road, enough=enough)))


@pytest.mark.parametrize(("enough", "fits"), [(2, True), (3, False)])
def test_a_plan_for_which_too_many_steps_were_skipped_is_refused(enough: int, fits: bool) -> None:
    condition = "input.wanted"
    world = World(carriers(1, condition), order={"wanted": False})
    world.start()
    assert world.state("road") is P.SKIPPED
    if fits:
        assert world.move(carriers(enough, condition)).task.plan == carriers(enough, condition).hash
        return
    why = "book would need 3 of 3 steps, and road cannot succeed any more"
    with pytest.raises(Refused, match=why):
        world.move(carriers(enough, condition))


def test_items_that_were_skipped_count_by_their_step() -> None:
    """Of `pick` one of two items was left out: as a whole it has succeeded."""
    beside = step("beside", agent="beside", compensation=FENCED)
    before = plan(pick(tolerate=1, compensation=FENCED), beside, step("book", "pick", beside))
    world = World(before, order=lines(2))
    world.start()
    world.is_refused("pick[0]")
    world.succeeds("pick[0]")
    world.succeeds("pick[1]")
    assert world.state("pick[0]") is P.SKIPPED
    chosen = pick(tolerate=1, compensation=FENCED)
    after = plan(chosen, beside, step("book", AnyOf(chosen, beside, enough=2)))
    assert world.move(after).task.plan == after.hash
