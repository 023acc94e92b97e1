"""Which orders would lose a function of an agent if the project were deployed.

An order keeps the plan that it was submitted with, so its steps must be performed and undone by
agents that are deployed later. `functions_needed` is pure; `read_orders` reads a bounded number.
"""

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from roundsman.aws.clock import now
from roundsman.aws.dynamodb.control import DynamoLeases, DynamoPlans
from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine.due import Lane, lane_key
from roundsman.engine.routing import agent_now, untried
from roundsman.errors import UnreadableRecord
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    PERFORM,
    UNDO,
    AfterUndo,
    StepRecord,
    Task,
    step_of,
)
from roundsman_console.aws.task_records import Records

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MOST = 1_000
"""The number of orders that are read at most of those that are open, and of the archived ones."""

_LANES = (Lane.OPEN, Lane.ARCHIVED)
_TO_PERFORM = (ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.ERROR)
_NOTHING_TO_UNDO = (ProcessState.SKIPPED, ProcessState.UNDONE)


@dataclass(frozen=True, slots=True, order=True)
class Function:
    """A function of an agent: it performs a step, or undoes it."""

    agent: str
    step: str
    operation: str
    """`perform` or `undo`."""


@dataclass(frozen=True, slots=True)
class OrdersRead:
    """Open and archived orders, and their plans."""

    tasks: Sequence[Task]
    plans: Mapping[str, Plan]
    """The plans by hash; without those that are not stored or cannot be read."""
    more: bool = False
    """Whether there are orders that were not read."""

    def losing(self, kept: Collection[Function]) -> dict[Function, list[Task]]:
        """Return each function that is needed and not kept, with the orders that need it.

        The functions that most orders need come first.
        """
        found: dict[Function, list[Task]] = {}
        for task in self.tasks:
            plan = self.plans.get(task.plan)
            for function in () if plan is None else sorted(functions_needed(task, plan)):
                if function not in kept:
                    found.setdefault(function, []).append(task)
        return dict(sorted(found.items(), key=lambda each: (-len(each[1]), each[0])))


def functions_needed(task: Task, plan: Plan) -> set[Function]:
    """Return the functions that the order may need: its steps go on, or are undone."""
    found = set[Function]()
    for step in plan.for_task(task).steps.values():
        found.update(_of_step(task, step, task.step(step.name)))
    return found


def _of_step(task: Task, step: StepPlan, record: StepRecord) -> Iterator[Function]:
    name, ahead, behind = step_of(step.name), _agents_ahead(task, step, record), [*record.tried]
    if record.started_at is not None:
        behind.append(agent_now(step, record))
    yield from (Function(agent, name, PERFORM) for agent in ahead)
    if step.compensation is not None and record.process_state not in _NOTHING_TO_UNDO:
        yield from (Function(agent, name, UNDO) for agent in dict.fromkeys([*ahead, *behind]))


def _agents_ahead(task: Task, step: StepPlan, record: StepRecord) -> Sequence[str]:
    """The agents that may still be asked to perform the step."""
    # An archived order may be resubmitted; one that is ending performs only what is under way.
    if task.ending is not None and task.state is not TaskState.ARCHIVED and not record.under_way:
        return ()
    if record.after_undo is AfterUndo.NEXT_AGENT:
        return untried(step, record)
    if record.process_state in _TO_PERFORM or record.after_undo is AfterUndo.NEW_KEY:
        if record.started_at is None and not record.tried:
            return step.agents
        return (agent_now(step, record), *untried(step, record))
    return ()


def read_orders(
    client: "DynamoDBClient",
    *,
    tasks_table: str,
    control_table: str,
    shards: int,
    most: int = MOST,
) -> OrdersRead:
    """Read the first `most` open and the first `most` archived orders, by when they are due.

    `shards` is the stack's parameter DueShards. A record that cannot be read is left out: the
    doctor reports it. Raises TryAgain and CallRefused.
    """
    records = Records(client, tasks_table=tasks_table)
    leases = DynamoLeases(client, control_table=control_table, on_unreadable=lambda _: None)
    every_shard, more, ids = range(max(shards, leases.read().shards)), False, list[str]()
    for lane in _LANES:
        of_shards = (records.entries(lane_key(lane, shard)) for shard in every_shard)
        due_first = heapq.merge(*of_shards, key=lambda entry: entry.due_at)
        found = [entry.task_id for entry in islice(due_first, most + 1)]
        more = more or len(found) > most
        ids += found[:most]
    tasks = list(records.load_many(ids, now()).tasks.values())
    plans = DynamoPlans(client, control_table=control_table, clock=now)
    return OrdersRead(tasks, _plans(plans, {task.plan for task in tasks}), more)


def _plans(stored: DynamoPlans, names: set[str]) -> dict[str, Plan]:
    found = dict[str, Plan]()
    for name in sorted(names):
        try:
            plan = stored.plan(name)
        except UnreadableRecord:
            continue
        if plan is not None:
            found[name] = plan
    return found
