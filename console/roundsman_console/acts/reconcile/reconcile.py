"""Bringing on the orders of tables that were restored to an earlier instant.

Every open task gets the command `reconcile` (`roundsman.engine.restored`); a task that has ended
and still owes a status or an alert gets an `inspect`. The id of the command follows from the
instant and the order. So the command takes effect once, however often it is sent, and a second run
sends only what the first one did not reach.

A bulk run that was under way at the instant is paused, until a person resumes it
(`roundsman_console.acts.bulk.restored`).

The supervisor must be stopped before: it would end the tasks whose time was over meanwhile.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.errors import aws_errors
from roundsman.definition.plan import Plan
from roundsman.engine.due import Lane, lane_key
from roundsman.engine.restored import Assessment, Owes, assess
from roundsman.errors import CallRefused, TryAgain, UnreadableRecord
from roundsman.model.events import CommandSource, Reconcile
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import iso
from roundsman.model.json import sha256
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman.wire.commands import INSPECT, Command, command_of
from roundsman.wire.limits import wire_text
from roundsman_console.acts.actor import signed_in
from roundsman_console.acts.bulk.restored import RestoredRun, pause_restored, restored_runs
from roundsman_console.acts.bulk.view import run_summary
from roundsman_console.acts.documents.reconcile import (
    ReconcileDocument,
    ReconciledOrderDocument,
    RestoredHoldDocument,
    RestoredRunDocument,
)
from roundsman_console.acts.order.sent import check_sender
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import END_OF_TIME
from roundsman_console.base.clock import now, pause
from roundsman_console.base.errors import (
    InspectorError,
    Interrupted,
    InvalidArgument,
    aws_sentence,
)
from roundsman_console.base.limits import HIGHEST_RATE, LOWEST_RATE
from roundsman_console.facts.hold.view import hold_document

AT_ONCE = 100  # the number of records in one read
RATE = 20.0
"""Orders per second, if no other rate is given."""


def check_rate(rate: float) -> None:
    """Raise InvalidArgument unless the rate is from LOWEST_RATE to HIGHEST_RATE."""
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:  # also false for NaN
        raise InvalidArgument(
            f"The rate is {LOWEST_RATE} to {HIGHEST_RATE:g} per second, not {rate:g}."
        )


class Does(StrEnum):
    """What is done about one order. The values are part of the JSON output."""

    RECONCILE = "reconcile"  # the command reconcile is sent
    INSPECT = "inspect"  # the order has ended, and owes a status or an alert
    NOTHING = "nothing"  # the order has ended meanwhile
    DONE = "done"  # the command took effect before
    NEW = "new"  # the order was submitted after the instant
    UNREADABLE = "unreadable"  # the record or its plan cannot be read


@dataclass(frozen=True, slots=True)
class RestoredOrder:
    """One order of the restored tables, and what is done about it."""

    order: str
    does: Does
    state: TaskState | None = None
    """None if the record cannot be read."""
    assessment: Assessment | None = None
    """None if nothing is to be sent."""
    problem: str | None = None
    """Why the record or its plan cannot be read."""

    @property
    def goes(self) -> bool:
        """Whether a message is sent for the order."""
        return self.does in (Does.RECONCILE, Does.INSPECT)

    def document(self, *, sent: bool) -> ReconciledOrderDocument:
        """Return the order as JSON for scripts."""
        found = self.assessment or Assessment(Owes.NOTHING)
        return {
            "orderId": self.order,
            "state": self.state,
            "does": self.does.value,
            "owes": found.owes.value if self.assessment else None,
            "again": list(found.again),
            "asksAgain": list(found.asks_again),
            "severalAgents": list(found.several),
            "unknownItems": list(found.unknown_items),
            "problem": self.problem,
            "sent": sent,
        }


@dataclass(slots=True)
class Reconciliation:
    """What is done about the orders of the restored tables."""

    restored_to: int
    """The instant, in epoch ms."""
    orders: Sequence[RestoredOrder]
    """The orders in the open lanes."""
    archived: int
    """The number of orders that wait for a person."""
    runs: Sequence[RestoredRun]
    """The bulk runs that would go on."""
    holds: Sequence[Hold]
    """The holds by operators that are in force again."""
    supervisor_stopped: bool
    by: str = ""
    reason: str = ""
    """Who sends it, and why; both are empty as long as nothing is sent."""
    dry: bool = True
    """Whether nothing is sent."""
    sent: set[str] = field(default_factory=set)
    """The orders for which a message was sent."""
    paused: set[str] = field(default_factory=set)
    """The ids of the bulk runs for which a pause was requested."""
    error: InspectorError | None = None
    """What ended the sending early."""

    @property
    def counts(self) -> Counter[Does]:
        """The number of orders by what is done about them."""
        return Counter(one.does for one in self.orders)

    @property
    def going(self) -> int:
        """The number of orders for which a message is to be sent."""
        return sum(one.goes for one in self.orders)

    @property
    def does_something(self) -> bool:
        """Whether a message is to be sent, or a bulk run is to be paused."""
        return bool(self.going or self.runs)

    def document(self) -> ReconcileDocument:
        """Return the result as JSON for scripts."""
        counts = self.counts
        return {
            "command": "reconcile",
            "restoredTo": iso(self.restored_to),
            "dryRun": self.dry,
            "supervisorStopped": self.supervisor_stopped,
            "counts": {
                "reconcile": counts[Does.RECONCILE],
                "inspect": counts[Does.INSPECT],
                "nothing": counts[Does.NOTHING],
                "done": counts[Does.DONE],
                "new": counts[Does.NEW],
                "unreadable": counts[Does.UNREADABLE],
            },
            "archived": self.archived,
            "sent": len(self.sent),
            "orders": [one.document(sent=one.order in self.sent) for one in self.orders],
            "bulkRuns": [self._run(one) for one in self.runs],
            "holds": [_hold(one) for one in self.holds],
        }

    def _run(self, one: RestoredRun) -> RestoredRunDocument:
        return {**run_summary(one.record), "paused": one.record.run.id in self.paused}


def _hold(hold: Hold) -> RestoredHoldDocument:
    return {
        **hold_document(hold),
        "agent": hold.agent or None,
        "workflow": hold.workflow or None,
    }


def command_id_of(restored_to: int, order: str) -> str:
    """Return the id of the command for an order: the same one for the same instant."""
    return f"reconcile-{sha256(f'{restored_to} {order}')[:20]}"


def look_at_restored(
    stack: DeployedStack,
    restored_to: int,
    *,
    progress: Callable[[int], None] = lambda _: None,
) -> Reconciliation:
    """Assess every open order and bulk run; nothing is sent.

    `restored_to` is the instant (epoch ms) to which the four tables were restored. `progress` is
    called with the number of orders so far. Raises InvalidArgument if the instant is ahead;
    TryAgain or CallRefused if the tables cannot be read.
    """
    if restored_to > now():
        raise InvalidArgument(f"{iso(restored_to)} is not over yet.")
    found: list[RestoredOrder] = []
    plans: dict[str, Plan | str] = {}
    ids = _ids(stack)
    while part := list(islice(ids, AT_ONCE)):
        loaded = stack.records.load_many(part, now())
        for name in part:
            if name in loaded.tasks:
                found.append(_order(stack, loaded.tasks[name], restored_to, plans))
            elif name in loaded.unreadable:
                problem = loaded.unreadable[name]
                found.append(RestoredOrder(name, Does.UNREADABLE, problem=problem))
        progress(len(found))
    return Reconciliation(
        restored_to,
        found,
        _archived(stack),
        restored_runs(stack, restored_to),
        [hold for hold in stack.holds.holds() if hold.kind == OPERATOR],
        supervisor_stopped(stack),
    )


def send_all(
    stack: DeployedStack,
    found: Reconciliation,
    *,
    by: str,
    reason: str,
    rate: float,
    progress: Callable[[int], None] = lambda _: None,
) -> None:
    """Pause the bulk runs, and send what the orders need; `found` has the result.

    If a run cannot be paused, nothing is sent: look at the tables again (`look_at_restored`).

    At most `rate` messages are sent per second. `progress` is called with the number of messages
    so far. Raises InvalidArgument if the rate is not from LOWEST_RATE to HIGHEST_RATE, or if the
    name or the reason is empty or too long; InspectorError if the supervisor is not stopped; and
    Interrupted on Ctrl-C: its `result` is `found`. Then, and after an error of AWS (`found.error`),
    the same call goes on where this one ended.
    """
    check_rate(rate)
    check_sender(by, reason)
    found.by, found.reason = by, reason
    _require_stopped(stack, found)
    found.dry = False
    try:
        _pause_runs(stack, found)
        for one in found.orders:
            if not one.goes or one.order in found.sent:
                continue
            if found.sent:
                pause(1 / rate)
            body = wire_text(_command(found, one).body())
            stack.sqs.send_message(QueueUrl=stack.output("SchedulerQueueUrl"), MessageBody=body)
            found.sent.add(one.order)
            progress(len(found.sent))
    except (ClientError, BotoCoreError) as error:
        found.error = InspectorError(f"{aws_sentence(error)} Stopped {_how_far(found)}")
    except (InspectorError, TryAgain, CallRefused) as error:
        found.error = InspectorError(f"{error} Stopped {_how_far(found)}")
    except KeyboardInterrupt as error:
        raise Interrupted(f"Interrupted {_how_far(found)}", found) from error


def _pause_runs(stack: DeployedStack, found: Reconciliation) -> None:
    for one in found.runs:
        if one.record.run.id not in found.paused:
            pause_restored(stack, one, by=found.by, reason=found.reason)
            found.paused.add(one.record.run.id)


def check_supervisor(stack: DeployedStack, found: Reconciliation) -> None:
    """Look again whether the supervisor is stopped. Raises InspectorError if it is not."""
    found.supervisor_stopped = supervisor_stopped(stack)
    _require_stopped(stack, found)


def _require_stopped(stack: DeployedStack, found: Reconciliation) -> None:
    if not found.supervisor_stopped:
        raise InspectorError(
            "The supervisor is running: it would end the orders whose time was over meanwhile. "
            f"Stop it first: {stop_command(stack)}"
        )


def supervisor_stopped(stack: DeployedStack) -> bool:
    """Whether the supervisor function cannot run: its reserved concurrency is 0."""
    with aws_errors("reading the concurrency of the supervisor"):
        found = stack.lambda_client.get_function_concurrency(
            FunctionName=stack.output("SupervisorFunctionName")
        )
    return found.get("ReservedConcurrentExecutions") == 0


def stop_command(stack: DeployedStack) -> str:
    """Return the command that stops the supervisor."""
    return (
        "aws lambda put-function-concurrency --function-name "
        f"{stack.output('SupervisorFunctionName')} --reserved-concurrent-executions 0"
    )


def _how_far(found: Reconciliation) -> str:
    return f"after {len(found.sent)} orders. Run the command again to go on."


def _command(found: Reconciliation, one: RestoredOrder) -> Command:
    if one.does is Does.INSPECT:
        return Command(INSPECT, one.order)
    command_id = command_id_of(found.restored_to, one.order)
    by, reason = wire_text(found.by), wire_text(found.reason)
    asked = CommandSource(command_id, by, reason, forwarded_for=signed_in())
    return command_of(one.order, Reconcile(asked, found.restored_to))


def _ids(stack: DeployedStack) -> Iterator[str]:
    """The ids of all tasks in the open lanes."""
    for shard in stack.every_shard:
        for entry in stack.records.entries(lane_key(Lane.OPEN, shard), first=AT_ONCE):
            yield entry.task_id


def _archived(stack: DeployedStack) -> int:
    return sum(
        stack.records.count(lane_key(Lane.ARCHIVED, shard), END_OF_TIME)
        for shard in stack.every_shard
    )


def _order(
    stack: DeployedStack, task: Task, restored_to: int, plans: dict[str, Plan | str]
) -> RestoredOrder:
    name, state = task.task_id, task.state
    if command_id_of(restored_to, name) in task.command_ids:
        return RestoredOrder(name, Does.DONE, state)
    if task.created_at > restored_to:
        return RestoredOrder(name, Does.NEW, state)
    if task.plan not in plans:
        plans[task.plan] = _plan(stack, task)
    plan = plans[task.plan]
    if isinstance(plan, str):
        return RestoredOrder(name, Does.UNREADABLE, state, problem=plan)
    found = assess(plan, task, now())
    if found.open:
        return RestoredOrder(name, Does.RECONCILE, state, found)
    does = Does.INSPECT if found.owes is Owes.STATUSES else Does.NOTHING
    return RestoredOrder(name, does, state, found)


def _plan(stack: DeployedStack, task: Task) -> Plan | str:
    """The task's plan, or why there is none."""
    try:
        plan = stack.plans.plan(task.plan)
    except UnreadableRecord as problem:
        return str(problem)
    return plan or f"its plan {task.plan[:12]} is not stored"
