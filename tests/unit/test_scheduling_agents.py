"""A plan that names an agent which the stack has no queue for."""

from datetime import timedelta

from roundsman.birth import Wishes, new_task
from roundsman.commands import START, Command
from roundsman.memory import MemoryAgentBoard, MemoryPlans, MemoryStore, RecordingOutbox
from roundsman.plan import Plan, plan_of
from roundsman.ports import OrderRow
from roundsman.scheduling import Scheduler
from roundsman.states import ProcessState, TaskState
from roundsman.values import MINUTE
from roundsman.workflow import Retry, Step, Workflow

NOW = 1_800_000_000_000
HOUR = timedelta(hours=1)


def _plan() -> Plan:
    within = timedelta(seconds=30)
    here = Step(name="here", agent="known", complete_within=within)
    once = Retry(max_attempts=1)
    gone = Step(name="gone", agent="removed", complete_within=within)
    last = Step(name="last", agent="removed_too", complete_within=within, retry=once)
    return plan_of(Workflow(name="wide", steps=(here, gone, last), complete_within=HOUR))


def test_a_step_whose_agent_has_no_queue_waits_for_one_and_says_so_and_its_neighbour_runs() -> None:
    store, plans = MemoryStore(), MemoryPlans()
    outbox = RecordingOutbox(agents={"known"})
    plan = _plan()
    plans.put_plan(plan)
    store.create(
        OrderRow("ord-1", {}, "hash", NOW), new_task(plan, "ord-1", Wishes(), NOW, shards=1)
    )
    scheduler = Scheduler(
        tasks=store,
        orders=store,
        plans=plans,
        board=MemoryAgentBoard(lambda: NOW),
        outbox=outbox,
        clock=lambda: NOW,
        jitter=lambda: 0.5,
        instance="test",
    )

    scheduler.command(Command(START, "ord-1"), "message-1")

    task = store.load("ord-1", NOW)
    assert task is not None
    gone = task.step("gone")
    assert gone.process_state is ProcessState.PENDING
    assert gone.not_before == NOW + MINUTE
    assert gone.error is not None
    assert gone.error.type == "UnknownAgent"
    assert "'removed'" in gone.error.message
    assert task.step("last").process_state is ProcessState.ERROR  # its only attempt is used up
    assert task.step("here").process_state is ProcessState.PROCESSING
    assert task.state is TaskState.ACTIVE
