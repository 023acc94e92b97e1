"""Search keys: an order is found by the fields of its input that its workflow names in `search`.

Each such field gives the order row a key, the path of the field with its value:

- `customerId=c-42` has the value as it is. A number is as text: 1, 1.0 and "1" are one value, and
  so are true and "true". Texts are in Unicode's form NFC, so that it does not matter which program
  they were typed in. Small and capital letters are different.
- `note#<SHA-256>` has a value of more than LONGEST_VALUE bytes.
- `card.holder~<HMAC-SHA-256>` has a masked value, under a secret of the stack.

A field that is missing, null, an empty text, a list or an object gives no key.
"""

import hmac
from collections.abc import Callable, Iterable
from unicodedata import normalize

from roundsman.model.corrections import Path, value_at
from roundsman.model.json import Json, canonical_json, sha256
from roundsman.model.masked_values import MaskedPaths

LONGEST_VALUE = 256
"""Bytes of a value that a key has as it is. So an entry of the index is below 1 KB, one write unit,
whatever the value is."""


def search_keys(
    paths: Iterable[str], masked: Iterable[str], content: Json, secret: Callable[[], bytes]
) -> tuple[str, ...]:
    """Return the keys of an order with this content, for the fields at these paths.

    `masked` are the paths of the masked fields. `secret` is called only for a masked value.
    """
    hidden = MaskedPaths.of(masked)
    found: list[str] = []
    for path in paths:
        value = value_text(value_at(content, _names(path))[1])
        if value:
            key = secret() if hidden.includes(_names(path)) else None
            found.append(search_key(path, value, key))
    return tuple(found)


def search_key(path: str, value: str, secret: bytes | None) -> str:
    """Return the key of a value, as `value_text` returns it; `secret` if the field is masked."""
    text = normalize("NFC", value)
    if secret is not None:
        return f"{path}~{hmac.digest(secret, f'{path}={text}'.encode(), 'sha256').hex()}"
    return f"{path}={text}" if len(text.encode()) <= LONGEST_VALUE else f"{path}#{sha256(text)}"


def keys_of_value(path: str, value: str, secret: bytes | None) -> tuple[str, ...]:
    """Return the keys that an order with this value of the field at the path may have.

    Whether the field is masked depends on the order's plan. `secret` is that of the stack; None if
    no masked value has needed one.
    """
    keys = (search_key(path, value, None),)
    return keys if secret is None else (*keys, search_key(path, value, secret))


def value_text(value: Json) -> str:
    """Return the text of a value by which it is found; an empty one if it is not found by any."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return canonical_json(value) if isinstance(value, int | float) else ""


def _names(path: str) -> Path:
    return tuple(path.split("."))
