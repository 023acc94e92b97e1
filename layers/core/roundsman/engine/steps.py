"""Starts and completes steps: which are ready, their conditions, and their results."""

from collections.abc import Sequence

from roundsman.definition.expressions import is_true
from roundsman.definition.plan import Plan, SignalPlan, StepPlan
from roundsman.engine.added_steps import add_steps, why_not_added
from roundsman.engine.claims import claim
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.fan_out import UnusableList, fan_out, forget_marked_items, why_needed
from roundsman.engine.history import POLLED
from roundsman.engine.left_out import complete_without_result, left_out_of
from roundsman.engine.on_failure import give_up
from roundsman.engine.quorums import is_unblocked
from roundsman.engine.signals import await_signal
from roundsman.engine.sleeps import fall_asleep
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import Claimant, Replied
from roundsman.model.json import Json, canonical_json, parse_json, size_in_bytes
from roundsman.model.record_limits import RESULTS_LIMIT
from roundsman.model.situations import End, Ended, NotBegun, ToBegin
from roundsman.model.task import PERFORM, EarlyEnd, Effect, StepError, StepToAdd


def ready_to_perform(context: DecisionContext) -> list[StepPlan]:
    """The steps that can be claimed now; while the task is ending, only its closing steps."""
    plan = context.plan
    return [
        one
        for one in plan.steps.values()
        if context.performs(one.name) and _is_ready(context, plan, one)
    ]


def set_start_deadlines(context: DecisionContext) -> None:
    """Give each ready step that has none a time by which it should be started.

    A command may make steps ready that were never claimed, and the Start that follows may be lost.
    """
    if not context.decision.steps:
        return  # the due entry of a new task covers its start
    for step in ready_to_perform(context):
        if isinstance(context.decision.step(step.name).situation, NotBegun):
            context.decision.requeue(step.name, StepEvent.UNCLAIMED)


def claim_ready(context: DecisionContext, claimant: Claimant) -> None:
    """Claim every ready step, until none is left.

    A skipped step, or a fan-out whose items are now known, may make other steps ready. A condition
    that fails ends the task; the steps that were not claimed before stay unclaimed. Before its
    turn, each ready step of an order that a limit counts waits for it.
    """
    if context.decision.task.limit is not None:
        from roundsman.engine.order_limit import begin_turn  # late: few workflows have a limit

        begin_turn(context)
    stop_unneeded(context)
    while ready := ready_to_perform(context):
        for step in ready:
            if context.performs_no_more(step.name):
                continue
            if step.fans_out:
                forget_marked_items(context, step)  # it is known now which there are
            if not _condition_holds(context, step):
                continue
            if step.fans_out:
                _fan_out(context, step)
                continue
            if context.is_limited:
                from roundsman.engine.order_limit import await_turn

                await_turn(context, step)
                continue
            match step.awaits:
                case None:
                    claim(context, step, claimant)
                case SignalPlan() as signal:
                    await_signal(context, step, signal)
                case sleep:
                    fall_asleep(context, step, sleep)
        stop_unneeded(context)


def succeeded(
    context: DecisionContext,
    step: StepPlan,
    result: Json,
    then: Sequence[StepToAdd] = (),
    left_out: str | None = None,
    end: EarlyEnd | None = None,
) -> None:
    """Complete the step, and add the steps of its reply, which can be added, or end the task early.

    A result that is too large for the record is left out, and so is one that the reply does not
    have: `left_out` is why.
    """
    if end is not None:
        from roundsman.engine.early_end import end_early  # late: few steps do

        end_early(context, step, end)
    why = left_out or too_large(context, step, result)
    if why is not None:
        add_steps(context, step.name, then)
        size = None if left_out else size_in_bytes(result)
        complete_without_result(context, step, left_out_of(context, step.name, result, size, why))
        return
    record = context.decision.step(step.name)
    context.decision.move(
        step.name,
        StepEvent.SUCCEEDED,
        context.decision.ended(step.name, End.SUCCEEDED),
        step_values(
            finished_at=context.now,
            result=parse_json(canonical_json(result)),  # as it is read back: keys sorted
            left_out=None,
            error=None,
            outcome_unknown=False,
            effect=None,
        ),
    )
    if record.polling is not None:
        polled = record.polling.again().words(context.now)
        context.decision.record(POLLED, step.name, None, f"{step.name}: {polled}; processed")
    else:
        context.decision.note(f"{step.name}: processed")
    add_steps(context, step.name, then)


def late_success(context: DecisionContext, step: StepPlan, reply: Replied) -> None:
    """Record that a failed step succeeded after all, by another copy of its request.

    The operator who repairs the task must know that: under another key it would happen twice. A
    step whose wait for a callback was ended is complete then, unless its task is undone, or its
    closing steps run: all their requests have the same results.
    """
    record, ending = context.decision.step(step.name), context.decision.ending
    closes = context.decision.task.closing is not None and not context.decision.before.ended
    undoes = ending is not None and ending.undo
    fits = why_not_added(context, step.name, reply.then) is None
    if record.wait_was_ended and fits and not undoes and not closes:
        succeeded(context, step, reply.result, reply.then, reply.left_out)
        return
    if record.effect is Effect.STANDS:
        context.decision.note(f"{step.name}: late success ignored: its effect is known to stand")
        return
    context.decision.move(
        step.name,
        StepEvent.HAPPENED,
        record.situation,
        step_values(effect=Effect.STANDS, outcome_unknown=True),
    )
    context.decision.record(
        "late success", step.name, None, f"{step.name}: succeeded after all: its effect stands"
    )


def stop_unneeded(context: DecisionContext) -> None:
    """Stop what is not needed of many steps of which enough have succeeded, if the task goes on.

    Skip the rest of a task that was ended early.
    """
    if context.plan.quorums and context.decision.ending is None:
        from roundsman.engine.unneeded import stop  # late: few workflows have such steps

        stop(context)
    if context.decision.task.ended_early is not None:
        from roundsman.engine.early_end import skip_the_rest  # late: few tasks are

        skip_the_rest(context)


def _is_ready(context: DecisionContext, plan: Plan, step: StepPlan) -> bool:
    record = context.decision.step(step.name)
    if record.operation != PERFORM or not isinstance(record.situation, NotBegun | ToBegin):
        return False
    if record.not_before is not None and record.not_before > context.now:
        return False
    return is_unblocked(plan, context.decision.step, step)


def _condition_holds(context: DecisionContext, step: StepPlan) -> bool:
    """Evaluate `when` once, when the step first becomes ready; if it is false, skip the step.

    A condition that cannot be evaluated fails the step.
    """
    if step.when is None or context.decision.step(step.name).admitted:
        return True
    try:
        if is_true(step.when, context.input, context.results, context.came):
            return True
    except ValueError as problem:
        error = StepError("ConditionFailed", str(problem))
        give_up(context, step, StepEvent.CONDITION_FAILED, error, f"{step.name}: {problem}")
        return False
    if why := why_needed(context, step):
        why = f"{step.when} is false: {why}"
        error = StepError("QuorumNotReached", why)
        give_up(context, step, StepEvent.CONDITION_FAILED, error, f"{step.name}: {why}")
        return False
    context.decision.move(
        step.name,
        StepEvent.CONDITION_FALSE,
        Ended(how=End.SKIPPED),
        step_values(
            finished_at=context.now, outcome_unknown=False
        ),  # set if the record was restored from a backup
    )
    context.decision.note(f"{step.name}: skipped, {step.when} is false")
    return False


def _fan_out(context: DecisionContext, step: StepPlan) -> None:
    try:
        fan_out(context, step)
    except UnusableList as problem:
        why = f"{step.name}: {problem}"
        give_up(context, step, StepEvent.CONDITION_FAILED, problem.error, why)


def too_large(
    context: DecisionContext, step: StepPlan, result: Json, limit: int | None = None
) -> str | None:
    """Why the record cannot hold the result, in words; None if it can.

    `limit` is the maximum size of the result in bytes; None for that of the plan.
    """
    size = size_in_bytes(result)
    if limit is None and (why := step.too_long(size)) is not None:
        return why
    if limit is not None and size > limit:
        return f"the result has {size} bytes; {limit} fit"
    total = size + context.decision.stored_bytes(without=step.name)
    if total > RESULTS_LIMIT:
        return f"the task's results would have {total} bytes; {RESULTS_LIMIT} fit"
    return None
