"""A good order event, ways to change one thing in it, and what reading it says."""

import copy
import json

from roundsman.errors import RejectedOrder
from roundsman.model.json import Json
from roundsman.submission.events import Asked, EventReader
from roundsman.submission.submission import ValidOrder
from workflows.registry import WORKFLOWS

NOW = 1_790_000_000_000  # 2026-09-21T14:13:20Z
REPLY_QUEUE = "https://sqs.eu-west-1.amazonaws.com/111122223333/shop-reply-web"

GOOD: dict[str, Json] = {
    "orderId": "ord-1001",
    "customerId": "c-42",
    "currency": "EUR",
    "lines": [
        {"sku": "KB-101", "quantity": 2, "unitPrice": "19.90"},
        {"sku": "MS-200", "quantity": 1, "unitPrice": "19.90"},
    ],
    "paymentToken": "tok_visa",
    "shippingAddress": {
        "name": "A. Reader",
        "street": "1 Main St",
        "city": "Ghent",
        "postalCode": "9000",
        "country": "BE",
    },
}

REMOVED = object()


def changed(path: str, value: object) -> dict[str, Json]:
    """The good event with one value set (`lines.0.quantity`), or removed."""
    event = copy.deepcopy(GOOD)
    *way, last = path.split(".")
    place: object = event
    for name in way:
        if isinstance(place, list):
            place = place[int(name)]
        elif isinstance(place, dict):
            place = place.setdefault(name, {})
    assert isinstance(place, dict)
    if value is REMOVED:
        del place[last]
    else:
        place[last] = value
    return event


def reply_queue_problem(url: str) -> str | None:
    """Stands for the stack's own rule."""
    return None if url == REPLY_QUEUE else "is not a reply queue of this stack"


EVENTS = EventReader(WORKFLOWS)


def read_any(event: object) -> Asked:
    """Read an event given as JSON, or as the text that it is."""
    body = event if isinstance(event, str) else json.dumps(event)
    return EVENTS.read(body, NOW, reply_queue_problem)


def read(event: object) -> ValidOrder:
    """Read an event that must be an order, if it is anything."""
    found = read_any(event)
    assert isinstance(found, ValidOrder)
    return found


def rejected(event: object) -> RejectedOrder:
    """What is raised for an event; fails where it is accepted."""
    try:
        read_any(event)
    except RejectedOrder as error:
        return error
    raise AssertionError("the event was accepted")


def problems(event: object) -> list[str]:
    """Everything that is wrong with an event, as sentences."""
    return [str(problem) for problem in rejected(event).problems]


def wrong_paths(event: object) -> list[str]:
    """Where an event is wrong."""
    return [problem.path for problem in rejected(event).problems]
