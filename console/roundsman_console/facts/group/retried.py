"""What is being retried now? Open orders whose attempts fail for one cause, and which go on.

A failure group has orders that ended, or that fail with an unexpected error. Here are also those of
which no alert is sent: an attempt failed as it may, and the next one follows. Nothing is stored for
it; it is what the records of the open orders that are due first say.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from roundsman.definition.plan import Plan
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.failure import normalised
from roundsman.model.instants import MINUTE
from roundsman.model.task import StepRecord, Task, step_of
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.order.failure import OrderFailure, failures
from roundsman_console.facts.order.lookup import plan_of
from roundsman_console.facts.order.order_facts import OrderFacts
from roundsman_console.facts.orders.counts import Count
from roundsman_console.facts.orders.open_orders import OpenOrders

NEW_WITHIN = 5 * MINUTE
"""An order is new among those that are retried if its first attempt began so long ago at most, in
ms."""

MOST = 8
"""The number of causes that are shown, those with most orders. Each takes one request, for the
history of its sample."""


@dataclass(frozen=True, slots=True)
class RetryCause:
    """Why attempts fail that are tried again."""

    workflow: str
    step: str
    """For an item of a fan-out, the step of the definition."""
    undo: bool
    """Whether it is the undo of the step that fails."""
    error_type: str
    message: str
    """The error message, without the parts that differ between orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetriedNow:
    """The orders that are retried for one cause. Instants are epoch ms."""

    cause: RetryCause
    agents: tuple[str, ...]
    """The agents of the step."""
    count: Count
    """The number of orders; at least so many if not all open orders were read."""
    new: int
    """The number of these orders that failed once, in an attempt of the last NEW_WITHIN ms."""
    attempts: int
    """The number of failed attempts of the order with the most."""
    most: int | None
    """The number of attempts that the step has; None if it is not limited, or not known."""
    next_at: int | None
    """When the next attempt of one of the orders begins; None if all have one under way."""
    sample: Task
    """The order with the most failed attempts."""
    since: int | None = None
    """When the first attempt of the sample failed; None if that is not known."""


@dataclass(frozen=True, slots=True)
class Retries:
    """What is retried among the open orders that were read."""

    causes: tuple[RetriedNow, ...] = ()
    """Those with most orders, at most MOST."""
    others: int = 0
    """The number of further causes."""
    read: int = 0
    """The number of open orders that were read, those that are due first."""
    whole: bool = True
    """Whether these are all open orders."""


def read_retries(
    stack: DeployedStack, opened: OpenOrders, at: int, histories: int = MOST
) -> Retries:
    """Return what is retried among these open orders at `at` (epoch ms).

    Since when is read for the first `histories` causes; it is not known of the others.
    """
    plans = {task.task_id: _plan(stack, task) for task in opened.tasks}
    every = retried_now(opened, plans, at)
    shown = tuple(
        replace(one, since=_first_failure(stack, one, plans[one.sample.task_id], at))
        if place < histories
        else one
        for place, one in enumerate(every[:MOST])
    )
    return Retries(shown, len(every) - len(shown), len(opened.tasks), opened.whole)


def retried_now(opened: OpenOrders, plans: Mapping[str, Plan | None], at: int) -> list[RetriedNow]:
    """Return what is retried among these orders, the causes with most orders first. Pure.

    `plans` are the plans by order, None for one that is not known. `at` is now, in epoch ms.
    """
    found: dict[RetryCause, list[tuple[Task, OrderFailure]]] = {}
    for task in opened.tasks:
        for cause, failure in _retried(OrderFacts(task, plans.get(task.task_id), at=at)):
            found.setdefault(cause, []).append((task, failure))
    every = [_group(cause, members, at, whole=opened.whole) for cause, members in found.items()]
    return sorted(every, key=lambda one: (-one.count.count, -one.attempts))


def _retried(facts: OrderFacts) -> Iterator[tuple[RetryCause, OrderFailure]]:
    """What is retried in one order, each cause once."""
    for one in failures(facts):
        if one.tried_again:
            for step in dict.fromkeys(map(step_of, one.steps)):
                text = normalised(one.error.message)
                yield RetryCause(facts.task.workflow, step, one.undo, one.error.type, text), one


def _group(
    cause: RetryCause, members: Sequence[tuple[Task, OrderFailure]], at: int, *, whole: bool
) -> RetriedNow:
    sample, worst = max(members, key=lambda member: member[1].attempts)
    records = [task.step(name) for task, failure in members for name in failure.steps]
    waits = (one.not_before for one in records if one.not_before is not None)
    return RetriedNow(
        cause=cause,
        agents=tuple(dict.fromkeys(agent for _, one in members for agent in one.agents)),
        count=Count(len(members), more=not whole),
        new=sum(_is_new(task, failure, at) for task, failure in members),
        attempts=worst.attempts,
        most=worst.most,
        next_at=min(waits, default=None),
        sample=sample,
    )


def _is_new(task: Task, failure: OrderFailure, at: int) -> bool:
    return all(_failed_once(task.step(name), at) for name in failure.steps)


def _failed_once(record: StepRecord, at: int) -> bool:
    began = record.started_at
    return record.failure_count == 1 and began is not None and at - began <= NEW_WITHIN


def _first_failure(stack: DeployedStack, one: RetriedNow, plan: Plan | None, at: int) -> int | None:
    """When the first attempt of the sample failed, by its history."""
    history = stack.tasks.history(one.sample.task_id)
    found = _retried(OrderFacts(one.sample, plan, history, at=at))
    return next((failure.first_at for cause, failure in found if cause == one.cause), None)


def _plan(stack: DeployedStack, task: Task) -> Plan | None:
    try:
        return plan_of(stack, task)
    except (SchemaTooNew, UnreadableRecord):
        return None
