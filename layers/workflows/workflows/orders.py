"""The order event: what an application puts on the SubmissionQueue to have an order processed.

The same queue takes cancellations, which are told apart here and read in `cancel`.

An event is valid as a whole or not at all, and one that is not is told everything that is wrong
with it at once. Unknown fields are refused: a typo in `processing` would otherwise be ignored
without a word, and an order would be processed in another way than was asked for.
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

LARGEST_EVENT = 200 * 1024  # with its results, a task and its order stay below an item's 400 KB
MOST_LINES = 200
LONGEST_ID = 128
MOST_TOTAL_DIGITS = 12  # before the point; what the payment service takes


class LineSchema(ObjectSchema):
    sku = Value(text(128))
    quantity = Value(whole(1, 1_000_000))
    # Text, since a binary fraction cannot hold most prices. Four decimals are the most that any
    # currency has.
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
    # Named as in the event, so that what was checked is what is stored.
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
    """An order that was found valid.

    `content` is the order without `processing` and with its `total`. `content_hash` is the same
    for the same order whatever its key order, white space and `processing`.
    """

    order_id: str
    content: Json = field(repr=False)  # a log that shows the event must not show the customer
    content_hash: str
    workflow: Workflow
    options: ProcessingOptions


def read_event(
    body: str,
    *,
    now: int,
    workflows: Mapping[str, Workflow],
    reply_queue_problem: Callable[[str], str | None],
) -> OrderEvent | CancelEvent:
    """The order in a message's text, or the cancellation of one.

    Raises RejectedOrder with everything that is wrong. `now` is in epoch ms.
    `reply_queue_problem` says in a sentence why a queue's URL may not be sent to, or None where
    it may.
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
    if both:  # makes all that is wrong with the order beside the point
        problems = [*both, *(p for p in problems if p.path == "orderId")]
    else:
        problems = [*problems, *processing.problems]
    return _order(valid, processing, too_large or problems)


def _order(
    valid: Mapping[str, object], processing: Processing, problems: list[Problem]
) -> OrderEvent:
    """The order in what was found valid of an event. Raises RejectedOrder."""
    order = cast("dict[str, Json]", {k: v for k, v in valid.items() if k != "processing"})
    if processing.run and "orderId" in order:
        order["orderId"] = f"{order['orderId']}-{processing.run}"
        problems = problems or _too_long(order["orderId"])
    total = "" if problems else _total(cast("Sequence[_Line]", order["lines"]))
    if len(total.partition(".")[0]) > MOST_TOTAL_DIGITS:
        sentence = f"come to a total of more than {MOST_TOTAL_DIGITS} digits before the point"
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
        # The parser's sentence may quote a key, of any length; it quotes no value.
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
    """An id that its run's time makes longer than ids may be."""
    length = len(str(order_id))
    if length <= LONGEST_ID:
        return []
    sentence = f"has {length} characters with the time of its run; at most {LONGEST_ID} are allowed"
    return [Problem("orderId", sentence)]


_Line = Mapping[str, int | str]


def _total(lines: Sequence[_Line]) -> str:
    """The sum of quantity times price, exact, with as many decimals as the finest price."""
    prices = [str(line["unitPrice"]).partition(".") for line in lines]
    places = max(len(decimals) for _, _, decimals in prices)
    units = sum(
        int(line["quantity"]) * int(before + decimals.ljust(places, "0"))
        for line, (before, _, decimals) in zip(lines, prices, strict=True)
    )
    before, after = divmod(units, 10**places)
    return f"{before}.{after:0{places}d}" if places else str(before)
