"""Follows an order that was sent to its end: `submit --wait`, and a smoke test."""

from collections.abc import Callable
from datetime import timedelta

from roundsman.client import Client, OrderStatus, WaitResult
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import moment, pause


def client_of(stack: DeployedStack) -> Client:
    """Return a client of the stack, with the caller's credentials."""
    return Client(stack.outputs, sqs=stack.sqs, dynamodb=stack.dynamodb)


def follow(
    client: Client,
    order_id: str,
    within: float,
    on_change: Callable[[OrderStatus], object],
    message_id: str | None = None,
) -> WaitResult:
    """Wait at most `within` seconds until it is known what became of the order.

    `on_change` is called with each state that differs from the one before. `message_id` is that of
    its event; None for the one that the client has sent by `submit`. Raises as `Client.wait`.
    """
    return client.wait(
        order_id,
        timeout=timedelta(seconds=max(0.0, within)),
        message_id=message_id,
        on_change=on_change,
        sleep=pause,
        moment=moment,
    )
