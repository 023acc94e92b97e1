"""The checks of tasks, plans and orders. Each is a pure function of all facts."""

from collections import defaultdict
from collections.abc import Iterator

from roundsman.command_line import command_line
from roundsman.engine.due import due, settled
from roundsman.model.instants import MINUTE, format_duration
from roundsman.model.plan import StepPlan
from roundsman.model.states import DONE, ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_console.inspector.doctor.facts import Finding, StackFacts, TaskSeen
from roundsman_console.inspector.doctor.text import clock, when
from roundsman_console.inspector.documents.doctor import FindingKind

OWED_FOR = 5 * MINUTE
"""How long a status or alert may be owed, in ms; several passes have tried to send it by then."""

MOST_ITEMS = 1_000
"""The maximum number of items of a fan-out that is checked; a task can have only 100 step
records."""


def late_by(facts: StackFacts) -> int:
    """Return how long something may be overdue, in ms: two passes, and at least two minutes.

    The timer starts the supervisor at most once a minute.
    """
    return 2 * max(facts.interval, MINUTE)


def overdue_since(task: Task, now: int) -> int | None:
    """Return since when something about an open task is overdue (epoch ms); None if nothing is.

    The instant follows from the record. If nothing in the record has an instant of its own (a lost
    start, an owed status or alert), it is that of the stored due entry.
    """
    at = due(task, now)
    if at > now and due(task, now + 1) > at:  # relative to `now`, and so never reached
        at = task.due_at
    return at if at <= now else None


def stuck_tasks(facts: StackFacts) -> Iterator[Finding]:
    """Find open tasks that have been overdue for more than two passes."""
    for seen, task in _open(facts):
        since = overdue_since(task, facts.now)
        if since is None or facts.now - since <= late_by(facts):
            continue
        what = ", ".join(_overdue_steps(task, facts.now)) or "it"
        evidence = f"{what} overdue {_since(since, facts.now)}; {_visited(facts, task.shard)}"
        known = facts.plans.get(task.plan) is not None and not seen.trouble
        yield Finding(FindingKind.TASK_STUCK, task.task_id, evidence, _show(task), fixable=known)


def _overdue_steps(task: Task, now: int) -> list[str]:
    return [
        name
        for name, record in task.steps.items()
        if (record.under_way and record.overdue_at is not None and record.overdue_at <= now)
        or (
            record.process_state in (ProcessState.PENDING, ProcessState.UNDOING)
            and not record.under_way
            and record.complete_by is not None
            and record.complete_by <= now
        )
    ]


def _since(at: int, now: int) -> str:
    return f"since {clock(at, now)} ({format_duration(now - at)})"


def _visited(facts: StackFacts, shard: int) -> str:
    if facts.leases is None:
        return f"shard {shard}"
    lease, now = facts.leases.of(shard), facts.now
    at = lease.visited_at
    visited = f"last visited {clock(at, now)}" if at else "never visited"
    held = f", held by {lease.owner} until {clock(lease.until, now)}" if lease.owner else ""
    return f"shard {shard} {visited}{held}"


def unsent_owed(facts: StackFacts) -> Iterator[Finding]:
    """Find tasks that have owed a status or an alert for longer than OWED_FOR."""
    for seen, task in _readable(facts):
        old = [owed for owed in task.owed if facts.now - owed.at > OWED_FOR]
        if not old:
            continue
        since = min(owed.at for owed in old)
        names = ", ".join(f"{owed.kind} {owed.name}" for owed in old[:5])
        evidence = f"{names}, {_since(since, facts.now)}"
        yield Finding(
            FindingKind.OWED_UNSENT, task.task_id, evidence, _show(task), fixable=not seen.trouble
        )


def unreadable(facts: StackFacts) -> Iterator[Finding]:
    """Find records that cannot be read, or that the supervisor failed to handle."""
    for seen in facts.tasks:
        if seen.problem is not None:
            kind = FindingKind.RECORD_NEWER if seen.newer else FindingKind.RECORD_UNREADABLE
            yield Finding(kind, seen.task_id, seen.problem)
        elif seen.trouble and seen.task is not None and not settled(seen.task):
            times = "once" if seen.trouble == 1 else f"{seen.trouble} times"
            evidence = f"failed {times}; next tried at {when(seen.task.due_at)}"
            yield Finding(FindingKind.RECORD_TROUBLED, seen.task_id, evidence, _show(seen.task))


def lost_plans(facts: StackFacts) -> Iterator[Finding]:
    """Find plans that tasks name and that are not stored or cannot be read."""
    by_plan: dict[str, list[Task]] = defaultdict(list)
    for _, task in _readable(facts):
        by_plan[task.plan].append(task)
    for plan, tasks in sorted(by_plan.items()):
        if plan in facts.unreadable_plans:
            kind, why = FindingKind.PLAN_UNREADABLE, facts.unreadable_plans[plan]
        elif plan in facts.plans and facts.plans[plan] is None:
            kind, why = FindingKind.PLAN_MISSING, "not stored"
        else:
            continue
        first = min(tasks, key=lambda task: task.created_at)
        evidence = f"{why}; named by {_count(len(tasks), 'task')} of {first.workflow}"
        yield Finding(kind, plan[:12], f"{evidence}, such as {first.task_id}", _show(first))


def agents_without_queue(facts: StackFacts) -> Iterator[Finding]:
    """Find agents of unfinished steps of open tasks that have no request queue."""
    if facts.agents is None:
        return
    wanting: dict[str, list[tuple[str, Task]]] = defaultdict(list)
    for _, task in _open(facts):
        for name, step in _plan(facts, task).items():
            if task.step(name).process_state in DONE:
                continue
            for agent in step.agents:
                if agent not in facts.agents:
                    wanting[agent].append((name, task))
    for agent, places in sorted(wanting.items()):
        name, task = places[0]
        tasks = len({other.task_id for _, other in places})
        evidence = f"{name} of {_count(tasks, 'open task')}, such as {task.task_id}"
        yield Finding(FindingKind.AGENT_WITHOUT_QUEUE, agent, evidence, "roundsman agents")


def groups_not_open(facts: StackFacts) -> Iterator[Finding]:
    """Find archived tasks that no open failure group counts.

    The overflow group of a workflow counts the tasks whose own group could not be opened.
    """
    if facts.groups is None:
        return
    known = {group.id for group in facts.groups}
    overflowing = {group.workflow for group in facts.groups if group.overflow}
    lost: dict[str, list[Task]] = defaultdict(list)
    for _, task in _readable(facts):
        if task.state is not TaskState.ARCHIVED or not settled(task):
            continue  # a task that still owes its alert opens the group with it
        if task.failure and task.failure not in known and task.workflow not in overflowing:
            lost[task.failure].append(task)
    for group, tasks in sorted(lost.items()):
        first = min(tasks, key=lambda task: task.due_at)
        evidence = f"{_count(len(tasks), 'task')} of {first.workflow}, such as {first.task_id}"
        yield Finding(FindingKind.GROUP_NOT_OPEN, group, evidence, _show(first))


def orphans(facts: StackFacts) -> Iterator[Finding]:
    """Find orders without a task and tasks without an order.

    An order that is older than the shortest retention is no finding: its task may have expired. If
    the shortest retention is not known, no order is a finding.
    """
    shortest = facts.shortest_retention
    for order in facts.orphans:
        age = facts.now - order.created_at
        if shortest is not None and age < shortest:
            evidence = (
                f"stored at {when(order.created_at)}, {format_duration(age)} ago; every task "
                f"is kept for at least {format_duration(shortest)}"
            )
            command = command_line("show", order.order_id)
            yield Finding(FindingKind.ORDER_WITHOUT_TASK, order.order_id, evidence, command)
    for seen, task in _readable(facts):
        if seen.ordered is False:
            evidence = f"{task.state}, submitted at {when(task.created_at)}"
            yield Finding(FindingKind.TASK_WITHOUT_ORDER, task.task_id, evidence, _show(task))


def _readable(facts: StackFacts) -> Iterator[tuple[TaskSeen, Task]]:
    for seen in facts.tasks:
        if seen.task is not None:
            yield seen, seen.task


def _open(facts: StackFacts) -> Iterator[tuple[TaskSeen, Task]]:
    """Yield the tasks that belong in the open lane, whatever lane they are in."""
    for seen, task in _readable(facts):
        if not settled(task):
            yield seen, task


def _plan(facts: StackFacts, task: Task) -> dict[str, StepPlan]:
    plan = facts.plans.get(task.plan)
    if max(task.fan_outs.values(), default=0) > MOST_ITEMS:
        return {}
    return dict(plan.expanded(task.fan_outs).steps) if plan else {}


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _show(task: Task) -> str:
    return command_line("show", task.task_id)
