"""Fan-outs: steps that run once for each item of a list.

The number of items is stored when the step first becomes ready. From then on the engine runs a plan
with one step for each item (`Plan.expanded`). The items are not stored. Each request derives its
item again from the order and from the results of the preceding steps; neither changes any more.
"""

from collections.abc import Mapping
from dataclasses import replace

from roundsman.definition.expressions import NotAList, evaluate_list, paths_read
from roundsman.definition.plan import Plan, StepPlan
from roundsman.definition.workflow import MOST_STEPS
from roundsman.engine.added_steps import kept_in_record
from roundsman.engine.compensation import begin_undo
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.effects import may_have_been_performed
from roundsman.engine.quorums import Losses, has_failed, losses
from roundsman.engine.request_deadlines import first_sent_at
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.model.json import Json, size_in_bytes
from roundsman.model.record_limits import MOST_RECORDS
from roundsman.model.situations import End, Ended
from roundsman.model.states import ProcessState
from roundsman.model.task import AfterUndo, StepError, StepRecord, Task, item_names, step_of

LARGEST_ITEM = 200 * 1024
"""The maximum size of an item in bytes. A request carries the item, the order and the results, and
an SQS message holds 1 MiB."""


class UnusableList(ValueError):
    """Raised for a list that a step cannot run over; `error` gives the reason."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.error = StepError(kind, why)


# --- The items -----------------------------------------------------------------------------------


def fan_out(context: DecisionContext, step: StepPlan) -> None:
    """Store the number of items, so that the plan has a step for each.

    Without items the step is Skipped. Raises UnusableList.
    """
    count = len(_items_that_fit(context, step))
    if why := _too_few(context, step, count):
        raise UnusableList("TooFewItems", why)
    record = context.decision.step(step.name)
    if may_have_been_performed(record):
        since = first_sent_at(record)
        mark_items(context, step, count, context.now if since is None else since)
    task = context.decision.task
    context.decision.task = replace(task, fan_outs={**task.fan_outs, step.name: count})
    _skip_former_items(context, step.name, count)
    if count == 0:
        context.decision.move(
            step.name,
            StepEvent.NO_ITEMS,
            Ended(how=End.SKIPPED),
            step_values(
                finished_at=context.now, outcome_unknown=False
            ),  # set if the record was restored from a backup
        )
        context.decision.note(f"{step.name}: skipped, no items")
        return
    context.decision.remove(step.name, StepEvent.FANNED_OUT)  # its items have records of their own
    context.decision.note(f"{step.name}: {count} items")


def _too_few(context: DecisionContext, step: StepPlan, count: int) -> str | None:
    """Why so many items are not enough, in words; None if they are."""
    if step.enough is not None and count < step.enough:
        return f"{count} items, of which {step.enough} have to succeed"
    if count == 0:
        return why_needed(context, step)
    return None


def why_needed(context: DecisionContext, step: StepPlan) -> str | None:
    """Why a step that would be skipped is needed, in words; None if it is not."""
    found = losses(context.plan, context.decision.step, step.name, more=True)
    if found is None or not found.too_many:
        return None
    quorum = context.plan.quorums[step.name]
    many = len(quorum.members)
    return (
        f"{quorum.enough} of {many} have to succeed before {quorum.step}, and {found.failed} cannot"
    )


def list_is_known(plan: Plan, task: Task, step: StepPlan) -> bool:
    """Whether the list of a fan-out step depends on nothing but the input and results that exist.

    `plan` is expanded for the task.
    """
    for path in paths_read(step.for_each or ""):
        needed = plan.instances(path[1]) if path[:1] == ("results",) and len(path) > 1 else ()
        missing = any(not task.step(name).done for name in needed)
        if missing or (not needed and path[:1] != ("input",)):
            return False
    return True


def items_before_it_begins(context: DecisionContext, step: StepPlan) -> int | None:
    """The number of items that the fan-out step will have if it begins; 0 if it would fail.

    None if the list is not known yet.
    """
    task = replace(context.decision.task, steps=context.decision.steps)
    if not list_is_known(context.plan, task, step):
        return None
    try:
        return len(_items_that_fit(context, step))
    except UnusableList:
        return 0


def mark_items(context: DecisionContext, step: StepPlan, count: int, since: int) -> None:
    """Record that each item may have been performed since `since` (epoch ms), and was restored."""
    for name in item_names(step.name, count):
        context.decision.mark_possibly_performed(name, since, claimed=False)


def forget_marked_items(context: DecisionContext, step: StepPlan) -> None:
    """Remove the records that `mark_items` made before the step fans out."""
    for name, record in list(context.decision.steps.items()):
        if step_of(name) == step.name != name and may_have_been_performed(record):
            context.decision.remove(name, StepEvent.FANNED_OUT)


def count_items(context: DecisionContext, step: StepPlan, order: Json) -> int | None:
    """The number of items that the fan-out step would have; None if there is no list of items.

    `order` is the input.
    """
    task = replace(context.decision.task, steps=context.decision.steps)
    try:
        return len(_items(context.plan, task, step.name, order))
    except ValueError:  # also NotAList
        return None


def item_of(plan: Plan, task: Task, step: str, order: Json) -> Json:
    """The item of a step of an expanded plan; None if the step is not an item.

    Raises ValueError if the number of items is not the stored one.
    """
    found = plan.steps[step]
    if found.item_of is None:
        return None
    items = _items(plan, task, found.item_of, order)
    if len(items) != task.fan_outs[found.item_of]:
        raise ValueError(f"{step}: the list of its items has changed")
    return items[found.index]


def _items(plan: Plan, task: Task, step: str, order: Json) -> list[Json]:
    """The items of a step of the stored plan; empty if it has no `for_each`."""
    stored = plan.stored or plan
    for_each = stored.steps[step].for_each
    if not for_each:
        return []
    return evaluate_list(for_each, order, _answers_before(stored, task, step), task.came())


def _answers_before(stored: Plan, task: Task, step: str) -> Mapping[str, Json]:
    """The results of the steps before this one, including those of steps that were undone since."""
    found: dict[str, Json] = {}
    before = stored.before(step)
    for name in stored.steps:
        if name in before and name in task.fan_outs:
            items = item_names(name, task.fan_outs[name])
            found[name] = [_answer(task.step(item)) for item in items]
        elif name in before and task.step(name).process_state is not ProcessState.SKIPPED:
            found[name] = _answer(task.step(name))
    return found


def _answer(record: StepRecord) -> Json:
    """The result of the step; None if it is left out, since nothing after it has seen that."""
    return None if record.after_undo is AfterUndo.SKIPPED else record.result


def _items_that_fit(context: DecisionContext, step: StepPlan) -> list[Json]:
    task = replace(context.decision.task, steps=context.decision.steps)
    try:
        items = _items(context.plan, task, step.name, context.input)
    except NotAList as problem:
        raise UnusableList("ForEachNotAList", str(problem)) from problem
    except ValueError as problem:
        raise UnusableList("ForEachFailed", str(problem)) from problem
    others = context.plan.defined_steps - 1
    if others + len(items) > MOST_STEPS:
        many = f"{len(items)} items beside {others} other steps; {MOST_STEPS} fit in one task"
        raise UnusableList("TooManyItems", many)
    items_of = item_names(step.name, len(items))
    records = len({*kept_in_record(context), *items_of} - {step.name})
    if records > MOST_RECORDS:
        many = (
            f"{len(items)} items make {records} records with those of former runs; "
            f"{MOST_RECORDS} fit in one task"
        )
        raise UnusableList("TooManyItems", many)
    try:
        largest = max(map(size_in_bytes, items), default=0)
    except (TypeError, ValueError, RecursionError) as problem:
        why = f"for_each {step.for_each!r} gives items that are not JSON"
        raise UnusableList("ForEachFailed", why) from problem
    if largest > LARGEST_ITEM:
        raise UnusableList("ItemTooLarge", f"an item has {largest} bytes; {LARGEST_ITEM} fit")
    return items


def _skip_former_items(context: DecisionContext, step: str, count: int) -> None:
    """Skip the items that an earlier run of the task had and this one does not.

    A task that was begun again may have fewer items. The records of the others are kept, because
    they record which keys are used.
    """
    items = item_names(step, count)
    for name in list(context.decision.steps):
        if step_of(name) == step != name and name not in items:
            context.decision.move(
                name,
                StepEvent.NO_ITEMS,
                Ended(how=End.SKIPPED),
                step_values(finished_at=context.now, result=None, left_out=None, error=None),
            )


# --- Items that fail -----------------------------------------------------------------------------


def tolerance(context: DecisionContext, step: StepPlan) -> str | None:
    """Why the task can go on without a step that has failed for good; None if it cannot.

    It can without an item of a fan-out that tolerates it, and without one of many of which enough
    others can still succeed, or have. The reason also states if the effect may stand and has no
    compensation.
    """
    if context.decision.ending is not None:
        return None
    counted = _failed_items(context, step)
    if counted is None or counted.too_many:  # then all of it is one of many, or is needed
        counted = losses(context.plan, context.decision.step, step.name)
    if counted is None or counted.too_many:
        return None
    left_out = f"left out ({counted.failed} of {counted.may_fail} that may fail)"
    return f"{left_out}{effect_may_stand(context, step)}"


def effect_may_stand(context: DecisionContext, step: StepPlan) -> str:
    """The words that the step's effect may stand, if it may and there is no compensation."""
    record = context.decision.step(step.name)
    stands = not record.refused and record.started_at is not None and step.compensation is None
    return "; its effect may stand" if stands else ""


def may_be_skipped(context: DecisionContext, step: StepPlan) -> bool:
    """Whether the task can go on without the step, whatever its error."""
    if context.decision.ending is not None:
        return False
    found = losses(context.plan, context.decision.step, step.name)
    return found is None or not found.too_many


def leave_out(context: DecisionContext, step: StepPlan) -> None:
    """Leave the failed item, or the failed one of many, out of the task.

    If it was ever claimed and has a compensation, it is undone first.
    """
    if step.compensation is not None and context.decision.step(step.name).started_at is not None:
        begin_undo(context, step, after_undo=AfterUndo.SKIPPED)
    else:
        context.decision.move(step.name, StepEvent.LEFT_OUT, Ended(how=End.SKIPPED))


def _failed_items(context: DecisionContext, step: StepPlan) -> Losses | None:
    """How many items of the step's fan-out have failed, and how many may; None if it is no item."""
    if step.item_of is None:
        return None
    items = context.plan.instances(step.item_of)
    failed = sum(has_failed(context.decision.step(name)) for name in items)
    return Losses(failed, step.may_fail(len(items)))
