"""The rate of an agent's calls, for all its instances together."""

from dataclasses import dataclass, field
from itertools import pairwise
from threading import Thread

import pytest

from roundsman.agents.guard import CallHeld, RateLimited
from roundsman.aws.guard.rate_limit import LONGEST_RETURN, LONGEST_WAIT, RateLimit
from roundsman.model.instants import MINUTE, SECOND
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import unreachable
from tests.contract.worlds import World


@dataclass
class Time:
    """A virtual clock that sleeping moves on."""

    now: int = NOW
    slept: list[int] = field(default_factory=list)

    def __call__(self) -> int:
        return self.now

    def sleep(self, milliseconds: int) -> None:
        self.slept.append(milliseconds)
        self.now += milliseconds


def instance(world: World, time: Time, calls_per_second: float) -> RateLimit:
    return RateLimit(
        "payment",
        world.client,
        control_table=world.tables.control,
        calls_per_second=calls_per_second,
        clock=time,
        sleep=time.sleep,
    )


def most_in_any(window: int, calls: list[int]) -> int:
    return max(sum(start <= call < start + window for call in calls) for start in calls)


def calls_of(world: World, rate: float, instances: int, each: int) -> list[int]:
    """The instants of all calls, where each instance makes its next as soon as it may."""
    times = [Time(NOW + 3 * number) for number in range(instances)]
    rates = [instance(world, time, rate) for time in times]
    calls: list[int] = []
    done = [0] * instances
    while any(count < each for count in done):
        # Whoever is furthest behind goes next, as it would.
        which = min((i for i in range(instances) if done[i] < each), key=lambda i: times[i].now)
        try:
            rates[which].wait(ends_at=times[which].now + 60 * MINUTE)
        except CallHeld as held:
            times[which].now = held.until
            continue
        calls.append(times[which].now)
        done[which] += 1
    return sorted(calls)


@pytest.mark.parametrize(
    ("rate", "window", "most"),
    [(5, SECOND, 5), (2.5, SECOND, 3), (2.5, 2 * SECOND, 5), (0.5, 2 * SECOND, 1)],
)
def test_four_instances_together_never_exceed_the_rate(
    dynamo_world: World, rate: float, window: int, most: int
) -> None:
    calls = calls_of(dynamo_world, rate, instances=4, each=6)
    assert most_in_any(window, calls) <= most
    assert calls[-1] - calls[0] < 1.5 * 24 / rate * SECOND, "nor stay far below it"


def test_the_first_call_after_a_pause_waits_for_nothing_and_saves_nothing_up(
    dynamo_world: World,
) -> None:
    time = Time()
    rate = instance(dynamo_world, time, 10)
    rate.wait(ends_at=NOW + MINUTE)
    assert time.slept == []
    time.now += MINUTE
    for _ in range(3):
        rate.wait(ends_at=time.now + MINUTE)
    assert time.slept == [100, 100]


def test_a_turn_that_is_too_far_off_is_not_waited_for(dynamo_world: World) -> None:
    time = Time()
    rates = [instance(dynamo_world, Time(), 1) for _ in range(3)]
    for rate in rates:
        rate.wait(ends_at=NOW + MINUTE)  # now, in one second, in two
    with pytest.raises(
        RateLimited, match="payment has reached its limit of 1 calls per second"
    ) as held:
        instance(dynamo_world, time, 1).wait(ends_at=NOW + MINUTE)
    assert time.slept == []
    assert not held.value.called
    assert held.value.until - NOW > LONGEST_WAIT


def test_no_turn_is_waited_for_that_leaves_the_call_less_than_a_second(
    dynamo_world: World,
) -> None:
    time = Time()
    rate = instance(dynamo_world, time, 1)
    rate.wait(ends_at=NOW + MINUTE)
    with pytest.raises(CallHeld) as held:
        rate.wait(ends_at=NOW + 2 * SECOND - 1)
    assert held.value.until == NOW + SECOND
    rate.wait(ends_at=NOW + 2 * SECOND)
    assert time.slept == [SECOND]


def test_of_a_short_time_half_is_left_for_the_call(dynamo_world: World) -> None:
    time = Time()
    rate = instance(dynamo_world, time, 5)
    rate.wait(ends_at=NOW + MINUTE)
    with pytest.raises(CallHeld):
        rate.wait(ends_at=NOW + 399)
    rate.wait(ends_at=NOW + 400)
    assert time.slept == [200]


def test_those_sent_away_come_again_one_after_the_other(dynamo_world: World) -> None:
    for _ in range(3):
        instance(dynamo_world, Time(), 1).wait(ends_at=NOW + MINUTE)
    returns: list[int] = []
    for _ in range(4):
        with pytest.raises(CallHeld) as held:
            instance(dynamo_world, Time(), 1).wait(ends_at=NOW + MINUTE)
        returns.append(held.value.until)
    assert [later - earlier for earlier, later in pairwise(returns)] == [SECOND] * 3


def test_nobody_is_sent_away_for_longer_than_the_stored_time_holds(
    dynamo_world: World,
) -> None:
    far = (NOW + 2 * LONGEST_RETURN) * 1_000
    dynamo_world.client.put_item(
        TableName=dynamo_world.tables.control,
        Item={
            "ControlId": {"S": "rate#payment"},
            "NextAt": {"N": str((NOW + MINUTE) * 1_000)},
            "ReturnAt": {"N": str(far)},
        },
    )
    with pytest.raises(CallHeld) as held:
        instance(dynamo_world, Time(), 1).wait(ends_at=NOW + MINUTE)
    assert held.value.until <= NOW + LONGEST_RETURN


def test_two_that_ask_at_once_get_different_places(local_world: World) -> None:
    times = [Time() for _ in range(8)]

    def take(time: Time) -> None:
        rate = instance(local_world, time, 20)
        rate.wait(ends_at=NOW + MINUTE)

    threads = [Thread(target=take, args=(time,)) for time in times]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(time.now for time in times) == [NOW + 50 * place for place in range(8)]


def test_where_no_place_can_be_asked_for_the_call_passes(moto_world: World) -> None:
    time = Time()
    rate = instance(moto_world, time, 0.001)
    with unreachable(moto_world.client, "UpdateItem"):
        for _ in range(3):
            rate.wait(ends_at=NOW + MINUTE)
    assert time.slept == []
