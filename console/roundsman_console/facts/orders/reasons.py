"""Why an order is in its state, in a few words for a list of orders."""

from collections.abc import Mapping, Sequence

from roundsman.definition.plan import Plan
from roundsman.model.holds import Hold, hold_words
from roundsman.model.instants import second
from roundsman.model.order_limit import waits_for_turn
from roundsman.model.schedules import is_queued
from roundsman.model.situations import Asleep, AwaitsSignal
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.order.effects import erased_words, in_state, left_out_words
from roundsman_console.facts.order.step_text import holds_of, last_error, span


def reasons_of(stack: DeployedStack, tasks: Sequence[Task]) -> Mapping[str, str]:
    """Return why each order is in its state, by its id. Holds are read only if a step is held."""
    held = {task.plan for task in tasks if held_steps(task)}
    holds = stack.holds.holds() if held else ()
    plans = {plan: stack.plans.plan(plan) for plan in held}
    return {task.task_id: reason_of(task, plans.get(task.plan), holds) for task in tasks}


def reason_of(task: Task, plan: Plan | None = None, holds: Sequence[Hold] = ()) -> str:
    """Return why the order ended or what it waits for.

    Of an erased order, when and by whom; of one that completed, how many items it has left out,
    empty if none.

    The plan and the holds on agents are needed only if a step is held. The page of the order has
    the whole explanation.
    """
    if task.erased_at is not None:
        return erased_words(task)
    failed = in_state(task, None, ProcessState.UNDO_ERROR)
    if task.state is TaskState.ARCHIVED and failed:
        error = last_error(task.step(failed[0]))
        return f"the undo of {span(failed)} failed" + (f": {error}" if error else "")
    if task.ending is not None:
        return task.ending.why
    if task.ended:
        return "; ".join(filter(None, (task.ended_early, left_out_words(task))))
    if task.state is TaskState.SCHEDULED:
        asked = f"starts at {second(task.start_at)}, as it asked"
        return "waits for the order of an earlier run to end" if is_queued(task) else asked
    return _waits(task, plan, holds) or "waits for the scheduler"


def held_steps(task: Task) -> list[str]:
    """Return the steps that wait only because of a hold, or for the turn of their order."""
    return [name for name, record in task.steps.items() if record.held_since is not None]


def _waits(task: Task, plan: Plan | None, holds: Sequence[Hold]) -> str:
    if any(map(waits_for_turn, task.steps.values())):
        return "waits for its turn, by the limit of its workflow"
    if held := held_steps(task):
        return f"{span(held)}: waits{_hold_of(task, held[0], plan, holds)}"
    for name, record in task.steps.items():
        if not record.under_way and record.finished_at is None and last_error(record):
            when = f", at {second(record.not_before)}" if record.not_before is not None else ""
            return f"{name}: tried again after {last_error(record)}{when}"
    busy = [name for name, record in task.steps.items() if record.under_way]
    if not busy:
        return _waits_for_time(task)
    agent = task.step(busy[0]).agent
    return f"{span(busy)}: at {agent}" if agent and len(busy) == 1 else f"{span(busy)}: under way"


def _waits_for_time(task: Task) -> str:
    """Until when its steps sleep, wait for signals or are polled again; empty if none does."""
    for name, record in task.steps.items():
        if isinstance(record.situation, Asleep):
            return f"{name}: asleep until {second(record.situation.until)}"
        if isinstance(record.situation, AwaitsSignal):
            return f"{name}: waits for its signal until {second(record.situation.until)}"
        if record.polling and record.not_before is not None:
            return f"{name}: polled again at {second(record.not_before)}"
    return ""


def _hold_of(task: Task, step: str, plan: Plan | None, holds: Sequence[Hold]) -> str:
    """Which hold a step waits for, to follow `waits`."""
    record = task.step(step)
    planned = plan.for_task(task).steps.get(step) if plan else None
    if found := holds_of(task, record, planned, holds):
        first = found[0]
        until = second(first.until)
        if not first.agent:
            return f": {first.target} {hold_words(first)}, until {until}"
        return f" for {first.agent}, which {hold_words(first)}, until {until}"
    return f": {record.error.message}" if record.error else " for its agent"
