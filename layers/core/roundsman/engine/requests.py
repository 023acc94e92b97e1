"""Builds the request of a claim from the task's record, so that it can be sent again."""

from collections.abc import Iterable, Mapping, Set

from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine.fan_out import item_of
from roundsman.engine.quorums import results
from roundsman.engine.request_deadlines import asks_probe_only, request_ends_at, time_of
from roundsman.model.json import Json
from roundsman.model.situations import AwaitsCallback, UnderWay
from roundsman.model.states import ProcessState
from roundsman.model.task import (
    PERFORM,
    UNDO,
    EndOfTask,
    StepRecord,
    Task,
    idempotency_key,
    item_names,
    item_place,
    step_of,
)
from roundsman.wire.messages import AgentRequest


def request_for(
    plan: Plan, task: Task, step: str, order: Json, now: int, step_input: Json = None
) -> AgentRequest:
    """The request of the step's current claim, or the last reminder of a claim that waits.

    Raises ValueError if the step is not claimed.

    `order` is the content of the order row. `now` (epoch ms) is the time of sending. `step_input`
    is what the step was added with; None if it was not added at run time.
    """
    plan = plan.for_task(task)
    record = task.step(step)
    attempt = record.situation
    if not isinstance(attempt, UnderWay):
        raise ValueError(f"{step} of {task.task_id} is not claimed")
    operation = record.operation
    perform_key = idempotency_key(task.task_id, step, PERFORM, record)
    undoes = operation == UNDO
    order = task.input(order, record.corrections)  # an undo has the input of its perform
    item = item_of(plan, task, step, order)
    before = _steps_for(plan, step)
    results = _results_for(plan, task, step, before)
    return AgentRequest(
        task_id=task.task_id,
        workflow=task.workflow,
        step=step,
        operation=operation,
        lock=attempt.lock,
        idempotency_key=idempotency_key(task.task_id, step, operation, record),
        perform_key=perform_key if undoes else None,
        attempt=record.failure_count + 1,
        complete_by=_ends_at(plan.steps[step], record, attempt, task.ends_by(step)),
        heartbeat_by=record.heartbeat_by,
        outcome_unknown=record.outcome_unknown,
        input=_fields_read(plan.steps[step], order),
        item=item,
        step_input=step_input,
        results=results,
        left_out=_left_out_for(task, {*before, step}),
        unanswered=_unanswered_for(task, before),
        ending=_ending_for(plan, task, step),
        sent_at=now,
        within=_within(plan.steps[step], record),
        reminder=record.reminders if record.waiting else None,
        probe_only=asks_probe_only(plan.steps[step], record),
        masked=_masked(plan, step, results) if plan.masks else (),
        tenant=task.tenant,
    )


def _masked(plan: Plan, step: str, results: Iterable[str]) -> tuple[str, ...]:
    from roundsman.engine.masks import masked_in_request  # late: few plans mask anything

    return masked_in_request(plan, step, results)


def _fields_read(step: StepPlan, order: Json) -> Json:
    """The order id and the fields that the step reads; the whole order if it names none."""
    if step.reads is None or not isinstance(order, Mapping):
        return order
    return {name: order[name] for name in ("orderId", *step.reads) if name in order}


def _ends_at(step: StepPlan, record: StepRecord, attempt: UnderWay, task_ends_at: int) -> int:
    """When the request loses its right to act; a reminder when the wait ends or the next is due."""
    if isinstance(attempt, AwaitsCallback):
        until, next_at = attempt.until, attempt.remind_at
        return until if next_at is None else min(until, next_at)
    return request_ends_at(step, record, attempt.until, task_ends_at)


def _within(step: StepPlan, record: StepRecord) -> int | None:
    """The time limit of the attempt in ms if an operator has added time; else None."""
    if not record.granted:
        return None
    return time_of(step, record.operation) + record.granted


def agent_of(plan: Plan, task: Task, step: str) -> str:
    """The agent that the step's request is sent to."""
    return task.step(step).agent or plan.for_task(task).steps[step].agent


def _results_for(plan: Plan, task: Task, step: str, before: Set[str]) -> Mapping[str, Json]:
    """The results of the steps `before` this one; for an undo also the step's own, if it is known.

    The result of a fan-out is a list, of which the step comes after all items: after some of them,
    by a step that one has added, it gets none, since the list could change under the same key. An
    item's own result is under the name of the item. An added step gets the results of those that it
    comes directly after, so that many steps one after the other do not get all of them again and
    again.
    """
    record, adder = task.step(step), plan.steps[step].added_by
    names, found = before, dict[str, Json]()
    if adder is not None and item_place(adder) is not None:
        names = before - {adder}  # the other items may not be done yet
        if task.step(adder).left_out is None:
            found[adder] = task.step(adder).result
    added = names & task.added.keys()
    read = added | {
        name
        for name in {step_of(one) for one in names - added}
        if before >= {*item_names(name, task.fan_outs.get(name, 0))}
    }
    found |= {name: result for name, result in results(plan, task, step).items() if name in read}
    if plan.steps[step].closes:
        found |= _results_undone(task)
    if record.operation == UNDO and not record.outcome_unknown and record.left_out is None:
        found[step] = record.result
    return found


def _results_undone(task: Task) -> dict[str, Json]:
    """The results of the steps that were undone, by record name."""
    return {
        name: record.result
        for name, record in task.steps.items()
        if record.process_state is ProcessState.UNDONE and record.result is not None
    }


def _left_out_for(task: Task, names: Set[str]) -> tuple[str, ...]:
    """The steps whose results the request would have, if they had not been left out."""
    return tuple(sorted(name for name in names if task.step(name).left_out is not None))


def _unanswered_for(task: Task, names: Set[str]) -> tuple[str, ...]:
    """Those of these steps whose results are no answers that came."""
    return tuple(sorted(name for name in names if task.step(name).unanswered))


def _ending_for(plan: Plan, task: Task, step: str) -> EndOfTask | None:
    """The end of the task as a closing step is told; None for any other step."""
    closing, ending = task.closing, task.ending
    if not plan.steps[step].closes or closing is None or ending is None:
        return None
    undone = (n for n in plan.steps if task.step(n).process_state is ProcessState.UNDONE)
    error = None if ending.error is None else ending.error.type
    return EndOfTask(closing.end.value, ending.step, error, tuple(undone))


def _steps_for(plan: Plan, step: str) -> Set[str]:
    """The steps whose results the request of this step has. A closing step has those of all."""
    one = plan.steps[step]
    if one.closes:
        return {*plan.steps} - {step}
    return plan.before(step) if one.added_by is None else frozenset(one.after)
