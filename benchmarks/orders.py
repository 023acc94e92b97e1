"""The order that everything here is counted for, and how it is sent."""

from math import ceil

from benchmarks.meter import Counts, Meter
from roundsman.model.states import TaskState

THE_APPLICATION = "the application"
AT_ONCE = 10  # messages of one SendMessageBatch


def order(order_id: str, **processing: object) -> dict[str, object]:
    """An order of one line, of the four steps of `order_fulfilment`."""
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
    """Send these, let the stack carry them to their end, and return what that took.

    An application that has several orders at once sends them in one request.
    """
    meter.counts = Counts()
    meter.counts.sends[THE_APPLICATION] += ceil(len(events) / AT_ONCE)
    meter.stack.submit(*events)
    meter.stack.run_until_idle(most_rounds=1_000)
    for event in events:
        state = meter.stack.task(str(event["orderId"])).state
        if state is not TaskState.COMPLETED:
            raise AssertionError(f"{event['orderId']} is {state}, and was to be Completed")
    return meter.counts
