"""The checks that need what stands at the remote services, from their own records."""

from collections.abc import Iterator, Sequence

from roundsman.definition.plan import Plan, StepPlan
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, Effect, StepRecord, idempotency_key
from roundsman_console.facts.audit.record_checks import NO_PLAN, NOT_TO_UNDO, is_undone
from roundsman_console.facts.audit.stored_order import (
    BrokenPromise,
    Findings,
    StandingEffect,
    StoredOrder,
    Unknown,
)

NO_EFFECTS = Unknown("the records of the services are not at hand")


def explained(order: StoredOrder) -> Findings:
    """Check that each effect belongs to a step that was claimed, and that no effect is missing."""
    task, plan, effects = order.task, order.plan, order.effects
    if plan is None or effects is None:
        yield NO_PLAN if plan is None else NO_EFFECTS
        return
    expanded = plan.for_task(task)
    for name, _, record, _ in _by_step(order, plan, effects):
        if record is None:
            yield BrokenPromise(f"{name} stands and was never claimed")
    standing = {(effect.step, effect.key) for effect in effects}
    for name, record in task.steps.items():
        if record.process_state is ProcessState.PROCESSED and name in expanded.steps:
            if not expanded.steps[name].agents or record.unanswered:
                continue  # it has no agent, and so no effect; or nobody knows whether it has one
            key = idempotency_key(task.task_id, name, PERFORM, record)
            if (name, key) not in standing:
                yield BrokenPromise(f"{name} is Processed, and {key} does not stand")


def once(order: StoredOrder) -> Findings:
    """Check that each effect came about once for its key, and stands once for its step.

    The effect of a step without compensation may stand once from before a person began the task
    again, and once from after it; that of a closing step once for each end of its task.
    """
    task, plan, effects = order.task, order.plan, order.effects
    if plan is None or effects is None:
        yield NO_PLAN if plan is None else NO_EFFECTS
        return
    for name, step, record, keys in _by_step(order, plan, effects):
        if step is None or record is None:
            continue
        if step.closes:  # once for each end of its task
            now = [key for key in keys if round_of(task.task_id, name, key) >= record.round]
        elif step.compensation is None:
            since = order.begun_anew.get(name, 1)
            now = [key for key in keys if round_of(task.task_id, name, key) >= since]
        else:
            now = keys
        if len(now) > 1:
            yield BrokenPromise(f"{name} stands as {' and '.join(now)}")
    for effect in effects:
        if effect.times > 1:
            yield BrokenPromise(f"{effect.key} came about {effect.times} times")


def undone_effects(order: StoredOrder) -> Findings:
    """Check that nothing stands of a step that is undone and has a compensation."""
    task, plan, effects = order.task, order.plan, order.effects
    if plan is None or effects is None:
        yield NO_PLAN if plan is None else NO_EFFECTS
        return
    for name, step, record, _ in _by_step(order, plan, effects):
        if step is None or record is None or step.compensation is None:
            continue
        if is_undone(task) or record.process_state in NOT_TO_UNDO:
            yield BrokenPromise(f"{name} is undone and stands")


def known(order: StoredOrder) -> Findings:
    """Check that no effect stands of a step whose record rules it out."""
    task, effects = order.task, order.effects
    if effects is None:
        yield NO_EFFECTS
        return
    keys = {effect.key for effect in effects}
    for name, record in task.steps.items():
        key = idempotency_key(task.task_id, name, PERFORM, record)
        if key in keys and _is_reported_as_none(record):
            what = f"{name} is {record.process_state}, without effect as it says"
            yield BrokenPromise(f"{what}, and {key} stands")


def _by_step(
    order: StoredOrder, plan: Plan, effects: Sequence[StandingEffect]
) -> Iterator[tuple[str, StepPlan | None, StepRecord | None, list[str]]]:
    """The keys that stand, by step; the record is None if it does not explain them."""
    task, expanded = order.task, plan.for_task(order.task)
    by_step: dict[str, list[str]] = {}
    for effect in effects:
        by_step.setdefault(effect.step, []).append(effect.key)
    for name, keys in by_step.items():
        # A restarted task does not know the items of its fan-outs yet.
        step = expanded.steps.get(name) or plan.defined(name)
        record = task.step(name)
        last = task.last_used_round(name)
        if step is None and all(round_of(task.task_id, name, key) <= last for key in keys):
            continue  # an effect without compensation, of a step that a plan change has removed
        # The effect of a step without compensation still stands when its task is restarted.
        earlier = step is not None and step.compensation is None and record.round > 1
        if step is None or (record.started_at is None and not earlier):
            yield name, step, None, keys
        else:
            yield name, step, record, keys


def _is_reported_as_none(record: StepRecord) -> bool:
    """Whether the record says that the step had no effect.

    If it does, the step may be performed under another key or by another agent.
    """
    if record.effect is not None:
        return record.effect is Effect.NONE
    return record.process_state is ProcessState.ERROR and not record.outcome_unknown


def round_of(task_id: str, step: str, key: str) -> int:
    """Return the round in the idempotency key of a perform (`idempotency_key`)."""
    parts = key.removeprefix(f"{task_id}/{step}/{PERFORM}").split("/")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else 1
