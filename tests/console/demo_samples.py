"""The facts of a demo that went as it should; tests change one of them and look at the report."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from roundsman.model.states import END_STATES, ProcessState, TaskState
from roundsman.model.task import StepRecord, Task, Termination
from roundsman.ports import OrderRow
from tests.support.steps import step_record
from tools.demo.facts import (
    AlertSeen,
    DemoFacts,
    LedgerEffect,
    QueueDepth,
    SeenRejection,
)
from tools.demo.scenario import (
    CASES,
    STEPS,
    DemoOrder,
    ExpectedEnd,
    SentOrder,
    read_events,
)
from tools.demo.summary import perform_key, undo_key

EVENTS = Path(__file__).parents[2] / "events"
SENT = read_events(EVENTS, CASES)
REFUSED = "send_confirmation: failed for good: NoSuchMailbox: POST answered 422"


def case_of(event: str) -> DemoOrder:
    """The demo's case of that file."""
    return next(case for case in CASES if case.event == event)


def sent_of(event: str) -> SentOrder:
    """The demo's message of that file."""
    return next(one for one in SENT if one.case.event == event)


def task(order_id: str, steps: Mapping[str, StepRecord], state: TaskState) -> Task:
    """A task that has ended, unless the state says otherwise."""
    ended = state in END_STATES
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
    return step_record(process_state=state, failure_count=failures, started_at=1_500)


def good_facts() -> DemoFacts:
    """What is known after a run that went as expected."""
    rows = {case.order_id: _row(case.order_id) for case in CASES if case.makes_a_task}
    return DemoFacts(
        tasks={case.order_id: _ended(case) for case in CASES if case.makes_a_task},
        rows=rows,
        first_rows=rows,
        rejections=tuple(
            SeenRejection(one.body, tuple((path, "is wrong") for path in one.case.problems))
            for one in SENT
            if one.case.end is ExpectedEnd.REJECTED
        ),
        alerts=(
            AlertSeen(
                order_id="ord-1009",
                kind="task_archived",
                subject="archived",
                reason=REFUSED,
                look="roundsman show",
            ),
        ),
        effects=tuple(_effects()),
        queues=(QueueDepth("SubmissionQueue", 0), QueueDepth("Dead", 0, dead_letters=True)),
        struck=(1, 1, 1, 1, 1),
    )


def changed(facts: DemoFacts, order_id: str, **changes: StepRecord) -> DemoFacts:
    """The same facts, with other records of some steps of one task."""
    found = facts.tasks[order_id]
    return with_task(facts, replace(found, steps={**found.steps, **changes}))


def with_task(facts: DemoFacts, task: Task) -> DemoFacts:
    """The same facts, with another record of this task."""
    return replace(facts, tasks={**facts.tasks, task.task_id: task})


def _ended(case: DemoOrder) -> Task:
    steps = {
        name: step(
            ProcessState.UNDONE if name in case.undone else ProcessState.PROCESSED,
            failures=case.failures[name][-1] if name in case.failures else 0,
        )
        for name in case.processed
    }
    state = TaskState(case.end)
    found = task(case.order_id, steps, state)
    if case.end is ExpectedEnd.COMPLETED:
        return found
    return replace(found, ending=Termination(state, "; ".join(case.reason)))


def _row(order_id: str) -> OrderRow:
    return OrderRow(order_id, {"orderId": order_id}, "a" * 64, 1_000)


def _effects() -> list[LedgerEffect]:
    found = [
        LedgerEffect(
            key=perform_key(case.order_id, name),
            order_id=case.order_id,
            service="some",
            effects=1,
            calls=2 if name in case.called_again else 1,
            undone=name in case.undone,
        )
        for case in CASES
        for name in case.processed
    ]
    undos = [
        LedgerEffect(
            key=undo_key(case.order_id, name),
            order_id=case.order_id,
            service="some",
            effects=1,
            calls=2 if name in case.undo_called_again else 1,
        )
        for case in CASES
        for name in case.undone
    ]
    refused = LedgerEffect(
        perform_key("ord-1005", STEPS[1]), "ord-1005", "payment", 0, 1, undone=True
    )
    nothing = LedgerEffect(undo_key("ord-1005", STEPS[1]), "ord-1005", "payment", 0, 1)
    return [*found, *undos, refused, nothing]
