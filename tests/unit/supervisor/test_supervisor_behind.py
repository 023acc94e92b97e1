"""A supervisor whose scheduler does not answer: passes over many late tasks, and what they send."""

from dataclasses import dataclass, field
from itertools import count, islice

import pytest

from roundsman.engine.due import shard_of
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.scheduler_queues import COMMANDS, QueueDepth
from roundsman.supervisor.supervisor import PassReport
from roundsman.wire.commands import Command
from roundsman_testing.faults import Faults
from tests.support.machine_world import T0, plan, step
from tests.support.shell_world import SHARDS, LittleKnownBoard, Shells

LINE = plan(step("first"), step("second"))
WAITING, EMPTY = QueueDepth(1, 0), QueueDepth(0, 0)


@dataclass
class Silent:
    """So many tasks in one shard, and a scheduler that reads nothing from T0 on."""

    tasks: int
    started: bool
    visit_takes: float = 1
    commands: QueueDepth = WAITING
    replies: QueueDepth = WAITING
    shells: Shells = field(default_factory=lambda: Shells(LINE))
    looks: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        shells = self.shells
        shells.board = LittleKnownBoard(shells.clock, shells.holds, self.depth_of)
        numbers = (n for n in count(1) if shard_of(f"ord-{n}", SHARDS) == 0)
        self.names = [f"ord-{n}" for n in islice(numbers, self.tasks)]
        for name in self.names:
            shells.submit(name)
            if self.started:
                shells.scheduler().command(Command(kind="start", task_id=name), f"m-{name}")
        self.first_due = {name: shells.task(name).due_at for name in self.names}
        shells.outbox.sent.clear()
        shells.now = T0 + 31 * SECOND
        self.faults = Faults()
        self.faults.before_each(self._spend)
        self.supervisor = shells.supervisor(self.faults)

    def depth_of(self, key: str) -> QueueDepth:
        self.looks.append(key)
        return self.commands if key == COMMANDS else self.replies

    def _spend(self, call: str) -> None:
        if call == "load":
            self.shells.wait(self.visit_takes)

    def make_pass(self, seconds: int = 55) -> PassReport:
        return self.supervisor.make_pass(stop_at=self.shells.now + seconds * SECOND)

    def hour(self) -> int:
        """The passes of an hour, one a minute; how many visits they made."""
        visits = 0
        while self.shells.now < T0 + 59 * MINUTE:
            next_at = self.shells.now + MINUTE
            visits += self.make_pass().looked_at
            self.shells.now = max(self.shells.now, next_at)
        return visits

    def visited(self) -> set[str]:
        """The tasks whose entry a visit has moved."""
        return {n for n in self.names if self.shells.task(n).due_at != self.first_due[n]}


@pytest.mark.parametrize("started", [False, True])
def test_a_pass_that_ends_early_goes_on_in_the_next_one_and_visits_every_task_once(
    started: bool,
) -> None:
    silent, visits = Silent(130, started), 0
    while visits < 130:
        report = silent.make_pass()
        visits += report.looked_at
        assert report.looked_at <= 56
        assert len(silent.visited()) == min(visits, 130), "none is visited twice before all were"
        assert not report.finished
    assert silent.shells.outbox.sent == [], "a Start and the replies wait; no more is sent"
    assert all(not silent.shells.task(name).ended for name in silent.names)


def test_a_pass_looks_once_at_each_queue() -> None:
    silent = Silent(20, started=True)
    silent.make_pass()
    assert sorted(silent.looks) == [COMMANDS, "worker/replies"]
    silent.make_pass()
    assert len(silent.looks) == 4


def test_a_pass_says_how_long_anything_has_waited() -> None:
    silent = Silent(3, started=False, visit_takes=0)
    silent.shells.now = T0 + 10 * MINUTE
    assert silent.make_pass().behind == 9 * MINUTE + 30 * SECOND
    healthy = Silent(3, started=True, visit_takes=0)
    healthy.shells.now = T0 + 20 * SECOND
    assert healthy.make_pass().behind == 0


@pytest.mark.parametrize("started", [False, True])
def test_in_an_hour_without_a_scheduler_nothing_is_counted_and_hardly_anything_is_sent(
    started: bool,
) -> None:
    silent = Silent(40, started, visit_takes=0.01)
    visits = silent.hour()
    assert silent.shells.starts() == []
    inspected = [name for name, _ in silent.shells.inspects()]
    assert sorted(inspected) == (sorted(silent.names) if started else []), "at most once each"
    assert visits <= 40 * 20, "each is looked at more and more rarely"
    for name in silent.names:
        task = silent.shells.task(name)
        assert not task.ended
        assert {record.failure_count for record in task.steps.values()} <= {0}


def test_a_start_that_was_lost_is_sent_once_a_visit() -> None:
    silent = Silent(40, started=False, visit_takes=0.01, commands=EMPTY)
    visits = silent.hour()
    assert len(silent.shells.starts()) == visits
    assert visits <= 40 * 20
    assert silent.shells.inspects() == []


def test_while_the_scheduler_is_down_a_timeout_counts_after_a_minute_of_empty_looks() -> None:
    silent = Silent(1, started=True, visit_takes=0, replies=EMPTY)
    [name] = silent.names
    failures = list[int]()
    for seconds in (31, 60, 91):
        silent.shells.now = T0 + seconds * SECOND
        silent.make_pass()
        failures.append(silent.shells.task(name).step("first").failure_count)
    assert failures == [0, 0, 1]
    assert silent.shells.starts() == [name], "its next attempt is to be claimed"
