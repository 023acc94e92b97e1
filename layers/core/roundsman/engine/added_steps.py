"""Adds steps to a task at run time: which a reply may add, and what is wrong with the others.

A step that is done may add steps of the kinds that its workflow names. They are added by the
decision that takes the reply, all of them or none. Where they stand in the order of the steps is in
`roundsman.definition.added_steps`; from then on they are steps like others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from roundsman.definition.added_steps import cycle_of, with_added
from roundsman.definition.plan import Plan
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.history import few_words
from roundsman.engine.transitions import StepEvent
from roundsman.model.json import levels, size_in_bytes
from roundsman.model.record_limits import (
    ADDED_LIMIT,
    ALL_ADDED_LIMIT,
    LARGEST_STEP_INPUT,
    MOST_OPEN_ADDED,
    MOST_RECORDS,
)
from roundsman.model.states import SETTLED, ProcessState
from roundsman.model.task import AddedStep, StepToAdd, step_of

DEEPEST_STEP_INPUT = 20
"""The maximum number of its levels; a request contains it some levels deep."""

WRONG_THEN = "WrongThen"
"""The error type of an attempt whose reply adds steps that cannot be added."""


def why_not_added(context: DecisionContext, adder: str, then: Sequence[StepToAdd]) -> str | None:
    """Why these steps cannot be added by the reply of a step, in words; None if they can."""
    return next(_problems(context, adder, then), None)


def add_steps(context: DecisionContext, adder: str, then: Iterable[StepToAdd]) -> None:
    """Add the steps to the task. One that it has already, with the same input, changes nothing.

    `why_not_added` must be None.
    """
    decision = context.decision
    added = decision.task.added
    new = {one.name: one for one in then if one.name not in added}
    if not new:
        return
    steps = {
        one.name: AddedStep(adder, one.after, one.digest, place)
        for place, one in enumerate(new.values(), len(added))
    }
    decision.task = replace(decision.task, added={**added, **steps})
    decision.inputs.update({name: one.input for name, one in new.items()})
    decision.record("added", adder, None, f"{adder}: adds {few_words([*new])}")


def forget_added_steps(context: DecisionContext) -> None:
    """Remove all added steps from a task that begins again. Used keys stay used.

    The steps of a kind that are added then begin with a round that none of that kind has had.
    """
    decision = context.decision
    for name in decision.task.added:
        decision.remove(name, StepEvent.REMOVED, remember_as=step_of(name))
    decision.task = replace(decision.task, added={})


def kept_in_record(context: DecisionContext) -> set[str]:
    """The steps whose records the record of the task has or may get: all but the settled added
    ones, which are in rows beside it."""
    decision = context.decision
    settled = {name for name in decision.task.added if _is_settled(decision, name)}
    return {*context.plan.steps, *decision.steps} - settled


def _is_settled(decision: DecisionBuilder, name: str) -> bool:
    return decision.step(name).process_state in SETTLED


def _problems(context: DecisionContext, adder: str, then: Sequence[StepToAdd]) -> Iterator[str]:
    added, plan = context.decision.task.added, context.plan
    new: dict[str, StepToAdd] = {}
    for one in then:
        known = added[one.name].digest if one.name in added else None
        if one.name in new:
            known = new[one.name].digest
        if known is None:
            yield from _of_one(plan, adder, one)
            new[one.name] = one
        elif known != one.digest:
            yield f"{adder} adds {one.name}, which was added with another input"
    if new:
        yield from _of_order(context, plan, adder, new)
        yield from _of_number(context, adder, new)


def _of_one(plan: Plan, adder: str, one: StepToAdd) -> Iterator[str]:
    """What is wrong with the kind of a new step, or with its input."""
    if "(" in one.name:  # no name has it, but one of which a part was masked (`masked_then`)
        from roundsman.engine.masks import named_by_masked

        yield named_by_masked(adder, one.name.partition("[")[0])
        return
    kind = step_of(one.name)
    if plan.steps[adder].closes:
        yield f"{adder} adds {one.name}, but is a closing step: its task has ended"
        return
    if kind not in plan.kinds:
        may = f"it may add {', '.join(plan.kinds)}" if plan.kinds else "it may add no steps"
        yield f"{adder} adds {one.name}, but its workflow does not have {kind} in may_add: {may}"
        return
    if _may_follow(plan, adder) and kind not in plan.kinds_after_no_return:
        yield (
            f"{adder} adds {one.name}, which could follow the point of no return, "
            f"{plan.point_of_no_return}; the workflow does not have {kind} in "
            "may_add_after_no_return"
        )
    size = size_in_bytes(one.input)
    if size > LARGEST_STEP_INPUT:
        yield f"{adder} adds {one.name} with {size} bytes of input; {LARGEST_STEP_INPUT} fit"
    if levels(one.input) > DEEPEST_STEP_INPUT:
        yield (
            f"{adder} adds {one.name} with an input that is nested deeper than "
            f"{DEEPEST_STEP_INPUT} levels"
        )


def _may_follow(plan: Plan, adder: str) -> bool:
    """Whether what the step adds does not come before the point of no return."""
    point = plan.point_of_no_return
    return point is not None and adder not in plan.before(plan.instances(point)[0])


def _of_order(
    context: DecisionContext, plan: Plan, adder: str, new: Mapping[str, StepToAdd]
) -> Iterator[str]:
    """What is wrong with the steps that the new steps come after.

    A step may be named that is done, and of which a part waits for all that the adder adds. So only
    the whole plan shows whether there is a cycle.
    """
    decision = context.decision
    for one in new.values():
        for other in (adder, *one.after):
            record = decision.step(other)
            lacks = record.process_state is ProcessState.PROCESSED and record.left_out is not None
            if lacks and not record.awaits_result:  # else the added step waits
                yield (
                    f"{adder} adds {one.name} after {other}, whose result was left out: resolve "
                    f"{other} with its result first"
                )
        for other in one.after:
            if other not in new and plan.instances(other)[0] not in plan.steps:
                yield (
                    f"{adder} adds {one.name} after {other}, but the task has no step of that name"
                )
    if not any(one.after for one in new.values()):
        return  # what comes after its adder alone forms no cycle
    more = {name: AddedStep(adder, one.after) for name, one in new.items()}
    steps = with_added(plan.expanded(plan.fan_outs), {**plan.added, **more}).values()
    if cycle := cycle_of(steps):
        yield f"{adder} adds steps that form a cycle: {' after '.join(cycle)}"


def _of_number(context: DecisionContext, adder: str, new: Mapping[str, StepToAdd]) -> Iterator[str]:
    """What is wrong with the number of steps, and the size of their names in the record.

    The adder is done by then, so it does not count as open.
    """
    decision, plan = context.decision, context.plan
    many = len(decision.task.added) + len(new)
    if many > plan.most_added:
        yield f"{adder} adds {len(new)} steps, {many} in all; {plan.most_added} may be added"
    added = decision.task.added
    unsettled = {
        name: one
        for name, one in added.items()
        if name != adder and not _is_settled(decision, name)
    }
    still_open = len(unsettled) + len(new)
    if still_open > MOST_OPEN_ADDED:
        yield (
            f"{adder} adds {len(new)} steps, for {still_open} that are not done; "
            f"{MOST_OPEN_ADDED} may be open at a time"
        )
    records = len({*kept_in_record(context), *new} - ({adder} & added.keys()))
    if records > MOST_RECORDS:
        yield f"{adder} adds {len(new)} steps, for {records} in all; {MOST_RECORDS} fit in one task"
    more = {one.name: AddedStep(adder, one.after) for one in new.values()}
    for these, limit in ((unsettled, ADDED_LIMIT), (added, ALL_ADDED_LIMIT)):
        size = _size_of_names(these) + _size_of_names(more)
        if size > limit:
            yield (
                f"{adder} adds steps whose names, with those of the steps that they come after, "
                f"make {size} bytes; {limit} fit: use shorter names, or fewer in after"
            )


def _size_of_names(added: Mapping[str, AddedStep]) -> int:
    """The size in bytes of the names of these steps, their adders, and what they come after."""
    names = (each for name, one in added.items() for each in (name, one.adder, *one.after))
    return sum(map(len, names))
