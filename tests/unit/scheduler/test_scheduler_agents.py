"""A plan that names an agent which the stack has no queue for."""

from dataclasses import replace
from datetime import timedelta

from roundsman.definition.plan import Plan, plan_of
from roundsman.definition.workflow import Retry, Step, Workflow
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.events import Agents, AgentView, HoldView
from roundsman.model.instants import MINUTE
from roundsman.model.states import ProcessState, TaskState
from roundsman.ports import OrderRow
from roundsman.scheduler.scheduler import Handled, newly_held, outcome_of
from roundsman.wire.commands import START, Command
from roundsman_testing.memory import (
    MemoryAgentBoard,
    MemoryGroups,
    MemoryOrderLimits,
    MemoryPlans,
    MemorySearchSecret,
    MemoryStore,
)
from roundsman_testing.recording import RecordingOutbox, SentCommand, SentRequest
from tests.support.one_by_one import OneByOne
from tests.support.steps import step_record

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
        OrderRow("ord-1", {}, "hash", NOW),
        new_task(plan, "ord-1", ProcessingOptions(), NOW, shards=1),
    )
    scheduler = OneByOne(
        tasks=store,
        orders=store,
        plans=plans,
        board=MemoryAgentBoard(lambda: NOW),
        groups=MemoryGroups(),
        outbox=outbox,
        clock=lambda: NOW,
        jitter=lambda: 0.5,
        instance="test",
        search_secret=MemorySearchSecret(),
        limits=MemoryOrderLimits,
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


def test_a_reminder_to_an_agent_without_a_queue_is_given_up_and_its_step_waits_on() -> None:
    store, plans, outbox = MemoryStore(), MemoryPlans(), RecordingOutbox(agents={"known"})
    ask = Step(name="ask", agent="removed", complete_within=timedelta(seconds=30))
    plan = plan_of(Workflow(name="asking", steps=(ask,), complete_within=HOUR))
    plans.put_plan(plan)
    waits = step_record(
        process_state=ProcessState.PROCESSING,
        locked_by="s-1.1.2",
        started_at=NOW,
        complete_by=NOW + 30 * MINUTE,
        waiting=True,
        remind_every=10 * MINUTE,
        remind_at=NOW,
    )
    task = new_task(plan, "ord-1", ProcessingOptions(), NOW, shards=1)
    task = replace(task, state=TaskState.ACTIVE, steps={"ask": waits})
    store.create(OrderRow("ord-1", {}, "hash", NOW), task)
    scheduler = OneByOne(
        tasks=store,
        orders=store,
        plans=plans,
        board=MemoryAgentBoard(lambda: NOW),
        groups=MemoryGroups(),
        outbox=outbox,
        clock=lambda: NOW,
        jitter=lambda: 0.5,
        instance="test",
        search_secret=MemorySearchSecret(),
        limits=MemoryOrderLimits,
    )

    handled = scheduler.command(Command(START, "ord-1"), "message-1")

    assert handled.requests == ()
    found = store.load("ord-1", NOW)
    assert found is not None
    record = found.step("ask")
    assert (record.waiting, record.failure_count, record.reminders) == (True, 0, 1)
    assert record.remind_at == NOW + 10 * MINUTE
    assert SentCommand("inspect", "ord-1", 10 * MINUTE) in outbox.sent, "all else is sent"


class Board(MemoryAgentBoard):
    """A board that shows what a test says."""

    def __init__(self, **held_until: int) -> None:
        super().__init__(lambda: NOW)
        self._held = held_until

    def agents(self) -> Agents:
        return {
            f"{agent}/normal": AgentView(agent_hold=HoldView(until, f"{agent} is held by ann"))
            for agent, until in self._held.items()
        }


def requests_in(outbox: RecordingOutbox) -> list[SentRequest]:
    return [sent for sent in outbox.sent if isinstance(sent, SentRequest)]


def _started(board: Board, *agents: str, known: set[str]) -> tuple[RecordingOutbox, Handled]:
    """What was sent for a step of these agents, and what became of the message that started it."""
    store, plans, outbox = MemoryStore(), MemoryPlans(), RecordingOutbox(agents=known)
    only = Step(name="only", agents=agents, complete_within=timedelta(seconds=30))
    plan = plan_of(Workflow(name="routed", steps=(only,), complete_within=HOUR))
    plans.put_plan(plan)
    store.create(
        OrderRow("ord-1", {}, "hash", NOW),
        new_task(plan, "ord-1", ProcessingOptions(), NOW, shards=1),
    )
    scheduler = OneByOne(
        tasks=store,
        orders=store,
        plans=plans,
        board=board,
        groups=MemoryGroups(),
        outbox=outbox,
        clock=lambda: NOW,
        jitter=lambda: 0.5,
        instance="test",
        search_secret=MemorySearchSecret(),
        limits=MemoryOrderLimits,
    )
    return outbox, scheduler.command(Command(START, "ord-1"), "message-1")


def test_a_request_goes_to_the_queue_of_the_agent_that_takes_work_under_its_own_key() -> None:
    outbox, handled = _started(
        Board(first=NOW + MINUTE), "first", "second", known={"first", "second"}
    )
    assert [(one.agent, one.request.idempotency_key) for one in requests_in(outbox)] == [
        ("second", "ord-1/only/perform/second")
    ]
    assert newly_held(handled) == []


def test_the_log_says_the_lock_of_a_request_and_the_agent_where_it_is_not_the_plans_own() -> None:
    known = {"first", "second"}
    outbox, handled = _started(Board(), "first", "second", known=known)
    [sent] = requests_in(outbox)
    outcome = outcome_of(handled)
    assert outcome["sent"] == {"only": sent.request.lock}
    assert outcome["reason"] == "only: attempt 1 claimed"
    assert "state" not in outcome, "Active, as it should be"
    assert "agents" not in outcome
    _, elsewhere = _started(Board(first=NOW + MINUTE), "first", "second", known=known)
    assert outcome_of(elsewhere)["agents"] == {"only": "second"}


def test_the_log_says_nothing_of_what_was_not_sent() -> None:
    _, held = _started(Board(first=NOW + MINUTE), "first", known={"first"})
    assert not {"sent", "agents"} & outcome_of(held).keys()
    assert outcome_of(held)["state"] == "Retry"
    assert outcome_of(Handled("no such task")) == {"reason": "no such task"}


def test_a_step_that_a_message_finds_held_is_counted_once_and_sent_nowhere() -> None:
    outbox, handled = _started(Board(first=NOW + MINUTE), "first", known={"first"})
    assert requests_in(outbox) == []
    assert newly_held(handled) == ["only"]


def test_an_agent_that_another_stands_in_for_has_no_queue_and_the_step_waits_for_one() -> None:
    outbox, handled = _started(Board(first=NOW + MINUTE), "first", "second", known={"first"})
    assert requests_in(outbox) == []
    assert newly_held(handled) == []
