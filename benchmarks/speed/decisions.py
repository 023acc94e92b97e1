"""Measures the time of a decision and the size of the task record, by the number of steps."""

from collections.abc import Iterator
from statistics import median
from time import thread_time_ns

from benchmarks.harness.sizes import item_bytes
from benchmarks.harness.stand_ins import WorkflowShape
from benchmarks.report import Report, Setting, Table, amount
from roundsman.aws.dynamodb.codec import read_task, task_item
from roundsman.engine.machine import decide
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.events import Claimant, Outcome, Replied, Start
from roundsman.model.plan import Plan, plan_of
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import PERFORM, Task, idempotency_key

STEPS = (1, 4, 10, 20, 50, 100)
MORNING = 1_800_000_000_000  # epoch ms: 2027-01-15T08:00:00Z
CLAIMANT = Claimant("bench", "0123456789")
US = 1_000  # ns


def measure(setting: Setting) -> Report:
    """Return the medians over the decisions of an order on this machine.

    Of several orders, the one that took least: other work on the machine can only add to it.
    """
    rows, document = [], {}
    for steps in STEPS:
        setting.say(f"decisions over {steps} steps")
        found = [_order(WorkflowShape(steps)) for _ in range(max(3, setting.runs * 10 // steps))]
        deciding = min(median(run.deciding) for run in found) / US
        coding = min(median(run.coding) for run in found) / US
        size = found[0].size
        rows.append([str(steps), amount(deciding), amount(coding), f"{size:,}"])
        document[str(steps)] = {
            "decision_us": round(deciding, 1),
            "record_us": round(coding, 1),
            "item_bytes": size,
        }
    headings = ("steps", "us a decision", "us to read and write its record", "bytes at the end")
    return Report([Table("The machine", headings, rows)], {"machine_by_steps": document})


class _Run:
    """The measured times of one order, in ns, and the size of its record in bytes."""

    def __init__(self) -> None:
        self.deciding: list[int] = []
        self.coding: list[int] = []
        self.size = 0


def _order(shape: WorkflowShape) -> _Run:
    plan = plan_of(shape.workflow())
    run = _Run()
    task = new_task(plan, "ord-1", ProcessingOptions(), MORNING, shards=16)
    task = _decided(run, plan, task, Start(CLAIMANT))
    while task.state is not TaskState.COMPLETED:
        for reply in _replies(task):
            task = _decided(run, plan, task, reply)
    run.size = item_bytes(task_item(task))
    return run


def _decided(run: _Run, plan: Plan, task: Task, event: Start | Replied) -> Task:
    item = task_item(task)
    began_at = thread_time_ns()
    seen = read_task(item)
    decided_from = thread_time_ns()
    decision = decide(plan, seen, event, MORNING + 1_000, order={}, jitter=0.5)
    decided_at = thread_time_ns()
    task_item(decision.task)
    coded_at = thread_time_ns()
    run.deciding.append(decided_at - decided_from)
    run.coding.append(coded_at - decided_at + decided_from - began_at)
    return decision.task


def _replies(task: Task) -> Iterator[Replied]:
    """Yield the replies of the agents to all steps that are Processing."""
    for name, step in task.steps.items():
        if step.process_state is ProcessState.PROCESSING and step.locked_by is not None:
            yield Replied(
                claimant=CLAIMANT,
                step=name,
                operation=PERFORM,
                lock=step.locked_by,
                key=idempotency_key(task.task_id, name, PERFORM, step),
                outcome=Outcome.SUCCEEDED,
                result={"id": "x" * 31},
            )
