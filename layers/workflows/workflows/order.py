"""The input of the workflows: an order of a shop."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from roundsman import InvalidInput, Items, Masked, Pattern, Problem, Range, Text

MOST_LINES = 200
MOST_TOTAL_DIGITS = 12  # before the decimal point; the limit of the payment service

# Text, because a binary floating-point number cannot hold most prices exactly. No currency has more
# than four decimals.
Price = Annotated[
    str,
    Pattern(
        r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,4})?",
        'a decimal number in text, such as "19.90": 0 or more, at most 9 digits before the '
        "point and 4 after it, no exponent",
    ),
]


class Line(TypedDict):
    """A number of one article."""

    sku: Annotated[str, Text(128)]
    quantity: Annotated[int, Range(1, 1_000_000)]
    unitPrice: Price


class Address(TypedDict):
    """Where the order is sent."""

    name: Annotated[str, Text(200)]
    street: Annotated[str, Text(200)]
    city: Annotated[str, Text(200)]
    postalCode: Annotated[str, Text(32)]
    country: Annotated[str, Pattern("[A-Z]{2}", "two capital letters (ISO 3166), such as BE")]


class NewOrder(TypedDict):
    """An order as the application sends it."""

    customerId: Annotated[str, Text(128)]
    currency: Annotated[str, Pattern("[A-Z]{3}", "three capital letters (ISO 4217), such as EUR")]
    lines: Annotated[list[Line], Items(MOST_LINES, least=1)]
    paymentToken: Annotated[str, Text(512), Masked()]
    shippingAddress: Address


class Order(NewOrder):
    """An order as the agents receive it."""

    total: str
    """The exact sum of quantity times price, as a decimal number."""


def with_total(order: NewOrder) -> Order:
    """Add the total of a valid order. Raises InvalidInput if no payment service can charge it."""
    total = _total(order["lines"])
    if len(total.partition(".")[0]) > MOST_TOTAL_DIGITS:
        sentence = f"have a total of more than {MOST_TOTAL_DIGITS} digits before the decimal point"
        raise InvalidInput([Problem("lines", sentence)])
    return {**order, "total": total}


def _total(lines: Sequence[Line]) -> str:
    """The exact sum of quantity times price, with as many decimals as the price with the most."""
    prices = [line["unitPrice"].partition(".") for line in lines]
    places = max(len(decimals) for _, _, decimals in prices)
    units = sum(
        line["quantity"] * int(before + decimals.ljust(places, "0"))
        for line, (before, _, decimals) in zip(lines, prices, strict=True)
    )
    before, after = divmod(units, 10**places)
    return f"{before}.{after:0{places}d}" if places else str(before)
