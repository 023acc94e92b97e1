"""What an order waits for now: reads what is around it, and explains it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.clock import now
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.aws.queues import read_counts
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.result import filled_from
from roundsman_console.facts.order.lookup import load_task, plan_of
from roundsman_console.facts.order.masks import mask_of, shown
from roundsman_console.facts.order.order_facts import OrderFacts, SchedulerNow
from roundsman_console.facts.order.step_waits import StepCase
from roundsman_console.facts.order.turn import turn_now
from roundsman_console.facts.order.why import Diagnosis, TaskCase, diagnose, unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisDocument:
    """What one order waits for now."""

    order_id: str
    state: TaskState | None
    """The state of the task; null if its record cannot be read."""
    case: StepCase | TaskCase
    """What the order waits for, in one word."""
    sentence: str
    step: str | None
    """The step that the order waits for; null if it waits for no single step."""
    agent: str | None
    """The agent that the order waits for; null if it waits for no agent."""
    evidence: Sequence[str]
    next: str | None
    """The command to run next; null if there is nothing to do."""


def why(stack: DeployedStack, order: str) -> tuple[Task | None, Diagnosis]:
    """Return the order's task and what it waits for. The task is None if it cannot be read.

    Raises NotFound if the task does not exist, or no longer exists.
    """
    try:
        task = load_task(stack, order)
    except (SchemaTooNew, UnreadableRecord) as error:
        return None, unreadable(order, str(error))
    try:
        plan = plan_of(stack, task)
    except (SchemaTooNew, UnreadableRecord) as error:
        if not task.ended:
            return task, unreadable(order, str(error))
        plan = None
    facts = OrderFacts(shown(task, plan, mask_of(stack, task, plan)), plan, at=now())
    return facts.task, why_of(stack, facts)


def why_of(stack: DeployedStack, facts: OrderFacts) -> Diagnosis:
    """Return what an order waits for, after reading what is around it."""
    return diagnose(with_surroundings(stack, facts))


def with_surroundings(stack: DeployedStack, facts: OrderFacts) -> OrderFacts:
    """Return the facts with what is around the order, which decides what an open one waits for."""
    task = facts.task
    if task.ended and not task.owed:
        return facts
    lease = stack.leases.read().by_shard.get(task.shard)
    return replace(
        facts,
        holds=stack.holds.holds(),
        turn=facts.turn or turn_now(stack, task, facts.plan),
        agents=stack.board.agents(),
        visited_at=lease.visited_at if lease and lease.visited_at else None,
        interval=stack.supervisor_interval,
        scheduler=SchedulerNow(stack.board.marks(), _to_scheduler(stack)),
        order_stored=stack.tasks.order(task.task_id) is not None,
    )


def _to_scheduler(stack: DeployedStack) -> int | None:
    """Return about how many messages wait in the scheduler's queue; None if that is unknown."""
    try:
        return read_counts(stack.sqs, stack.output("SchedulerQueueUrl")).waiting
    except (ClientError, BotoCoreError, ValueError):
        return None  # only evidence: the diagnosis does not depend on it


def why_document(order: str, task: Task | None, found: Diagnosis) -> DiagnosisDocument:
    """Return what an order waits for."""
    return filled_from(found, DiagnosisDocument, order_id=order, state=task and task.state)
