"""Which calls the remote services take, and where each is found: the contract as a table.

Pure. A resource is addressed by the idempotency key of the perform that makes it, URL-encoded in
one path segment, so that an undo works even when nobody knows whether the perform happened.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from roundsman.testing.remote_services import bodies
from roundsman.testing.remote_services.values import Answer, Body, Kind, refused


@dataclass(frozen=True)
class Operation:
    """One call of one service; `id_prefix` is empty where the answer carries no body."""

    method: str
    resource: str
    service: str
    kind: Kind
    ok_status: int
    problems: Callable[[Body], list[str]] = bodies.nothing_to_check
    refusal: Callable[[Body], Answer | None] = bodies.never_refused
    id_field: str = ""
    id_prefix: str = ""

    @property
    def name(self) -> str:
        """The name by which fault rules know this call, such as `POST /charges`."""
        return f"{self.method} /{self.resource}"

    @property
    def is_addressed(self) -> bool:
        """Whether the path goes on with the key of the perform that is undone or asked about."""
        return self.method in ("DELETE", "GET")


OPERATIONS = (
    Operation(
        "POST", "reservations", "inventory", "perform", 201,
        bodies.reservation_problems, bodies.reservation_refusal, "reservationId", "rs",
    ),
    Operation("DELETE", "reservations", "inventory", "undo", 204),
    Operation(
        "POST", "charges", "payment", "perform", 201,
        bodies.charge_problems, bodies.charge_refusal, "chargeId", "ch",
    ),
    Operation("GET", "charges", "payment", "probe", 200),
    Operation(
        "POST", "refunds", "payment", "undo", 201,
        bodies.refund_problems, bodies.never_refused, "refundId", "rf",
    ),
    Operation(
        "POST", "shipments", "shipping", "perform", 201,
        bodies.shipment_problems, bodies.shipment_refusal, "shipmentId", "sh",
    ),
    Operation("DELETE", "shipments", "shipping", "undo", 204),
    Operation("POST", "messages", "mail", "perform", 202, bodies.message_problems),
)  # fmt: skip

SERVICES = frozenset(operation.service for operation in OPERATIONS)
RESOURCES = frozenset(operation.resource for operation in OPERATIONS)
OPERATION_NAMES = frozenset(operation.name for operation in OPERATIONS)


@dataclass(frozen=True)
class Route:
    """The operation that a request names, and the perform key in its path (or an empty one)."""

    operation: Operation
    perform_key: str = ""


def route(method: str, path: str) -> Route | Answer:
    """Find the operation of a request; an Answer says why there is none. `path` has no query."""
    segments = path.split("/")[1:]
    resource = segments[0]
    here = [operation for operation in OPERATIONS if operation.resource == resource]
    if not here:
        return refused(404, "NoSuchResource", "GET / lists the calls that exist")
    fitting = [each for each in here if len(segments) == (2 if each.is_addressed else 1)]
    found = [operation for operation in fitting if operation.method == method]
    if found and found[0].is_addressed:
        key = unquote(segments[1])
        sentence = "the perform's idempotency key must follow the resource"
        return Route(found[0], key) if key else refused(404, "NoSuchResource", sentence)
    if found:
        return Route(found[0])
    if fitting:
        allow = ", ".join(operation.method for operation in fitting)
        return Answer(405, {"error": "MethodNotAllowed", "allow": allow}, {"Allow": allow})
    sentence = "the path must be the resource, or the resource and one URL-encoded key"
    return refused(404, "NoSuchResource", sentence)
