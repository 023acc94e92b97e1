"""What could not be read, and why: one sentence for each cause."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read."""

    what: str
    """What it is, for people: `the queues`."""
    why: str
    """The cause as a sentence, the same for everything that has this cause."""


def causes(unread: Iterable[Unread]) -> dict[str, list[str]]:
    """Return what was not read by its cause, in the order in which it was asked for."""
    found: dict[str, list[str]] = {}
    for one in unread:
        missing = found.setdefault(one.why, [])
        if one.what not in missing:
            missing.append(one.what)
    return found
