"""Two supervisors at once: whoever is interrupted where, each recovery happens once."""

from collections.abc import Callable

import pytest

from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.leases import LEASE_DURATION
from roundsman.ports import Clock
from roundsman.wire.commands import Command
from roundsman_testing.faults import Crash, Fault, Faults, FaultyLeases
from tests.support.machine_world import plan, step
from tests.support.shell_world import SHARDS, Shells

LINE = plan(step("first"))
NAMES = [f"ord-{n}" for n in range(8)]
SKEWS = (-5 * SECOND, 0, 5 * SECOND)


def overdue() -> Shells:
    """Tasks in every shard, each with a step whose agent has sent nothing for a second and more."""
    shells = Shells(LINE)
    for name in NAMES:
        shells.submit(name)
        shells.scheduler().command(Command(kind="start", task_id=name), f"m-{name}")
    shells.outbox.sent.clear()
    return shells.wait(37)


def skewed(shells: Shells, skew: int) -> Clock:
    return lambda: shells.now + skew


def make_pass(shells: Shells, instance: str, skew: int, faults: Faults | None = None) -> Faults:
    faults = faults or Faults()
    clock = skewed(shells, skew)
    supervisor = shells.supervisor(faults, instance=instance, clock=clock)
    supervisor.make_pass(stop_at=shells.now + 10 * MINUTE)
    return faults


def failures(shells: Shells) -> list[int]:
    return [shells.task(name).step("first").failure_count for name in NAMES]


def recoveries(shells: Shells) -> list[int]:
    return [len(shells.store.history(name)) for name in NAMES]


CALLS = range(len(make_pass(overdue(), "a", 0).calls) + 1)


def at(number: int, act: Callable[[], object]) -> Faults:
    """Faults that let something else happen right before the call of that number."""
    faults = Faults()

    def hook(_: str) -> None:
        if len(faults.calls) == number:
            faults.before_each(lambda _: None)
            act()

    return faults.before_each(hook)


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("number", CALLS)
def test_a_whole_pass_of_another_at_any_call_neither_doubles_nor_loses_a_recovery(
    number: int, skew: int
) -> None:
    shells = overdue()
    faults = at(number, lambda: make_pass(shells, "b", skew))
    make_pass(shells, "a", -skew, faults)
    make_pass(shells, "c", 0)
    assert failures(shells) == [1] * len(NAMES)
    assert recoveries(shells) == [1] * len(NAMES)
    assert sorted(shells.starts()) == NAMES, "and each is started once"
    assert not shells.unwatched


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
@pytest.mark.parametrize("number", CALLS[1:-1])
def test_what_a_supervisor_that_dies_at_any_call_leaves_another_takes_over(
    number: int, fault: Fault, skew: int
) -> None:
    shells = overdue()
    with pytest.raises(Crash):
        make_pass(shells, "dead", 0, Faults().at(number, fault))
    shells.wait(1)
    make_pass(shells, "b", skew)  # finds shards that are held, or a task that is half done
    shells.wait(60)
    make_pass(shells, "c", skew)
    assert failures(shells) == [1] * len(NAMES)
    assert recoveries(shells) == [1] * len(NAMES)
    assert set(shells.starts()) == set(NAMES)
    assert not shells.unwatched


def test_two_that_overlap_read_each_shard_once_between_them() -> None:
    """Economy: while each is in a shard of its own, the other goes on elsewhere."""
    shells = overdue()
    second = Faults()

    def other() -> None:
        make_pass(shells, "b", 0, second)

    first = at(3, other)
    make_pass(shells, "a", 0, first)
    reads = first.calls.count("due") + second.calls.count("due")
    assert reads == SHARDS + 3, "a finds the three that b gave back: at one instant, as new"
    assert first.calls.count("load") + second.calls.count("load") == len(NAMES)


def test_what_another_was_through_with_after_a_pass_began_costs_it_no_read() -> None:
    shells = overdue()
    second = Faults()

    def other() -> None:
        shells.wait(1)
        make_pass(shells, "b", 0, second)

    first = at(3, other)
    make_pass(shells, "a", 0, first)
    assert (first.calls.count("due"), second.calls.count("due")) == (1, SHARDS - 1)


def test_a_shard_that_another_was_cut_short_in_is_visited_all_the_same() -> None:
    shells = overdue()
    cut_short = Faults()

    def spend(call: str) -> None:
        if call == "load":
            shells.wait(1)

    def other() -> None:
        supervisor = shells.wait(1).supervisor(cut_short.before_each(spend), instance="b")
        assert not supervisor.make_pass(stop_at=shells.now + SECOND).finished

    make_pass(shells, "a", 0, at(3, other))
    assert cut_short.calls.count("load") == 1
    assert failures(shells) == [1] * len(NAMES)


@pytest.mark.parametrize("skew", SKEWS)
def test_two_without_any_leases_are_as_safe(skew: int) -> None:
    shells = overdue()
    without = [Faults().on("read_leases", Fault.NOT_DONE) for _ in range(2)]
    for faults, sign in zip(without, (1, -1), strict=True):
        make_pass(shells, "a", sign * skew, faults)
    assert failures(shells) == [1] * len(NAMES)
    assert sorted(shells.starts()) == NAMES


def test_a_dead_holders_shards_are_free_when_its_lease_is_over() -> None:
    shells = overdue()
    store = FaultyLeases(shells.leases, Faults())
    with pytest.raises(Crash):
        make_pass(shells, "dead", 0, Faults().on("due", Fault.CRASH_BEFORE, nth=1))
    held = [s for s, lease in store.read().by_shard.items() if lease.owner == "dead"]
    assert len(held) == 1
    report = shells.supervisor(instance="b").make_pass(stop_at=shells.now + MINUTE)
    assert report.left_to_others == 1
    assert failures(shells).count(1) == report.recovered < len(NAMES)
    shells.wait(LEASE_DURATION / SECOND)
    report = shells.supervisor(instance="c").make_pass(stop_at=shells.now + MINUTE)
    assert report.left_to_others == 0
    assert failures(shells) == [1] * len(NAMES)


def test_the_report_says_why_a_pass_went_on_without_leases() -> None:
    shells = overdue()
    report = shells.supervisor(Faults().on("write_leases", Fault.REFUSED)).make_pass(
        stop_at=shells.now + MINUTE
    )
    assert report.unleased == "write_leases: AccessDenied"
    assert (report.recovered, report.finished) == (len(NAMES), True)
