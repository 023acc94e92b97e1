"""The supervisor's time: where its passes begin, when they stop, and how they follow each other."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from roundsman.due import shard_of
from roundsman.errors import TryAgain
from roundsman.supervision import PassReport, Supervisor, keep_passing
from roundsman.values import SECOND
from tests.unit.machine_world import T0, plan, step
from tests.unit.shell_world import SHARDS, Fault, Faults, Shells

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

    def sleep(self, duration: int) -> None:
        assert duration > 0
        self.slept.append(duration)
        self.now += duration

    def make_pass(self, *, stop_at: int) -> PassReport:
        self.at.append((self.now - T0) // SECOND)
        self.stop_ats.append(stop_at)
        self.now += self.lasts.pop(0) if self.lasts else 0
        return PassReport()

    def keep(self, *, interval: int, passes: int, seconds: int) -> "Rounds":
        keep_passing(
            cast("Supervisor", self),
            interval=interval * SECOND,
            passes=passes,
            stop_at=T0 + seconds * SECOND,
            clock=lambda: self.now,
            sleep=self.sleep,
            report=self.reports.append,
        )
        return self


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
