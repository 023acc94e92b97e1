"""Computes what a month costs at several numbers of orders, here and on other services.

The functions are pure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from roundsman_console.facts.cost.figures import Figures
from roundsman_console.facts.cost.model import MILLION, PROFILES, Wanted, bill_of, rivals_of
from roundsman_console.facts.cost.prices import Prices

VOLUMES = (0, 10_000, 100_000, 1_000_000, 10_000_000)
"""Orders a month."""
MOST_COMPARED = 1_000_000_000
"""The greatest number of orders a month at which it is tried whether a profile is cheaper."""


@dataclass(frozen=True, slots=True)
class Volumes:
    """The cost of a month in USD at each of VOLUMES, and from which number on which is less."""

    profiles: Mapping[str, tuple[float, ...]]
    """By profile."""
    rivals: Mapping[str, tuple[float, ...]]
    """By the name of the other service."""
    cheaper_from: Mapping[tuple[str, str], int | None]
    """By profile and other service: the orders a month from which on the profile costs less.

    None if it costs more at MOST_COMPARED too."""


def volumes_of(wanted: Wanted, figures: Figures, prices: Prices) -> Volumes:
    """Return the costs of orders like `wanted` in each profile; its number is not used."""
    rivals = {one.name: one.usd_per_million for one in rivals_of(wanted, figures, prices)}

    def usd(profile: str, orders: float) -> float:
        month = replace(wanted, profile=profile, orders_per_month=orders)
        return bill_of(month, figures, prices).usd()

    def more(profile: str, rival: str) -> Callable[[int], float]:
        """What the other service costs more than the profile, by the number of orders."""
        return lambda orders: rivals[rival] * orders / MILLION - usd(profile, orders)

    return Volumes(
        {one: tuple(usd(one, orders) for orders in VOLUMES) for one in PROFILES},
        {name: tuple(each * n / MILLION for n in VOLUMES) for name, each in rivals.items()},
        {
            (profile, rival): _positive_from(more(profile, rival))
            for profile in PROFILES
            for rival in rivals
        },
    )


def _positive_from(more: Callable[[int], float]) -> int | None:
    """Return the least number of orders at which `more` is positive; None if it never is.

    It stays so: the more orders there are, the less one of them costs with its share of the rest.
    """
    least, most = 0, MOST_COMPARED
    if more(most) <= 0:
        return None
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if more(middle) > 0 else (middle, most)
    return most
