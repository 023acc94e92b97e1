"""How steps did, as the pages of a workflow and of an agent show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundsman.model.instants import MINUTE, iso
from roundsman_console.base.clock import now
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.faces.web.drawings.spark import Spark, spark
from roundsman_console.faces.web.readings.cache import Cached
from roundsman_console.faces.web.readings.unreadable_parts import Part, part
from roundsman_console.facts.cost.prices import load_prices
from roundsman_console.facts.workflow.health import (
    PERIODS,
    SHARE,
    Health,
    StepHealth,
    sources_words,
    usual_words,
)
from roundsman_console.facts.workflow.reading import StepsToRead, read_health
from roundsman_console.inspector import Inspector

KEEP = 5 * MINUTE
"""How long figures of CloudWatch are shown again, in ms: reading them costs money."""
ON_A_PAGE = 50
"""The number of steps of a page."""
MOST_IN_TABLE = 12
"""The number of steps whose shares the table below the drawings has: the worst ones."""
_MOST_DIGITS = 6

_READ: dict[tuple[str, str], Cached[Health]] = {}
"""What was read, by the period and what it is about."""


@dataclass(frozen=True, slots=True)
class HealthRow:
    """A step, and the drawing of its failures."""

    health: StepHealth
    spark: Spark


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A step, and the share that failed in each slice of the period, in words."""

    step: str
    shares: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownHealth:
    """How steps did, and what a page needs beside it."""

    found: Health
    period: str
    rows: Sequence[HealthRow]
    """Those of this page."""
    start: int
    """The number of steps on the pages before it."""

    @property
    def periods(self) -> Mapping[str, int]:
        """The periods that can be chosen."""
        return PERIODS

    @property
    def per_page(self) -> int:
        """The number of steps of a page."""
        return ON_A_PAGE

    @property
    def usual(self) -> str:
        """What is called usual."""
        return usual_words(self.found)

    @property
    def sources(self) -> str:
        """Where the numbers come from."""
        return sources_words(self.found)

    @property
    def price(self) -> str:
        """What a GB of logs costs that is scanned, in words."""
        return f"{load_prices().prices['logs.scanned'].usd:g} USD"

    @property
    def slices(self) -> list[str]:
        """When each column of the drawings begins, in UTC: `29 22:00`."""
        return [iso(one)[8:16].replace("T", " ") for one in self.found.slices]

    @property
    def shares(self) -> list[ShareRow]:
        """The table of the drawings: the steps of which any attempt failed, the worst first."""
        failed = [one.health for one in self.rows if one.health.failed]
        return [
            ShareRow(
                one.step,
                tuple(
                    "unknown" if share is None else SHARE.to_words(share)
                    for share in self.found.shares(one)
                ),
            )
            for one in failed[:MOST_IN_TABLE]
        ]


def period_of(given: Mapping[str, str]) -> str:
    """The period that was asked for; the first one if none, or none that there is."""
    return given["period"] if given.get("period") in PERIODS else next(iter(PERIODS))


def read_step_health(
    inspector: Inspector, about: str, steps: StepsToRead, given: Mapping[str, str]
) -> Part[ShownHealth]:
    """Read how the steps did in the period that `given` names, at most every KEEP ms.

    `about` is what they are steps of: the hash of a plan, or an agent.
    """
    period, at = period_of(given), now()
    kept = _READ.setdefault((period, about), Cached(KEEP))
    found = part(
        lambda: kept.get(inspector, lambda: read_health(inspector.stack, steps, period, at))
    )
    if found.value is None:
        return Part(None, found.problem, found.unread)
    health = found.value
    start = _start(given, len(health.steps))
    shown = health.steps[start : start + ON_A_PAGE]
    rows = [HealthRow(one, spark(health.shares(one))) for one in shown]
    return Part(ShownHealth(health, period, rows, start))


def _start(given: Mapping[str, str], many: int) -> int:
    """The number of steps before the first one to show."""
    text = given.get("from", "") or "0"
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise InvalidArgument("The parameter from is the number of steps before: 0, 50, 100.")
    return min(int(text), max(0, many - 1))
