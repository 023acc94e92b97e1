"""A stack in which all is well, as the doctor's facts, and what is found once a part is changed."""

from dataclasses import replace

from roundsman.engine.due import with_due_entry
from roundsman.model.failure import Group
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.leases import Lease, Leases
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepRecord, Task
from roundsman_console.inspector.doctor.checks import findings
from roundsman_console.inspector.doctor.facts import (
    AlarmFact,
    Finding,
    FunctionFact,
    MappingFact,
    QueueFact,
    ScheduleFact,
    StackFacts,
    TableFact,
    TaskSeen,
    TopicFact,
)
from tests.contract.samples import NOW, PLAN, born, claimed, completed

HOUR = 60 * MINUTE
ARN = "arn:aws:sqs:us-east-1:123456789012:s-"
FUNCTIONS = {"SchedulerFunction": 10, "PaymentFunction": 310}


def queue(name: str = "PaymentRequestQueue") -> QueueFact:
    return QueueFact(
        name,
        f"https://queues/s-{name}",
        f"{ARN}{name}",
        dead_letters_to=f"{ARN}{name}Dead",
    )


def dead_queue(name: str = "PaymentRequestQueue") -> QueueFact:
    return QueueFact(f"{name}Dead", f"https://queues/s-{name}Dead", f"{ARN}{name}Dead")


SCHEDULER_QUEUE = queue("SchedulerQueue")
PAYMENT_QUEUE = queue()


def function(name: str = "PaymentFunction") -> FunctionFact:
    return FunctionFact(name, f"s-{name}", FUNCTIONS[name])


def mapping(of: QueueFact, name: str, state: str = "Enabled") -> MappingFact:
    return MappingFact(f"uuid-{of.name}", of.arn, f"s-{name}", state)


def visited(at: int) -> Leases:
    return Leases(3, 16, {shard: Lease(visited_at=at) for shard in range(16)})


WELL = StackFacts(
    now=NOW,
    interval=MINUTE,
    shards=16,
    stack_created_at=NOW - 24 * HOUR,
    parameters={"PointInTimeRecovery": "true"},
    submission_queue="https://queues/s-SubmissionQueue",
    plans={PLAN.hash: PLAN},
    holds=(),
    agents=("inventory", "payment", "shipping", "mail"),
    leases=visited(NOW - 30 * SECOND),
    work_queues=(SCHEDULER_QUEUE, PAYMENT_QUEUE),
    dead_letter_queues=(dead_queue("SchedulerQueue"), dead_queue()),
    rejected_queue=QueueFact("RejectedQueue", "https://queues/r", f"{ARN}Rejected"),
    mappings=(
        mapping(SCHEDULER_QUEUE, "SchedulerFunction"),
        mapping(PAYMENT_QUEUE, "PaymentFunction"),
    ),
    functions=(function("SchedulerFunction"), function()),
    tables=(TableFact("TasksTable", "s-TasksTable", indexes={"due": "ACTIVE"}, ttl=True),),
    alarms=(AlarmFact("MailErrorsAlarm", "s-MailErrorsAlarm"),),
    topic=TopicFact("arn:aws:sns:us-east-1:123456789012:s-AlertTopic", confirmed=1, pending=0),
    schedules=(ScheduleFact("SupervisorFunctionRounds", "s-Rounds", "ENABLED"),),
)
"""Nothing is wrong with it."""


def of(facts: StackFacts) -> dict[str, Finding]:
    """What is found, by kind."""
    return {one.kind.value: one for one in findings(facts)}


def with_tasks(*tasks: Task, now: int = NOW) -> StackFacts:
    """The same stack with these tasks, at `now`; its supervisor has just been round."""
    seen = [TaskSeen(task.task_id, task) for task in tasks]
    return replace(WELL, now=now, tasks=seen, leases=visited(now - SECOND), groups=[GROUP])


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
    step = StepRecord(process_state=ProcessState.ERROR, failure_count=3, started_at=NOW)
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
