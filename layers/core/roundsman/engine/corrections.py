"""Corrections of a task's input: which are accepted, and which steps then need a new key.

All requests under one idempotency key have the same input, because a remote service answers a used
key with the old result. So a step that was sent to its agent, and that reads a changed field, goes
on under a new key. An undo has the input that its step was performed with.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import eq

from roundsman.definition.expressions import paths_read
from roundsman.definition.plan import Plan, SleepUntilPlan, StepPlan
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.effects import may_have_taken_effect
from roundsman.engine.fan_out import count_items
from roundsman.engine.history import few_words
from roundsman.errors import Refused
from roundsman.model.checks import ENGINE_FIELDS
from roundsman.model.corrections import (
    DEEPEST_INPUT,
    LARGEST_INPUT,
    Change,
    Correction,
    corrected,
    corrections_size,
    differences,
    names_of,
    path_text,
)
from roundsman.model.events import Resubmit
from roundsman.model.json import Json, levels, size_in_bytes
from roundsman.model.record_limits import RESULTS_LIMIT
from roundsman.model.situations import Asleep
from roundsman.model.states import DONE, ProcessState, TaskState
from roundsman.model.task import StepRecord

CORRECTIONS_LIMIT = 32 * 1024
"""The maximum size of all corrections of a task, in bytes of JSON. They are in the task's record,
and a DynamoDB item holds 400 KB."""


def correct(context: DecisionContext, event: Resubmit) -> str:
    """Add the event's changes to the task's corrections, and return what was changed, in words.

    Raises Refused if the changes cannot be made, if they change nothing, if the task is being
    undone, if the input or the corrections become too large, if a list of items gets another
    length, or if they change what was used and the event does not allow that.
    """
    task, ending = context.decision.task, context.decision.ending
    begins_anew = context.decision.before.state in (TaskState.UNDONE, TaskState.CANCELLED)
    if not begins_anew and ending is not None and ending.undo:
        raise Refused("the task is being undone: an undo has the input of its step")
    before = context.input
    after = _changed_input(before, event.changes)
    changes = tuple(differences(before, after))
    if not changes:
        raise Refused("the correction changes nothing: the input has these values")
    corrections = (*task.corrections, changes)
    _check_size(context, after, corrections)
    users = {} if begins_anew else _used_by(context, changes)
    uses = "; ".join(f"{_named(of)} was used by {', '.join(steps)}" for steps, of in users.items())
    if users and not event.used:
        raise Refused(f"{uses}: set `used` to change it nevertheless")
    if not begins_anew:
        _check_item_counts(context, changes, after)
    context.decision.task = replace(task, corrections=corrections)
    return f"corrected {_named(changes)}" + (f" ({uses})" if uses else "")


def _named(changes: Correction) -> str:
    """The paths of the changes, without their values: `lines[0].sku, total and 3 more`."""
    return few_words([path_text(change.path) for change in changes])


def affects(step: StepPlan, changes: Correction) -> bool:
    """Whether the changes may change a request of the step."""
    return any(_overlaps(change, _paths_of_requests(step)) for change in changes)


def _used_by(context: DecisionContext, changes: Correction) -> Mapping[tuple[str, ...], Correction]:
    """Return the changes of values that were used, by the names of the steps that used them.

    A finished step has used its whole input, or the fields in its `reads`. A condition or a list of
    items has used the fields that it names, once it was evaluated.
    """
    steps = {**_as_defined(context).steps, **_added(context)}
    paths = {name: list(_paths_used(context, step)) for name, step in steps.items()}
    found: dict[tuple[str, ...], Correction] = {}
    for change in changes:
        users = tuple(name for name, used in paths.items() if _overlaps(change, used))
        if users:
            found[users] = (*found.get(users, ()), change)
    return found


def _changed_input(before: Json, changes: Correction) -> Json:
    engine = sorted({str(change.path[0]) for change in changes} & ENGINE_FIELDS)
    if engine:
        raise Refused(f"{', '.join(engine)} cannot be corrected: it is not part of the input")
    try:
        return corrected(before, [changes])
    except ValueError as problem:
        raise Refused(f"the input cannot be corrected: {problem}") from problem


def _check_size(context: DecisionContext, after: Json, corrections: Sequence[Correction]) -> None:
    size, kept = size_in_bytes(after), corrections_size(corrections)
    if size > LARGEST_INPUT:
        raise Refused(f"the corrected input has {size} bytes; at most {LARGEST_INPUT} are allowed")
    if levels(after) > DEEPEST_INPUT:
        raise Refused(f"the corrected input is nested deeper than {DEEPEST_INPUT} levels")
    if kept > CORRECTIONS_LIMIT:
        raise Refused(
            f"the task's corrections would have {kept} bytes; at most {CORRECTIONS_LIMIT} fit in "
            "its record: send a new order"
        )
    total = context.decision.stored_bytes(corrections=corrections)
    if total > RESULTS_LIMIT:
        raise Refused(
            f"the task's corrections, results and signals would have {total} bytes; at most "
            f"{RESULTS_LIMIT} fit in its record: send a new order"
        )


def _check_item_counts(context: DecisionContext, changes: Correction, after: Json) -> None:
    for name, count in context.decision.task.fan_outs.items():
        step = _as_defined(context).steps[name]
        paths = _paths_read(step.for_each)
        if not any(_overlaps(change, paths) for change in changes):
            continue
        items = count_items(context, step, after)
        if items != count:
            raise Refused(
                f"{name} has {count} items, and would have "
                f"{'no list of items' if items is None else items}: the number of items cannot be "
                "corrected once it is known"
            )


def _as_defined(context: DecisionContext) -> Plan:
    """The plan with each fan-out as one step."""
    return context.plan.stored or context.plan


def _added(context: DecisionContext) -> Mapping[str, StepPlan]:
    """The added steps; the input of the order is in their requests, too."""
    steps = context.plan.steps.items()
    return {name: step for name, step in steps if step.added_by is not None}


def _paths_of_requests(step: StepPlan) -> Iterator[tuple[str, ...]]:
    """The paths below the input that the step's requests contain; `()` is all of it.

    Of a sleep, those that its instant is read from; of a step that waits for a signal, none.
    """
    if isinstance(step.awaits, SleepUntilPlan):
        yield from _paths_read(step.awaits.instant)
    elif step.awaits is None:
        yield from [()] if step.reads is None else ((name,) for name in step.reads)
    yield from _paths_read(step.for_each)


def _paths_used(context: DecisionContext, step: StepPlan) -> Iterator[tuple[str, ...]]:
    """The paths below the input that a step of the stored plan has used so far."""
    records = [context.decision.step(name) for name in context.plan.instances(step.name)]
    has_items = step.name in context.decision.task.fan_outs
    if any(map(_is_finished, records)):
        yield from _paths_of_requests(step)
    if has_items:
        yield from _paths_read(step.for_each)
    if has_items or any(map(_was_evaluated, records)):
        yield from _paths_read(step.when)


def _is_finished(record: StepRecord) -> bool:
    """Whether the step is done or asleep, or an item that was left out may have had its effect."""
    if record.process_state is ProcessState.SKIPPED:
        return may_have_taken_effect(record)
    asleep = isinstance(record.situation, Asleep)
    return asleep or record.process_state is ProcessState.PROCESSED


def _was_evaluated(record: StepRecord) -> bool:
    """Whether the step's condition was evaluated, and is not evaluated again."""
    return record.admitted or record.process_state in DONE


def _paths_read(expression: str | None) -> list[tuple[str, ...]]:
    """The paths below the input that the expression reads; `()` is all of it."""
    found = paths_read(expression) if expression is not None else ()
    return [path[1:] for path in found if not path or path[0] == "input"]


def _overlaps(change: Change, paths: Iterable[tuple[str, ...]]) -> bool:
    """Whether the changed value contains, or is in, a value at one of the paths."""
    names = names_of(change.path)
    return any(all(map(eq, names, path)) for path in paths)
