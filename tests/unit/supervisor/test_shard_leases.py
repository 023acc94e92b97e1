"""Leases: shards are shared out, taken over from the dead, and never needed for safety."""

from dataclasses import dataclass, field

import pytest

from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.leases import LEASE_DURATION, Lease, Leases
from roundsman.supervisor.shard_leases import MAX_WRITE_ATTEMPTS, ShardPass
from roundsman_testing.faults import Fault, Faults, FaultyLeases
from roundsman_testing.memory import MemoryLeases
from tests.support.machine_world import T0

SHARDS = 16
HOUR = 60 * MINUTE


@dataclass
class Stage:
    """A clock, the stored leases, and rounds of several supervisors."""

    now: int = T0
    leases: MemoryLeases = field(default_factory=MemoryLeases)

    def round(
        self,
        owner: str = "a",
        *,
        faults: Faults | None = None,
        skew: int = 0,
        shards: int = SHARDS,
        lot: float = 0.0,
    ) -> ShardPass:
        store = FaultyLeases(self.leases, faults or Faults())
        return ShardPass(store, owner=owner, clock=lambda: self.now + skew, shards=shards, lot=lot)

    def owners(self) -> dict[int, str]:
        found = self.leases.read().by_shard
        return {shard: lease.owner for shard, lease in found.items() if lease.owner is not None}


def walk(way: ShardPass, stage: Stage, *, spend: int = 0) -> list[int]:
    """Make the round from where it is to its end, `spend` ms in each shard."""
    found: list[int] = []
    while shards := way.next_shards():
        for shard in shards:
            began_at = stage.now
            stage.now += spend
            found.append(shard)
            way.visited(shard, began_at)
    way.close()
    return found


# --- One supervisor ----------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [1, 2, 3, 4, 5, 16, 128])
@pytest.mark.parametrize("lot", [0.0, 0.5, 0.999])
def test_a_round_comes_through_every_shard_once(shards: int, lot: float) -> None:
    stage = Stage()
    found = walk(stage.round(shards=shards, lot=lot), stage)
    assert sorted(found) == list(range(shards))
    assert found[0] == int(lot * shards)


@pytest.mark.parametrize(("shards", "writes"), [(4, 5), (16, 5), (17, 6), (64, 17), (128, 17)])
def test_a_round_costs_one_read_and_a_write_for_each_part_and_its_end(
    shards: int, writes: int
) -> None:
    stage, faults = Stage(), Faults()
    walk(stage.round(faults=faults, shards=shards), stage)
    assert faults.calls == ["read_leases"] + ["write_leases"] * writes


@pytest.mark.parametrize(("shards", "rounds"), [(1, 1), (4, 4), (16, 4), (64, 16), (128, 16)])
def test_so_many_rounds_can_share_so_many_shards(shards: int, rounds: int) -> None:
    stage = Stage()
    found = [list(stage.round(f"r{number}", shards=shards).next_shards()) for number in range(20)]
    assert [len(each) > 0 for each in found] == [True] * rounds + [False] * (20 - rounds)
    assert sorted(shard for each in found for shard in each) == list(range(shards)), (
        "none twice, and none left out"
    )


def test_a_round_gives_back_what_it_held() -> None:
    stage = Stage()
    way = stage.round()
    assert list(way.next_shards()) == [0, 1, 2, 3]
    assert stage.owners() == dict.fromkeys([0, 1, 2, 3], "a")
    assert list(way.next_shards()) == [4, 5, 6, 7]
    assert stage.owners() == dict.fromkeys([4, 5, 6, 7], "a"), "in the same write"
    way.close()
    assert stage.owners() == {}


def test_a_round_after_a_round_comes_through_all_shards_again() -> None:
    stage = Stage()
    walk(stage.round(), stage)
    stage.now += MINUTE
    assert len(walk(stage.round(), stage)) == SHARDS


def test_shards_that_a_higher_number_once_made_are_visited_still() -> None:
    stage = Stage()
    walk(stage.round(shards=24), stage)
    stage.now += MINUTE
    assert sorted(walk(stage.round(shards=4), stage)) == list(range(24))


# --- Two of them -------------------------------------------------------------------------------


def test_two_rounds_at_once_share_the_shards_and_double_none() -> None:
    stage = Stage()
    a, b = stage.round("a"), stage.round("b", lot=0.1)
    found: list[int] = []
    while True:
        both = [*a.next_shards(), *b.next_shards()]
        if not both:
            break
        found += both
        stage.now += SECOND
        for way in (a, b):
            for shard in both:
                if stage.leases.read().of(shard).owner == ("a" if way is a else "b"):
                    way.visited(shard, stage.now)
    assert sorted(found) == list(range(SHARDS))


def test_what_another_is_in_is_left_to_it() -> None:
    stage = Stage()
    first = stage.round("a")
    held = list(first.next_shards())
    second = stage.round("b")
    found = walk(second, stage)
    assert sorted(found + held) == list(range(SHARDS))
    assert second.left == held


def test_what_another_has_been_through_since_is_not_looked_at_again() -> None:
    stage = Stage()
    late = stage.round("b")
    stage.now += SECOND
    walk(stage.round("a"), stage)
    assert walk(late, stage) == []
    assert late.left == list(range(SHARDS))


def test_a_shard_that_was_not_visited_to_its_end_is_anyones() -> None:
    stage = Stage()
    late = stage.round("b")
    stage.now += SECOND
    cut_short = stage.round("a")
    cut_short.next_shards()
    cut_short.visited(0, stage.now)
    cut_short.close()
    assert sorted(walk(late, stage)) == list(range(1, SHARDS))


def test_what_a_dead_holder_held_is_free_once_its_lease_is_over() -> None:
    stage = Stage()
    stage.round("dead").next_shards()
    stage.now += LEASE_DURATION - 1
    assert len(walk(stage.round("b"), stage)) == SHARDS - 4
    stage.now += 1
    assert len(walk(stage.round("c"), stage)) == SHARDS


def test_a_holder_that_is_still_at_it_renews_at_half_time_and_not_before() -> None:
    stage, faults = Stage(), Faults()
    way = stage.round("a", faults=faults)
    way.next_shards()
    writes = faults.calls.count("write_leases")
    stage.now += LEASE_DURATION // 2 - 1
    assert way.still_held(0)
    assert faults.calls.count("write_leases") == writes
    stage.now += 1
    assert way.still_held(0)
    assert faults.calls.count("write_leases") == writes + 1
    stage.now += LEASE_DURATION - 1
    assert len(walk(stage.round("b"), stage)) == SHARDS - 4


def test_a_holder_whose_lease_was_taken_over_goes_on_elsewhere() -> None:
    stage = Stage()
    slow = stage.round("a")
    slow.next_shards()
    stage.now += LEASE_DURATION
    taker = stage.round("b")
    assert list(taker.next_shards()) == [0, 1, 2, 3]
    assert not slow.still_held(0)
    assert list(slow.next_shards()) == [4, 5, 6, 7]
    assert stage.owners() == {**dict.fromkeys([0, 1, 2, 3], "b"), **dict.fromkeys(range(4, 8), "a")}
    slow.close()
    assert stage.owners() == dict.fromkeys([0, 1, 2, 3], "b"), "only one's own is given back"


@pytest.mark.parametrize("skew", [-5 * SECOND, 5 * SECOND])
def test_clocks_that_differ_by_seconds_change_only_when_a_lease_ends(skew: int) -> None:
    stage = Stage()
    stage.round("a").next_shards()
    stage.now += 10 * SECOND
    assert len(walk(stage.round("b", skew=skew), stage)) == SHARDS - 4
    stage.now = T0 + LEASE_DURATION - skew
    assert len(walk(stage.round("c", skew=skew), stage)) == SHARDS


def test_a_holder_whose_clock_is_hours_ahead_keeps_nobody_out() -> None:
    stage = Stage()
    stage.round("a", skew=HOUR).next_shards()
    assert len(walk(stage.round("b"), stage)) == SHARDS
    strange = stage.round("a", skew=HOUR)
    for shard in strange.next_shards():
        strange.visited(shard, T0 + HOUR)
    strange.close()
    assert stage.leases.read().of(0).visited_at == T0 + HOUR
    assert len(walk(stage.round("c"), stage)) == SHARDS


# --- Without leases ----------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.REFUSED, Fault.UNKNOWN])
@pytest.mark.parametrize("call", ["read_leases", "write_leases"])
def test_a_round_without_control_table_comes_through_every_shard(call: str, fault: Fault) -> None:
    stage = Stage()
    way = stage.round(faults=Faults().on(call, fault))
    assert sorted(walk(way, stage)) == list(range(SHARDS))
    assert way.unleased is not None
    assert call in way.unleased


def test_leases_that_fail_in_the_middle_do_not_end_the_round() -> None:
    stage = Stage()
    way = stage.round(faults=Faults().on("write_leases", Fault.NOT_DONE, nth=3))
    assert sorted(walk(way, stage)) == list(range(SHARDS))


def test_a_renewal_that_fails_does_not_end_the_visit() -> None:
    stage, faults = Stage(), Faults()
    way = stage.round(faults=faults)
    way.next_shards()
    stage.now += LEASE_DURATION
    faults.on("write_leases", Fault.NOT_DONE)
    assert way.still_held(0)
    assert way.still_held(0)


def test_a_write_whose_answer_was_lost_finds_itself_and_goes_on() -> None:
    stage = Stage()
    way = stage.round(faults=Faults().on("write_leases", Fault.ANSWER_LOST, nth=2))
    assert sorted(walk(way, stage)) == list(range(SHARDS))
    assert way.unleased is None
    assert stage.owners() == {}


def test_a_round_that_loses_every_race_goes_on_without_leases() -> None:
    stage = Stage()
    way = stage.round(faults=Faults().on("write_leases", Fault.ANSWER_LOST))
    assert sorted(walk(way, stage)) == list(range(SHARDS))
    assert way.unleased == f"another supervisor wrote the leases first {MAX_WRITE_ATTEMPTS} times"


def test_a_race_lost_to_another_is_run_again_on_what_it_left() -> None:
    stage, faults = Stage(), Faults()
    way = stage.round("a", faults=faults)

    def rival(call: str) -> None:
        if call == "write_leases":
            faults.before_each(lambda _: None)
            stage.round("b").next_shards()

    faults.before_each(rival)
    assert list(way.next_shards()) == [4, 5, 6, 7]
    assert stage.owners() == {**dict.fromkeys(range(4), "b"), **dict.fromkeys(range(4, 8), "a")}


def test_a_shard_that_was_never_leased_is_free() -> None:
    assert Leases().of(3) == Lease()
    assert not Lease().held_by_another("a", T0)
