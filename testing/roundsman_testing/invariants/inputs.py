"""Checks of what agents are given: the order, the items and the results of earlier steps."""

from collections.abc import Iterator, Mapping

from roundsman.definition.expressions import evaluate_list
from roundsman.definition.plan import Plan
from roundsman.model.json import Json, parse_json
from roundsman.model.states import DONE, ProcessState
from roundsman.model.task import UNDO, Task, item_names, operation_of, step_of
from roundsman.wire.messages import AgentRequest
from roundsman_testing.dynamodb.expressions import Item
from roundsman_testing.invariants.rules import Broken, Invariant

ALWAYS_READ = "orderId"
"""The field of an order that each request has, whatever its step reads."""


class Inputs:
    """Follows the contents of orders and checks GIVEN and ALL_ITEMS.

    The caller reports each write of an order row (`written`), each request that a queue accepted
    (`accepted`) and each stored record (`of_change`).
    """

    def __init__(self) -> None:
        self._orders: dict[str, str] = {}

    def written(self, old: Item | None, new: Item | None) -> None:
        """Note the content of an order row."""
        order_id = str((new or old or {})["OrderID"].get("S"))
        if new is None:
            self._orders.pop(order_id, None)
        elif "Content" in new:
            self._orders[order_id] = str(new["Content"].get("S"))

    def accepted(self, plan: Plan, task: Task, request: AgentRequest) -> Iterator[Broken]:
        """Check a request against the last record of its task and the plan of that record.

        A request of an earlier claim than that of the record is not checked.
        """
        record = task.step(request.step)
        if record.locked_by != request.lock or task.task_id not in self._orders:
            return
        order = task.input(parse_json(self._orders[task.task_id]), record.corrections)
        step = plan.expanded(task.fan_outs).steps[request.step]
        wanted: dict[str, Json] = {"input": order, "item": None}
        if step.reads is not None and isinstance(order, Mapping):
            read = {ALWAYS_READ, *step.reads}
            wanted["input"] = {name: value for name, value in order.items() if name in read}
        if step.item_of is not None:
            wanted["item"] = _items(plan, task, step.item_of, order)[step.index]
        wanted["results"] = _results(plan, task, step_of(request.step))
        if operation_of(record) == UNDO and not record.outcome_unknown:
            wanted["results"] = {
                **_results(plan, task, step_of(request.step)),
                request.step: record.result,
            }
        given = {"input": request.input, "item": request.item, "results": dict(request.results)}
        other = [name for name, value in wanted.items() if given[name] != value]
        if other:
            what = f"{request.step} is not given the {' and '.join(other)} of its task"
            yield Broken(Invariant.GIVEN, task.task_id, what)

    def of_change(self, plan: Plan, before: Task, after: Task) -> Iterator[Broken]:
        """Check the number of items of each fan-out that begins with this write."""
        if before.fan_outs == after.fan_outs or after.task_id not in self._orders:
            return
        for name, count in after.fan_outs.items():
            if name in before.fan_outs or name not in plan.steps:
                continue
            order = after.input(parse_json(self._orders[after.task_id]))
            items = _items(plan, after, name, order)
            if len(items) != count:
                what = f"{name} has {count} steps for a list of {len(items)} items"
                yield Broken(Invariant.ALL_ITEMS, after.task_id, what)


def _items(plan: Plan, task: Task, fan_out: str, order: Json) -> list[Json]:
    return evaluate_list(plan.steps[fan_out].for_each or "", order, _results(plan, task, fan_out))


def _results(plan: Plan, task: Task, step: str) -> dict[str, Json]:
    """The results of the steps of the plan that are before this one.

    The result of a fan-out is a list, with None for an item that was left out.
    """
    found: dict[str, Json] = {}
    for name in plan.before(step):
        if name in task.fan_outs:
            items = [task.step(item) for item in item_names(name, task.fan_outs[name])]
            if all(one.process_state in DONE for one in items):
                found[name] = [
                    one.result if one.process_state is ProcessState.PROCESSED else None
                    for one in items
                ]
        elif task.step(name).process_state is ProcessState.PROCESSED:
            found[name] = task.step(name).result
    return found
