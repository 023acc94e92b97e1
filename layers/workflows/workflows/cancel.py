"""The cancel event: an application cancels an order that it sent earlier.

A cancel event is a separate message and contains no order fields except `orderId`. The scheduler
decides whether the task can still be cancelled.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from roundsman.errors import Problem, RejectedOrder
from roundsman.model.json import Json
from workflows.validation import (
    ObjectField,
    ObjectSchema,
    Value,
    identifier,
    load,
    shortened,
    text,
    truth,
)

CANCEL = "cancel"
LONGEST_REASON = 500


class WishSchema(ObjectSchema):
    """The `cancel` object. Both fields are optional; null means the same as absent."""

    undo = Value(truth, optional=True)
    reason = Value(text(LONGEST_REASON), optional=True)


class CancelSchema(ObjectSchema):
    # Attributes have the names of the event's fields, so no mapping of names is needed.
    orderId = Value(identifier)
    cancel = ObjectField(WishSchema)


SCHEMA = CancelSchema()


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelEvent:
    """A valid cancel event."""

    order_id: str
    undo: bool
    """Whether the steps that may have had an effect are undone."""
    reason: str = field(repr=False)  # free text that may name the customer, so not for logs


def read_cancel_event(event: Mapping[str, Json]) -> CancelEvent:
    """Read a cancel event from a message's JSON object. Raises RejectedOrder with all problems."""
    valid, problems = load(SCHEMA, event)
    order_id = valid.get("orderId")
    if problems:
        raise RejectedOrder(shortened(problems), order_id=cast("str | None", order_id))
    wish = cast("Mapping[str, bool | str | None]", valid[CANCEL])
    return CancelEvent(
        order_id=cast("str", order_id),
        undo=wish["undo"] is not False,
        reason=cast("str", wish["reason"] or ""),
    )


def mixed(event: Mapping[str, Json], order_fields: Mapping[str, object]) -> list[Problem]:
    """The problem of an event that has both `cancel` and other order fields; empty if none."""
    if not (set(event) & set(order_fields)) - {"orderId"}:
        return []
    sentence = (
        "a cancel message may have no order field except orderId; "
        "send the order in a separate message"
    )
    return [Problem(CANCEL, sentence)]
