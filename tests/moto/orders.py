"""A good order event, and what it should come to at the remote services."""

from collections import Counter

from roundsman_testing.remote_services import RemoteServices

MOTO_SENDER = "AIDAIT2UOQQY3AUEKVGXU"
"""The principal that moto names as the sender of every message."""
ALL_EFFECTS = {
    "inventory perform": 1,
    "payment perform": 1,
    "shipping perform": 1,
    "mail perform": 1,
}


def effects_of(services: RemoteServices, order_id: str) -> dict[str, int]:
    """How often each operation really had its effect for an order."""
    found: Counter[str] = Counter()
    for entry in services.application.effects(order_id):
        assert isinstance(entry, dict)
        found[f"{entry['service']} {entry['operation']}"] += int(str(entry["effects"]))
    return dict(+found)


def order(order_id: str, **processing: object) -> dict[str, object]:
    """A good order event of one line, processed as wished."""
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
