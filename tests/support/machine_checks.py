"""What holds for every decision of the machine and for every stored task, in any story.

The named invariants are the public ones, which worlds of whole stacks are held to as well; what is
here beside them is the machine's own.
"""

from roundsman.definition.plan import Plan
from roundsman.model.events import Decision, Event, Inspect, Replied, SendRequest
from roundsman.model.failure import failure_of
from roundsman.model.situations import AtAgent
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import CLOSING_FAILED, LATE_ANSWER, PERFORM, Task
from roundsman_testing.invariants.rules import of_change
from tests.support.steps import stored_step

OPEN, ARCHIVED, DONE_LANE = "open#3", "archived#3", "done#3"


def check(plan: Plan, before: Task, event: Event, decision: Decision, now: int) -> None:
    """What holds for every decision whatever."""
    after = decision.task
    assert decision.reason.strip()
    for command in decision.actions:
        if isinstance(command, SendRequest):
            assert after.step(command.step).under_way
    if after is before:
        assert not decision.history
        return
    assert after != before
    assert after.version >= before.version + 1
    assert len({row.seq for row in decision.history}) == len(decision.history)
    broken = list(of_change(plan, before, after, now))
    assert not broken, broken
    check_group(before, after)
    check_record(plan, after)
    check_lane(before, after)
    if isinstance(event, Inspect):
        claimed = {n for n, r in after.steps.items() if r.locked_by} - {
            n for n, r in before.steps.items() if r.locked_by
        }
        assert not claimed, "a timer never claims"
    new = after.owed[len(before.owed) :]
    assert after.owed[: len(before.owed)] == before.owed
    alerts = [owed.name for owed in new if owed.kind == "alert"]
    enters = after.state is not before.state
    joins = after.failure not in (None, before.failure) and not after.ended
    expected = ["task_archived"] if enters and after.state is TaskState.ARCHIVED else []
    awaits = any(record.awaits_result for record in after.steps.values())
    expected += ["result_awaited" if awaits else "unexpected_error"] if joins else []
    failed = {n for n in closing_of(after) if after.step(n).process_state is ProcessState.ERROR}
    closed = [CLOSING_FAILED] if enters and after.ended and failed else []
    late = [LATE_ANSWER] if _is_late_answer(before, event) else []
    assert alerts == [*expected, *closed, *late]
    assert all(owed.seq == after.version and owed.at == now for owed in new)


def closing_of(task: Task) -> tuple[str, ...]:
    """The closing steps of the end that the task has come to."""
    return () if task.closing is None else task.closing.steps


def _is_late_answer(before: Task, event: Event) -> bool:
    """Whether the event is the first answer to a callback after the undo of its step, or after its
    step went on without it."""
    if not isinstance(event, Replied) or not event.callback:
        return False
    record = before.step(event.step)
    undone = before.ended and record.process_state is ProcessState.UNDONE
    return (undone or record.unanswered) and record.wait_ended_at is not None


def check_group(before: Task, task: Task) -> None:
    """The task is in the group of its failure, in which it stays until the failure is over."""
    failure = failure_of(task)
    same_end = task.ended and task.state is before.state
    goes_on = not task.ended and not before.ended and task.failed_at == before.failed_at
    given = any(
        one.awaits_result and not task.step(name).awaits_result
        for name, one in before.steps.items()
    )
    if same_end or (goes_on and before.failure is not None and not given):
        assert task.failure == before.failure
    elif given and task.failure == before.failure:
        pass  # the result of another step was given
    else:
        assert task.failure == (failure.group if failure else None)
    assert task.failure is not None or task.state is not TaskState.ARCHIVED


def check_record(plan: Plan, task: Task) -> None:
    """What holds for every stored task."""
    steps = plan.for_task(task).steps
    for name, record in task.steps.items():
        if record.under_way:
            assert record.started_at
        if task.ending is None and record.operation == PERFORM:  # an undo has its own time
            assert max(record.claim_by or 0, record.until or 0) <= task.complete_by
        if isinstance(record.situation, AtAgent) and record.situation.heartbeat_by is not None:
            assert record.situation.heartbeat_by <= record.situation.until
        if record.process_state is ProcessState.PENDING:
            after = steps[name].after if name in steps else ()
            comes_later = any(not task.step(other).done for other in after)
            assert stored_step(record).complete_by or comes_later or record.started_at is None
    if not task.ended:
        found = {record.process_state for record in task.steps.values()}
        goes_on = task.ending is None or not task.ending.undo  # and is undone on its way
        undoing = ProcessState.UNDOING in found and not goes_on
        assert (task.state is TaskState.UNDOING) == undoing
    if task.state is TaskState.COMPLETED:
        assert task.ending is None or task.ending.part or task.ended_early
    if task.state in (TaskState.ARCHIVED, TaskState.UNDONE, TaskState.CANCELLED):
        assert task.ending is not None


def check_lane(before: Task, after: Task) -> None:
    """The due entry never rises within the open lane."""
    if after.ended and not after.owed:
        assert after.due_at == after.ended_at
        return
    assert after.expires_at is None
    if before.lane == OPEN:
        assert after.due_at <= before.due_at
