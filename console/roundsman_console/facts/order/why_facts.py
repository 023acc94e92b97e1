"""What an order waits for now: reads the facts of its task, and explains them."""

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.clock import now
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.task import Task
from roundsman_console.aws.queues import read_counts
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.order.documents import DiagnosisDocument
from roundsman_console.facts.order.lookup import load_task, plan_of
from roundsman_console.facts.order.masks import mask_of, shown
from roundsman_console.facts.order.step_waits import SchedulerNow
from roundsman_console.facts.order.why import Diagnosis, TaskFacts, diagnose, unreadable


def why(stack: DeployedStack, order: str) -> tuple[Task | None, Diagnosis]:
    """Return the order's task and what it waits for. The task is None if it cannot be read.

    Raises NotFound if the task does not exist, or no longer exists.
    """
    try:
        task = load_task(stack, order)
    except (SchemaTooNew, UnreadableRecord) as error:
        return None, unreadable(order, str(error))
    row = stack.tasks.order(order)
    try:
        plan = plan_of(stack, task)
    except (SchemaTooNew, UnreadableRecord) as error:
        if not task.ended:
            return task, unreadable(order, str(error))
        plan = None
    task = shown(task, plan, mask_of(stack, task, plan))
    return task, diagnose(task, plan, _facts(stack, task, row is not None))


def _facts(stack: DeployedStack, task: Task, order_stored: bool) -> TaskFacts:
    if task.ended and not task.owed:
        return TaskFacts(at=now())
    leases = stack.leases.read()
    lease = leases.by_shard.get(task.shard)
    return TaskFacts(
        at=now(),
        holds=stack.holds.holds(),
        agents=stack.board.agents(),
        visited_at=lease.visited_at if lease and lease.visited_at else None,
        interval=stack.supervisor_interval,
        scheduler=SchedulerNow(stack.board.marks(), _to_scheduler(stack)),
        order_stored=order_stored,
    )


def _to_scheduler(stack: DeployedStack) -> int | None:
    """Return about how many messages wait in the scheduler's queue; None if that is unknown."""
    try:
        return read_counts(stack.sqs, stack.output("SchedulerQueueUrl")).waiting
    except (ClientError, BotoCoreError, ValueError):
        return None  # only evidence: the diagnosis does not depend on it


def why_document(order: str, task: Task | None, found: Diagnosis) -> DiagnosisDocument:
    """Return the explanation as JSON for scripts."""
    return {
        "orderId": order,
        "state": task.state if task else None,
        "case": found.case,
        "sentence": found.sentence,
        "step": found.step,
        "agent": found.agent,
        "evidence": list(found.evidence),
        "next": found.next,
    }
