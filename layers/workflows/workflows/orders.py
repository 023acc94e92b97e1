"""The order event: the message on the SubmissionQueue that asks to process an order.

The same queue receives cancel events. This module distinguishes the two and passes cancel events
to `workflows.cancel`.

An event is accepted or rejected as a whole, and a rejection lists every problem. Unknown fields
are rejected: otherwise a typo in `processing` would be ignored silently, and the order would be
processed differently from what the application asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import Problem, RejectedOrder
from roundsman.model.json import Json, canonical_json, parse_json, sha256
from roundsman.model.workflow import Workflow
from workflows.cancel import CANCEL, CancelEvent, mixed, read_cancel_event
from workflows.processing import Processing, ProcessingSchema, read_processing
from workflows.validation import (
    ListField,
    ObjectField,
    ObjectSchema,
    Value,
    identifier,
    load,
    matching,
    shortened,
    text,
    whole,
)

LARGEST_EVENT = 200 * 1024  # bytes; keeps order and task, with results, below 400 KB per item
MOST_LINES = 200
LONGEST_ID = 128
MOST_TOTAL_DIGITS = 12  # before the decimal point; the limit of the payment service


class LineSchema(ObjectSchema):
    sku = Value(text(128))
    quantity = Value(whole(1, 1_000_000))
    # Text, because a binary floating-point number cannot hold most prices exactly. No currency
    # has more than four decimals.
    unitPrice = Value(
        matching(
            r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,4})?",
            'a decimal number in text, such as "19.90": 0 or more, at most 9 digits before the '
            "point and 4 after it, no exponent",
        )
    )


class AddressSchema(ObjectSchema):
    name = Value(text(200))
    street = Value(text(200))
    city = Value(text(200))
    postalCode = Value(text(32))
    country = Value(matching("[A-Z]{2}", "two capital letters (ISO 3166), such as BE"))


class OrderSchema(ObjectSchema):
    # Attributes have the names of the event's fields, so the checked object is stored as it is.
    orderId = Value(identifier)
    customerId = Value(text(128))
    currency = Value(matching("[A-Z]{3}", "three capital letters (ISO 4217), such as EUR"))
    lines = ListField(LineSchema, most=MOST_LINES)
    paymentToken = Value(text(512))
    shippingAddress = ObjectField(AddressSchema)
    processing = ObjectField(ProcessingSchema, optional=True)


SCHEMA = OrderSchema()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEvent:
    """A valid order event."""

    order_id: str
    content: Json = field(repr=False)  # contains customer data, which must not appear in logs
    """The order without `processing` and with its `total`."""
    content_hash: str
    """A hash of the order that does not depend on key order, white space or `processing`."""
    workflow: Workflow
    options: ProcessingOptions


def read_event(
    body: str,
    *,
    now: int,
    workflows: Mapping[str, Workflow],
    reply_queue_problem: Callable[[str], str | None],
) -> OrderEvent | CancelEvent:
    """Read an order event or a cancel event from the text of a message.

    `now` is in epoch ms. `reply_queue_problem` takes the URL of a queue and returns None if
    statuses may be sent to it, else a sentence with the reason. Raises RejectedOrder with all
    problems.
    """
    event = _json_object(body)
    too_large = _too_large(body)
    both = mixed(event, SCHEMA.fields) if CANCEL in event else []
    if CANCEL in event and not (too_large or both):
        return read_cancel_event(event)
    valid, problems = load(SCHEMA, event)
    processing = read_processing(
        cast("Mapping[str, object]", valid.get("processing") or {}),
        now=now,
        workflows=workflows,
        reply_queue_problem=reply_queue_problem,
    )
    if both:  # the other problems of the order are irrelevant then
        problems = [*both, *(p for p in problems if p.path == "orderId")]
    else:
        problems = [*problems, *processing.problems]
    return _order(valid, processing, too_large or problems)


def _order(
    valid: Mapping[str, object], processing: Processing, problems: list[Problem]
) -> OrderEvent:
    """The order event of the checked fields. Raises RejectedOrder if there are problems."""
    order = cast("dict[str, Json]", {k: v for k, v in valid.items() if k != "processing"})
    if processing.run and "orderId" in order:
        order["orderId"] = f"{order['orderId']}-{processing.run}"
        problems = problems or _too_long(order["orderId"])
    total = "" if problems else _total(cast("Sequence[_Line]", order["lines"]))
    if len(total.partition(".")[0]) > MOST_TOTAL_DIGITS:
        sentence = f"have a total of more than {MOST_TOTAL_DIGITS} digits before the decimal point"
        problems = [Problem("lines", sentence)]
    if problems or processing.workflow is None:
        raise RejectedOrder(
            shortened(problems),
            order_id=cast("str | None", order.get("orderId")),
            reply_to=processing.options.reply_to,
            correlation_id=processing.options.correlation_id,
        )
    return OrderEvent(
        order_id=cast("str", order["orderId"]),
        content={**order, "total": total},
        content_hash=sha256(canonical_json(order)),
        workflow=processing.workflow,
        options=processing.options,
    )


def _json_object(body: str) -> Mapping[str, Json]:
    try:
        value = parse_json(body)
    except ValueError as error:
        # The parser's message may quote a key of any length; it never quotes a value.
        reason = str(error)
        if len(reason) > 200:
            reason = f"{reason[:100]}...{reason[-50:]}"
        raise RejectedOrder([*_too_large(body), Problem("", f"not JSON: {reason}")]) from error
    if not isinstance(value, Mapping):
        raise RejectedOrder([*_too_large(body), Problem("", "must be an object")])
    return value


def _too_large(body: str) -> list[Problem]:
    size = len(body.encode("utf-8", "surrogatepass"))
    if size <= LARGEST_EVENT:
        return []
    return [Problem("", f"the event has {size} bytes; at most {LARGEST_EVENT} are allowed")]


def _too_long(order_id: Json) -> list[Problem]:
    """The problem of an order id that is too long with the time of its run; empty if none."""
    length = len(str(order_id))
    if length <= LONGEST_ID:
        return []
    sentence = f"has {length} characters with the time of its run; at most {LONGEST_ID} are allowed"
    return [Problem("orderId", sentence)]


_Line = Mapping[str, int | str]


def _total(lines: Sequence[_Line]) -> str:
    """The exact sum of quantity times price, with as many decimals as the price with the most."""
    prices = [str(line["unitPrice"]).partition(".") for line in lines]
    places = max(len(decimals) for _, _, decimals in prices)
    units = sum(
        int(line["quantity"]) * int(before + decimals.ljust(places, "0"))
        for line, (before, _, decimals) in zip(lines, prices, strict=True)
    )
    before, after = divmod(units, 10**places)
    return f"{before}.{after:0{places}d}" if places else str(before)
