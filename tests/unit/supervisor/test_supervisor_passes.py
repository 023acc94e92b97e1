"""The supervisor's time: where its passes begin, when they stop, and how they follow each other."""

from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import cast

import pytest

from roundsman.engine.due import shard_of
from roundsman.errors import SchemaTooNew, TryAgain
from roundsman.model.instants import SECOND
from roundsman.model.leases import LEASE_DURATION
from roundsman.model.states import TaskState
from roundsman.model.task import Owed
from roundsman.supervisor.supervisor import PassReport, Supervisor, VisitTimes, keep_passing
from roundsman_testing.faults import Fault, Faults
from tests.support.machine_world import T0, plan, step
from tests.support.shell_world import SHARDS, Shells

LINE = plan(step("first"))


@dataclass
class Slow:
    """Tasks in every shard that stay due, and a supervisor for whom each look takes a second."""

    shells: Shells = field(default_factory=lambda: Shells(LINE))
    lots: list[float] = field(default_factory=list)
    visited: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for n in range(40):
            self.shells.submit(f"ord-{n}")
        self.shells.outbox.sent.clear()

    def make_pass(self, seconds: int) -> PassReport:
        faults = Faults().on("send_start", Fault.NOT_DONE)

        def spend(call: str) -> None:
            if call == "load":
                self.shells.wait(1)

        supervisor = self.shells.supervisor(
            faults.before_each(spend), jitter=lambda: self.lots.pop(0) if self.lots else 0.5
        )
        report = supervisor.make_pass(stop_at=self.shells.now + seconds * SECOND)
        self.visited += [task_id for task_id, _ in report.reasons]
        self.calls = faults.calls
        return report


def test_a_pass_stops_at_its_time_and_reads_nothing_more() -> None:
    slow = Slow()
    slow.shells.wait(60)
    began = slow.shells.now
    report = slow.make_pass(seconds=3)
    assert not report.finished
    assert report.looked_at == 3
    assert slow.shells.now == began + 3 * SECOND
    assert slow.calls.count("due") == 1, "no further shard is even asked for"


def test_passes_that_always_run_out_of_time_still_reach_every_shard() -> None:
    slow = Slow()
    slow.shells.wait(60)
    for lot in (0.0, 0.25, 0.5, 0.75, 0.999):
        slow.lots = [lot]
        slow.make_pass(seconds=2)
        slow.shells.wait(4 * 60)
    assert {shard_of(task_id, SHARDS) for task_id in slow.visited} == set(range(SHARDS))


@dataclass
class OneShard:
    """So many overdue tasks in one shard, and a supervisor for whom each look takes a second."""

    tasks: int
    shells: Shells = field(default_factory=lambda: Shells(LINE))

    def __post_init__(self) -> None:
        numbers = (n for n in count(1) if shard_of(f"ord-{n}", SHARDS) == 0)
        self.names = [f"ord-{n}" for n in islice(numbers, self.tasks)]
        for name in self.names:
            self.shells.submit(name)
            self.shells.wait(0.001)
        self.shells.outbox.sent.clear()
        self.shells.wait(31)
        self.faults = Faults()
        self.faults.before_each(self._spend)
        self.supervisor = self.shells.supervisor(self.faults)

    def _spend(self, call: str) -> None:
        if call == "load":
            self.shells.wait(1)

    def make_pass(self, seconds: int) -> PassReport:
        return self.supervisor.make_pass(stop_at=self.shells.now + seconds * SECOND)

    def done(self) -> list[str]:
        return self.shells.starts()


def test_passes_that_stop_in_a_long_shard_go_on_where_they_stopped() -> None:
    shard = OneShard(20)
    for _ in range(4):
        assert not shard.make_pass(seconds=5).finished
    assert shard.make_pass(seconds=5).finished
    assert shard.done() == shard.names, "in order of what is due, each once, nothing marked"


def test_entries_that_cannot_be_handled_keep_the_ones_behind_them_waiting_once() -> None:
    """Six records of newer code at the front, and time for six looks: the next pass begins behind
    them, and comes back to them when the rest is done."""
    shard = OneShard(12)
    stuck, behind = shard.names[:6], shard.names[6:]
    for name in stuck:
        shard.shells.store.make_unreadable(name, SchemaTooNew(name))
    assert shard.make_pass(seconds=6).deferred == 6
    assert shard.done() == []
    assert shard.make_pass(seconds=6).deferred == 0
    assert shard.done() == behind
    report = shard.make_pass(seconds=10)
    assert (report.deferred, report.finished) == (6, True), "but they are not forgotten"


@pytest.mark.parametrize(
    ("kind", "owed_name", "call"),
    [
        ("alert", "task_archived", "publish"),
        ("alert", "task_archived", "open_group"),
        ("status", "failed", "send_status"),
    ],
)
def test_what_is_owed_and_cannot_be_sent_keeps_nothing_waiting_either(
    kind: str, owed_name: str, call: str
) -> None:
    shard = OneShard(12)
    for name in shard.names[:6]:
        task = shard.shells.task(name)
        owed = (Owed(kind, owed_name, 2, T0 - 60 * SECOND, "why"),)
        archived = replace(task, version=2, state=TaskState.ARCHIVED, ended_at=T0, owed=owed)
        shard.shells.store.save(archived, seen=1)
    shard.faults.on(call, Fault.NOT_DONE)
    shard.make_pass(seconds=6)
    assert shard.done() == []
    shard.make_pass(seconds=6)
    assert shard.done() == shard.names[6:]


def test_a_lease_that_was_lost_in_a_long_shard_ends_the_visit_there() -> None:
    shard = OneShard(40)
    faults = shard.faults

    def rival(call: str) -> None:
        if call != "load":
            return
        shard.shells.wait(1)
        if faults.calls.count("load") == 5:
            shard.shells.wait(LEASE_DURATION / SECOND)
            other = shard.shells.supervisor(Faults(), instance="other")
            assert other.make_pass(stop_at=shard.shells.now + 60 * SECOND).finished

    faults.before_each(rival)
    report = shard.make_pass(seconds=600)
    assert report.looked_at <= 7, "the other did all the rest"
    assert set(shard.done()) == set(shard.names)


def test_a_pass_that_has_time_visits_everything_wherever_it_begins() -> None:
    for lot in (0.0, 0.3, 0.6, 0.999999):
        slow = Slow(lots=[lot])
        slow.shells.wait(60)
        assert slow.make_pass(seconds=100).looked_at == 40


@dataclass
class Rounds:
    """A clock that only sleeping and passes move, and what happened when."""

    now: int = T0
    lasts: list[int] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    slept: list[int] = field(default_factory=list)
    reports: list[PassReport] = field(default_factory=list)
    stop_ats: list[int] = field(default_factory=list)
    open_run: bool = False
    visits: list[tuple[int, int, bool]] = field(default_factory=list)
    """(seconds of a visit, seconds of the next one, whether another process may make that)"""

    def sleep(self, duration: int) -> None:
        assert duration > 0
        self.slept.append(duration)
        self.now += duration

    def make_pass(self, *, stop_at: int) -> PassReport:
        self.at.append((self.now - T0) // SECOND)
        self.stop_ats.append(stop_at)
        self.now += self.lasts.pop(0) if self.lasts else 0
        return PassReport()

    visits_end: list[int] = field(default_factory=list)
    """The second in which each visit must end."""

    def visit(self, times: VisitTimes) -> bool:
        self.visits_end.append((times.stop_at - T0) // SECOND)
        self.visits.append(((self.now - T0) // SECOND, (times.next_at - T0) // SECOND, times.last))
        return self.open_run

    def keep(self, *, interval: int, passes: int, seconds: int) -> "Rounds":
        keep_passing(
            cast("Supervisor", self),
            interval=interval * SECOND,
            passes=passes,
            stop_at=T0 + seconds * SECOND,
            clock=lambda: self.now,
            sleep=self.sleep,
            report=self.reports.append,
            visit=self.visit,
        )
        return self


def test_a_visit_ends_before_the_next_pass_and_the_last_one_with_the_invocation() -> None:
    rounds = Rounds().keep(interval=20, passes=3, seconds=85)
    assert rounds.visits_end == [20, 40, 85]


def test_a_minutes_interval_is_one_pass_without_any_sleep() -> None:
    rounds = Rounds().keep(interval=60, passes=1, seconds=85)
    assert (rounds.at, rounds.slept, len(rounds.reports)) == ([0], [], 1)


def test_a_shorter_interval_is_several_passes_from_start_to_start() -> None:
    rounds = Rounds(lasts=[3_000, 1_000]).keep(interval=20, passes=3, seconds=85)
    assert rounds.at == [0, 20, 40]
    assert rounds.slept == [17_000, 19_000]
    assert len(rounds.reports) == 3
    assert rounds.stop_ats == [T0 + 85 * SECOND] * 3


def test_a_pass_that_took_too_long_is_followed_at_once_and_then_the_rhythm_holds() -> None:
    rounds = Rounds(lasts=[25_000]).keep(interval=20, passes=3, seconds=85)
    assert rounds.at == [0, 25, 40]


def test_no_pass_begins_after_the_time_is_over_nor_is_any_slept_for() -> None:
    rounds = Rounds(lasts=[1_000]).keep(interval=20, passes=3, seconds=20)
    assert (rounds.at, rounds.slept) == ([0], [])
    rounds = Rounds(lasts=[50_000]).keep(interval=20, passes=3, seconds=40)
    assert rounds.at == [0]
    assert Rounds().keep(interval=20, passes=3, seconds=0).at == []


def test_each_passes_report_is_given_out_though_a_later_pass_dies() -> None:
    class Dying(Rounds):
        def make_pass(self, *, stop_at: int) -> PassReport:
            if self.at:
                raise TryAgain("gone")
            return super().make_pass(stop_at=stop_at)

    rounds = Dying()
    with pytest.raises(TryAgain):
        rounds.keep(interval=20, passes=3, seconds=85)
    assert len(rounds.reports) == 1


def test_without_an_open_run_there_is_one_visit_and_no_sleep() -> None:
    rounds = Rounds().keep(interval=60, passes=1, seconds=85)
    assert (rounds.at, rounds.slept, len(rounds.visits)) == ([0], [], 1)


def test_an_open_run_is_visited_every_ten_seconds_until_the_next_invocation() -> None:
    rounds = Rounds(lasts=[2_000], open_run=True).keep(interval=60, passes=1, seconds=85)
    assert rounds.visits == [
        (2, 12, False),
        (12, 22, False),
        (22, 32, False),
        (32, 42, False),
        (42, 52, False),
        (52, 60, True),
    ]


def test_it_is_visited_between_the_passes_of_one_invocation_too() -> None:
    rounds = Rounds(open_run=True).keep(interval=30, passes=2, seconds=85)
    assert rounds.at == [0, 30]
    assert rounds.visits == [
        (0, 10, False),
        (10, 20, False),
        (20, 30, False),
        (30, 40, False),
        (40, 50, False),
        (50, 60, True),
    ]


def test_an_interval_that_is_longer_than_the_function_runs_leaves_it_to_the_next() -> None:
    rounds = Rounds(open_run=True).keep(interval=300, passes=1, seconds=85)
    assert rounds.visits[-1] == (80, 300, True)
    assert rounds.visits[-2] == (70, 80, False)
