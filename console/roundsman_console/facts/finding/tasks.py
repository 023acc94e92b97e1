"""Does each task go on? Reads the tasks and who supervises them, and finds what stands still.

The checks are pure functions of `TasksRead`.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import boto3

from roundsman.aws.dynamodb.holds import HOLDS
from roundsman.definition.plan import Plan
from roundsman.engine.due import Lane, due, is_closed
from roundsman.errors import UnreadableRecord
from roundsman.model.failure import Group
from roundsman.model.holds import BREAKER, OPERATOR
from roundsman.model.instants import DAY, MINUTE, SECOND, clock_time, format_duration, iso
from roundsman.model.leases import Leases
from roundsman.model.states import DONE, TaskState
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import AT_ONCE
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.facts.agent.reading import agent_names
from roundsman_console.facts.finding.report import Finding, Looking
from roundsman_console.facts.finding.table import FindingKind
from roundsman_console.facts.orders.open_orders import entries_of

LANES = (Lane.OPEN, Lane.ARCHIVED)
"""The lanes that are read. Ended tasks need no check, and may be a million."""

OWED_FOR = 5 * MINUTE
"""How long a status or alert may be owed, in ms; several passes have tried to send it by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksRead:
    """The tasks that were read, and what they depend on. A part that was not read is None."""

    now: int
    """The instant at which the facts are checked, in epoch ms."""
    interval: int
    """The time from one pass of the supervisor to the next, in ms."""
    shards: int
    """The number of shards of each lane for new tasks: the stack's parameter DueShards."""
    stack_created_at: int = 0
    """In epoch ms; 0 if that could not be read."""
    tasks: Sequence[Task] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Why a record cannot be read, by task id."""
    troubled: Mapping[str, int] = field(default_factory=dict)
    """How often the supervisor failed to handle a record since its last decision, by task id."""
    plans: Mapping[str, Plan | str] = field(default_factory=dict)
    """The plans that tasks name, by hash; a text says why there is none."""
    agents: Collection[str] = ()
    """The names of the agents that have a request queue."""
    groups: Sequence[Group] | None = None
    leases: Leases | None = None
    unreadable_parts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Why a part of the ControlTable cannot be read, by row and attribute."""
    entries: Mapping[str, int] = field(default_factory=dict)
    """The number of tasks that were read, by lane."""
    cut: Sequence[str] = ()
    """The lanes that have more tasks than were read."""


# --- Reading -------------------------------------------------------------------------------------


def read_tasks(stack: DeployedStack, limit: int, looking: Looking) -> TasksRead:
    """Read the `limit` tasks of each of LANES that are due first, their plans, and the leases."""
    at, created_at = now(), 0
    with looking.at("the stack's age"):
        described = boto3.client("cloudformation").describe_stacks(StackName=stack.name)
        created_at = round(described["Stacks"][0]["CreationTime"].timestamp() * SECOND)
    leases, groups = None, None
    with looking.at("leases"):
        leases = stack.leases.read()
    shards = max(stack.shards, leases.shards if leases else 0)
    tasks, unreadable, troubled = list[Task](), dict[str, str](), dict[str, int]()
    entries, cut = Counter[str](), list[str]()
    for lane in LANES:
        with looking.at(f"{lane} tasks"):
            due_first = islice(entries_of(stack, lane, shards=range(shards)), limit + 1)
            while part := [entry.task_id for entry in islice(due_first, AT_ONCE)]:
                if entries[lane] + len(part) > limit:
                    cut.append(lane)
                    part.pop()
                loaded = stack.records.load_many(part, at)
                tasks += loaded.tasks.values()
                unreadable |= loaded.unreadable
                troubled |= loaded.troubled
                entries[lane] += len(part)
                looking.progress(f"{entries[lane]} {lane} tasks read")
    with looking.at("failure groups"):
        groups = stack.groups.groups()
    with looking.at("holds and marks"):  # adds what cannot be read to `stack.unreadable`
        stack.holds.holds()
        stack.board.agents()
    plans = _plans(stack, {task.plan for task in tasks}, looking)
    return TasksRead(
        now=at,
        interval=stack.supervisor_interval,
        shards=stack.shards,
        stack_created_at=created_at,
        tasks=tasks,
        unreadable=unreadable,
        troubled=troubled,
        plans=plans,
        agents=agent_names(stack.outputs, _named(plans)),
        groups=groups,
        leases=leases,
        unreadable_parts={(one.record, one.field): one.problem for one in stack.unreadable},
        entries=entries,
        cut=cut,
    )


def _plans(stack: DeployedStack, names: set[str], looking: Looking) -> dict[str, Plan | str]:
    plans: dict[str, Plan | str] = {}
    for name in sorted(names):
        with looking.at(f"the plan {name[:12]}"):
            try:
                plans[name] = stack.plans.plan(name) or "not stored"
            except UnreadableRecord as problem:
                plans[name] = str(problem)
    return plans


def _named(plans: Mapping[str, Plan | str]) -> set[str]:
    """Return the names of the agents in these plans."""
    return {agent for plan in plans.values() if isinstance(plan, Plan) for agent in plan.agents}


# --- Checks --------------------------------------------------------------------------------------


def findings(facts: TasksRead) -> Iterator[Finding]:
    """Find what is wrong with the tasks, and with the parts that they depend on."""
    yield from _supervisors(facts)
    yield from _control_rows(facts)
    yield from _stuck(facts)
    yield from _unsent(facts)
    yield from _unreadable(facts)
    yield from _lost_plans(facts)
    yield from _agents_without_queue(facts)
    yield from _groups_not_open(facts)


def late_after(interval: int) -> int:
    """Return how long something may be overdue, in ms: two passes, and at least two minutes.

    `interval` is the time from one pass of the supervisor to the next, in ms. The timer starts it
    at most once a minute.
    """
    return 2 * max(interval, MINUTE)


def _supervisors(facts: TasksRead) -> Iterator[Finding]:
    """Find shards that no supervisor has visited for more than two passes."""
    leases = facts.leases
    if leases is None or facts.now - facts.stack_created_at <= late_after(facts.interval):
        return
    shards = range(max(facts.shards, leases.shards))
    visits = {shard: leases.of(shard).visited_at for shard in shards}
    late = [shard for shard, at in visits.items() if facts.now - at > late_after(facts.interval)]
    if late:
        last = max(visits[shard] for shard in late)
        ago = f"last visited at {iso(last)}, {format_duration(facts.now - last)} ago"
        evidence = f"{ago if last else 'never visited'}; a pass runs every "
        evidence += format_duration(facts.interval)
        yield Finding(FindingKind.SUPERVISOR_LATE, f"shard {spans(late)}", evidence)


def spans(numbers: Sequence[int]) -> str:
    """Format ascending numbers as ranges: `0-3, 7`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in ranges)


def _control_rows(facts: TasksRead) -> Iterator[Finding]:
    """Find attributes of the ControlTable that cannot be read."""
    for (row, attribute), problem in sorted(facts.unreadable_parts.items()):
        agent, _, kind = attribute.partition("/")
        is_hold = row == HOLDS and kind.partition(".")[0] in (OPERATOR, BREAKER)
        where, held = f"{row}: {attribute}", agent if is_hold else None
        yield Finding(FindingKind.CONTROL_UNREADABLE, where, problem, held)


def _stuck(facts: TasksRead) -> Iterator[Finding]:
    """Find open tasks that have been overdue for more than two passes."""
    for task in _open(facts):
        since = _overdue_since(task, facts.now)
        if since is None or facts.now - since <= late_after(facts.interval):
            continue
        what = ", ".join(_overdue_steps(task, facts.now)) or "it"
        evidence = f"{what} overdue {_since(since, facts.now)}; {_visited(facts, task.shard)}"
        # The inspection of a task without its plan would archive it.
        fixable = isinstance(facts.plans.get(task.plan), Plan)
        fixable = fixable and task.task_id not in facts.troubled
        yield Finding(FindingKind.TASK_STUCK, task.task_id, evidence, fixable=fixable)


def _overdue_since(task: Task, at: int) -> int | None:
    """Return since when something about an open task is overdue (epoch ms); None if nothing is.

    The instant follows from the record. If nothing in the record has an instant of its own (a lost
    start, an owed status or alert), it is that of the stored due entry.
    """
    since = due(task, at)
    if since > at and due(task, at + 1) > since:  # relative to `at`, and so never reached
        since = task.due_at
    return since if since <= at else None


def _overdue_steps(task: Task, at: int) -> list[str]:
    return [
        name
        for name, record in task.steps.items()
        if any(by is not None and by <= at for by in (record.overdue_at, record.claim_by))
    ]


def _since(at: int, today: int) -> str:
    return f"since {_clock(at, today)} ({format_duration(today - at)})"


def _clock(instant: int, today: int) -> str:
    """Format an instant (epoch ms): the time alone if it is of today, else with its date."""
    return clock_time(instant) if instant // DAY == today // DAY else iso(instant)


def _visited(facts: TasksRead, shard: int) -> str:
    if facts.leases is None:
        return f"shard {shard}"
    lease = facts.leases.of(shard)
    at = lease.visited_at
    visited = f"last visited {_clock(at, facts.now)}" if at else "never visited"
    held = f", held by {lease.owner} until {_clock(lease.until, facts.now)}" if lease.owner else ""
    return f"shard {shard} {visited}{held}"


def _unsent(facts: TasksRead) -> Iterator[Finding]:
    """Find tasks that have owed a status or an alert for longer than OWED_FOR."""
    for task in facts.tasks:
        old = [owed for owed in task.owed if facts.now - owed.at > OWED_FOR]
        if old:
            names = ", ".join(f"{owed.kind} {owed.name}" for owed in old[:5])
            evidence = f"{names}, {_since(min(owed.at for owed in old), facts.now)}"
            fixable = task.task_id not in facts.troubled
            yield Finding(FindingKind.OWED_UNSENT, task.task_id, evidence, fixable=fixable)


def _unreadable(facts: TasksRead) -> Iterator[Finding]:
    """Find records that cannot be read, or that the supervisor failed to handle."""
    for task_id, problem in facts.unreadable.items():
        yield Finding(FindingKind.RECORD_UNREADABLE, task_id, problem)
    for task in _open(facts):
        if times := facts.troubled.get(task.task_id):
            evidence = f"failed {'once' if times == 1 else f'{times} times'}; next tried at "
            evidence += iso(task.due_at)
            yield Finding(FindingKind.RECORD_TROUBLED, task.task_id, evidence)


def _lost_plans(facts: TasksRead) -> Iterator[Finding]:
    """Find plans that tasks name and that are not stored or cannot be read."""
    by_plan: dict[str, list[Task]] = defaultdict(list)
    for task in facts.tasks:
        by_plan[task.plan].append(task)
    for name, tasks in sorted(by_plan.items()):
        why = facts.plans.get(name)
        if isinstance(why, str):
            first = min(tasks, key=lambda task: task.created_at)
            evidence = f"{why}; named by {counted(len(tasks), 'task')} of {first.workflow}"
            evidence += f", such as {first.task_id}"
            yield Finding(FindingKind.PLAN_MISSING, name[:12], evidence, first.task_id)


def _agents_without_queue(facts: TasksRead) -> Iterator[Finding]:
    """Find agents of unfinished steps of open tasks that have no request queue."""
    wanting: dict[str, list[tuple[str, Task]]] = defaultdict(list)
    for task in _open(facts):
        plan = facts.plans.get(task.plan)
        steps = plan.for_task(task).steps if isinstance(plan, Plan) else {}
        for name, step in steps.items():
            if task.step(name).process_state not in DONE:
                for agent in set(step.agents) - set(facts.agents):
                    wanting[agent].append((name, task))
    for agent, places in sorted(wanting.items()):
        name, task = places[0]
        tasks = len({other.task_id for _, other in places})
        evidence = f"{name} of {counted(tasks, 'open task')}, such as {task.task_id}"
        yield Finding(FindingKind.AGENT_WITHOUT_QUEUE, agent, evidence)


def _groups_not_open(facts: TasksRead) -> Iterator[Finding]:
    """Find archived tasks that no open failure group counts.

    The overflow group of a workflow counts the tasks whose own group could not be opened.
    """
    if facts.groups is None:
        return
    known = {group.id for group in facts.groups}
    overflowing = {group.workflow for group in facts.groups if group.overflow}
    lost: dict[str, list[Task]] = defaultdict(list)
    for task in facts.tasks:
        if task.state is not TaskState.ARCHIVED or not is_closed(task):
            continue  # a task that still owes its alert opens the group with it
        if task.failure and task.failure not in known and task.workflow not in overflowing:
            lost[task.failure].append(task)
    for group, tasks in sorted(lost.items()):
        first = min(tasks, key=lambda task: task.due_at)
        evidence = f"{counted(len(tasks), 'task')} of {first.workflow}, such as {first.task_id}"
        yield Finding(FindingKind.GROUP_NOT_OPEN, group, evidence, first.task_id)


def _open(facts: TasksRead) -> Iterator[Task]:
    return (task for task in facts.tasks if not is_closed(task))
