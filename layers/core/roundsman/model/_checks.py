"""Checks of single values in a definition. Each raises DefinitionError with what to change."""

import re
from datetime import timedelta

from roundsman.errors import DefinitionError

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
LONGEST_ERROR_TYPE = 100  # bytes; a record keeps no more of one, and agents send no more
LONGEST_ATTEMPT = timedelta(seconds=900)  # AWS Lambda's longest timeout
SHORTEST_DURATION = timedelta(milliseconds=1)  # records keep milliseconds
LONGEST_DURATION = timedelta(days=3650)  # later instants soon leave the calendar, and are mistakes


def check_name(where: str, name: object) -> None:
    """Names go into keys, queue names and URLs."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise DefinitionError(
            f"{where}: the name must be 1 to 40 of a-z, 0-9 and _, beginning with a letter"
        )


def check_type(where: str, value: object, expected: type) -> None:
    """A value of another type is refused by what it is."""
    if not isinstance(value, expected):
        raise DefinitionError(f"{where} must be a {expected.__name__}, not {value!r}")


def check_tuple(where: str, value: object, kinds: tuple[type, ...], example: str) -> None:
    """A tuple whose items are all of these kinds; a forgotten comma is the usual cause."""
    if not isinstance(value, tuple) or not all(isinstance(item, kinds) for item in value):
        raise DefinitionError(f"{where} must be a tuple of {example}, not {value!r}")


def check_count(where: str, value: object) -> None:
    """A whole number of at least 1; True is not 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DefinitionError(f"{where} must be a whole number of at least 1, not {value!r}")


def check_duration(where: str, value: object) -> None:
    """A timedelta of a millisecond to ten years."""
    if not isinstance(value, timedelta) or value < SHORTEST_DURATION:
        raise DefinitionError(f"{where} must be a timedelta of at least 1 ms, not {value!r}")
    if value > LONGEST_DURATION:
        raise DefinitionError(f"{where} is {value.days} days; at most {LONGEST_DURATION.days}")


def check_attempt_time(where: str, value: object) -> None:
    """A duration that a Lambda function can hold."""
    check_duration(where, value)
    if isinstance(value, timedelta) and value > LONGEST_ATTEMPT:
        raise DefinitionError(
            f"{where} is {value.total_seconds():.0f} s; no Lambda function runs longer than "
            f"{LONGEST_ATTEMPT.total_seconds():.0f} s"
        )
