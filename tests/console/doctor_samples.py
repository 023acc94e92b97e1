"""Tasks with which all is well, as the doctor's facts, and what is found once a part is changed."""

from dataclasses import replace

from roundsman.engine.due import with_due_entry
from roundsman.model.failure import Group
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.leases import Lease, Leases
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_console.facts.finding.report import Finding
from roundsman_console.facts.finding.tasks import TasksRead, findings
from tests.contract.samples import NOW, PLAN, born, claimed, completed
from tests.support.steps import step_record

HOUR = 60 * MINUTE


def visited(at: int) -> Leases:
    return Leases(3, 16, {shard: Lease(visited_at=at) for shard in range(16)})


WELL = TasksRead(
    now=NOW,
    interval=MINUTE,
    shards=16,
    stack_created_at=NOW - 24 * HOUR,
    plans={PLAN.hash: PLAN},
    agents=("inventory", "payment", "shipping", "mail"),
    leases=visited(NOW - 30 * SECOND),
)
"""Nothing is wrong with it."""


def of(facts: TasksRead) -> dict[str, Finding]:
    """What is found, by kind."""
    return {one.kind.value: one for one in findings(facts)}


def with_tasks(*tasks: Task, now: int = NOW) -> TasksRead:
    """The same with these tasks, at `now`; its supervisor has just been round."""
    return replace(WELL, now=now, tasks=tasks, leases=visited(now - SECOND), groups=[GROUP])


GROUP = Group(
    id="f-1a2b3c4d",
    workflow="order_fulfilment",
    step="reserve_stock",
    how="archived",
    error_type="OutOfStock",
    message="",
    opened_by="ord-1",
    opened_at=NOW,
    since=NOW,
)


def archived() -> Task:
    """A task that needs a person, and owes nothing."""
    step = step_record(process_state=ProcessState.ERROR, failure_count=3, started_at=NOW)
    over = replace(
        born(),
        state=TaskState.ARCHIVED,
        steps={"reserve_stock": step},
        ended_at=NOW,
        version=5,
        failure=GROUP.id,
    )
    return with_due_entry(over, NOW)


def done(task_id: str = "ord-1001", *, owed: tuple[str, ...] = ()) -> Task:
    """A task all of whose steps were processed."""
    over = completed(born(task_id), owed=owed)
    return replace(over, steps=dict.fromkeys(PLAN.steps, over.step("reserve_stock")))


HEALTHY = (
    born("ord-1"),
    claimed(born("ord-2")),
    done("ord-3"),
    done("ord-4", owed=("completed",)),
    replace(archived(), task_id="ord-5"),
)
"""Tasks at moments of an ordinary life."""
