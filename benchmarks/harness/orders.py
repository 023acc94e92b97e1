"""The order that the benchmarks count, and the function that sends it and counts."""

from math import ceil

from benchmarks.harness.meter import Counts, Meter
from roundsman.model.states import TaskState

THE_APPLICATION = "the application"
AT_ONCE = 10  # messages of one SendMessageBatch
MOST_ROUNDS = 3_000  # an order of a thousand steps one after the other takes one or two for each


def order(order_id: str, **processing: object) -> dict[str, object]:
    """Return an order with one line for the four steps of `order_fulfilment`."""
    event: dict[str, object] = {
        "orderId": order_id,
        "customerId": "c-42",
        "currency": "EUR",
        "lines": [{"sku": "KB-101", "quantity": 2, "unitPrice": "19.90"}],
        "paymentToken": "tok_visa",
        "shippingAddress": {
            "name": "A. Reader",
            "street": "1 Main St",
            "city": "Ghent",
            "postalCode": "9000",
            "country": "BE",
        },
    }
    return {**event, "processing": processing} if processing else event


def counted(meter: Meter, *events: dict[str, object]) -> Counts:
    """Send these orders, run the stack until they are Completed, and return the counts.

    The application sends up to ten orders in one request. Raises AssertionError if an order ends in
    another state.
    """
    meter.counts = Counts()
    meter.counts.sends[THE_APPLICATION] += ceil(len(events) / AT_ONCE)
    meter.stack.submit(*events)
    meter.stack.run_until_idle(most_rounds=MOST_ROUNDS)
    for event in events:
        state = meter.stack.task(str(event["orderId"])).state
        if state is not TaskState.COMPLETED:
            raise AssertionError(f"{event['orderId']} is {state}, and was to be Completed")
    return meter.counts
