"""The pure machine: what becomes of a task when something happens to it.

No clock, no randomness, no I/O: all of that comes in as arguments. A state changes only through
`roundsman.engine.transitions`. This file takes the event; the modules beside it decide what
follows: `steps` (which can start), `attempts` (one claim, failure or time-out), `routing` (which agent),
`agent_holds` (an agent that takes no work), `on_failure` (the strategy of a failed step),
`compensation` (undo) and `operator` (commands of people).
"""

from roundsman.engine.agent_holds import credit_holds, given_back, is_its_own_fault
from roundsman.engine.attempts import (
    claim,
    failed,
    nudge,
    overdue,
    progressed,
    send_own_claims_again,
    waits_for_callback,
)
from roundsman.engine.compensation import begin_undos, ready_to_undo, undone
from roundsman.engine.decision import Case, Draft
from roundsman.engine.on_failure import end_if_overdue
from roundsman.engine.operator import operate
from roundsman.engine.steps import claim_ready, expect_start, happened, ready_to_perform, succeeded
from roundsman.engine.transitions import Refusal, Stay, StepEvent, TaskEvent, task_transition
from roundsman.errors import Refused, TryAgain
from roundsman.model.events import (
    Agents,
    Claimant,
    Decision,
    Event,
    Inspect,
    Outcome,
    Replied,
    Start,
    StartTask,
)
from roundsman.model.instants import clock_time
from roundsman.model.json import Json
from roundsman.model.plan import Plan, StepPlan
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    PERFORM,
    UNDO,
    Ending,
    StepError,
    Task,
    idempotency_key,
    operation_of,
)

NO_AGENTS: Agents = {}


def decide(
    plan: Plan | None,
    task: Task,
    event: Event,
    now: int,
    *,
    order: Json,
    agents: Agents = NO_AGENTS,
    jitter: float,
) -> Decision:
    """What becomes of `task` when `event` happens at `now` (epoch ms).

    `plan` is the plan that the task names, None where it is not stored. `order` is the order
    row's JSON, read only where a step has a `when`. `jitter` is in [0, 1). The decision's task is
    `task` itself where nothing changed; otherwise its version is one higher.

    Raises Refused, with a sentence, for an operator's event that makes no sense for the task as
    it is; NoTransition for a defect; TryAgain for a reply that needs a plan that is missing.
    """
    kind = TaskEvent(type(event).__name__)
    draft = Draft(task, now, plan)
    if draft.done_before(event):
        return draft.unchanged("done before: a command acts once")
    match task_transition(task.state, kind):
        case Stay(why):
            return draft.unchanged(why)
        case Refusal(why):
            raise Refused(why)
        case _:
            pass
    if task.ended and isinstance(event, Replied):
        return _heard_after_the_end(plan, draft, event)
    if plan is None:
        _without_plan(draft, event)
    else:
        _with_plan(Case(plan, draft, order, agents, jitter), event)
    return draft.decision(plan and plan.expanded(draft.task.fan_outs), kind)


def _with_plan(case: Case, event: Event) -> None:
    if isinstance(event, Replied) and (why := _unknown_reply(case, event)):
        case.draft.note(why)
        send_own_claims_again(case, event.claimant)  # it may itself have changed the key
        return
    credit_holds(case.draft)  # before anything is asked about the task's time
    match event:
        case Start():
            _start(case, event)
        case Replied():
            _replied(case, event)
        case Inspect():
            _inspect(case)
        case _:
            operate(case, event)
            _nudge_what_waits(case)
            begin_undos(case)
            if not case.draft.waits_for_its_time():
                expect_start(case)
                _ask_for_start(case)


def _heard_after_the_end(plan: Plan | None, draft: Draft, event: Replied) -> Decision:
    """The end stays as it is. That a step which has failed succeeded after all is kept."""
    if plan is None:
        return draft.unchanged("the task has ended, and its plan is not stored")
    case = Case(plan, draft, order=None, agents=NO_AGENTS, jitter=0.0)
    late_success = event.outcome is Outcome.SUCCEEDED and event.operation == PERFORM
    if _unknown_reply(case, event) or not late_success or not _has_failed(case, event.step):
        return draft.unchanged(f"{event.step}: {event.outcome} reply ignored: the task has ended")
    happened(case, case.plan.steps[event.step])
    return draft.decision(case.plan, TaskEvent.REPLIED)


def _has_failed(case: Case, step: str) -> bool:
    return case.draft.step(step).process_state is ProcessState.ERROR


def _without_plan(draft: Draft, event: Event) -> None:
    """Nothing goes on without its plan: what is under way is waited for, then a person is told."""
    if isinstance(event, Replied):
        raise TryAgain(f"plan {draft.task.plan} is not stored; the reply waits for it")
    if not isinstance(event, Start | Inspect):
        raise Refused(f"its plan {draft.task.plan[:12]} is not stored")
    why = f"its plan {draft.task.plan[:12]} is not stored"
    error = StepError("PlanNotStored", "its plan is not stored")
    if draft.end(Ending(TaskState.ARCHIVED, why, error=error)):
        draft.record("failed", None, None, why)
    for name, record in list(draft.steps.items()):
        if record.under_way and record.complete_by is not None and record.complete_by <= draft.now:
            error = StepError("Overdue", "no answer in time, and the plan is not stored")
            draft.fail(name, StepEvent.EXHAUSTED, error)


def _start(case: Case, event: Start) -> None:
    if case.draft.waits_for_its_time():
        case.draft.note(f"starts at {clock_time(case.draft.task.start_at)}")
        return
    end_if_overdue(case)
    _go_on(case, event.claimant)


def _go_on(case: Case, claimant: Claimant) -> None:
    """Send again what this message claimed before, and claim whatever can be claimed now."""
    send_own_claims_again(case, claimant)
    claim_ready(case, claimant)
    begin_undos(case)
    for step in ready_to_undo(case):
        claim(case, step, claimant)


def _unknown_reply(case: Case, event: Replied) -> str:
    """Why the reply is about nothing that the task is at, and changes nothing; else empty."""
    if event.step not in case.plan.steps:
        return f"{event.step}: the plan has no such step"
    record = case.draft.step(event.step)
    key = idempotency_key(case.draft.task.task_id, event.step, event.operation, record)
    return "" if event.key == key else f"{event.step}: reply under another key ignored"


def _replied(case: Case, event: Replied) -> None:
    draft, step = case.draft, case.plan.steps[event.step]
    record = draft.step(step.name)
    timely = operation_of(record) == event.operation
    current = timely and record.under_way and record.locked_by == event.lock
    counts = current or (timely and _is_open(case, step) and _is_about_the_effect(event))
    if record.waiting and counts and event.callback:
        draft.stop_waiting(step.name)
    if event.outcome is Outcome.SUCCEEDED and counts:
        if event.operation == UNDO:
            undone(case, step)
        else:
            succeeded(case, step, event.result)
    elif event.outcome is Outcome.SUCCEEDED and timely and _has_failed(case, step.name):
        happened(case, step)
    elif counts:
        end_if_overdue(case)  # first, since an ending task performs nothing again
        _heard(case, step, event)
    else:
        draft.note(f"{step.name}: {event.outcome} reply ignored: {draft.stale(step.name)}")
    end_if_overdue(case)
    _go_on(case, event.claimant)


def _is_about_the_effect(event: Replied) -> bool:
    """Whether the reply counts whichever attempt it answers: its key is the same.

    A success does. So does an outside system's No by a callback token, as its Yes would. An
    agent's failure is about its own attempt alone.
    """
    says_no = event.callback and event.outcome is Outcome.PERMANENT
    return event.outcome is Outcome.SUCCEEDED or says_no


def _heard(case: Case, step: StepPlan, event: Replied) -> None:
    """What the agent says of the current attempt, which did not succeed, or not yet."""
    match event.outcome:
        case Outcome.HELD if case.draft.step(step.name).waiting:
            case.draft.note(f"{step.name}: held reply ignored: it waits for its callback")
        case Outcome.HELD if not is_its_own_fault(case, step, event):
            given_back(case, step, event)
        case Outcome.PROGRESS:
            progressed(case, step)
        case Outcome.WAITING:
            waits_for_callback(case, step, event)
        case _:
            failed(case, step, event)


def _is_open(case: Case, step: StepPlan) -> bool:
    """Whether the answer to an earlier attempt is still welcome: its effect is the same."""
    record = case.draft.step(step.name)
    if operation_of(record) == PERFORM and case.draft.ending:
        return False
    states = (ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING)
    return record.started_at is not None and record.process_state in states


def _inspect(case: Case) -> None:
    draft = case.draft
    if draft.waits_for_its_time():
        draft.note(f"starts at {clock_time(draft.task.start_at)}")
        return
    end_if_overdue(case)
    for step in case.plan.steps.values():
        record = draft.steps.get(step.name)
        if record is None:
            continue
        if record.under_way and record.overdue_at is not None and record.overdue_at <= case.now:
            overdue(case, step, case.now - record.overdue_at)
    _nudge_what_waits(case)
    begin_undos(case)
    expect_start(case)
    _ask_for_start(case)


def _nudge_what_waits(case: Case) -> None:
    for step in case.plan.steps.values():
        record = case.draft.steps.get(step.name)
        if record and not record.under_way and _waits_to_start(case, record.process_state):
            nudge(case, step)


def _waits_to_start(case: Case, state: ProcessState) -> bool:
    if state is ProcessState.PENDING:
        return not case.draft.ending
    return state is ProcessState.UNDOING


def _ask_for_start(case: Case) -> None:
    """Only the scheduler claims: whoever else finds something ready follows with Start."""
    if ready_to_perform(case) or ready_to_undo(case):
        case.draft.command(StartTask())
