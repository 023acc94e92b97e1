"""The checks that need the record of an order, its plan and its order row."""

from collections.abc import Iterator

from roundsman.definition.plan import Plan, QuorumMember, StepPlan
from roundsman.engine.due import Lane, is_closed, lane_key
from roundsman.model.credit import credited_now
from roundsman.model.events import claim_of
from roundsman.model.instants import LONG_OVER, MINUTE, SECOND, SKEW, format_duration
from roundsman.model.situations import UnderWay
from roundsman.model.states import DONE, END_STATES, OVER, SETTLED, ProcessState, TaskState
from roundsman.model.task import ERASED, UNDO, StepRecord, Task
from roundsman_console.facts.audit.needs import Need, needs
from roundsman_console.facts.audit.stored_order import BrokenPromise, Findings, StoredOrder, Unknown

NO_PLAN = Unknown("its plan is not stored")
TROUBLED = Unknown("the supervisor could not handle its record, and has postponed it")
NOT_ENDED = Unknown("it has not ended yet")
FORWARD_FORGOTTEN = Unknown("its steps were undone, and the record has only the times of the undo")
BY_HAND = Unknown("a person has changed its plan, or has said how a step went")
OTHER_PLAN = Unknown("a person has changed its plan")

OVERDUE_FOR = 20 * MINUTE
"""How long a task may be open after its time, in ms: several passes of the supervisor."""

CLAIMED = frozenset({ProcessState.PROCESSING, ProcessState.PROCESSED})
"""The states of a step whose last claim was one to perform it."""
NOT_TO_UNDO = frozenset({ProcessState.UNDONE, ProcessState.SKIPPED})
GOES_ON = frozenset({ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING})
PLAN_CHANGES = ("move", "resubmit")
"""The commands that may change the plan of a task."""

BY_A_PERSON = (*PLAN_CHANGES, "resolve", "reconcile")
"""The commands after which the times of a step may be those of a person's word."""


def always_due(order: StoredOrder) -> Findings:
    """Check that an open task has a due entry that covers each instant of its record."""
    task = order.task
    if is_closed(task):
        return
    if task.lane != lane_key(Lane.OPEN, task.shard):
        yield BrokenPromise(f"{task.state} in lane {task.lane}")
    elif order.troubled:
        yield TROUBLED
    else:
        for need in needs(task, order.at, slack=order.slack):
            if task.due_at > need.at + order.slack:
                yield BrokenPromise(_too_late(task, need))


def ready(order: StoredOrder) -> Findings:
    """Check that the due entry covers each step that can be claimed: its Start may be lost."""
    task = order.task
    if is_closed(task):
        return
    if order.plan is None:
        yield NO_PLAN
    elif order.troubled:
        yield TROUBLED
    else:
        for need in needs(task, order.at, order.plan, slack=order.slack):
            if need.ready and task.due_at > need.at + order.slack:
                yield BrokenPromise(_too_late(task, need))


def _too_late(task: Task, need: Need) -> str:
    return f"{need.what}: looked at {task.due_at - need.at} ms too late"


def one_lock(order: StoredOrder) -> Findings:
    """Check that each attempt under way has a lock of this record, and an end."""
    for name, record in order.task.steps.items():
        attempt = record.situation
        if not isinstance(attempt, UnderWay):
            continue
        if not attempt.lock or attempt.until <= LONG_OVER:
            yield BrokenPromise(f"{name} is under way without a lock, or without an end")
        elif (claim_of(attempt.lock) or 0) > order.task.version:
            what = f"{name} has the lock of version {claim_of(attempt.lock)}"
            yield BrokenPromise(f"{what}, and the record is version {order.task.version}")


def in_time(order: StoredOrder) -> Findings:
    """Check that no perform was claimed after the task's time, or may take longer than it."""
    task = order.task
    for name, record in task.steps.items():
        late = (record.until or 0) - task.ends_by(name)
        performed = record.process_state is ProcessState.PROCESSING and task.performs(name)
        if performed and late > 0:
            yield BrokenPromise(f"{name} has {late} ms more than the task")
        begun = (record.started_at or 0) - task.ends_by(name)
        if record.process_state in CLAIMED and begun > SKEW:
            late_by = f"{name} was begun {format_duration(begun)} after the task's time"
            yield BY_HAND if order.was_commanded(*BY_A_PERSON) else BrokenPromise(late_by)


def in_order(order: StoredOrder) -> Findings:
    """Check that each step that was claimed came after its predecessors."""
    task, plan = order.task, order.expanded
    if plan is None:
        yield NO_PLAN
        return
    found = list(_begun_too_early(order, plan))
    if found and order.was_commanded(*BY_A_PERSON):
        yield BY_HAND
    else:
        yield from map(BrokenPromise, found)
    if any(one.operation == UNDO and one.started_at is not None for one in task.steps.values()):
        yield FORWARD_FORGOTTEN


def _may_have_been_enough(plan: Plan, task: Task, name: str) -> bool:
    """Whether the step is one of many of which enough have succeeded, some of which may have been
    undone since."""
    quorum = plan.quorums.get(name)
    if quorum is None:
        return False
    records = ([task.step(one) for one in member.names] for member in quorum.members)
    done = (all(one.done or one.operation == UNDO for one in found) for found in records)
    return sum(done) >= quorum.enough


def _begun_too_early(order: StoredOrder, plan: Plan) -> Iterator[str]:
    task, apart = order.task, max(SKEW, order.slack)  # a supervisor ends a sleep by its own clock
    for name, record in task.steps.items():
        if record.process_state not in CLAIMED or record.started_at is None:
            continue
        for other in plan.steps[name].after if name in plan.steps else ():
            before = task.step(other)
            if before.operation == UNDO:
                continue  # it may have been done then
            if _may_have_been_enough(plan, task, other):
                continue
            if before.process_state not in (OVER if task.closes(name) else DONE):
                yield f"{name} is {record.process_state}, and {other} is {before.process_state}"
                continue
            early = (before.finished_at or 0) - record.started_at
            if early > apart:
                yield f"{name} was begun {format_duration(early)} before {other} was done"


def bounded(order: StoredOrder) -> Findings:
    """Check that a step has no more attempts than its plan allows."""
    task, plan = order.task, order.expanded
    if plan is None:
        yield NO_PLAN
        return
    changed = order.was_commanded(*PLAN_CHANGES)
    for name, record in task.steps.items():
        step = plan.steps.get(name)
        most = None if step is None else _most_attempts(step, record)
        if most is None:
            continue
        goes_on = record.process_state in GOES_ON and task.performs(name)
        if record.failure_count > most or (goes_on and record.failure_count == most):
            goes = "goes on" if goes_on else f"is {record.process_state}"
            what = f"{name} {goes} after {record.failure_count} of {most} attempts"
            yield OTHER_PLAN if changed else BrokenPromise(what)


def _most_attempts(step: StepPlan, record: StepRecord) -> int | None:
    """Return how many attempts the plan allows; None if it has no limit.

    The attempts of a step that was left out are those of its undo, if it was undone for that.
    """
    most = step.attempts_of(record.operation)
    if record.process_state is not ProcessState.SKIPPED or most is None:
        return most
    of_undo = step.attempts_of(UNDO)
    return None if of_undo is None else max(most, of_undo)


def completed(order: StoredOrder) -> Findings:
    """Check that every step of a Completed task is done, but for the part that was taken back.

    Of a task that ended early with an undo, steps are undone as well.
    """
    task, plan = order.task, order.expanded
    if task.state is not TaskState.COMPLETED:
        return
    part, may_be = part_of(task), SETTLED if is_undone(task) else DONE
    others = {one.process_state for name, one in task.steps.items() if name not in part}
    if not others <= may_be:
        yield BrokenPromise(f"its steps are {sorted(others)}")
    if plan is None:
        yield NO_PLAN
        return
    for name in plan.steps:
        if name not in part and task.step(name).process_state not in may_be:
            yield BrokenPromise(f"{name} is not done")
    for quorum in (
        {}
        if part or task.ended_early
        else {one.step: one for one in plan.quorums.values()}.values()
    ):
        found = [one.instances[0] for one in quorum.members if _is_processed(task, one)]
        if len(found) != quorum.enough:
            yield BrokenPromise(
                f"{len(found)} of {quorum.enough} are Processed before {quorum.step}"
            )


def _is_processed(task: Task, member: QuorumMember) -> bool:
    return any(task.step(one).process_state is ProcessState.PROCESSED for one in member.instances)


def taken_back(order: StoredOrder) -> Findings:
    """Check that the part that was taken back is undone, and that nothing else of the task is.

    A step without compensation stands. An Archived task has a step whose undo has failed.
    """
    task, plan = order.task, order.expanded
    part = part_of(task)
    if not part:
        return
    for name, record in task.steps.items():
        if name not in part and record.operation == UNDO:
            yield BrokenPromise(f"{name} is {record.process_state}, and was not to be undone")
    if plan is None:
        yield NO_PLAN
        return
    for name in part if task.state is TaskState.COMPLETED else ():
        step, state = plan.steps.get(name), task.step(name).process_state
        if step is None:
            yield OTHER_PLAN
        elif step.compensation is not None and state is not ProcessState.UNDONE:
            yield BrokenPromise(f"{name} is {state}, and was not undone")
        elif step.compensation is None and state is not ProcessState.PROCESSED:
            yield BrokenPromise(f"{name} is {state}, and nothing undoes it")


def part_of(task: Task) -> tuple[str, ...]:
    """Return the steps of the part of a completed task that was, or is, taken back."""
    return () if task.ending is None else task.ending.part


def undone(order: StoredOrder) -> Findings:
    """Check that each step that was claimed and has a compensation was undone, if the task was.

    What stands at the services is not looked at: see `effect_checks.undone_effects`.
    """
    task, plan = order.task, order.expanded
    if not is_undone(task):
        return
    if any(one.process_state is ProcessState.UNDO_ERROR for one in task.steps.values()):
        yield BrokenPromise("an undo has failed")
    if plan is None:
        yield NO_PLAN
        return
    for name, record in task.steps.items():
        step = plan.steps.get(name)
        compensated = step is not None and step.compensation is not None
        if compensated and record.started_at is not None and _is_left(record):
            yield BrokenPromise(f"{name} is {record.process_state}, and was not undone")


def _is_left(record: StepRecord) -> bool:
    # A failed undo has its own sentence.
    return record.process_state not in (*NOT_TO_UNDO, ProcessState.UNDO_ERROR)


def is_undone(task: Task) -> bool:
    """Return whether the task has ended after an undo of all that may have happened."""
    if task.ending is None or not task.ending.undo or task.ending.part:
        return task.state is TaskState.UNDONE
    return task.ended and task.state is not TaskState.ARCHIVED


def ends(order: StoredOrder) -> Findings:
    """Check that the task has ended, or has time left."""
    task = order.task
    if task.ended:
        return
    late = order.at - credited_now(task, order.at).perform_by
    closing = task.closing
    if closing is not None and order.at - closing.by > OVERDUE_FOR and not order.troubled:
        after = format_duration(order.at - closing.by)
        yield BrokenPromise(f"it is {task.state}, {after} after the time of its closing steps")
    elif task.ending is None and late > OVERDUE_FOR and not order.troubled:
        yield BrokenPromise(f"it is {task.state}, {format_duration(late)} after its time")
    else:
        yield NOT_ENDED


def agrees(order: StoredOrder) -> Findings:
    """Check that the state, the end and the lane of the record agree with each other."""
    task = order.task
    if is_closed(task):
        lane = Lane.ARCHIVED if task.state is TaskState.ARCHIVED else Lane.DONE
        if task.lane != lane_key(lane, task.shard):
            yield BrokenPromise(f"{task.state} in lane {task.lane}")
    if (task.ended_at is not None) != (task.state in END_STATES):
        yield BrokenPromise(f"{task.state}, ended at {task.ended_at}")
    under_way = [name for name, record in task.steps.items() if record.under_way]
    if task.ended and under_way:
        yield BrokenPromise(f"{task.state} with {' and '.join(under_way)} under way")
    active = task.state is TaskState.ACTIVE
    if not task.ended and task.state is not TaskState.UNDOING and active != bool(under_way):
        yield BrokenPromise(f"{task.state}, and under way: {under_way}")
    states = {record.process_state for record in task.steps.values()}
    if task.state is TaskState.UNDOING and ProcessState.UNDOING not in states:
        yield BrokenPromise("it is Undoing, and no step is being undone")
    if task.ended and (task.state is not TaskState.COMPLETED or task.ending is not None):
        # Archived: an undo has failed, or could not be made without the plan.
        how = None if task.ending is None else task.ending.how
        if task.state not in (how, TaskState.ARCHIVED) or how is None:
            yield BrokenPromise(f"it is {task.state}, and was to end as {how}")


def rows(order: StoredOrder) -> Findings:
    """Check that the rows of settled steps are of this record, and expire with it."""
    task = order.task
    versions = [row.version for row in task.settled]
    if len(set(versions)) < len(versions) or max(versions, default=0) > task.version:
        yield BrokenPromise(f"version {task.version} lists the rows of settled steps {versions}")
    for row in task.settled:
        if _whole(row.expires_at) != _whole(task.expires_at):
            yield BrokenPromise("a row of settled steps expires at another time than its record")


def _whole(instant: int | None) -> int | None:
    """The instant in seconds, as `ExpiresAt` has it: rounded up."""
    return None if instant is None else -(-instant // SECOND)


def kept(order: StoredOrder) -> Findings:
    """Check that a task is kept for its retention from its end, and stays while it is needed."""
    task = order.task
    if not is_closed(task) or task.state is TaskState.ARCHIVED:
        if task.expires_at is not None:
            yield BrokenPromise(f"it is {task.state}, owes {len(task.owed)}, and expires")
        return
    least = (task.ended_at or 0) + task.retain_for - SKEW
    if task.expires_at is None:
        yield BrokenPromise("it has ended, and does not expire")
    elif task.expires_at < least:
        yield BrokenPromise(f"it expires at {task.expires_at}, and not at {least} or later")


def order_kept(order: StoredOrder) -> Findings:
    """Check that the order row stays while the task may need it, and as long as its record."""
    task, row = order.task, order.row
    if not order.row_read:
        return
    if row is None:
        yield BrokenPromise("there is no order row")
        return
    found, least = row.expires_at, task.expires_at
    if found is None:
        return
    if least is None:
        yield BrokenPromise(f"its order row expires at {found}, and its record does not")
    elif found < least - SECOND:  # both are stored in whole seconds
        yield BrokenPromise(f"its order row expires at {found}, and its record later, at {least}")


def erased(order: StoredOrder) -> Findings:
    """Check that an erased record has none of the contents, and that nothing goes on in it."""
    task = order.task
    if task.erased_at is None:
        return
    if not is_closed(task) or task.state is TaskState.ARCHIVED:
        owes = [one.name for one in task.owed]
        yield BrokenPromise(f"it is {task.state} and owes {owes}")
    errors = [task.ending and task.ending.error, *(one.error for one in task.steps.values())]
    texts = [task.ending and task.ending.why, *(error and error.message for error in errors)]
    if any(text not in (None, "", ERASED) for text in texts):
        yield BrokenPromise("a reason or a message is still there")
    results = [name for name, one in task.steps.items() if one.result is not None]
    if results or task.corrections:
        yield BrokenPromise(
            f"a correction, or the result of {' and '.join(results)}, is still there"
        )
