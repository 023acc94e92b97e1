"""Validates the body of each call, and decides which order contents a service refuses.

All functions are pure. A `..._problems` function returns one sentence for each problem, which
begins with the path of the field; the list is empty for a valid body. Unknown fields are ignored. A
`..._refusal` function returns the error answer, or None.
"""

import re

from roundsman_testing.remote_services.values import Answer, Body, Json, refused

MAX_TEXT = 512
_AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,4})?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
_COUNTRY = re.compile(r"[A-Z]{2}", re.ASCII)
_ERROR_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}", re.ASCII)


def reservation_problems(body: Body) -> list[str]:
    """The problems of `{orderId, lines}`."""
    return [*_text(body, "orderId"), *_lines(body)]


def charge_problems(body: Body) -> list[str]:
    """The problems of `{orderId, amount, currency, token}`; `amount` is text such as "39.80"."""
    return [
        *_text(body, "orderId"),
        *_pattern(body, "amount", _AMOUNT, 'a decimal number in a string, such as "39.80"'),
        *_pattern(body, "currency", _CURRENCY, "three capital letters, such as EUR"),
        *_text(body, "token"),
    ]


def refund_problems(body: Body) -> list[str]:
    """The problems of `{chargeKey}`, the idempotency key of the charge."""
    return _text(body, "chargeKey")


def shipment_problems(body: Body) -> list[str]:
    """The problems of `{orderId, address, lines}`."""
    return [*_text(body, "orderId"), *_address(body.get("address")), *_lines(body)]


def message_problems(body: Body) -> list[str]:
    """The problems of `{orderId, template}`."""
    return [*_text(body, "orderId"), *_text(body, "template")]


def stand_in_problems(body: Body) -> list[str]:
    """The problems of a call of a stand-in service, `{orderId, ...}`."""
    return _text(body, "orderId")


def nothing_to_check(_body: Body) -> list[str]:
    """No problems, for a call whose body is ignored."""
    return []


def reservation_refusal(body: Body) -> Answer | None:
    """Refuse with OutOfStock if the sku of a line begins with OUT-."""
    lines = body.get("lines")
    known = lines if isinstance(lines, list) else []
    skus = [line.get("sku") for line in known if isinstance(line, dict)]
    if any(isinstance(sku, str) and sku.startswith("OUT-") for sku in skus):
        return refused(409, "OutOfStock", "a line's sku is out of stock")
    return None


def charge_refusal(body: Body) -> Answer | None:
    """Refuse with CardDeclined if the token is tok_declined."""
    if body.get("token") == "tok_declined":
        return refused(402, "CardDeclined", "the card was declined")
    return None


def shipment_refusal(body: Body) -> Answer | None:
    """Refuse with AddressUndeliverable if the country is XX."""
    address = body.get("address")
    if isinstance(address, dict) and address.get("country") == "XX":
        return refused(422, "AddressUndeliverable", "no carrier delivers to this country")
    return None


def stand_in_refusal(name: str, body: Body) -> Answer | None:
    """Refuse a call of the stand-in service `name` if a text of its body is `refused-by-NAME`.

    A field `refuse` does the same, with the type of the error.
    """
    error_type = body.get("refuse")
    if isinstance(error_type, str) and _ERROR_TYPE.fullmatch(error_type):
        return refused(422, error_type, "the call asks to be refused")
    if _has_text(body, f"refused-by-{name}"):
        return refused(422, "Refused", "the order asks to be refused")
    return None


def _has_text(value: Json, text: str) -> bool:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return any(_has_text(each, text) for each in inner)
    return value == text


def never_refused(_body: Body) -> Answer | None:
    """No refusal, for a call that never depends on the contents of the order."""
    return None


def _text(body: Body, name: str, path: str = "") -> list[str]:
    value = body.get(name)
    if isinstance(value, str) and 0 < len(value) <= MAX_TEXT:
        return []
    return [f"{path}{name}: must be text of 1 to {MAX_TEXT} characters"]


def _pattern(
    body: Body, name: str, pattern: re.Pattern[str], wanted: str, path: str = ""
) -> list[str]:
    value = body.get(name)
    if isinstance(value, str) and pattern.fullmatch(value):
        return []
    return [f"{path}{name}: must be {wanted}"]


def _lines(body: Body) -> list[str]:
    lines = body.get("lines")
    if not isinstance(lines, list) or not lines:
        return ["lines: must be a list of at least one line"]
    problems: list[str] = []
    for index, line in enumerate(lines):
        path = f"lines[{index}]"
        if not isinstance(line, dict):
            problems.append(f"{path}: must be an object")
            continue
        problems += _text(line, "sku", f"{path}.")
        if not _is_positive_whole(line.get("quantity")):
            problems.append(f"{path}.quantity: must be a whole number of at least 1")
    return problems


def _address(address: Json) -> list[str]:
    if not isinstance(address, dict):
        return ["address: must be an object"]
    names = ("name", "street", "city", "postalCode")
    problems = [problem for name in names for problem in _text(address, name, "address.")]
    wanted = "two capital letters, such as BE"
    return [*problems, *_pattern(address, "country", _COUNTRY, wanted, "address.")]


def _is_positive_whole(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
