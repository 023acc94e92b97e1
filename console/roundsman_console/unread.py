"""What could not be read, and why: one sentence for each cause."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read."""

    what: str
    """What it is, for people: `the queues`."""
    why: str
    """The cause as a sentence, the same for everything that has this cause."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why some things could not be read."""

    sentence: str
    missing: list[str] = field(default_factory=list)
    """What could not be read, in the order in which it was asked for."""


def causes(unread: Iterable[Unread]) -> list[Cause]:
    """Return each cause once, with all that it kept from being read."""
    found: dict[str, Cause] = {}
    for one in unread:
        missing = found.setdefault(one.why, Cause(one.why)).missing
        if one.what not in missing:
            missing.append(one.what)
    return [*found.values()]
