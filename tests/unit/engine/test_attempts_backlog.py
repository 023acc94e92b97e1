"""Overload delays, never fails: an agent whose queue is longer than its steps' time.

The agents, their queue and the marks are simulated on a clock of its own; every decision is the
machine's. Each instance reads one request at a time, notes what it reads as agents do, stays
silent about what it reads too late, and the schedulers see the marks seconds old.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count

import pytest

from roundsman.definition.workflow import Compensation, Retry, Undo
from roundsman.engine.overdue import MAX_UNCOUNTED_TIMEOUTS
from roundsman.engine.request_deadlines import PATIENCE
from roundsman.model.events import AgentView, Inspect, Outcome, Start, StartTask
from roundsman.model.instants import MINUTE, SECOND, SKEW
from roundsman.model.queue_lag import ReadMark, ReadMarkWriter, view_of_mark
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepRecord
from roundsman.wire.messages import AgentRequest
from tests.support.machine_world import T0, World, plan, step
from tests.support.steps import stored_step
from tests.support.undone_samples import request

BOARD_IS_OLD = 5 * SECOND
UNFENCED = Compensation()
"""Its undo waits for the end of each request, so that one that waits in a queue is sent again."""


@dataclass
class Overload:
    """Orders of one step, one agent of so many instances, and what happens in order of time."""

    orders: int
    instances: int
    service_time: int
    within: int
    sent_within: int = 2 * SECOND
    dies: bool = False
    now: int = T0
    worlds: dict[str, World] = field(default_factory=dict)
    queue: deque[tuple[str, AgentRequest]] = field(default_factory=deque)
    marks: list[tuple[int, ReadMark]] = field(default_factory=list)
    _events: list[tuple[int, int, str, object]] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)

    def run(self) -> "Overload":
        made = plan(
            step(
                "a",
                complete_within=timedelta(milliseconds=self.within),
                retry=Retry(max_attempts=3),
            ),
            complete_within=timedelta(hours=2),
        )
        for number in range(self.orders):
            name = f"ord-{number}"
            self.worlds[name] = World(made)
            self._at(T0 + number * self.sent_within // self.orders, "start", name)
        for _ in range(self.instances):
            self._at(T0, "read", ReadMarkWriter())
        while self._events and not all(world.task.ended for world in self.worlds.values()):
            self.now, _, kind, subject = heappop(self._events)
            assert self.now < T0 + 3_600 * SECOND
            self._happen(kind, subject)
        return self

    def records(self) -> list[StepRecord]:
        return [world.record("a") for world in self.worlds.values()]

    def _at(self, instant: int, kind: str, subject: object) -> None:
        heappush(self._events, (instant, next(self._numbers), kind, subject))

    def _happen(self, kind: str, subject: object) -> None:
        if kind == "read":
            assert isinstance(subject, ReadMarkWriter)
            self._read(subject)
        elif kind == "answer":
            assert isinstance(subject, tuple)
            name, lock = subject
            world = self._world(name)
            if not world.task.ended:
                world.succeeds("a", lock=lock)
        else:
            assert isinstance(subject, str)
            world = self._world(subject)
            decision = world.apply(Inspect() if kind == "look" else Start(world.claimant()))
            if StartTask() in decision.actions:
                world.apply(Start(world.claimant()))
            self._send(subject, world)

    def _world(self, name: str) -> World:
        world = self.worlds[name]
        world.now = self.now
        old = [mark for written_at, mark in self.marks if written_at <= self.now - BOARD_IS_OLD]
        world.agents = {"worker/normal": view_of_mark(old[-1], self.now)} if old else {}
        return world

    def _send(self, name: str, world: World) -> None:
        record = world.record("a")
        if record.under_way and record.started_at == self.now:
            self.queue.append((name, request(world, "a")))
        if not world.task.ended:
            self._at((record.overdue_at or record.not_before or self.now) + SECOND, "look", name)

    def _read(self, notebook: ReadMarkWriter) -> None:
        if not self.queue:
            self._at(self.now + 100, "read", notebook)
            return
        name, asked = self.queue.popleft()
        mark = notebook.read(asked.sent_at, self.now)
        if mark is not None:
            self.marks.append((self.now, mark))
            notebook.written(mark)
        busy = 5 if self.now >= asked.complete_by else self.service_time
        if not self.dies and self.now + busy < asked.complete_by:
            self._at(self.now + busy, "answer", (name, asked.lock))
        self._at(self.now + busy, "read", notebook)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("sent_within", [2 * SECOND, 30 * SECOND])
def test_every_order_of_a_backlog_longer_than_its_time_completes_with_no_failure_counted(
    times: int, sent_within: int
) -> None:
    within, orders, instances = 30 * SECOND, 200, 2
    service_time = times * within * instances // orders
    world = Overload(orders, instances, service_time, within, sent_within).run()
    assert {w.task_state() for w in world.worlds.values()} == {TaskState.COMPLETED}
    assert [record.failure_count for record in world.records()] == [0] * orders
    assert world.now - T0 < 3 * times * within + MINUTE, "and in about the time that it takes"


def test_an_agent_that_dies_at_every_attempt_is_found_where_nothing_waits() -> None:
    world = Overload(2, 1, 1_000, 30 * SECOND, dies=True).run()
    assert {w.task_state() for w in world.worlds.values()} == {TaskState.ARCHIVED}
    assert [record.failure_count for record in world.records()] == [3, 3]
    assert all(record.uncounted_timeouts == 0 for record in world.records())


@pytest.mark.exhaustive
def test_an_agent_that_dies_at_every_attempt_is_found_in_a_backlog_too() -> None:
    world = Overload(60, 1, 2_000, 30 * SECOND, dies=True).run()
    assert {w.task_state() for w in world.worlds.values()} == {TaskState.ARCHIVED}


def behind(world: World, lag: int) -> World:
    """The queue is being read, too shortly before the request for a proof that it was not."""
    world.agents = {"worker/normal": AgentView(lag=lag, read_up_to=world.now)}
    return world


def test_in_a_backlog_an_attempt_has_the_benefit_of_the_doubt_three_times_in_a_row() -> None:
    world = World(plan(step("a", compensation=UNFENCED, retry=Retry(max_attempts=2))))
    for uncounted_timeouts in range(1, MAX_UNCOUNTED_TIMEOUTS + 1):
        world.agents = {}
        world.start()
        behind(world, 15 * SECOND)
        decision = world.overdue("a")
        assert (world.record("a").uncounted_timeouts, world.record("a").failure_count) == (
            uncounted_timeouts,
            0,
        )
        assert "a: its agent has a long backlog; sent again, no attempt counted" in decision.reason
    world.agents = {}
    world.start()
    behind(world, 15 * SECOND)
    world.overdue("a")
    assert (world.record("a").uncounted_timeouts, world.record("a").failure_count) == (0, 1)


def test_a_queue_that_is_not_behind_excuses_nothing() -> None:
    world = World(plan(step("a", compensation=UNFENCED)))
    world.start()
    behind(world, 15 * SECOND - 1).overdue("a")
    assert world.record("a").failure_count == 1


def test_a_reply_ends_the_row_of_what_was_excused() -> None:
    world = World(plan(step("a", compensation=UNFENCED, retry=Retry(max_attempts=9))))
    world.start()
    behind(world, 40 * SECOND).overdue("a")
    assert world.record("a").uncounted_timeouts == 1
    world.start()
    world.fails("a")
    assert world.record("a").uncounted_timeouts == 0


def test_the_time_that_an_attempt_was_given_is_the_measure_of_a_backlog() -> None:
    """Its claim had added the lag that was known then."""
    world = World(plan(step("a")))
    world.agents = {"worker/normal": AgentView(lag=30 * SECOND, read_up_to=T0)}
    world.start()
    assert stored_step(world.record("a")).complete_by == T0 + 60 * SECOND
    behind(world, 29 * SECOND).overdue("a")
    assert world.record("a").failure_count == 1


# --- a request that waits in a long queue is not sent again ---------------------------------------

PATIENT = Compensation(fences_late_performs=True)


def reading(world: World, *, lag: int, sent: int) -> World:
    """The queue is being read, at a request that was sent `sent` ms after the step's."""
    reads = T0 + sent
    world.agents = {
        "worker/normal": AgentView(lag=lag, reads=reads, read_up_to=reads + 10 * SECOND)
    }
    return world


def test_a_request_that_may_be_in_its_queue_still_has_more_time_and_is_not_sent_again() -> None:
    world = World(plan(step("a", compensation=PATIENT)))
    world.start()
    lock = world.record("a").locked_by
    decision = reading(world, lag=28 * SECOND, sent=0).overdue("a")
    record = world.record("a")
    assert (record.locked_by, record.failure_count, record.uncounted_timeouts) == (lock, 0, 0)
    assert stored_step(record).complete_by == T0 + (28 + 30) * SECOND, (
        "when it is read, and its own time"
    )
    assert decision.actions == ()
    assert (
        "its queue has a backlog; its deadline is moved to 2027-01-15T08:00:58Z" in decision.reason
    )
    assert world.succeeds("a").task.state is TaskState.COMPLETED


def test_it_has_more_time_until_its_request_ends_and_is_sent_again_then_uncounted() -> None:
    world = World(plan(step("a", compensation=PATIENT)))
    world.start()
    ends_at = T0 + (1 + PATIENCE) * 30 * SECOND
    assert request(world, "a").complete_by == ends_at
    while world.record("a").under_way:
        reading(world, lag=world.now - T0 + 20 * SECOND, sent=0).overdue("a")
        assert world.now <= ends_at
    assert world.now >= ends_at - 30 * SECOND
    assert world.record("a").failure_count == 0


def test_news_that_are_seconds_old_excuse_nothing() -> None:
    world = World(plan(step("a", compensation=PATIENT)))
    world.start()
    reading(world, lag=5 * SECOND - 1, sent=0).overdue("a")
    assert world.record("a").failure_count == 1


def test_a_request_that_was_read_by_all_signs_is_waited_for_three_times() -> None:
    world = World(plan(step("a", compensation=PATIENT)))
    world.start()
    for uncounted_timeouts in range(1, MAX_UNCOUNTED_TIMEOUTS + 1):
        reading(world, lag=world.now - T0 + 30 * SECOND, sent=11 * SECOND).overdue("a")
        assert (world.record("a").uncounted_timeouts, world.record("a").under_way) == (
            uncounted_timeouts,
            True,
        )
    reading(world, lag=world.now - T0 + 30 * SECOND, sent=11 * SECOND).overdue("a")
    assert world.record("a").failure_count == 1


def test_a_request_of_a_queue_that_nobody_reads_is_sent_again_at_its_complete_by() -> None:
    """It may be lost, and a copy is all that brings it back."""
    world = World(plan(step("a", compensation=PATIENT)))
    world.start()
    world.agents = {"worker/normal": AgentView(read_up_to=T0 - 1)}
    decision = world.overdue("a")
    assert world.now == T0 + 30 * SECOND
    assert StartTask() in decision.actions
    assert world.record("a").failure_count == 0


def test_no_perform_has_more_patience_than_its_task_has_time() -> None:
    world = World(plan(step("a", compensation=PATIENT), complete_within=timedelta(minutes=2)))
    world.start()
    assert request(world, "a").complete_by == world.task.complete_by == T0 + 120 * SECOND


def test_in_a_long_queue_no_unfenced_perform_has_more_than_its_tasks_time_either() -> None:
    world = World(plan(step("a", compensation=UNFENCED), complete_within=timedelta(minutes=2)))
    world.agents = {"worker/normal": AgentView(lag=8 * SECOND, read_up_to=T0)}
    world.start()
    assert request(world, "a").complete_by == world.task.complete_by == T0 + 120 * SECOND


def test_a_request_may_act_for_as_long_as_a_copy_of_an_earlier_one() -> None:
    """The undo waits for the latest end of all of them, and not for that of the last."""
    retry = Retry(max_attempts=2)
    world = World(plan(step("a", compensation=UNFENCED, retry=retry), on_failure=Undo()))
    world.agents = {"worker/normal": AgentView(lag=1_000 * SECOND, read_up_to=T0)}
    world.start()
    ends_at = request(world, "a").complete_by
    assert ends_at == T0 + (1_000 + 30 + PATIENCE * 30) * SECOND
    world.agents = {"worker/normal": AgentView(lag=8 * SECOND, read_up_to=T0)}
    world.wait(5).reply("a", Outcome.TRANSIENT, retry_after=0)
    world.start()
    assert (world.record("a").failure_count, world.record("a").acts_until) == (1, ends_at)
    assert request(world, "a").complete_by == ends_at
    world.is_refused("a")
    assert world.record("a").not_before == ends_at + SKEW


# --- what an undo waits for -----------------------------------------------------------------------


@pytest.mark.parametrize("lag", [7 * SECOND, 8 * SECOND])
def test_an_undo_that_is_not_fenced_waits_for_the_very_end_of_its_performs_request(
    lag: int,
) -> None:
    """In a queue that is known to be behind a request has more time, and its undo waits for it."""
    world = World(
        plan(step("a", compensation=UNFENCED, retry=Retry(max_attempts=1)), on_failure=Undo())
    )
    world.agents = {"worker/normal": AgentView(lag=lag, read_up_to=T0)}
    world.start()
    ends_at = request(world, "a").complete_by
    patience = 0 if lag < 30 * SECOND / 4 else PATIENCE * 30 * SECOND
    assert ends_at == T0 + lag + 30 * SECOND + patience
    world.wait(1).is_refused("a")
    assert world.record("a").not_before == ends_at + SKEW


def test_a_step_of_several_agents_may_go_to_another_once_its_complete_by_is_over() -> None:
    world = World(plan(step("a", agents=("worker", "other"))))
    world.agents = {f"{agent}/normal": AgentView(lag=MINUTE) for agent in ("worker", "other")}
    world.start()
    assert request(world, "a").complete_by == stored_step(world.record("a")).complete_by


def test_an_undo_that_nobody_reads_fails_in_the_end_with_an_alert() -> None:
    compensation = Compensation(fences_late_performs=True, retry=Retry(max_attempts=2))
    world = World(plan(step("a", compensation=compensation), on_failure=Undo()))
    world.start()
    world.ask_undo()
    world.is_refused("a")
    for _ in range(MAX_UNCOUNTED_TIMEOUTS + 2):
        world.start()
        assert world.task.state is TaskState.UNDOING
        world.agents = {"worker/normal": AgentView(read_up_to=T0 - 1)}
        world.overdue("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert "task_archived" in [owed.name for owed in world.task.owed]


def read(lock: str | None) -> AgentView:
    """The queue was read up to just now; the request that was noted last had this lock."""
    return AgentView(read_up_to=T0 + 10**9, read_lock=lock)


def overdue_unheard(seconds: int, lock: str | None) -> World:
    made = step("a", complete_within=timedelta(seconds=seconds), retry=Retry(max_attempts=1))
    world = World(plan(made))
    world.start()
    world.agents = {"worker/normal": read(world.lock("a") if lock == "its own" else lock)}
    world.overdue("a")
    return world


def test_an_attempt_that_may_never_have_been_sent_is_not_counted_the_first_time() -> None:
    """Its scheduler may have died before it sent it; its message comes again after a minute."""
    world = overdue_unheard(30, "another")
    assert world.record("a").failure_count == 0
    assert world.state("a") is ProcessState.PENDING
    assert "nothing shows that its request was sent" in world.decisions[-1][2].reason
    world.start()
    world.overdue("a")
    assert world.state("a") is ProcessState.ERROR, "an agent that dies of it is found"


def test_an_attempt_that_was_given_more_time_may_still_never_have_been_sent() -> None:
    """It was waited for, since its queue was behind; nothing was sent again by that."""
    retry = Retry(max_attempts=1)
    within = timedelta(seconds=30)
    world = World(plan(step("a", complete_within=within, retry=retry, compensation=PATIENT)))
    world.start()
    behind = AgentView(
        lag=20 * SECOND, reads=T0 + 10**6, read_up_to=T0 + 10**9, read_lock="another"
    )
    world.agents = {"worker/normal": behind}
    world.overdue("a")
    assert world.state("a") is ProcessState.PROCESSING
    assert world.record("a").uncounted_timeouts == 1
    world.agents = {"worker/normal": read("another")}
    world.overdue("a")
    assert world.state("a") is ProcessState.PENDING
    world.start()
    world.overdue("a")
    assert world.state("a") is ProcessState.ERROR, "an agent that dies of it is found"


@pytest.mark.parametrize(
    ("seconds", "lock"),
    [(30, "its own"), (30, None), (120, "another")],
    ids=["it was read", "marks do not say", "its message has come again"],
)
def test_an_attempt_that_was_sent_for_all_that_is_known_is_counted(
    seconds: int, lock: str | None
) -> None:
    assert overdue_unheard(seconds, lock).state("a") is ProcessState.ERROR


def test_the_key_of_a_patient_request_is_spent_before_a_fresh_one_is_given() -> None:
    world = World(plan(step("a", compensation=PATIENT)))
    world.start()
    world.is_refused("a")
    decision = world.resolve("a", did=False, fresh_key=True)
    assert "after its undo, the step begins under a new key" in decision.reason
    record = world.record("a")
    assert (record.process_state, record.round) == (ProcessState.UNDOING, 1)
    world.start()
    world.succeeds("a")
    assert world.record("a").round == 2


def test_what_nothing_undoes_does_not_happen_long_after_its_task_was_given_up() -> None:
    world = World(plan(step("a")))
    world.start()
    assert request(world, "a").complete_by == stored_step(world.record("a")).complete_by
