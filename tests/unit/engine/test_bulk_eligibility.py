"""What a bulk run makes of one order, purely: whether to send to it, and what it came to."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.plan import plan_of
from roundsman.definition.workflow import Signal
from roundsman.engine.bulk_eligibility import (
    AGAIN,
    CHANGED,
    GONE,
    KNOWN_BY_ITSELF,
    Eligible,
    NotFor,
    event_for,
    failure_words,
    held_for,
    hold_sentence,
    judged,
    refusals,
    result_of,
    result_of_gone,
    was_taken,
)
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.bulk_run import InFlightOrder, OrderResult, PlannedOrder, Run, Terms
from roundsman.model.corrections import changes_of
from roundsman.model.events import (
    Cancel,
    CommandSource,
    Extend,
    HistoryRow,
    Move,
    OperatorEvent,
    Resolve,
    Resubmit,
    RunNow,
    UndoAsked,
)
from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    PERFORM,
    UNDO,
    Effect,
    Operation,
    StepError,
    StepRecord,
    Task,
    Termination,
    UnreadSignal,
)
from tests.support.machine_world import T0, World, step, workflow
from tests.support.steps import changed_step, step_record

RESERVE = step("reserve", agent="inventory")
CHARGE = step("charge", RESERVE, agents=("payment", "payment_backup"))
MAIL = step("mail", RESERVE, agent="mail")
PLAN = plan_of(workflow(RESERVE, CHARGE, MAIL))
BY_POST = plan_of(workflow(RESERVE, CHARGE, replace(MAIL, agent="post")))
ID = "b-1a2b3c4d"
ASKED = CommandSource(ID, "amy", "it is back")
FAILED_AT = T0 + 5_000
ORDER = PlannedOrder("ord-1")
ERROR = StepError("CardDeclined", "no funds")


def a_run(event: OperatorEvent | None = None) -> Run:
    asked = event or Resubmit(ASKED)
    return Run(ID, asked, "amy", "AROAOPERATOR:amy", "it is back", "", FAILED_AT + 1, 1, Terms())


def archived(name: str = "charge") -> Task:
    """A task of which that step failed for good."""
    task = new_task(PLAN, "ord-1", ProcessingOptions(), T0, shards=1)
    done = step_record(process_state=ProcessState.PROCESSED, started_at=T0, finished_at=T0)
    failed = step_record(
        process_state=ProcessState.ERROR, started_at=T0, finished_at=FAILED_AT, error=ERROR
    )
    return replace(
        task,
        version=7,
        state=TaskState.ARCHIVED,
        ended_at=FAILED_AT,
        ending=Termination(TaskState.ARCHIVED, "it failed", name),
        steps={"reserve": done, name: failed},
    )


def row(kind: str, seq: int, command_id: str | None = None, reason: str = "") -> HistoryRow:
    return HistoryRow(seq, T0, kind, None, None, reason, None, command_id)


def hold(agent: str, kind: str = OPERATOR) -> Hold:
    return Hold(agent, kind, T0, T0 + 60_000, "moving", "amy")


def resubmitted(records: Mapping[str, StepRecord]) -> Task:
    """A task with these records that goes on: the run's command was carried out before."""
    task = replace(archived(), command_ids=(ID,), steps=records)
    return replace(task, state=TaskState.PENDING, ending=None, ended_at=None)


def agents_of(**records: StepRecord) -> tuple[tuple[str, ...], ...]:
    """The next agents of a task with these records."""
    found = judged(a_run(), ORDER, PLAN, resubmitted(records), FAILED_AT + 2)
    assert isinstance(found, Eligible)
    return found.agents


def test_the_command_is_judged_by_the_machine_on_the_record_as_it_is() -> None:
    found = judged(a_run(), ORDER, PLAN, archived("mail"), FAILED_AT + 2)
    assert isinstance(found, Eligible)
    assert not found.to_undo
    assert ("mail",) in found.agents
    completed = replace(archived(), state=TaskState.COMPLETED)
    refused = judged(a_run(), ORDER, PLAN, completed, FAILED_AT + 2)
    assert isinstance(refused, NotFor)
    assert refused.why == "only a task that ended with a failure can be resubmitted"


def test_what_is_gone_or_failed_again_since_is_no_candidate() -> None:
    at = FAILED_AT + 2
    assert judged(a_run(), ORDER, PLAN, None, at) == NotFor(GONE)
    for state in (TaskState.ARCHIVED, TaskState.UNDONE):
        again = replace(archived(), state=state, ended_at=FAILED_AT + 2)
        assert judged(a_run(), ORDER, PLAN, again, at) == NotFor(AGAIN)
    assert isinstance(
        judged(a_run(), ORDER, PLAN, replace(archived(), ended_at=FAILED_AT + 1), at), Eligible
    )


def test_a_task_that_completed_since_did_not_fail_again() -> None:
    completed = replace(archived(), state=TaskState.COMPLETED, ended_at=FAILED_AT + 2)
    refused = judged(a_run(), ORDER, PLAN, completed, FAILED_AT + 3)
    assert refused == NotFor("only a task that ended with a failure can be resubmitted")


PERFORMS: tuple[Operation, ...] = (PERFORM,)


def eligible(
    *agents: tuple[str, ...],
    to_undo: bool = False,
    operations: Collection[Operation] = PERFORMS,
) -> Eligible:
    """The order is eligible, and these are the agents and the operations of its next requests."""
    return Eligible(to_undo, agents, PLAN.workflow, ORDER.order, frozenset(operations))


def test_a_step_that_began_stays_at_its_agent_and_another_may_go_to_each_of_its_own() -> None:
    found = judged(a_run(), ORDER, PLAN, archived("charge"), FAILED_AT + 2)
    assert found == eligible(("payment",), ("mail",))
    found = judged(a_run(), ORDER, PLAN, archived("mail"), FAILED_AT + 2)
    assert found == eligible(("mail",), ("payment", "payment_backup"))


def test_a_step_that_is_not_ready_has_no_next_agent() -> None:
    ready = step_record(complete_by=FAILED_AT)
    assert agents_of(mail=ready) == (("mail",),)
    assert agents_of(mail=changed_step(ready, complete_by=None)) == ()
    for state in (ProcessState.PROCESSED, ProcessState.ERROR, ProcessState.UNDONE):
        assert agents_of(mail=changed_step(ready, process_state=state)) == (), state


def test_an_undo_is_ready_until_it_is_claimed() -> None:
    undoing = step_record(process_state=ProcessState.UNDOING, started_at=T0)
    assert agents_of(mail=undoing) == (("mail",),)
    assert agents_of(mail=changed_step(undoing, locked_by="sched-1.1.5")) == ()


def test_a_step_that_the_plan_does_not_have_has_no_next_agent() -> None:
    ready = step_record(complete_by=FAILED_AT)
    assert agents_of(wrap=ready, mail=ready) == (("mail",),)


def test_under_another_plan_the_next_agents_are_those_of_that_plan() -> None:
    run, at = a_run(Resubmit(ASKED, plan=BY_POST.hash)), FAILED_AT + 2
    found = judged(run, ORDER, PLAN, archived(), at, BY_POST)
    assert found == eligible(("payment",), ("post",))


def test_a_command_that_was_carried_out_before_does_not_change_the_plan_again() -> None:
    run, at = a_run(Resubmit(ASKED, plan=BY_POST.hash)), FAILED_AT + 2
    ready = {"mail": step_record(complete_by=FAILED_AT)}
    task = resubmitted(ready)
    assert judged(run, ORDER, PLAN, task, at, BY_POST) == eligible(("mail",))
    assert judged(run, ORDER, None, task, at) == eligible()
    undoes = replace(task, ending=Termination(TaskState.UNDONE, "why", undo=True))
    assert judged(run, ORDER, None, undoes, at) == eligible(to_undo=True, operations=())


def test_a_cancelled_order_ends_in_undo_only_if_that_is_asked() -> None:
    at = FAILED_AT + 2
    found = judged(a_run(Cancel(ASKED, undo=False)), ORDER, PLAN, archived(), at)
    assert isinstance(found, Eligible)
    assert not found.to_undo
    found = judged(a_run(Cancel(ASKED)), ORDER, PLAN, archived(), at)
    assert isinstance(found, Eligible)
    assert found.to_undo


def test_what_was_checked_when_the_run_was_planned_holds_for_that_version_only() -> None:
    task, at = archived(), FAILED_AT + 2
    unfit = PlannedOrder("ord-1", task.version, refused="its input is not valid")
    assert judged(a_run(), unfit, PLAN, task, at) == NotFor("its input is not valid")
    pinned = PlannedOrder("ord-1", task.version)
    assert isinstance(judged(a_run(), pinned, PLAN, task, at), Eligible)
    moved = replace(task, version=task.version + 1)
    assert judged(a_run(), pinned, PLAN, moved, at) == NotFor(CHANGED)
    assert isinstance(judged(a_run(), ORDER, PLAN, moved, at), Eligible)


def test_each_order_is_sent_its_own_correction_in_the_name_of_the_starter() -> None:
    changes = changes_of({"sku": "b-2"}, ())
    event = event_for(a_run(), PlannedOrder("ord-1", 7, changes), archived())
    assert isinstance(event, Resubmit)
    assert event.changes == changes
    assert (event.asked.command_id, event.asked.seen_version) == (ID, 7)
    assert (event.asked.by, event.asked.forwarded_for) == ("amy", "AROAOPERATOR:amy")
    assert event.asked.reason == f"it is back (bulk {ID})"
    plain = event_for(a_run(UndoAsked(ASKED)), PlannedOrder("ord-1", 7, changes), archived())
    assert isinstance(plain, UndoAsked)


def test_an_order_without_its_own_correction_gets_that_of_the_run() -> None:
    changes = changes_of({"sku": "b-2"}, ())
    event = event_for(a_run(Resubmit(ASKED, changes=changes)), ORDER, archived())
    assert isinstance(event, Resubmit)
    assert event.changes == changes


def test_a_correction_is_judged_on_the_content_of_the_order() -> None:
    run, at = a_run(Resubmit(ASKED, changes=changes_of({"sku": "b-2"}, ()), used=True)), T0 + 9_000
    task = archived()
    refused = replace(task.step("charge"), effect=Effect.NONE)
    task = replace(task, steps={**task.steps, "charge": refused})
    assert isinstance(judged(run, ORDER, PLAN, task, at, order={"sku": "a-1"}), Eligible)
    same = judged(run, ORDER, PLAN, task, at, order={"sku": "b-2"})
    assert same == NotFor("the correction changes nothing: the input has these values")


def test_without_its_plan_an_order_is_refused() -> None:
    refused = judged(a_run(), ORDER, None, archived(), FAILED_AT + 2)
    assert isinstance(refused, NotFor)
    assert "is not stored" in refused.why


def test_that_a_perform_happened_cannot_be_reported_for_many() -> None:
    run = a_run(Resolve(ASKED, "charge", did=True))
    assert judged(run, ORDER, PLAN, archived(), FAILED_AT + 2) == NotFor(KNOWN_BY_ITSELF)
    run = a_run(Resolve(ASKED, "charge", did=False))
    assert isinstance(judged(run, ORDER, PLAN, archived(), FAILED_AT + 2), Eligible)


def test_that_an_undo_happened_can_be_reported_for_many() -> None:
    task = archived()
    failed = changed_step(task.step("reserve"), process_state=ProcessState.UNDO_ERROR)
    task = replace(task, steps={**task.steps, "reserve": failed})
    run = a_run(Resolve(ASKED, "reserve", did=True))
    assert isinstance(judged(run, ORDER, PLAN, task, FAILED_AT + 2), Eligible)


def test_an_undo_that_is_made_again_is_to_end_undone() -> None:
    task = archived()
    failed = changed_step(task.step("reserve"), process_state=ProcessState.UNDO_ERROR)
    task = replace(
        task,
        ending=Termination(TaskState.UNDONE, "it failed", "charge", undo=True),
        steps={**task.steps, "reserve": failed},
    )
    found = judged(a_run(), ORDER, PLAN, task, FAILED_AT + 2)
    assert found == eligible(("inventory",), to_undo=True, operations={UNDO})


def test_a_step_that_an_undo_prevents_from_beginning_has_no_next_agent() -> None:
    done = step_record(process_state=ProcessState.PROCESSED, started_at=T0, finished_at=T0)
    ready = step_record(complete_by=FAILED_AT)
    task = replace(resubmitted({"reserve": done, "mail": ready}), command_ids=())
    found = judged(a_run(UndoAsked(ASKED)), ORDER, PLAN, task, FAILED_AT + 2)
    assert found == eligible(to_undo=True, operations=())


def test_a_step_that_may_go_to_several_agents_waits_only_where_all_are_held() -> None:
    both = Eligible(agents=(("payment", "payment_backup"),))
    assert held_for(both, [hold("payment")]) is None
    assert held_for(both, [hold("payment"), hold("payment_backup", BREAKER)]) == hold("payment")
    assert held_for(Eligible(agents=(("mail",), ("payment",))), [hold("payment")]) == hold(
        "payment"
    )
    assert held_for(Eligible(), [hold("payment")]) is None
    assert hold_sentence(hold("mail")) == "mail is held by amy: moving"
    assert hold_sentence(hold("mail", BREAKER)) == "mail has an open circuit: moving"


def test_an_order_waits_for_a_hold_on_it_unless_only_undos_are_next_and_they_go_on() -> None:
    everything = Hold("", OPERATOR, 0, 1, "moving", "amy", workflow="*")
    performs = Eligible(
        agents=(("mail",),), workflow="sale", task_id="ord-1", operations=frozenset({PERFORM})
    )
    undoes = replace(performs, to_undo=True, operations=frozenset({UNDO}))
    assert held_for(performs, [everything]) == everything
    assert held_for(performs, [replace(everything, workflow="other")]) is None
    assert held_for(performs, [replace(everything, released=100)]) is None
    assert held_for(undoes, [everything]) is None
    too = replace(everything, undos=True)
    assert held_for(undoes, [too]) == too
    assert held_for(replace(performs, operations=frozenset()), [too]) is None
    assert hold_sentence(too) == "everything is held by amy: moving"


OPEN = (
    TaskState.SCHEDULED,
    TaskState.PENDING,
    TaskState.ACTIVE,
    TaskState.RETRY,
    TaskState.UNDOING,
)


@pytest.mark.parametrize("state", list(TaskState))
@pytest.mark.parametrize(
    ("event", "to_undo", "undone"),
    [
        (Resubmit(ASKED), False, OrderResult.FAILED),
        (Resubmit(ASKED), True, OrderResult.UNDONE),
        (RunNow(ASKED), False, OrderResult.FAILED),
        (UndoAsked(ASKED), False, OrderResult.UNDONE),
        (Cancel(ASKED), False, OrderResult.UNDONE),
    ],
)
def test_what_an_order_came_to_is_its_tasks_end(
    state: TaskState, event: OperatorEvent, to_undo: bool, undone: OrderResult
) -> None:
    ends = {
        TaskState.COMPLETED: OrderResult.COMPLETED,
        TaskState.CANCELLED: OrderResult.CANCELLED,
        TaskState.ARCHIVED: OrderResult.FAILED,
        TaskState.UNDONE: undone,
        **dict.fromkeys(OPEN),
    }
    sent = InFlightOrder("ord-1", to_undo)
    assert result_of(a_run(event), sent, replace(archived(), state=state)) is ends[state]
    for taken in (Extend(ASKED, 60), Move(ASKED, PLAN.hash)):
        result = result_of(a_run(taken), sent, replace(archived(), state=state))
        assert result is OrderResult.TAKEN


def test_of_a_task_that_is_gone_its_history_says_what_it_came_to() -> None:
    run, sent = a_run(), InFlightOrder("ord-1")
    undone_before = [row("undone", 3), row("resubmit", 8, ID)]
    assert result_of_gone(run, sent, undone_before) is OrderResult.COMPLETED
    undone_after = [*undone_before, row("undone", 9)]
    assert result_of_gone(run, sent, undone_after) is OrderResult.FAILED
    assert (
        result_of_gone(run, InFlightOrder("ord-1", to_undo=True), undone_after)
        is OrderResult.UNDONE
    )


@pytest.mark.parametrize(
    ("event", "kind", "result"),
    [
        (Cancel(ASKED, undo=True), "cancel", OrderResult.CANCELLED),
        (UndoAsked(ASKED), "undo", OrderResult.UNDONE),
        (Extend(ASKED, 60), "extend", OrderResult.TAKEN),
        (Move(ASKED, PLAN.hash), "move", OrderResult.TAKEN),
    ],
)
def test_a_task_that_is_gone_got_the_command_only_if_its_history_says_so(
    event: OperatorEvent, kind: str, result: OrderResult
) -> None:
    run, sent = a_run(event), InFlightOrder("ord-1")
    assert result_of_gone(run, sent, [row(kind, 3, ID), row("undone", 4)]) is result
    others = [row(kind, 3, "b-00000002"), row("refused", 4, ID), row("undone", 5)]
    assert result_of_gone(run, sent, others) is None


@pytest.mark.parametrize(
    "event",
    [
        Cancel(ASKED, undo=True),
        UndoAsked(ASKED),
        Extend(ASKED, 60),
        RunNow(ASKED),
        Move(ASKED, PLAN.hash),
    ],
)
def test_a_command_for_a_task_in_whatever_state_is_for_any_version(event: OperatorEvent) -> None:
    """A task under way changes every few seconds, and the command is delivered 20 s later."""
    assert event_for(a_run(event), ORDER, archived()).asked.seen_version is None
    pinned = event_for(a_run(event), PlannedOrder("ord-1", 7), archived())
    assert pinned.asked.seen_version == 7
    assert event_for(a_run(), ORDER, archived()).asked.seen_version == 7


def test_only_what_followed_the_last_try_of_the_command_is_its_result() -> None:
    run, sent = a_run(), InFlightOrder("ord-1")
    tries = [row("refused", 2, ID), row("undone", 3), row("resubmit", 8, ID)]
    assert result_of_gone(run, sent, tries) is OrderResult.COMPLETED
    assert result_of_gone(run, sent, [*tries, row("failed", 9)]) is OrderResult.COMPLETED
    assert result_of_gone(run, sent, [row("resubmit", 1, ID), *tries]) is OrderResult.COMPLETED


def test_an_order_of_which_nothing_had_to_be_undone_is_undone() -> None:
    run, sent = a_run(UndoAsked(ASKED)), InFlightOrder("ord-1")
    assert result_of_gone(run, sent, [row("undo", 3, ID)]) is OrderResult.UNDONE


@pytest.mark.parametrize(
    "history",
    [
        [],
        [("undone", 1, None)],
        [("refused", 2, ID)],
        [("resubmit", 3, "c-1")],
        [("refused", 2, ID), ("resubmit", 3, "c-1")],
        [("resubmit", 1, "c-1"), ("refused", 2, ID), ("undone", 4, None)],
    ],
)
def test_a_run_takes_no_credit_for_an_order_that_its_command_did_not_repair(
    history: list[tuple[str, int, str | None]],
) -> None:
    rows = [row(kind, seq, command) for kind, seq, command in history]
    assert result_of_gone(a_run(), InFlightOrder("ord-1"), rows) is None


@pytest.mark.parametrize(
    ("after", "result"),
    [
        ("resubmit", OrderResult.FAILED),
        ("cancel", OrderResult.CANCELLED),
        ("resolve", OrderResult.COMPLETED),
        ("refused", OrderResult.COMPLETED),
    ],
)
def test_what_others_did_to_the_order_after_the_command_is_not_its_completion(
    after: str, result: OrderResult
) -> None:
    rows = [row(after, 7, "c-0"), row("resubmit", 8, ID), row(after, 9, "c-1")]
    assert result_of_gone(a_run(), InFlightOrder("ord-1"), rows) is result


def test_a_command_was_taken_where_the_task_or_its_history_says_so() -> None:
    task = archived()
    assert not was_taken(a_run(), task)
    assert was_taken(a_run(), replace(task, command_ids=("c-1", ID)))
    assert was_taken(a_run(), task, [row("resubmit", 8, ID)])  # ten later commands came since
    assert not was_taken(a_run(), task, [row("refused", 8, ID), row("resubmit", 8, "c-1")])


def test_refusals_are_those_of_this_runs_command() -> None:
    reason = "resubmit by amy refused: the task is completed"
    other = "cancel by ann refused: the task is already undone"
    rows = [row("refused", 8, ID, reason), row("refused", 9, "c-1", other), row("resubmit", 9, ID)]
    assert refusals(a_run(), rows) == ["the task is completed"]
    assert refusals(a_run(), rows, since=T0) == ["the task is completed"]
    assert refusals(a_run(), rows, since=T0 + 1) == [], "of an earlier try"


def test_a_refusal_in_other_words_is_shown_as_it_is() -> None:
    assert refusals(a_run(), [row("refused", 8, ID, "not today")]) == ["not today"]


def test_a_failure_is_reported_with_its_group() -> None:
    task = replace(archived(), ending=Termination(TaskState.ARCHIVED, "w", "charge", error=ERROR))
    group, words = failure_words(task)
    assert group.startswith("f-")
    assert words == "charge: CardDeclined: no funds"
    assert failure_words(replace(task, state=TaskState.COMPLETED)) == ("none", "w")


def test_a_failure_is_reported_with_what_is_known_of_it() -> None:
    error = StepError("CardDeclined", "")
    task = replace(archived(), ending=Termination(TaskState.ARCHIVED, "w", "charge", error=error))
    assert failure_words(task)[1] == "charge: CardDeclined"
    assert failure_words(replace(task, ending=None)) == ("none", "it failed")


def test_an_undo_of_many_takes_no_completed_order_back() -> None:
    world = World(PLAN)
    world.start()
    for name in PLAN.steps:
        world.succeeds(name)
    found = judged(a_run(UndoAsked(ASKED)), ORDER, PLAN, world.task, world.now)
    assert isinstance(found, NotFor)
    assert "the task is completed" in found.why


def test_the_unread_signals_that_no_step_reads_after_the_command_are_named_once() -> None:
    waits = Signal("paid", within=timedelta(minutes=5), after=(RESERVE,))
    second = Signal("paid", name="second", within=timedelta(minutes=5), after=(RESERVE,))
    before, after = (plan_of(workflow(RESERVE, *more)) for more in ((waits, second), ()))
    task = new_task(before, "ord-1", ProcessingOptions(), T0, shards=1)
    kept = tuple(UnreadSignal(one, "paid", T0, None) for one in ("pay-1", "pay-2"))
    task = replace(task, signals=kept)
    found = judged(a_run(Move(ASKED, after.hash)), ORDER, before, task, T0 + 1, after)
    assert isinstance(found, Eligible)
    assert found.lost_signals == ("paid",)
    found = judged(a_run(Extend(ASKED, 60)), ORDER, before, task, T0 + 1)
    assert isinstance(found, Eligible)
    assert found.lost_signals == ()
