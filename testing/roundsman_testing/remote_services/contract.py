"""The calls of the remote services as a table, and the routing of requests to them.

The table has the services of the example. A stand-in service has one resource of the same name
(`POST /booking`), which it creates, deletes and looks up: enough for a new agent until its real
service is there.

All functions are pure. The address of a resource is the idempotency key of the perform that
creates it, URL-encoded in one path segment, so an undo also works if it is unknown whether the
perform happened.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote

from roundsman_testing.remote_services import bodies
from roundsman_testing.remote_services.values import Answer, Body, Kind, refused


@dataclass(frozen=True)
class ServiceOperation:
    """One call of one service."""

    method: str
    resource: str
    service: str
    kind: Kind
    ok_status: int
    """The HTTP status of a successful call."""
    problems: Callable[[Body], list[str]] = bodies.nothing_to_check
    refusal: Callable[[Body], Answer | None] = bodies.never_refused
    id_field: str = ""
    """The field of the answer that has the id of the new resource."""
    id_prefix: str = ""
    """The prefix of that id; empty if the answer has no body of its own."""
    absent: str = "NotFound"
    """The error type of a lookup if no effect stands under the key."""

    @property
    def name(self) -> str:
        """The name of this call in fault rules, such as `POST /charges`."""
        return f"{self.method} /{self.resource}"

    @property
    def is_addressed(self) -> bool:
        """Whether the path ends with the key of the perform to undo or to look up."""
        return self.method in ("DELETE", "GET")


OPERATIONS = (
    ServiceOperation(
        "POST", "reservations", "inventory", "perform", 201,
        bodies.reservation_problems, bodies.reservation_refusal, "reservationId", "rs",
    ),
    ServiceOperation("DELETE", "reservations", "inventory", "undo", 204),
    ServiceOperation(
        "POST", "charges", "payment", "perform", 201,
        bodies.charge_problems, bodies.charge_refusal, "chargeId", "ch",
    ),
    ServiceOperation("GET", "charges", "payment", "probe", 200, absent="NotCharged"),
    ServiceOperation(
        "POST", "refunds", "payment", "undo", 201,
        bodies.refund_problems, bodies.never_refused, "refundId", "rf",
    ),
    ServiceOperation(
        "POST", "shipments", "shipping", "perform", 201,
        bodies.shipment_problems, bodies.shipment_refusal, "shipmentId", "sh",
    ),
    ServiceOperation("DELETE", "shipments", "shipping", "undo", 204),
    ServiceOperation("POST", "messages", "mail", "perform", 202, bodies.message_problems),
)  # fmt: skip

_RESOURCE = re.compile(r"[a-z][a-z0-9_]{0,39}")


def with_stand_ins(names: Iterable[str]) -> tuple[ServiceOperation, ...]:
    """The operations of the example and of stand-in services with these names.

    A stand-in takes the place of a resource of the example that has its name. Raises ValueError for
    a name that is not 1 to 40 of a-z, 0-9 and _, beginning with a letter.
    """
    chosen = dict.fromkeys(names)
    found = [operation for operation in OPERATIONS if operation.resource not in chosen]
    for name in chosen:
        if not _RESOURCE.fullmatch(name):
            raise ValueError(f"no service can be named {name!r}")
        found += [
            ServiceOperation(
                "POST", name, name, "perform", 201,
                bodies.stand_in_problems, partial(bodies.stand_in_refusal, name), "id", name[:2],
            ),
            ServiceOperation("DELETE", name, name, "undo", 204),
            ServiceOperation("GET", name, name, "probe", 200),
        ]  # fmt: skip
    return tuple(found)


@dataclass(frozen=True)
class Route:
    """The operation of a request."""

    operation: ServiceOperation
    perform_key: str = ""
    """The key of the perform in the path; empty if the path has none."""


def route(
    method: str, path: str, operations: Sequence[ServiceOperation] = OPERATIONS
) -> Route | Answer:
    """The operation of a request, or an error answer if there is none. `path` has no query."""
    segments = path.split("/")[1:]
    resource = segments[0]
    here = [operation for operation in operations if operation.resource == resource]
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
