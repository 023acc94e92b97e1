"""The simulation of very many orders that go on after a hold."""

from functools import cache

import pytest

from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.priority import Priority
from roundsman.supervisor import parked, wakes
from roundsman.supervisor.parked import A_SECOND
from tests.overload.released_orders import Found, Release, priority_of, simulated

found_of = cache(simulated)
ALONE = Release(0)
SOME = Release(2_000)


def check_released(found: Found, release: Release) -> None:
    """All go on: the first within 30 s, urgent and oldest first, at the rate of an hour for all."""
    orders = [f"ord-{number}" for number in range(release.parked)]
    urgent = [order for order in orders if priority_of(order) is Priority.URGENT]
    normal = [order for order in orders if priority_of(order) is Priority.NORMAL]
    times = found.done
    assert times.keys() == set(orders)
    assert min(times.values()) <= 30 * SECOND
    assert max(times.values()) <= 2 * MINUTE + release.parked * SECOND / A_SECOND <= 60 * MINUTE
    assert found.most_in_ten_seconds <= 10 * A_SECOND
    assert found.overtook(urgent) == found.overtook(normal) == 0
    assert max(times[order] for order in urgent) < min(times[order] for order in normal)


@pytest.mark.parametrize(
    "release",
    [
        pytest.param(Release(300), id="some"),
        pytest.param(SOME, marks=pytest.mark.verify, id="many"),
        pytest.param(Release(2_000, everything=True), marks=pytest.mark.verify, id="everything"),
    ],
)
def test_what_waited_goes_on_in_its_order_and_at_the_rate(release: Release) -> None:
    check_released(found_of(release), release)


@pytest.mark.verify
def test_what_goes_on_delays_no_order_of_another_agent() -> None:
    assert found_of(SOME).p99 <= 1.2 * found_of(ALONE).p99


@pytest.mark.verify
def test_without_the_rate_orders_of_other_agents_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation shows it if what waits goes on at once."""
    for module in (parked, wakes):
        monkeypatch.setattr(module, "A_SECOND", 50 * A_SECOND)
    assert simulated(Release(3_000)).p99 > 5 * found_of(ALONE).p99


@pytest.mark.verify
def test_a_new_hold_stops_it_within_half_a_minute() -> None:
    again = 90 * SECOND
    found = simulated(Release(20_000, held_again_after=again))
    assert 1_000 < len(found.done) < 90 * A_SECOND
    assert max(found.done.values()) <= again + 10 * SECOND, "the time after which all know of it"
    assert found.messages - 2 * len(found.done) - 2 * len(found.healthy) <= 30 * A_SECOND


@pytest.mark.verify
def test_an_order_whose_wake_is_lost_goes_on_in_the_next_round() -> None:
    found = simulated(Release(1_000, lost=10))
    assert len(found.done) == 1_000
    assert 5 * MINUTE < max(found.done.values()) <= 10 * MINUTE


@pytest.mark.verify
def test_a_hundred_thousand_orders_go_on_within_an_hour_and_delay_no_other() -> None:
    release = Release(100_000)
    found = simulated(release)
    print(found.figures())  # noqa: T201  # what a person wants to know of this run
    check_released(found, release)
    assert found.p99 <= 1.2 * found_of(ALONE).p99
