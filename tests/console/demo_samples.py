"""The facts of a demo that went as it should; tests change one of them and look what is said."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from roundsman.ports import OrderRow
from roundsman.states import ProcessState, TaskState
from roundsman.task import Ending, StepError, StepRecord, Task
from roundsman_console.demo.facts import AlertSeen, Effect, Facts, QueueDepth, Rejection
from roundsman_console.demo.scenario import CASES, STEPS, Case, End, Sent, read_events
from roundsman_console.demo.summary import perform_key

EVENTS = Path(__file__).parents[2] / "events"
SENT = read_events(EVENTS, CASES)
DECLINED = "charge_card: failed for good: CardDeclined: POST answered 402; needs undo"


def case_of(event: str) -> Case:
    """The demo's case of that file."""
    return next(case for case in CASES if case.event == event)


def sent_of(event: str) -> Sent:
    """The demo's message of that file."""
    return next(one for one in SENT if one.case.event == event)


def task(order_id: str, steps: Mapping[str, StepRecord], state: TaskState) -> Task:
    """A task that has ended, unless the state says otherwise."""
    ended = state in (TaskState.COMPLETED, TaskState.ARCHIVED)
    return Task(
        task_id=order_id,
        workflow="order_fulfilment",
        plan="0" * 64,
        state=state,
        version=9,
        created_at=1_000,
        start_at=1_000,
        complete_by=9_000_000,
        retain_for=0,
        shard=0,
        lane="done#0" if ended else "open#0",
        due_at=2_000,
        steps=steps,
        ended_at=2_000 if ended else None,
    )


def step(state: ProcessState = ProcessState.PROCESSED, failures: int = 0) -> StepRecord:
    """A step that was claimed once at least."""
    return StepRecord(process_state=state, failure_count=failures, started_at=1_500)


def good_facts() -> Facts:
    """What is known after a run that went as expected."""
    rows = {case.order_id: _row(case.order_id) for case in CASES if case.makes_a_task}
    return Facts(
        tasks={case.order_id: _ended(case) for case in CASES if case.makes_a_task},
        rows=rows,
        first_rows=rows,
        rejections=tuple(
            Rejection(one.body, tuple((path, "is wrong") for path in one.case.problems))
            for one in SENT
            if one.case.end is End.REJECTED
        ),
        alerts=(AlertSeen("archived", DECLINED, "ord-1005", "task_archived", "roundsman show"),),
        effects=tuple(_effects()),
        queues=(QueueDepth("SubmissionQueue", 0), QueueDepth("Dead", 0, dead_letters=True)),
        struck=(1, 1, 1),
    )


def changed(facts: Facts, order_id: str, **changes: StepRecord) -> Facts:
    """The same facts, with other records of some steps of one task."""
    found = facts.tasks[order_id]
    return with_task(facts, replace(found, steps={**found.steps, **changes}))


def with_task(facts: Facts, task: Task) -> Facts:
    """The same facts, with another record of this task."""
    return replace(facts, tasks={**facts.tasks, task.task_id: task})


def _ended(case: Case) -> Task:
    steps = {
        name: step(failures=case.failures[name][-1] if name in case.failures else 0)
        for name in case.processed
    }
    if case.end is End.COMPLETED:
        return task(case.order_id, steps, TaskState.COMPLETED)
    steps["charge_card"] = replace(
        step(ProcessState.ERROR), error=StepError("CardDeclined", "POST answered 402")
    )
    return replace(
        task(case.order_id, steps, TaskState.ARCHIVED),
        ending=Ending(TaskState.ARCHIVED, DECLINED, "charge_card"),
    )


def _row(order_id: str) -> OrderRow:
    return OrderRow(order_id, {"orderId": order_id}, "a" * 64, 1_000)


def _effects() -> list[Effect]:
    found = [
        Effect(
            key=perform_key(case.order_id, name),
            order_id=case.order_id,
            service="some",
            effects=1,
            calls=2 if name in case.called_again else 1,
        )
        for case in CASES
        for name in case.processed
    ]
    refused = Effect(perform_key("ord-1005", STEPS[1]), "ord-1005", "payment", 0, 1)
    return [*found, refused]
