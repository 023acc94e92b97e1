"""The model of what an order waits for in the system: its path, and urgent orders."""

import pytest

from benchmarks.speed import latency
from benchmarks.speed.latency import PICK_UP, RATES, Load, path, waits_ms
from roundsman.model.instants import MINUTE
from roundsman_console.cost.figures import load_figures
from roundsman_console.cost.prices import load_prices

FIGURES, PRICES = load_figures(), load_prices()
HOPS = path(4, FIGURES, PRICES)


def middle(found: list[float]) -> float:
    return sorted(found)[len(found) // 2]


def test_the_path_has_the_messages_that_were_counted_for_an_order() -> None:
    # A message is three requests of SQS: sent, received and deleted.
    assert len(HOPS) * 3 == FIGURES.orders["busy"].sqs_requests
    assert len(path(5, FIGURES, PRICES)) == len(HOPS) + 2


def test_an_order_without_load_takes_its_path_and_its_services() -> None:
    load = Load(HOPS, rate=0.1).run(lasts=60 * MINUTE)
    (fastest, *_) = sorted([*load.took[False], *load.took[True]])
    assert fastest >= waits_ms(HOPS), "no order is faster than its path"
    services = 4 * latency.SERVICE_MS
    assert middle(load.took[False]) == pytest.approx(waits_ms(HOPS) + services, rel=0.15)


@pytest.mark.parametrize("rate", RATES)
def test_every_order_that_was_sent_ends(rate: int) -> None:
    load = Load(HOPS, rate)
    sent = len(list(load._orders(MINUTE)))
    load.run(MINUTE)
    assert len(load.took[False]) + len(load.took[True]) == sent


def test_urgent_orders_do_not_wait_behind_normal_ones_at_agents_that_cannot_keep_up() -> None:
    load = Load(HOPS, rate=100).run()
    assert middle(load.took[False]) > 10 * middle(load.took[True])
    alone = Load(HOPS, rate=10).run()
    assert middle(load.took[True]) < 1.5 * middle(alone.took[True])


def test_without_instances_of_their_own_urgent_orders_would_wait_as_long() -> None:
    load = Load(HOPS, rate=100, own_queue=False).run()
    assert middle(load.took[True]) > 0.5 * middle(load.took[False])


def test_a_later_pick_up_delays_every_message_of_the_path() -> None:
    assert waits_ms(HOPS, PICK_UP + 10) - waits_ms(HOPS) == pytest.approx(10 * len(HOPS))
