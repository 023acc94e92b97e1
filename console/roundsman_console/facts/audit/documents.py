"""The document of an audit."""

from typing import TypedDict

from roundsman_console.base.constraints import Count, Instant


class PromiseDocument(TypedDict):
    """One promise, and how many orders it was kept to."""

    promise: str
    """Its name, such as `IN_ORDER`."""
    says: str
    """The promise as a sentence."""
    followed: Count
    broken: Count
    unknown: Count
    """The number of orders of which it cannot be judged, or not in every part."""


class BrokenDocument(TypedDict):
    """One way in which a promise to an order was broken."""

    order: str
    workflow: str
    promise: str
    what: str
    rows: list[int]
    """The `seq` of the rows of the order's history that show it."""
    command: str
    """The command that shows the order."""


class UnknownDocument(TypedDict):
    """Why a promise to some orders cannot be judged."""

    promise: str | None
    """Null if nothing of the order can be judged."""
    why: str
    orders: Count
    """The number of orders."""
    example: str
    """The id of one of them."""


class AuditDocument(TypedDict):
    """Which orders followed the promises, which did not, and what cannot be judged."""

    stack: str | None
    """The name of the stack; null for orders of a file."""
    at: Instant
    since: Instant | None
    """From when on the orders were submitted; null for all."""
    readUnits: Count | None
    """About how many read units of DynamoDB it took; null for orders of a file."""
    orders: Count
    """The number of orders that were judged."""
    followed: Count
    """The number of those that followed every promise."""
    partly: Count
    """The number of those that broke none, and of which a part cannot be judged."""
    broken: Count
    """The number of those that broke a promise."""
    unread: Count
    """The number of orders of which nothing could be judged."""
    removed: Count | None
    """The number of orders whose record was removed, of which nothing is known; null if that was
    not counted."""
    more: bool
    """Whether there are more orders than were read."""
    promises: list[PromiseDocument]
    violations: list[BrokenDocument]
    """At most 1,000."""
    unknown: list[UnknownDocument]
    unjudged: list[str]
    """The promises that stored records do not show."""
    stopped: str | None
    """Why the audit ended before it had read all; null if it did not."""
