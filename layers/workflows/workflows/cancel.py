"""The cancel event: an application takes back an order that it sent before.

It is a message of its own: what cancels an order describes none. Whether the task can still be
cancelled is not known here; the scheduler decides that.
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
    """Both are optional, and null is the same as absent."""

    undo = Value(truth, optional=True)
    reason = Value(text(LONGEST_REASON), optional=True)


class CancelSchema(ObjectSchema):
    # Named as in the event, so that what is checked needs no second list of names.
    orderId = Value(identifier)
    cancel = ObjectField(WishSchema)


SCHEMA = CancelSchema()


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelEvent:
    """A cancellation that was found valid. With `undo`, what may have happened is undone."""

    order_id: str
    undo: bool
    reason: str = field(repr=False)  # an application's own words, which may name its customer


def read_cancel_event(event: Mapping[str, Json]) -> CancelEvent:
    """The cancellation in a message's object. Raises RejectedOrder with all that is wrong."""
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
    """The problem of an event that gives an order and cancels it at once."""
    if not (set(event) & set(order_fields)) - {"orderId"}:
        return []
    sentence = (
        "an order is sent and cancelled in two messages: only orderId may stand beside cancel"
    )
    return [Problem(CANCEL, sentence)]
