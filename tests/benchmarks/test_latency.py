"""The model of what an order waits for in the system: the path of its messages."""

import pytest

from benchmarks.speed.latency import PICK_UP, path, waits_ms
from roundsman_console.facts.cost.figures import load_figures
from roundsman_console.facts.cost.prices import load_prices

FIGURES, PRICES = load_figures(), load_prices()
HOPS = path(4, FIGURES, PRICES)


def test_the_path_has_the_messages_that_were_counted_for_an_order() -> None:
    # A message is three requests of SQS: sent, received and deleted.
    assert len(HOPS) * 3 == FIGURES.orders["busy"].sqs_requests
    assert len(path(5, FIGURES, PRICES)) == len(HOPS) + 2


def test_a_later_pick_up_delays_every_message_of_the_path() -> None:
    assert waits_ms(HOPS, PICK_UP + 10) - waits_ms(HOPS) == pytest.approx(10 * len(HOPS))
