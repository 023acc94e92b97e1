"""What a bulk run makes of one order, purely: whether to send to it, and what it came to."""

from dataclasses import replace

import pytest

from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.inspector.bulk.assess import (
    AGAIN,
    GONE,
    KNOWN_BY_ITSELF,
    Eligible,
    NotFor,
    failure_words,
    held_for,
    hold_sentence,
    judged,
    refusals,
    verdict,
    verdict_of_gone,
    was_taken,
)
from roundsman.inspector.bulk.run import InFlightOrder, OrderResult, Run, Terms
from roundsman.model.events import (
    Cancel,
    CommandSource,
    Extend,
    HistoryRow,
    OperatorEvent,
    Resolve,
    Resubmit,
    RunNow,
    UndoAsked,
)
from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.plan import plan_of
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, StepRecord, Task, Termination
from tests.support.machine_world import T0, step, workflow

RESERVE = step("reserve", agent="inventory")
CHARGE = step("charge", RESERVE, agents=("payment", "payment_backup"))
MAIL = step("mail", RESERVE, agent="mail")
PLAN = plan_of(workflow(RESERVE, CHARGE, MAIL))
ID = "b-1a2b3c4d"
ASKED = CommandSource(ID, "amy", "it is back")
FAILED_AT = T0 + 5_000
ERROR = StepError("CardDeclined", "no funds")


def a_run(event: OperatorEvent | None = None) -> Run:
    asked = event or Resubmit(ASKED)
    return Run(ID, asked, "amy", "it is back", "", FAILED_AT + 1, 1, Terms())


def archived(name: str = "charge") -> Task:
    """A task of which that step failed for good."""
    task = new_task(PLAN, "ord-1", ProcessingOptions(), T0, shards=1)
    done = StepRecord(process_state=ProcessState.PROCESSED, started_at=T0, finished_at=T0)
    failed = StepRecord(
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


def test_the_command_is_judged_by_the_machine_on_the_record_as_it_is() -> None:
    found = judged(a_run(), PLAN, archived("mail"), FAILED_AT + 2)
    assert isinstance(found, Eligible)
    assert not found.to_undo
    assert ("mail",) in found.agents
    completed = replace(archived(), state=TaskState.COMPLETED)
    refused = judged(a_run(), PLAN, completed, FAILED_AT + 2)
    assert isinstance(refused, NotFor)
    assert refused.why == "only a task that ended with a failure can be resubmitted"


def test_what_is_gone_or_failed_again_since_is_no_candidate() -> None:
    at = FAILED_AT + 2
    assert judged(a_run(), PLAN, None, at) == NotFor(GONE)
    for state in (TaskState.ARCHIVED, TaskState.UNDONE):
        again = replace(archived(), state=state, ended_at=FAILED_AT + 2)
        assert judged(a_run(), PLAN, again, at) == NotFor(AGAIN)
    assert isinstance(
        judged(a_run(), PLAN, replace(archived(), ended_at=FAILED_AT + 1), at), Eligible
    )


def test_without_its_plan_an_order_is_refused() -> None:
    refused = judged(a_run(), None, archived(), FAILED_AT + 2)
    assert isinstance(refused, NotFor)
    assert "is not stored" in refused.why


def test_that_a_perform_happened_is_not_said_of_many() -> None:
    run = a_run(Resolve(ASKED, "charge", did=True))
    assert judged(run, PLAN, archived(), FAILED_AT + 2) == NotFor(KNOWN_BY_ITSELF)
    run = a_run(Resolve(ASKED, "charge", did=False))
    assert isinstance(judged(run, PLAN, archived(), FAILED_AT + 2), Eligible)


def test_an_undo_that_is_made_again_is_to_end_undone() -> None:
    task = archived()
    failed = replace(task.step("reserve"), process_state=ProcessState.UNDO_ERROR)
    task = replace(
        task,
        ending=Termination(TaskState.UNDONE, "it failed", "charge", undo=True),
        steps={**task.steps, "reserve": failed},
    )
    found = judged(a_run(), PLAN, task, FAILED_AT + 2)
    assert found == Eligible(to_undo=True, agents=(("inventory",),))


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
    assert verdict(a_run(event), sent, replace(archived(), state=state)) is ends[state]
    extended = verdict(a_run(Extend(ASKED, 60)), sent, replace(archived(), state=state))
    assert extended is OrderResult.TAKEN


def test_of_a_task_that_is_gone_its_history_says_what_it_came_to() -> None:
    run, sent = a_run(), InFlightOrder("ord-1")
    undone_before = [row("undone", 3), row("resubmit", 8, ID)]
    assert verdict_of_gone(run, sent, undone_before) is OrderResult.COMPLETED
    undone_after = [*undone_before, row("undone", 9)]
    assert verdict_of_gone(run, sent, undone_after) is OrderResult.FAILED
    assert (
        verdict_of_gone(run, InFlightOrder("ord-1", to_undo=True), undone_after)
        is OrderResult.UNDONE
    )
    assert verdict_of_gone(a_run(UndoAsked(ASKED)), sent, undone_after) is OrderResult.UNDONE
    assert verdict_of_gone(a_run(Extend(ASKED, 60)), sent, []) is OrderResult.TAKEN


def test_a_command_was_taken_where_the_task_or_its_history_says_so() -> None:
    task = archived()
    assert not was_taken(a_run(), task)
    assert was_taken(a_run(), replace(task, command_ids=("c-1", ID)))
    assert was_taken(a_run(), task, [row("resubmit", 8, ID)])  # ten later commands came since
    assert not was_taken(a_run(), task, [row("refused", 8, ID), row("resubmit", 8, "c-1")])


def test_refusals_are_those_of_this_runs_command() -> None:
    said = "resubmit by amy refused: the task is completed"
    rows = [row("refused", 8, ID, said), row("refused", 9, "c-1", said), row("resubmit", 9, ID)]
    assert refusals(a_run(), rows) == ["the task is completed"]


def test_a_failure_is_told_with_its_group() -> None:
    task = replace(archived(), ending=Termination(TaskState.ARCHIVED, "w", "charge", error=ERROR))
    group, words = failure_words(task)
    assert group.startswith("f-")
    assert words == "charge: CardDeclined: no funds"
    assert failure_words(replace(task, state=TaskState.COMPLETED)) == ("none", "w")
