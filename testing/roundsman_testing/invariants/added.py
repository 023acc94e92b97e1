"""Checks of the steps that replies add to their tasks."""

from collections.abc import Iterator
from dataclasses import replace

from roundsman.definition.added_steps import cycle_of
from roundsman.definition.plan import Plan
from roundsman.model.events import Outcome
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, AddedStep, Task, idempotency_key, step_of
from roundsman.wire.messages import Reply
from roundsman_testing.invariants.rules import Broken, Invariant


class Added:
    """Checks ADDED.

    The caller reports each reply before a scheduler handles it (`replied`), and each stored record
    (`of_change`).
    """

    def __init__(self) -> None:
        self._replies: dict[tuple[str, str], list[Reply]] = {}

    def replied(self, reply: Reply) -> None:
        """Note that a scheduler gets this reply."""
        if reply.outcome is Outcome.SUCCEEDED and reply.operation == PERFORM:
            self._replies.setdefault((reply.task_id, reply.step), []).append(reply)

    def of_change(self, plan: Plan, before: Task, after: Task) -> Iterator[Broken]:
        """Check two records of a task, the later one with its plan."""
        asked = before.command_ids != after.command_ids  # a person may begin the task again
        new = {name: one for name, one in after.added.items() if name not in before.added}
        for name, one in before.added.items():
            if not _is_kept(one, after.added.get(name)) and not asked:
                what = f"{name} is not as it was added any more"
                yield Broken(Invariant.ADDED, after.task_id, what)
        for adder in {one.adder for one in new.values()}:
            mine = {name: one for name, one in new.items() if one.adder == adder}
            if not any(_adds(reply, mine, after) for reply in self._taken(after, adder)):
                what = f"{' and '.join(mine)} are not what a reply of {adder} adds"
                yield Broken(Invariant.ADDED, after.task_id, what)
        for name in new:
            if why := _why_not_in(plan, after, name):
                yield Broken(Invariant.ADDED, after.task_id, why)
        for name, record in after.steps.items():
            was_done = before.step(name).process_state is ProcessState.PROCESSED
            if record.process_state is not ProcessState.PROCESSED or was_done or asked:
                continue
            if record.left_out is not None and record.left_out.lacks_steps:
                continue
            taken = self._taken(after, name)
            has_all = record.left_out is None
            replies = [one for one in taken if one.result == record.result or not has_all]
            if replies and not any(_adds(reply, {}, after) for reply in replies):
                what = f"{name} is Processed, and not all is added that its reply adds"
                yield Broken(Invariant.ADDED, after.task_id, what)

    def _taken(self, task: Task, step: str) -> list[Reply]:
        """The replies under the key that the step has now."""
        key = idempotency_key(task.task_id, step, PERFORM, task.step(step))
        replies = self._replies.get((task.task_id, step), ())
        return [one for one in replies if one.idempotency_key == key]


def _is_kept(one: AddedStep, later: AddedStep | None) -> bool:
    """Whether the step is as it was; an erased task has no digests."""
    return later in (one, replace(one, digest=""))


def _adds(reply: Reply, mine: dict[str, AddedStep], after: Task) -> bool:
    """Whether these steps are of the reply, and the task has all that the reply adds."""
    then = {one.name: one for one in reply.then}
    known = {name: one.digest for name, one in after.added.items()}
    return all(known.get(name) == one.digest for name, one in then.items()) and all(
        name in then and one.after == then[name].after for name, one in mine.items()
    )


def _why_not_in(plan: Plan, task: Task, name: str) -> str:
    """Why the plan cannot have the added step; empty if it can."""
    if step_of(name) not in plan.kinds:
        return f"{name} is added, and is of no kind of its plan"
    if len(task.added) > plan.most_added:
        return f"{name} is added, as one of {len(task.added)}"
    made = plan.for_task(task)
    if cycle_of(made.steps.values()):
        return f"{name} is added, and the steps form a cycle"
    before = made.before(name)
    missing = [one for one in task.added[name].after if one not in before and not _items(plan, one)]
    return f"{name} is added after {' and '.join(missing)}" if missing else ""


def _items(plan: Plan, name: str) -> bool:
    """Whether the name is that of a fan-out of the plan."""
    return name in plan.steps and plan.steps[name].fans_out
