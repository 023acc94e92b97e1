"""Checks of single values in a definition. Each check raises DefinitionError if it fails."""

import json
import re
from datetime import timedelta

from roundsman.errors import DefinitionError

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
LONGEST_ERROR_TYPE = 100  # bytes; agents and records cut an error type to this length
LONGEST_ATTEMPT = timedelta(seconds=900)  # AWS Lambda's longest timeout
SHORTEST_DURATION = timedelta(milliseconds=1)  # records store milliseconds
SHORTEST_WAIT = timedelta(seconds=1)
"""The shortest time in which something can be answered: what is asked and what is answered come
through queues, and the function that reads them may have to start."""
LONGEST_DURATION = timedelta(days=3650)  # longer ones are mistakes and may overflow datetime
LONGEST_NAME = 64  # characters of a field's name that a path shows
LONGEST_SHOWN = 80  # characters of a wrong value that a refusal shows

ENGINE_FIELDS = frozenset({"orderId", "processing", "cancel", "signal"})
"""The fields of an order event that belong to the engine, so no input type may have them."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def quoted_name(name: str) -> str:
    """Return the name of a field as a part of a path: escaped, quoted and cut if it is unusual."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return json.dumps(f"{name[:LONGEST_NAME]}..." if len(name) > LONGEST_NAME else name)


def shown(value: object) -> str:
    """Return the value as its refusal shows it: a step with all of its fields would be a page."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def check_name(where: str, name: object) -> None:
    """Check a name. Names are parts of keys, queue names and URLs."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise DefinitionError(
            f"{where}: the name must be 1 to 40 characters of a-z, 0-9 and _, "
            "beginning with a letter"
        )


def check_type(where: str, value: object, expected: type) -> None:
    """Check that a value is an instance of the expected type."""
    if not isinstance(value, expected):
        raise DefinitionError(f"{where} must be a {expected.__name__}, not {shown(value)}")


def check_tuple(where: str, value: object, kinds: tuple[type, ...], example: str) -> None:
    """Check for a tuple whose items are all of these types.

    The usual mistake is a missing comma, as in `("name")`.
    """
    if not isinstance(value, tuple) or not all(isinstance(item, kinds) for item in value):
        raise DefinitionError(f"{where} must be a tuple of {example}, not {shown(value)}")


def check_count(where: str, value: object) -> None:
    """Check for an integer of at least 1. A bool is not accepted."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DefinitionError(f"{where} must be a whole number of at least 1, not {shown(value)}")


def check_duration(where: str, value: object) -> None:
    """Check for a timedelta from 1 ms to 3650 days."""
    if not isinstance(value, timedelta) or value < SHORTEST_DURATION:
        raise DefinitionError(f"{where} must be a timedelta of at least 1 ms, not {shown(value)}")
    if value > LONGEST_DURATION:
        raise DefinitionError(f"{where} is {value.days} days; at most {LONGEST_DURATION.days}")


def check_wait(where: str, value: object) -> None:
    """Check for a duration of at least 1 s, in which something can be answered."""
    check_duration(where, value)
    if isinstance(value, timedelta) and value < SHORTEST_WAIT:
        raise DefinitionError(
            f"{where} is {value.total_seconds():g} s; raise it to at least 1 s: an answer comes "
            "through a queue, and its function may have to start"
        )


def check_attempt_time(where: str, value: object) -> None:
    """Check for a duration from 1 s to the longest timeout of a Lambda function (900 s)."""
    check_wait(where, value)
    if isinstance(value, timedelta) and value > LONGEST_ATTEMPT:
        raise DefinitionError(
            f"{where} is {value.total_seconds():.0f} s; no Lambda function runs longer than "
            f"{LONGEST_ATTEMPT.total_seconds():.0f} s"
        )
