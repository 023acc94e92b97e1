"""Checks of what agents are given: the order, the items and the results of earlier steps."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from roundsman.definition.expressions import evaluate_list
from roundsman.definition.plan import Plan
from roundsman.model.json import Json
from roundsman.model.states import ProcessState
from roundsman.model.task import UNDO, StepToAdd, Task, item_names, item_place, step_of
from roundsman.wire.messages import AgentRequest
from roundsman_testing.invariants.rules import Broken, Invariant, has_succeeded, is_enough

ALWAYS_READ = "orderId"
"""The field of an order that each request has, whatever its step reads."""


class Inputs:
    """Checks GIVEN and ALL_ITEMS.

    The caller reports each request that a queue accepted (`accepted`) and each stored record
    (`of_change`). `order_of` returns the content of an order row by the order's id; None if there
    is none.
    """

    def __init__(self, order_of: Callable[[str], Json]) -> None:
        self._order_of = order_of

    def accepted(self, plan: Plan, task: Task, request: AgentRequest) -> Iterator[Broken]:
        """Check a request against the last record of its task and the plan of that record.

        A request of an earlier claim than that of the record is not checked.
        """
        record = task.step(request.step)
        content = self._order_of(task.task_id)
        if record.locked_by != request.lock or content is None:
            return
        order = task.input(content, record.corrections)
        expanded = plan.for_task(task)
        step = expanded.steps[request.step]
        wanted: dict[str, Json] = {"input": order, "item": None}
        if step.reads is not None and isinstance(order, Mapping):
            read = {ALWAYS_READ, *step.reads}
            wanted["input"] = {name: value for name, value in order.items() if name in read}
        if step.item_of is not None:
            wanted["item"] = _items(plan, task, step.item_of, order)[step.index]
        names = {*(expanded.before(step.name) if step.added_by is None else step.after)}
        results = dict[str, Json]()
        if step.closes:
            names = {*expanded.steps} - {step.name}
            results |= _undone(task)
        if step.added_by is not None and item_place(step.added_by) is not None:
            names.discard(step.added_by)
            if task.step(step.added_by).left_out is None:
                results[step.added_by] = task.step(step.added_by).result
        results |= _results(expanded, task, names, request.step)
        if record.operation == UNDO and not record.outcome_unknown and record.left_out is None:
            results[request.step] = record.result
        wanted["results"] = results
        given = {"input": request.input, "item": request.item, "results": dict(request.results)}
        other = [name for name, value in wanted.items() if given[name] != value]
        if not _has_step_input(task, request):
            other.append("step input")
        if other:
            what = f"{request.step} is not given the {' and '.join(other)} of its task"
            yield Broken(Invariant.GIVEN, task.task_id, what)

    def of_change(self, plan: Plan, before: Task, after: Task) -> Iterator[Broken]:
        """Check the number of items of each fan-out that begins with this write."""
        content = None if before.fan_outs == after.fan_outs else self._order_of(after.task_id)
        if content is None:
            return
        for name, count in after.fan_outs.items():
            if name in before.fan_outs or name not in plan.steps:
                continue
            items = _items(plan, after, name, after.input(content))
            if len(items) != count:
                what = f"{name} has {count} steps for a list of {len(items)} items"
                yield Broken(Invariant.ALL_ITEMS, after.task_id, what)


def _undone(task: Task) -> dict[str, Json]:
    """The results of what was undone, by record name: a closing step is given them too."""
    return {
        name: one.result
        for name, one in task.steps.items()
        if one.process_state is ProcessState.UNDONE and one.result is not None
    }


def _items(plan: Plan, task: Task, fan_out: str, order: Json) -> list[Json]:
    before = plan.before(fan_out)
    given = _results(plan.for_task(task), task, before)
    return evaluate_list(plan.steps[fan_out].for_each or "", order, given)


def _has_step_input(task: Task, request: AgentRequest) -> bool:
    """Whether the request has what its step was added with, and nothing if it was not added."""
    added = task.added.get(request.step)
    if added is None:
        return request.step_input is None
    return StepToAdd(request.step, input=request.step_input).digest == added.digest


def _is_left_out(plan: Plan, task: Task, name: str, reader: str | None) -> bool:
    """Whether this one of many is not among the first that have succeeded, with what they added.

    What it has added reads its result all the same: `reader` is the step that reads.
    """
    quorum = plan.quorums[name]
    [mine] = (member for member in quorum.members if name in member.names)
    succeeded = [member for member in quorum.members if has_succeeded(task, member)]
    succeeded.sort(key=lambda one: max(task.step(each).finished_at or 0 for each in one.names))
    return reader not in mine.names and mine not in succeeded[: quorum.enough]


def _is_not_needed(plan: Plan, task: Task, name: str, reader: str | None) -> bool:
    """Whether the step is one of an `AnyOf` that has not succeeded, while enough others have."""
    first = (*item_names(name, task.fan_outs.get(name, 0)), name)[0]
    quorum = plan.quorums.get(first)
    if quorum is None or quorum.step == name or not is_enough(plan, task, first):
        return False
    return _is_left_out(plan, task, first, reader)


def _results(
    plan: Plan, task: Task, names: Iterable[str], reader: str | None = None
) -> dict[str, Json]:
    """The results of these steps, of items, and of added steps.

    The result of a fan-out is a list, with None for an item that was left out. `plan` is expanded
    for the task.
    """
    found: dict[str, Json] = {}
    names = {*names}
    after = names | {None if reader is None else plan.steps[reader].added_by}
    for name in {one if one in task.added else step_of(one) for one in names}:
        if _is_not_needed(plan, task, name, reader):
            continue
        if name not in names and not after.issuperset(item_names(name, task.fan_outs.get(name, 0))):
            continue  # it comes after some of the items, by what they have added
        if name in task.fan_outs:
            items = [task.step(item) for item in item_names(name, task.fan_outs[name])]
            first = item_names(name, 1)[0]
            are_over = all(one.done and one.left_out is None for one in items)
            of_items = first in plan.quorums and plan.quorums[first].step == name
            enough = of_items and is_enough(plan, task, first)
            if are_over or enough:
                left = [
                    enough and _is_left_out(plan, task, item, reader)
                    for item in item_names(name, task.fan_outs[name])
                ]
                found[name] = [
                    None if out or one.process_state is not ProcessState.PROCESSED else one.result
                    for out, one in zip(left, items, strict=True)
                ]
        elif (
            task.step(name).process_state is ProcessState.PROCESSED
            and task.step(name).left_out is None
        ):
            found[name] = task.step(name).result
    return found
