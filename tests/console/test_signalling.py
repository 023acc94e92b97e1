"""`roundsman signal`: what it sends, and what it refuses to send."""

import pytest

from tests.console.operators import Operator
from tests.console.schemas import assert_schema
from tests.moto.orders import order


def test_a_signal_is_sent_and_its_refusal_is_in_the_history(operator: Operator) -> None:
    """The workflow of the stack waits for no signal, so the scheduler refuses it in words."""
    operator.world.submit({"orderId": "ord-1"})
    sent = operator.types("signal", "ord-1", "paid", "--data", '{"amount": 40}', "--id", "pay-7")
    assert sent.stdout == "Sent, with the id pay-7. See: roundsman why ord-1\n"
    assert sent.exit_code == 0


def test_a_signal_is_printed_as_json(operator: Operator) -> None:
    found = operator.reads("signal", "ord-1", "paid")
    assert_schema("signal", found)
    signal_id = found.pop("id")
    assert found == {"orderId": "ord-1", "name": "paid"}
    assert operator.reads("signal", "ord-1", "paid")["id"] != signal_id
    assert operator.reads("signal", "ord-1", "paid", "--id", "pay-7")["id"] == "pay-7"


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
