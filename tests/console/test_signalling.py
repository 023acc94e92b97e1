"""`roundsman signal`: what it sends, and what it refuses to send."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import Signal
from roundsman_console.faces.commands import signal as signal_command
from tests.console.operators import Operator, document, in_retry
from tests.console.schemas import assert_schema
from tests.moto.orders import order
from workflows.order_fulfilment import order_fulfilment
from workflows.registry import WORKFLOWS

ACCEPTS = Signal("paid", within=timedelta(hours=1), after=("charge_card",))


@pytest.fixture
def expecting(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """An open order whose workflow waits for the signal `paid` later."""
    waits = replace(order_fulfilment, steps=(*order_fulfilment.steps, ACCEPTS))
    monkeypatch.setitem(WORKFLOWS, waits.name, waits)
    operator.world.redeploy()
    in_retry(operator)
    return operator


def test_a_signal_that_is_accepted_ends_with_zero(expecting: Operator) -> None:
    data = ("--data", '{"amount": 40}', "--id", "pay-7")
    sent = expecting.types("signal", "ord-1", "paid", *data)
    assert (sent.exit_code, sent.stdout) == (
        0,
        "Accepted, with the id pay-7. See: roundsman why ord-1\n",
    )
    assert [one.id for one in expecting.world.task("ord-1").signals] == ["pay-7"]
    again = expecting.reads("signal", "ord-1", "paid", "--id", "pay-7", "--yes")
    assert again == {
        "orderId": "ord-1",
        "name": "paid",
        "id": "pay-7",
        "outcome": "done",
        "why": None,
    }
    assert [one.id for one in expecting.world.task("ord-1").signals] == ["pay-7"]


def test_a_signal_that_the_scheduler_refuses_ends_with_one(
    expecting: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order has changed since it was read."""
    monkeypatch.setattr(signal_command, "why_refused", lambda *_: None)
    refused = expecting.types("signal", "ord-1", "shipped", "--json")
    printed = document(refused)
    assert (refused.exit_code, printed["outcome"]) == (1, "refused")
    assert "The signal shipped to ord-1 was refused: signal by application refused: " in (
        refused.stderr
    )
    assert str(printed["why"]) in refused.stderr


def test_a_signal_to_an_order_that_is_not_there_is_not_known_yet(operator: Operator) -> None:
    late = operator.types("signal", "ord-9", "paid", "--json")
    assert (late.exit_code, document(late)["outcome"]) == (4, "unconfirmed")
    assert operator.patience.now == pytest.approx(15)
    assert "was sent, but it is not known whether it was accepted: the scheduler " in late.stderr
    assert late.stderr.endswith(" See: roundsman why ord-9\n")


def test_nobody_waits_with_no_wait(operator: Operator) -> None:
    sent = operator.types("signal", "ord-9", "paid", "--id", "pay-7", "--no-wait")
    assert sent.stdout == "Sent, with the id pay-7. See: roundsman why ord-9\n"
    assert (sent.exit_code, operator.patience.slept) == (0, [])
    found = operator.reads("signal", "ord-9", "paid", "--no-wait")
    assert_schema("signal", found)
    assert found["outcome"] == "sent"
    assert operator.reads("signal", "ord-9", "paid", "--no-wait")["id"] != found["id"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("Paid",), "The name of a signal must be 1 to 40 characters"),
        (("paid", "--data", "{"), "--data is not JSON"),
        (("paid", "--data", "x"), "A text value needs JSON quotes"),
        (("paid", "--id", "a b"), "The id of a signal must be 1 to 64 ASCII"),
        (("paid", "--data", f'"{"x" * 4_095}"'), "it may have at most 4096"),
    ],
)
def test_a_wrong_signal_is_not_sent(
    operator: Operator, arguments: tuple[str, ...], why: str
) -> None:
    refused = operator.types("signal", "ord-1", *arguments)
    assert refused.exit_code != 0
    assert why in refused.stderr


def test_a_signal_that_the_order_would_refuse_is_not_sent(operator: Operator) -> None:
    operator.world.submit(order("ord-1"))
    operator.world.run()
    refused = operator.types("signal", "ord-1", "paid")
    assert refused.exit_code != 0
    assert refused.stderr.startswith(
        "The signal paid to ord-1 is refused, nothing was sent: the task "
    )
    assert operator.world.waiting("SubmissionQueue") == 0
