"""A result that is left out decides nothing about the effect: who reads it waits for it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import (
    Archive,
    Retry,
    Signal,
    Sleep,
    SleepUntil,
    Step,
    Undo,
)
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.due import due
from roundsman.engine.left_out import ADDED_LATER, left_out_of, readers, why_not_to_be_read
from roundsman.engine.requests import request_for
from roundsman.engine.step_values import step_values
from roundsman.errors import Refused
from roundsman.model.events import Outcome
from roundsman.model.failure import failure_of, open_step
from roundsman.model.instants import DAY
from roundsman.model.record_limits import (
    LARGEST_KEPT_RESULT,
    LARGEST_RESULT_ROW,
    LONGEST_WHY_LEFT_OUT,
    MOST_RESULT_ROWS,
)
from roundsman.model.situations import End, Ended
from roundsman.model.states import ProcessState, SituationName, TaskState
from roundsman.model.task import Effect, LeftOut, StepError, StepRecord, StepToAdd
from roundsman.wire.messages import AgentRequest
from tests.support.left_out_stories import (
    FENCED,
    LONG,
    NOT_JSON,
    archived_at_its_deadline,
    awaited,
    that_is_no_json,
)
from tests.support.machine_world import World, plan, requests_in, step
from tests.support.steps import step_record


def request(world: World, name: str) -> AgentRequest:
    return request_for(world.plan, world.task, name, world.order, world.now)


def context(world: World) -> DecisionContext:
    builder = DecisionBuilder(world.task, world.now, world.plan)
    return DecisionContext(world.plan, builder, world.order, {}, 0.0)


# --- Somebody reads it ---------------------------------------------------------------------------


def test_what_reads_a_result_waits_for_it_and_another_branch_goes_on() -> None:
    world = awaited()
    record = world.record("a")
    assert (record.process_state, record.situation_name) == (
        ProcessState.PROCESSED,
        SituationName.AWAITS_RESULT,
    )
    assert (record.result, record.done) == (None, False)
    assert requests_in(world.start()) == []
    assert world.state("c") is ProcessState.PROCESSING
    assert "a" not in world.task.results()


def test_a_row_of_the_history_says_why_and_who_waits() -> None:
    a = step("a", result_limit=100)
    world = World(plan(a, step("b", a)))
    world.start()
    [row] = world.succeeds("a", LONG).history
    assert (row.kind, row.reason) == (
        "result left out",
        "a: processed, and its result was left out: the result has 202 bytes; the plan allows 100; "
        "it would be read by b; what comes after it waits",
    )


def test_a_person_gives_the_result_and_its_readers_go_on_with_it() -> None:
    world = awaited()
    with pytest.raises(Refused, match="a is done, and only its result is missing"):
        world.resolve("a", did=False)
    with pytest.raises(Refused, match="a: the result has 32769 bytes; 32768 fit"):
        world.resolve("a", result="x" * (32 * 1024 - 1))
    world.resolve("a", result=LONG)
    assert requests_in(world.start()) == ["b"]
    sent = request(world, "b")
    assert (sent.results, sent.left_out) == ({"a": LONG}, ())
    assert world.record("a").left_out is None


def test_one_alert_is_owed_for_orders_that_wait_for_the_same_result() -> None:
    first, second = awaited(), awaited()
    assert first.task.failure == second.task.failure is not None
    assert [one.name for one in first.task.owed if one.kind == "alert"] == ["result_awaited"]
    assert "a: its result was given" in first.resolve("a", result=1).reason
    assert first.task.failure is None


def test_the_time_of_the_wait_is_given_back_to_the_task() -> None:
    world = awaited()
    world.succeeds("c")
    by = world.task.complete_by
    world.wait_until(by + DAY).inspect()
    assert world.task_state() is TaskState.PENDING
    world.deliver_owed()
    assert due(world.task, world.now) == world.now + DAY, "nobody looks at it before"
    world.resolve("a", result=1)
    assert world.task.complete_by > by + DAY
    world.start()
    world.succeeds("b")
    assert world.task_state() is TaskState.COMPLETED


def test_at_its_deadline_an_order_that_waits_is_archived_and_not_undone() -> None:
    world = archived_at_its_deadline()
    assert world.task_state() is TaskState.ARCHIVED
    assert world.task.ending is not None
    assert world.task.ending.why.endswith("the result of a is missing")
    assert world.state("a") is ProcessState.PROCESSED


def test_an_archived_order_goes_on_with_the_result_and_not_by_a_resubmit() -> None:
    world = archived_at_its_deadline()
    with pytest.raises(Refused, match=r"the result of a was left out .* resolve a with its result"):
        world.resubmit()
    world.resolve("a", result=1)
    assert world.task_state() is TaskState.PENDING
    assert requests_in(world.start()) == ["b"]


def test_an_order_that_fails_elsewhere_undoes_the_step_and_its_undo_is_told() -> None:
    world = awaited()
    world.is_refused("c")
    world.start()
    sent = request(world, "a")
    assert (sent.operation, sent.results) == ("undo", {})
    assert sent.left_out == ("a",)
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE


# --- Who reads it --------------------------------------------------------------------------------

_A = step("a", result_limit=100)
MINUTES = timedelta(minutes=5)
AWAITED = Ended(how=End.AWAITS_RESULT)


@pytest.mark.parametrize(
    ("others", "found"),
    [
        ((), []),
        ((step("b"),), []),
        ((step("b", _A),), ["b"]),
        ((step("b", _A), step("c", "b")), ["b", "c"]),
        ((Sleep(name="b", for_=MINUTES, after=(_A,)),), []),
        ((Signal("b", within=MINUTES, after=(_A,)),), []),
        ((Signal("b", within=MINUTES, after=(_A,), when="results.a.ok"),), ["b"]),
        (
            (Signal("b", within=MINUTES, after=(_A,), when="values(results)"),),
            ["b"],
        ),
        ((Signal("b", within=MINUTES, after=(_A,), when="values(@)"),), ["b"]),
        ((Signal("b", within=MINUTES, after=(_A,), when="input.ok"),), []),
        ((Signal("b", within=MINUTES, after=(_A,), when="input.a"),), []),
        ((step("c"), Signal("b", within=MINUTES, after=("c",), when="results.c.ok")), []),
        ((SleepUntil(name="b", until="results.a.at", after=(_A,)),), ["b"]),
        ((SleepUntil(name="b", until="input.at", after=(_A,)),), []),
        ((Sleep(name="s", for_=MINUTES), step("b", "s", for_each="keys(results)")), ["b"]),
    ],
)
def test_agents_after_a_step_and_expressions_that_name_it_read_its_result(
    others: tuple[Step, ...], found: list[str]
) -> None:
    world = World(plan(_A, *others), order={"ok": True})
    world.start()
    world.succeeds("a", LONG)
    assert readers(context(world), "a") == found
    assert world.record("a").awaits_result is bool(found)


def test_steps_that_may_still_be_added_read_a_result_as_long_as_somebody_can_add_them() -> None:
    world = World(plan(_A, step("c"), may_add=(step("leg"),)))
    world.start()
    assert readers(context(world), "a") == [ADDED_LATER]
    world.succeeds("c")
    assert readers(context(world), "a") == []


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        ((Signal("leg", within=MINUTES),), []),
        ((Signal("leg", within=MINUTES), step("other")), [ADDED_LATER]),
    ],
)
def test_steps_that_may_be_added_read_it_if_one_of_their_kinds_has_an_agent(
    kinds: tuple[Step, ...], found: list[str]
) -> None:
    world = World(plan(_A, step("c"), may_add=kinds))
    world.start()
    assert readers(context(world), "a") == found


def test_where_no_more_steps_fit_none_may_be_added() -> None:
    world = World(plan(_A, step("c"), may_add=(step("leg"),), most_added=2))
    world.start()
    world.adds("a", StepToAdd("leg[x]"))
    assert readers(context(world), "c")[-1] == ADDED_LATER
    world.adds("leg[x]", StepToAdd("leg[y]"))
    assert ADDED_LATER not in readers(context(world), "c")


def test_an_expression_reads_the_results_of_all_items() -> None:
    legs = step("leg", for_each="input.items")
    others = (
        Signal("b", within=MINUTES, after=(legs,), when="results.leg"),
        Signal("c", within=MINUTES, after=(legs,), when="input.items"),
    )
    world = World(plan(legs, *others), order={"items": ["x", "y"]})
    world.start()
    assert readers(context(world), "leg[0]") == ["b"]


def test_an_added_step_reads_the_results_of_those_that_it_comes_directly_after() -> None:
    world = World(plan(step("find"), may_add=(step("leg", result_limit=100),)))
    world.start()
    world.adds(
        "find",
        StepToAdd("leg[x]"),
        StepToAdd("leg[y]", ("leg[x]",)),
        StepToAdd("leg[z]", ("leg[y]",)),
    )
    assert readers(context(world), "leg[x]") == ["leg[y]", ADDED_LATER]
    assert readers(context(world), "find") == ["leg[x]", "leg[y]", "leg[z]", ADDED_LATER]


def test_if_nobody_reads_it_the_order_goes_on_and_the_history_says_so() -> None:
    world = World(plan(_A, on_failure=Undo()))
    world.start()
    [row] = world.succeeds("a", LONG).history
    assert row.reason.endswith("nobody reads it")
    assert world.task_state() is TaskState.COMPLETED
    assert world.task.failure is None


def test_a_move_to_a_plan_that_would_read_it_is_refused_and_another_is_not() -> None:
    world = World(plan(_A, step("c")))
    world.start()
    world.succeeds("a", LONG)
    with pytest.raises(Refused, match=r"the result of a was left out .*, and b would read it"):
        world.move(plan(_A, step("c"), step("b", _A)))
    world.move(plan(_A, step("c"), step("b")))
    assert world.record("a").left_out is not None


def test_an_archived_order_of_which_a_result_is_read_is_not_resubmitted() -> None:
    """Its attempt succeeded while the task was ending, so that nobody read the result then."""
    world = World(plan(_A, step("b", _A), step("c"), on_failure=Archive()))
    world.start()
    world.is_refused("c")
    world.succeeds("a", LONG)
    assert not world.record("a").awaits_result
    with pytest.raises(Refused, match="and b would read it"):
        world.resubmit()
    world.resolve("a", result=1)
    world.resubmit()
    assert world.state("a") is ProcessState.PROCESSED


def test_an_archived_order_of_which_a_result_is_read_goes_on_only_once_it_has_the_result() -> None:
    world = World(plan(_A, step("b", _A), step("c"), on_failure=Archive()))
    world.start()
    world.is_refused("c")
    world.succeeds("a", LONG)
    decision = world.resolve("c")
    assert world.task_state() is TaskState.ARCHIVED
    assert "it stays Archived: the result of a was left out" in decision.reason
    world.resolve("a", result=1)
    assert world.task_state() is TaskState.PENDING
    assert requests_in(world.start()) == ["b"]


@pytest.mark.parametrize(("did", "state"), [(True, "Completed"), (False, "Archived")])
def test_a_step_that_is_resolved_adds_no_reader_of_a_result_unless_it_begins_again(
    did: bool, state: str
) -> None:
    world = World(plan(_A, step("c"), may_add=(step("leg"),), on_failure=Archive()))
    world.start()
    world.is_refused("c")
    world.succeeds("a", LONG)
    world.resolve("c", did=did)
    assert world.task_state() == state


@pytest.mark.parametrize(
    ("name", "record", "why"),
    [
        ("a", step_record(process_state=ProcessState.PROCESSED, left_out=LeftOut("long")), True),
        ("a", step_record(process_state=ProcessState.PROCESSED), False),
        ("a", step_record(process_state=ProcessState.UNDONE, left_out=LeftOut("long")), False),
        ("d", step_record(process_state=ProcessState.PROCESSED, left_out=LeftOut("long")), False),
        ("d", StepRecord(situation=AWAITED, left_out=LeftOut("long")), True),
        ("gone", StepRecord(situation=AWAITED, left_out=LeftOut("long")), False),
    ],
)
def test_only_a_result_that_is_read_or_awaited_is_missing(
    name: str, record: StepRecord, why: bool
) -> None:
    world = World(plan(_A, step("b", _A), step("d")))
    world.start()
    world.task = replace(world.task, steps={**world.task.steps, name: record})
    found = why_not_to_be_read(context(world))
    assert (found is not None) is why


def test_without_the_steps_that_a_reply_has_added_the_task_itself_does_not_go_on() -> None:
    world = World(plan(step("a", retry=Retry(max_attempts=1)), deadline=timedelta(hours=1)))
    world.start()
    world.adds("a", StepToAdd("other[x]"))
    assert world.record("a").awaits_result
    world.wait_until(world.task.deadline).inspect()
    with pytest.raises(Refused, match=r"and the task would read it: resolve a with its result"):
        world.resubmit()


def test_a_step_that_comes_after_a_result_that_was_left_out_is_not_added() -> None:
    world = World(plan(_A, step("find"), may_add=(step("leg"),)))
    world.start()
    world.succeeds("a", LONG)
    assert world.record("a").awaits_result
    lacking = replace(world.record("a"), situation=Ended(how=End.SUCCEEDED))
    world.task = replace(
        world.task,
        steps={**world.task.steps, "a": lacking},
    )
    world.adds("find", StepToAdd("leg[x]", ("a",)))
    record = world.record("find")
    assert record.left_out is not None
    assert "find adds leg[x] after a, whose result was left out" in record.left_out.why
    assert world.task.added == {}


def test_a_last_step_that_lacks_steps_is_not_passed_over_by_a_resubmit() -> None:
    a = step("a", retry=Retry(max_attempts=2))
    world = World(plan(a, on_failure=Undo(), deadline=timedelta(hours=1)))
    world.start()
    world.adds("a", StepToAdd("other[a]"))
    world.wait_until(world.record("a").not_before).start()
    world.wait_until(world.task.deadline).inspect()
    assert world.task_state() is TaskState.ARCHIVED
    with pytest.raises(Refused, match=r"and the task would read it: resolve a with its result"):
        world.resubmit()
    world.resolve("a", result=1)
    assert world.task_state() is TaskState.COMPLETED


def test_an_order_that_awaits_two_results_stays_in_the_group_of_the_first() -> None:
    b, a = step("b", result_limit=100), step("a", result_limit=200)
    world = World(plan(b, a, step("c", b, a)))
    world.start()
    world.succeeds("b", LONG)
    group = world.task.failure
    world.succeeds("a", LONG)
    assert world.task.failure == group
    failure = failure_of(world.task)
    assert failure is not None
    assert (failure.group, failure.step, open_step(world.task)) == (group, "b", "b")
    world.resolve("b", result=1)
    assert open_step(world.task) == "a"
    assert world.task.failure != group


# --- A result that cannot be taken ---------------------------------------------------------------


def test_a_result_that_is_no_json_is_retried_and_in_the_end_left_out() -> None:
    world = World(plan(step("a", retry=Retry(max_attempts=2)), on_failure=Undo()))
    world.start()
    world.reply("a", Outcome.TRANSIENT, error=NOT_JSON, effect=Effect.STANDS)
    record = world.record("a")
    assert (record.situation_name, record.lacks_result) == (SituationName.WAITS, True)
    world.wait_until(record.not_before).start()
    sent = request(world, "a")
    assert sent.left_out == ("a",)
    world.is_refused("a")  # whatever a later attempt says: the effect stands
    assert world.state("a") is ProcessState.PROCESSED
    assert world.task_state() is TaskState.COMPLETED


def test_a_repaired_function_gives_the_result_after_all() -> None:
    world = World(plan(step("a", retry=Retry(max_attempts=2))))
    world.start()
    world.reply("a", Outcome.TRANSIENT, error=NOT_JSON, effect=Effect.STANDS)
    world.wait_until(world.record("a").not_before).start()
    world.succeeds("a", 5)
    assert (world.record("a").result, world.record("a").left_out) == (5, None)


def test_no_other_agent_begins_a_step_whose_effect_stands() -> None:
    a = step("a", agents=("one", "two"), retry=Retry(max_attempts=1), compensation=FENCED)
    world = World(plan(a))
    world.start()
    world.reply("a", Outcome.TRANSIENT, error=NOT_JSON, effect=Effect.STANDS)
    assert world.state("a") is ProcessState.PROCESSED


def test_a_proof_that_nothing_happened_does_not_count_after_a_success() -> None:
    a = step("a", agents=("one", "two"), retry=Retry(max_attempts=3), compensation=FENCED)
    world = World(plan(a))
    world.start()
    world.reply("a", Outcome.TRANSIENT, error=NOT_JSON, effect=Effect.STANDS)
    world.wait_until(world.record("a").not_before).start()
    error = StepError("Down", "503")
    world.reply("a", Outcome.TRANSIENT, error=error, effect=Effect.NONE)
    assert world.record("a").effect is None
    world.wait_until(world.record("a").not_before).start()
    assert world.record("a").agent is None


def test_what_is_stated_as_not_done_begins_without_the_mark() -> None:
    world = World(plan(step("a", retry=Retry(max_attempts=2))))
    world.start()
    world.reply("a", Outcome.TRANSIENT, error=NOT_JSON, effect=Effect.STANDS)
    world.wait(60).resolve("a", did=False)
    assert world.record("a").left_out is None


def test_a_task_that_is_over_time_while_such_a_step_is_retried_is_archived() -> None:
    a = step("a", retry=Retry(max_attempts=2))
    world = World(plan(a, on_failure=Undo(), deadline=timedelta(hours=1)))
    world.start()
    world.reply("a", Outcome.TRANSIENT, error=NOT_JSON, effect=Effect.STANDS)
    world.wait_until(world.task.deadline).inspect()
    assert world.task_state() is TaskState.ARCHIVED


def test_the_group_of_a_result_that_cannot_be_taken_names_why() -> None:
    world = that_is_no_json()
    record = world.record("a")
    assert record.awaits_result
    assert record.left_out == LeftOut("ResultNotJson: result is a set, which is not JSON")
    long = StepError("ResultNotJson", "x" * 900, unexpected=True)
    a = step("a", retry=Retry(max_attempts=1))
    world = World(plan(a))
    world.start()
    world.reply("a", Outcome.TRANSIENT, error=long, effect=Effect.STANDS)
    left_out = world.record("a").left_out
    assert left_out is not None
    assert len(left_out.why) == LONGEST_WHY_LEFT_OUT


def test_a_success_whose_result_an_agent_could_not_send_is_one() -> None:
    world = World(plan(step("a"), on_failure=Undo()))
    world.start()
    world.reply("a", Outcome.SUCCEEDED, left_out="the result has 300000 bytes")
    assert world.record("a").left_out == LeftOut("the result has 300000 bytes")
    assert world.task_state() is TaskState.COMPLETED


# --- Where the whole result is -------------------------------------------------------------------


def test_results_are_kept_in_a_few_rows_and_those_that_do_not_fit_are_not() -> None:
    world = World(plan(step("a"), step("b")))
    world.start()
    here = context(world)

    def kept(*sizes: tuple[int, int]) -> None:
        for n, (size, row) in enumerate(sizes):
            here.decision.change(f"x{n}", step_values(left_out=LeftOut("", size, row)))

    def row(size: int) -> int | None:
        return left_out_of(here, "a", "x", size, "too long").row

    assert (row(LARGEST_KEPT_RESULT), row(LARGEST_KEPT_RESULT + 1)) == (0, None)
    assert left_out_of(here, "a", "x", 1, "too long").whole == "x"
    assert left_out_of(here, "a", "x", LARGEST_KEPT_RESULT + 1, "too long").whole is None
    here.decision.change("b", step_values(left_out=LeftOut("it was not sent", 1)))
    assert row(1) == 0
    here.decision.change("a", step_values(left_out=LeftOut("", LARGEST_RESULT_ROW, 0)))
    assert row(1) == 0, "its own former result makes room"
    kept((LARGEST_RESULT_ROW - 1_000, 0))
    assert (row(1_000), row(1_001)) == (0, 1)
    kept(*((LARGEST_RESULT_ROW, number) for number in range(MOST_RESULT_ROWS)))
    assert row(1) is None


def test_an_erased_order_has_no_result_and_no_reason_of_it() -> None:
    world = World(plan(_A))
    world.start()
    world.succeeds("a", LONG)
    world.deliver_owed()
    world.erase()
    left_out = world.record("a").left_out
    assert left_out == LeftOut("(erased)", 202, None)
    assert left_out.whole is None


def test_the_steps_of_a_reply_are_added_though_its_result_is_left_out() -> None:
    world = World(plan(step("find", result_limit=100), may_add=(step("leg"),)))
    world.start()
    world.reply("find", Outcome.SUCCEEDED, result=LONG, then=(StepToAdd("leg[a]"),))
    assert world.record("find").awaits_result
    assert "leg[a]" in world.task.added
    world.resolve("find", did=True, result="short")
    assert requests_in(world.start()) == ["leg[a]"]
