"""Executes the commands of operators on one task, and of applications: cancellations and signals.

The transition table defines in which states of the task a command is accepted. Each refusal is a
sentence for the operator. A command overrides the plan: an operator's ending replaces that of a
failure, and a resolved step has the outcome that the operator states.
"""

from dataclasses import replace

from roundsman.definition.plan import StepPlan
from roundsman.engine.added_steps import forget_added_steps
from roundsman.engine.attempts import in_time
from roundsman.engine.compensation import begin_undo, undo_is_in_time, undone
from roundsman.engine.corrections import affects, correct
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.effects import depend_on, left_to_undo, may_have_taken_effect
from roundsman.engine.history import few_words
from roundsman.engine.left_out import why_not_to_be_read
from roundsman.engine.on_failure import past_no_return
from roundsman.engine.plan_change import (
    SHOWN,
    comes_after_others,
    fit_times,
    move_to_plan,
    sent_with_other_results,
)
from roundsman.engine.request_deadlines import asks_probe_only, fits_key, key_allows_until
from roundsman.engine.restored import reconcile
from roundsman.engine.signals import signalled, wait_anew
from roundsman.engine.step_values import step_values
from roundsman.engine.steps import too_large
from roundsman.engine.transitions import StepEvent
from roundsman.errors import Refused
from roundsman.model.events import (
    COMMAND_KINDS,
    Cancel,
    ChangeAsked,
    CommandSource,
    Extend,
    Move,
    Reconcile,
    Resolve,
    Resubmit,
    RunNow,
    Signalled,
    UndoAsked,
    UndoPart,
)
from roundsman.model.instants import SECOND, SKEW, format_duration, iso, second
from roundsman.model.polling import Polling
from roundsman.model.record_limits import LARGEST_RESULT, MOST_PART, MOST_USED_ROUNDS
from roundsman.model.situations import (
    Asleep,
    Attempt,
    AwaitsCallback,
    AwaitsSignal,
    End,
    WaitsUntil,
    WithoutAgent,
)
from roundsman.model.states import SETTLED, ProcessState, TaskState
from roundsman.model.task import PERFORM, AfterUndo, Effect, StepRecord, Task, Termination

KEPT_COMMANDS = 10
"""How many command ids a record keeps, so that a redelivered command acts once. SQS keeps a message
for 14 days at most."""

NEW_KEY_FOLLOWS = "after its undo, the step begins under a new key"


def operate(context: DecisionContext, event: ChangeAsked) -> DecisionContext:
    """Execute the command. Raises Refused, and nothing is stored then.

    Returns the context in which the decision goes on: Resubmit and Move may change the task's plan.
    """
    decision, asked = context.decision, event.asked
    check_seen_version(decision, asked)
    by = asked.words
    more = ""
    match event:
        case Resubmit():
            if event.changes:  # under the plan whose steps have used the input
                more = f"; {correct(context, event)}"
            context = _resubmit(context, event)
        case UndoAsked():
            _check_can_be_taken_back(context, asked)
            _end(context, Termination(TaskState.UNDONE, f"undo requested by {by}", undo=True))
        case UndoPart():
            _check_can_be_taken_back(context, asked)
            _end(context, _part_undone(context, event))
            more = f"; steps: {few_words(event.steps)}"
        case Cancel():
            _check_is_not_undone(context, event)
            _end(context, Termination(TaskState.CANCELLED, f"cancelled by {by}", undo=event.undo))
        case Resolve():
            _resolve(context, event)
        case Extend():
            _extend(context, event)
        case RunNow():
            _run_now(context)
        case Move():
            context = _move(context, event)
        case Reconcile():
            reconcile(context, event)
        case Signalled():
            signalled(context, event)
            more = f": {event.name}"
    remember(decision, asked)
    step = event.step if isinstance(event, Resolve | Extend) else None
    kind = COMMAND_KINDS[type(event)]
    decision.record(kind, step, None, f"{kind} by {by}{more}{_plan_words(decision)}", asked)
    return context


def check_seen_version(decision: DecisionBuilder, asked: CommandSource) -> None:
    """Raise Refused if the task has changed since the sender of the command read it."""
    if asked.seen_version not in (None, decision.before.version):
        raise Refused(
            f"the task has changed since it was read (version {asked.seen_version}, now "
            f"{decision.before.version}): read it again"
        )


def remember(decision: DecisionBuilder, asked: CommandSource) -> None:
    """Store the id of the command, so that it acts once."""
    ids = (*decision.task.command_ids, asked.command_id)[-KEPT_COMMANDS:]
    decision.task = replace(decision.task, command_ids=ids)


def _plan_words(decision: DecisionBuilder) -> str:
    before, after = decision.before.plan[:SHOWN], decision.task.plan[:SHOWN]
    return "" if before == after else f"; its plan changes from {before} to {after}"


def _check_can_be_taken_back(context: DecisionContext, asked: CommandSource) -> None:
    """Raise Refused for a completed task if the command names no version, or if nothing of the task
    can be undone any more."""
    decision = context.decision
    if decision.before.state is not TaskState.COMPLETED:
        return
    if asked.seen_version is None:
        raise Refused(
            "the task is completed: only a command that names the version that its sender saw "
            "takes it back"
        )
    if past_no_return(context):
        point = context.stored_plan.point_of_no_return
        raise Refused(f"the task is completed, past its point of no return, {point}")
    if not left_to_undo(context.plan, decision.steps):
        raise Refused("the task is completed, and no step that was performed has a compensation")


def _part_undone(context: DecisionContext, event: UndoPart) -> Termination:
    """The ending of a completed task of which these steps are undone.

    Its part also has the steps that were undone before. Raises Refused if the steps are not a part
    that can be taken back.
    """
    decision, plan = context.decision, context.plan
    if not event.steps:
        raise Refused("no step is named: name those that are undone, or undo the whole task")
    named = tuple(dict.fromkeys(event.steps))
    for name in named:
        _check_stands(context, name)
    later = plan.after_any(named)
    for name in named:
        if plan.steps[name].compensation is None and name not in later:
            raise Refused(
                f"{name} has no compensation: it can only be named because it comes after another "
                "step that is named, and its effect stands then"
            )
    if depends := depend_on(plan, decision.steps, named):
        raise Refused(
            f"{few_words(depends)} took effect after a step that is named, and may depend on it: "
            f"name {'it' if len(depends) == 1 else 'them'} as well, or undo the whole task"
        )
    why = f"undo of {', '.join(named)} requested by {event.asked.words}"
    # A step without compensation stands, and may be named again with a later part.
    part = tuple(dict.fromkeys((*decision.part, *named)))
    if len(part) > MOST_PART:
        raise Refused(f"the part has {len(part)} steps; {MOST_PART} fit: undo the whole task")
    return Termination(TaskState.COMPLETED, why, undo=True, part=part)


def _check_stands(context: DecisionContext, name: str) -> None:
    """Raise Refused unless this is a step of the completed task that took effect and stands."""
    step = _step(context, name)
    state = context.decision.step(name).process_state
    if state is not ProcessState.PROCESSED:
        raise Refused(f"{name} is {state}: there is nothing to undo")
    if step.sleeps:
        raise Refused(f"{name} is a sleep: there is nothing to undo")


def _check_is_not_undone(context: DecisionContext, event: Cancel) -> None:
    """Raise Refused if the command would leave a task as it is that is being undone."""
    ending = context.decision.ending
    if not event.undo and ending is not None and ending.undo and not context.decision.before.ended:
        raise Refused("its undo is under way: an order cannot keep its effects any more")


def _end(context: DecisionContext, ending: Termination) -> None:
    """Set the ending that the operator asks for; a step that failed before stays its cause.

    If it ends in undo, failed undos are made again.
    """
    before = context.decision.ending
    step = before.step if before else None
    context.decision.ending = replace(ending, step=step)
    context.decision.note(ending.why)
    if ending.undo:
        for failed in _in_state(context, ProcessState.UNDO_ERROR):
            context.decision.requeue(
                failed.name, StepEvent.RESUBMITTED, step_values(failure_count=0)
            )


# --- Resubmit ----------------------------------------------------------------------------------


def _resubmit(context: DecisionContext, event: Resubmit) -> DecisionContext:
    """Continue the task. Returns the context under the plan with which it continues."""
    anew = context.decision.before.state in (TaskState.UNDONE, TaskState.CANCELLED)
    if anew:
        _check_begin_anew(context, event)
    plan = None if event.plan == context.decision.task.plan else event.plan
    if plan is not None:
        if context.decision.part:
            raise Refused("a part of it is being undone, as its own plan says: name no plan")
        if event.steps:
            raise Refused("under another plan every failed step is attempted: do not name steps")
        before, context = context, move_to_plan(context, plan, anew=anew)
    else:
        before = context
    if anew:
        _begin_anew(context)
    elif context.decision.ending is not None and context.decision.ending.undo:
        _undo_again(context, event)
    else:
        _check_no_result_is_missing(context)
        _perform_again(context, event, before)
    if plan is not None:
        fit_times(context)
    return context


def _undo_again(context: DecisionContext, event: Resubmit) -> None:
    """Make the failed undos again under their keys; the task still ends in undo."""
    failed = _in_state(context, ProcessState.UNDO_ERROR)
    _check_named(event, failed)
    if event.fresh_key:
        raise Refused("an undo must keep its key: under a fresh key it might take effect twice")
    _restart_time_limit(context)
    again = [step for step in failed if not event.steps or step.name in event.steps]
    _check_keys(context, again)
    for step in again:
        context.decision.requeue(step.name, StepEvent.RESUBMITTED, step_values(failure_count=0))


def _perform_again(context: DecisionContext, event: Resubmit, before: DecisionContext) -> None:
    """Retry every failed step, and start the task's whole time limit again.

    `before` is the context under the plan that the task had.
    """
    failed = [*_in_state(context, ProcessState.ERROR), *_in_state(context, ProcessState.UNDO_ERROR)]
    _check_named(event, failed)
    rest = [step.name for step in failed if event.steps and step.name not in event.steps]
    if rest:
        raise Refused(
            f"{', '.join(rest)} failed too: name every failed step, or resolve the others"
        )
    _check_not_done(context, event)
    _go_on(context)
    _perform_changed(context, event, before)
    under_old_key = [ProcessState.PENDING, ProcessState.UNDO_ERROR]
    under_old_key += [] if event.fresh_key else [ProcessState.ERROR]
    _check_keys(context, [step for state in under_old_key for step in _in_state(context, state)])
    for step in _in_state(context, ProcessState.ERROR):
        if event.fresh_key:
            _perform_under_fresh_key(context, step, event)
        else:
            context.decision.requeue(step.name, StepEvent.RESUBMITTED, step_values(failure_count=0))
    for step in _in_state(context, ProcessState.UNDO_ERROR):
        # Retry the failed undo, and then what follows it.
        context.decision.requeue(step.name, StepEvent.RESUBMITTED, step_values(failure_count=0))


def _check_keys(context: DecisionContext, again: list[StepPlan]) -> None:
    """Raise Refused if one of the steps would be sent when its service may have forgotten its key.

    It would be performed twice, or its undo would find nothing. Not if it begins under another key,
    because nothing has happened, or if its probe finds the effect without the key.
    """
    gone = []
    for step in again:
        record = context.decision.step(step.name)
        performs = record.operation == PERFORM
        safe = performs and (step.probe_outlives_key or record.effect is Effect.NONE)
        if not safe and not fits_key(step, record, context.now):
            gone.append(step.name)
    if gone:
        raise Refused(
            f"{few_words(gone)}: the service may have forgotten the key, and whether it took "
            f"effect is unknown; look there, and resolve {'it' if len(gone) == 1 else 'each'} first"
        )


def _check_named(event: Resubmit, failed: list[StepPlan]) -> None:
    strange = [name for name in event.steps if name not in {step.name for step in failed}]
    if strange:
        raise Refused(f"{', '.join(strange)}: not among the failed steps to attempt next")


def _check_not_done(context: DecisionContext, event: Resubmit) -> None:
    """Check the steps that the operator states as not done: each gets a fresh key."""
    if event.not_done and not (event.fresh_key or event.changes):
        raise Refused("`notDone` needs a fresh key or a correction")
    unfinished = (ProcessState.ERROR, ProcessState.PENDING)
    for name in event.not_done:
        record = context.decision.step(_step(context, name).name)
        if record.process_state not in unfinished or record.started_at is None:
            raise Refused(f"{name} is {record.process_state}: it cannot be resubmitted as not done")


def _perform_changed(context: DecisionContext, event: Resubmit, before: DecisionContext) -> None:
    """Begin every unfinished step under a fresh key if its next request differs from the last ones.

    A correction or a change of the plan may have changed it. Also a step that did not fail, but was
    sent to its agent before the task ended.
    """
    changes = context.decision.task.corrections[-1] if event.changes else ()
    waiting = (ProcessState.ERROR, ProcessState.PENDING)
    old, new = before.plan, context.plan
    for step in [*context.plan.steps.values()]:
        record = context.decision.step(step.name)
        if record.process_state not in waiting:
            continue
        moved = step.name in old.steps and comes_after_others(old, new, step.name)
        if not moved and not affects(step, changes):
            continue
        if record.started_at is not None:
            _perform_under_fresh_key(context, step, event)
        elif record.tried:
            context.decision.new_round(step.name)


def _perform_under_fresh_key(context: DecisionContext, step: StepPlan, event: Resubmit) -> None:
    """Begin an unfinished step under a fresh key, if its effect cannot happen twice.

    If it is proven that the step has no effect under its old key, it begins at once. Otherwise it
    is undone under the old key first, or refused if it has no compensation.
    """
    record = context.decision.step(step.name)
    if record.started_at is None:
        raise Refused(f"{step.name} was never sent to its agent: its key is already fresh")
    stated = step.name in event.not_done and record.effect is not Effect.STANDS
    by_key = undo_is_in_time(context, step)
    if step.fences_late_performs and by_key:
        stated = False  # a call may hang until the key is spent
    if stated:
        _check_cannot_act(context, step)
    if stated or record.effect is Effect.NONE:
        failed = record.process_state is ProcessState.ERROR
        again = StepEvent.RESUBMITTED if failed else StepEvent.UNCLAIMED
        context.decision.requeue(
            step.name, again, step_values(failure_count=0, outcome_unknown=False)
        )
        context.decision.new_round(step.name)
    elif by_key:
        begin_undo(context, step, after_undo=AfterUndo.NEW_KEY, then=NEW_KEY_FOLLOWS)
    elif step.compensation is not None:
        raise Refused(
            f"{step.name}: it may have had its effect, and its service may have forgotten the key "
            "by which it is undone; look there, then resolve the step as done, or name it in "
            "`notDone`"
        )
    else:
        stands = "has had" if record.effect is Effect.STANDS else "may have had"
        raise Refused(
            f"{step.name}: it {stands} its effect under its key, and has no compensation; check "
            "the remote service, then resolve the step as done, or name it in `notDone`"
        )


def _check_begin_anew(context: DecisionContext, event: Resubmit) -> None:
    """Raise Refused if the undone or cancelled task cannot begin again."""
    state = context.decision.before.state.lower()
    if not event.again:
        raise Refused(f"the task is {state}: set `again` to begin every step again under new keys")
    if event.steps:
        raise Refused(f"the task is {state}: every step begins again, so do not name steps")
    stands = [
        step.name
        for step in context.plan.steps.values()
        if step.compensation and may_have_taken_effect(context.decision.step(step.name))
    ]
    if stands:
        raise Refused(
            f"the effects of {few_words(stands)} may stand and would happen twice: "
            "undo the task first"
        )


def _begin_anew(context: DecisionContext) -> None:
    """Begin every step of the task again under new keys: a remote service refuses a used key."""
    _go_on(context)
    for name in list(context.decision.steps):
        context.decision.begin_anew(name)
    forget_added_steps(context)
    removed = len(context.decision.task.used_rounds)
    if removed > MOST_USED_ROUNDS:
        raise Refused(
            f"{removed} steps, or kinds of added steps, of former runs have used keys, but "
            f"{MOST_USED_ROUNDS} fit in one task: send a new order"
        )
    task = context.decision.task
    known = tuple(one for one in task.command_ids if one not in task.signals_left)
    context.decision.task = replace(
        task, fan_outs={}, command_ids=known, signals_left=(), ended_early=None
    )


def _go_on(context: DecisionContext) -> None:
    """Let a task that was ending, or has ended, go on with its whole time limit.

    A deadline that has passed does not count any more: the operator has decided knowing of it. A
    step that was polled is polled for its whole time again, and one that waits for a signal waits
    for its whole time.
    """
    context.decision.ending = None
    for name in context.decision.steps:
        context.decision.change(name, step_values(polling=None))
    wait_anew(context.decision)
    _restart_time_limit(context)
    task = context.decision.task
    if task.deadline is not None and task.deadline <= context.now:
        context.decision.task = replace(task, deadline=None)
        context.decision.note(f"its deadline was {second(task.deadline)} and does not count")


def _restart_time_limit(context: DecisionContext) -> None:
    """Start the task's whole time limit again, now."""
    task = context.decision.task
    allowed = task.complete_by - task.start_at
    held = any(record.held_since is not None for record in context.decision.steps.values())
    context.decision.task = replace(
        task,
        start_at=context.now,
        complete_by=context.now + allowed,
        credited_until=context.now if held else None,  # parked steps are credited from now on
    )


# --- Resolve -----------------------------------------------------------------------------------


def _resolve(context: DecisionContext, event: Resolve) -> None:
    step = _step(context, event.step)
    record = context.decision.step(step.name)
    if record.process_state in (ProcessState.UNDO_ERROR, ProcessState.UNDOING):
        _resolve_undo(context, step, event)
        return
    if record.process_state in SETTLED:
        _resolve_result(context, step, event)
        return
    if step.sleeps:
        _resolve_sleep(context, step, event)
        return
    if step.signal is not None:
        _resolve_wait(context, step, event)
        return
    if record.started_at is None:
        raise Refused(f"{step.name} was never sent to its agent: there is no outcome to record")
    if isinstance(record.situation, AwaitsCallback) and not event.did:
        # The operator knows that nobody will perform it.
        context.decision.stop_waiting(step.name, record.situation)
    acts_until = context.decision.acts_until(step.name)
    fresh_key = event.fresh_key or not (event.did or fits_key(step, record, context.now))
    spends_key = fresh_key and step.fences_late_performs and undo_is_in_time(context, step)
    if fresh_key and not spends_key:
        _check_cannot_act(context, step)
    if event.did:
        _check_fits(context, step, event)
        _resolve_as_done(context, step, event)
    else:
        context.decision.requeue(
            step.name,
            StepEvent.RESOLVED_NOT_DONE,
            step_values(
                failure_count=0,
                uncounted_timeouts=0,
                error=None,
                left_out=None,
                outcome_unknown=False,
                # The operator knows what has happened, but a request may still act: a copy of it
                # until its end, and a call of it that hangs until the service has stored its
                # refusal.
                effect=None if step.fences_late_performs or acts_until is not None else Effect.NONE,
            ),
        )
        if spends_key:
            begin_undo(context, step, after_undo=AfterUndo.NEW_KEY, then=NEW_KEY_FOLLOWS)
        elif fresh_key:
            context.decision.new_round(step.name)
    _continue_if_last_failure(context)


def _resolve_result(context: DecisionContext, step: StepPlan, event: Resolve) -> None:
    """Take the result of a step that is done, if its result was left out."""
    record = context.decision.step(step.name)
    if record.process_state is not ProcessState.PROCESSED or record.left_out is None:
        known = "it went on without an answer" if record.unanswered else "its outcome is known"
        raise Refused(f"{step.name} is {record.process_state}: {known}")
    if not event.did:
        raise Refused(f"{step.name} is done, and only its result is missing: it did happen")
    _check_fits(context, step, event)
    context.decision.move(
        step.name,
        StepEvent.RESOLVED_DONE,
        context.decision.ended(step.name, End.SUCCEEDED),
        step_values(result=event.result, left_out=None),
    )
    context.decision.note(f"{step.name}: its result was given")
    _continue_if_last_failure(context)


def _check_fits(context: DecisionContext, step: StepPlan, event: Resolve) -> None:
    """Raise Refused if the record cannot hold the result that the operator gives.

    A plan's own limit does not count: it decides what is left out, and the operator has read that.
    """
    problem = too_large(context, step, event.result, LARGEST_RESULT)
    if problem is not None:
        raise Refused(f"{step.name}: {problem}")


def _resolve_sleep(context: DecisionContext, step: StepPlan, event: Resolve) -> None:
    """End a sleep now, or take the place of one that the order gives no usable instant for."""
    record = context.decision.step(step.name)
    if not isinstance(record.situation, Asleep) and record.process_state is not ProcessState.ERROR:
        raise Refused(f"{step.name} has not begun to sleep: there is nothing to end")
    if not event.did or event.result is not None:
        raise Refused(
            f"{step.name} is a sleep: it can only be resolved as done, without a result, which "
            "ends it now"
        )
    _resolve_as_done(context, step, event)
    _continue_if_last_failure(context)


def _resolve_wait(context: DecisionContext, step: StepPlan, event: Resolve) -> None:
    """End the wait for a signal, or take the place of a signal that has not come in time."""
    record = context.decision.step(step.name)
    waits = isinstance(record.situation, AwaitsSignal)
    if not waits and record.process_state is not ProcessState.ERROR:
        raise Refused(f"{step.name} has not begun to wait for its signal: send the signal instead")
    if not event.did:
        raise Refused(
            f"{step.name} waits for a signal: it can only be resolved as done, with the data of "
            "the signal as its result"
        )
    _check_fits(context, step, event)
    _resolve_as_done(context, step, event)
    _continue_if_last_failure(context)


def _resolve_as_done(context: DecisionContext, step: StepPlan, event: Resolve) -> None:
    """Complete the step now, with the result that the operator gives."""
    context.decision.move(
        step.name,
        StepEvent.RESOLVED_DONE,
        context.decision.ended(step.name, End.SUCCEEDED),
        step_values(
            result=event.result,
            left_out=None,
            finished_at=context.now,
            error=None,
            outcome_unknown=False,
        ),
    )


def _check_cannot_act(context: DecisionContext, step: StepPlan) -> None:
    """Raise Refused if a request may still act, so that nobody can know that it did not."""
    acts_until = context.decision.acts_until(step.name)
    if acts_until is not None:
        raise Refused(
            f"{step.name}: a copy of its request may act under its key until "
            f"{second(acts_until + SKEW)}; check the remote service after that, and send the "
            "command again"
        )


def _resolve_undo(context: DecisionContext, step: StepPlan, event: Resolve) -> None:
    if not event.did:
        raise Refused(
            f"{step.name}: its effect stands; undo it manually and resolve it as done, "
            "or resubmit the task"
        )
    if event.result is not None:  # it was meant for the perform, before the undo began
        raise Refused(f"{step.name} is being undone, and an undo has no result")
    record = context.decision.step(step.name)
    wait, asked = record.situation, record.failure_count > 0
    if isinstance(wait, WaitsUntil) and not asked and wait.not_before > context.now:
        raise Refused(
            f"{step.name}: a request to perform it may act until {second(wait.not_before)}; "
            "undo it manually after that"
        )
    undone(context, step, StepEvent.RESOLVED_DONE)
    _continue_if_last_failure(context)


def _continue_if_last_failure(context: DecisionContext) -> None:
    """Let a task that was to be archived go on, if no step of it has failed, or lacks its result.

    The task's whole time limit starts again.
    """
    ending = context.decision.ending
    if ending is None or ending.how is not TaskState.ARCHIVED:
        return
    if _in_state(context, ProcessState.ERROR) or _in_state(context, ProcessState.UNDO_ERROR):
        return
    if why := why_not_to_be_read(context):
        context.decision.note(f"it stays {TaskState.ARCHIVED}: {why}")
        return
    _go_on(context)


# --- Extend and RunNow -------------------------------------------------------------------------


def _extend(context: DecisionContext, event: Extend) -> None:
    """Add time to the task, or to one step and to the task as far as the step needs it."""
    more = event.seconds * SECOND
    task = context.decision.task
    if event.step is None:
        _check_deadline(task, task.complete_by, more)
        context.decision.task = replace(task, complete_by=task.complete_by + more)
        context.decision.note(f"the task must be complete by {second(task.complete_by + more)}")
        return
    step = _step(context, event.step)
    record = context.decision.step(step.name)
    attempt = record.situation
    if record.polling is not None:
        _poll_for_longer(context, step, record.polling, more)
        return
    if isinstance(attempt, WithoutAgent):
        _wait_longer(context, step, attempt, more)
        return
    if not isinstance(attempt, Attempt):
        raise Refused(f"{step.name} has no attempt in progress: there is nothing to extend")
    waits = isinstance(attempt, AwaitsCallback)
    # At its agent, what was added before is the next request's, and counts from the same end.
    so_far = attempt.until if waits else attempt.until + attempt.extra
    by = so_far + more
    if record.operation == PERFORM:
        _check_deadline(task, so_far, more)
        context.decision.task = replace(task, complete_by=max(task.complete_by, by))
    if not waits:
        _check_key(step, record, so_far, more)
    if waits:
        longer = replace(in_time(attempt), until=by)
        context.decision.move(step.name, StepEvent.EXTENDED, longer)
        context.decision.note(
            f"{step.name}: {format_duration(more)} added; waits for its callback until {second(by)}"
        )
        return
    # The agent stops at the end of its current request; the next request has the added time.
    added = replace(in_time(attempt), extra=attempt.extra + more)
    context.decision.move(step.name, StepEvent.EXTENDED, added)
    context.decision.note(
        f"{step.name}: {format_duration(more)} added; sent again if there is no reply by "
        f"{second(attempt.until)}, no attempt counted"
    )


def _poll_for_longer(context: DecisionContext, step: StepPlan, polling: Polling, more: int) -> None:
    """Poll the step for `more` ms longer, also if it is at its agent: what takes long is the
    outside job, and not the look at it."""
    task, longer = context.decision.task, polling.later(more)
    _check_deadline(task, polling.until, more)
    _check_key(step, context.decision.step(step.name), polling.until, more)
    context.decision.task = replace(task, complete_by=max(task.complete_by, longer.until))
    situation = context.decision.step(step.name).situation
    context.decision.move(step.name, StepEvent.EXTENDED, situation, step_values(polling=longer))
    context.decision.note(
        f"{step.name}: {format_duration(more)} added; it is polled until {second(longer.until)}"
    )


def _wait_longer(context: DecisionContext, step: StepPlan, wait: WithoutAgent, more: int) -> None:
    """Let the sleep, or the wait for a signal, end `more` ms later.

    The task has as much time after it as before.
    """
    task, until = context.decision.task, wait.until + more
    _check_deadline(task, wait.until, more)
    context.decision.task = replace(task, complete_by=task.complete_by + more)
    context.decision.move(step.name, StepEvent.EXTENDED, replace(wait, until=until))
    what = "sleeps" if isinstance(wait, Asleep) else "waits for its signal"
    context.decision.note(
        f"{step.name}: {format_duration(more)} added; it {what} until {second(until)}"
    )


def _check_deadline(task: Task, by: int, more: int) -> None:
    """Raise Refused if what ends at `by` would end after the task's deadline with `more` ms."""
    if task.deadline is not None:
        what = f"its deadline is {iso(task.deadline)}, and nothing moves it"
        _check_room(task.deadline, by, more, what)


def _check_key(step: StepPlan, record: StepRecord, by: int, more: int) -> None:
    """Raise Refused if what ends at `by` would end too late for the step's key with `more` ms."""
    limit = key_allows_until(step, record, record.operation)
    if limit is not None and not asks_probe_only(step, record):
        what = f"{step.name}: its service may forget its key, and nothing moves that"
        _check_room(limit, by, more, what)


def _check_room(limit: int, by: int, more: int, what: str) -> None:
    """Raise Refused, with `what` is the reason, if what ends at `by` would end after the limit."""
    room = limit - by
    if more <= room:
        return
    most = f"at most {format_duration(room)} can be added" if room > 0 else "no time can be added"
    raise Refused(f"{what}: {most}")


def _run_now(context: DecisionContext) -> None:
    """End a wait now: for the task's start time, or for the next attempt of its steps."""
    if context.decision.before.state is TaskState.SCHEDULED:
        _restart_time_limit(context)
        return
    for step in context.plan.steps.values():
        record = context.decision.step(step.name)
        if record.process_state is ProcessState.PENDING and record.not_before is not None:
            context.decision.requeue(step.name, StepEvent.RETRY_DUE)


def _move(context: DecisionContext, event: Move) -> DecisionContext:
    """Let the task go on under another plan. Returns the context under that plan.

    Raises Refused if a step that was sent, or has ended, would differ under it.
    """
    if context.decision.ending is not None:
        raise Refused("the task is ending: nothing of it begins any more")
    if event.plan == context.decision.task.plan:
        raise Refused("the task has this plan already")
    moved = move_to_plan(context, event.plan)
    if reasons := list(sent_with_other_results(context, moved)):
        raise Refused(
            f"it cannot continue under the plan {event.plan[:SHOWN]}: {'; '.join(reasons)}"
        )
    _check_no_result_is_missing(moved)
    if moved.decision.task.perform_by <= context.now:
        raise Refused(
            f"under the plan {event.plan[:SHOWN]} its time would be over: extend the task first"
        )
    fit_times(moved)
    return moved


def _check_no_result_is_missing(context: DecisionContext) -> None:
    """Raise Refused if somebody would read a result that was left out."""
    if why := why_not_to_be_read(context):
        raise Refused(why)


def _in_state(context: DecisionContext, state: ProcessState) -> list[StepPlan]:
    return [
        step
        for step in context.plan.steps.values()
        if context.decision.step(step.name).process_state is state
    ]


def _step(context: DecisionContext, name: str) -> StepPlan:
    step = context.plan.steps.get(name)
    defined = context.plan.defined(name)
    if defined is not None and defined.closes:
        raise Refused(f"{name} is a closing step: its task has ended, and nothing waits for it")
    if step is None:
        raise Refused(f"the workflow has no step {name}; it has {', '.join(context.plan.steps)}")
    return step
