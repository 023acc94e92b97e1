"""How messages that were set aside are told apart: by their beginnings, their sizes and hashes.

A list shows the beginning of a message without an order id, but only where masked values can be
found in it. In a text that is no JSON, or without the workflows of the application, any part may be
a value that must not be shown.
"""

import hashlib

from roundsman.model.json import parse_json
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.set_aside.masked import masked_body

MOST = 80
"""The number of characters of a beginning."""
HASH = 12
"""The number of digits of a hash that are shown; enough to tell a million messages apart."""


def sha256_of(body: str) -> str:
    """Return the SHA-256 of a body, as hexadecimal digits."""
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def measure_of(body: str) -> str:
    """Return the size and the hash of a body in words, which differ where the bodies do."""
    size = len(body.encode("utf-8", "surrogatepass"))
    return f"{size:,} byte{'' if size == 1 else 's'}, SHA-256 {sha256_of(body)[:HASH]}"


def beginning_of(stack: DeployedStack, body: str) -> str | None:
    """Return at most MOST characters of a body, masked; None if nothing of it may be shown."""
    if stack.events is None:
        return None
    try:
        parse_json(body)
    except ValueError:
        return None
    # The values are masked before anything is left out, or a value that is cut would be shown.
    shown = " ".join(masked_body(stack, body).split())
    return shown if len(shown) <= MOST else f"{shown[:MOST]}..."
