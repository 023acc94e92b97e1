"""Computes what a month costs at several numbers of orders, here and on other services.

The functions are pure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from roundsman_console.cost.figures import Figures
from roundsman_console.cost.model import MILLION, PROFILES, Wanted, bill_of, rivals_of
from roundsman_console.cost.prices import Prices

VOLUMES = (0, 10_000, 100_000, 1_000_000, 10_000_000)
"""Orders a month."""
MOST_COMPARED = 1e9
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

    return Volumes(
        {one: tuple(usd(one, orders) for orders in VOLUMES) for one in PROFILES},
        {name: tuple(each * n / MILLION for n in VOLUMES) for name, each in rivals.items()},
        {
            (profile, name): _cheaper_from(
                lambda n, profile=profile, each=each: usd(profile, n) < each * n / MILLION
            )
            for profile in PROFILES
            for name, each in rivals.items()
        },
    )


def _cheaper_from(is_cheaper: Callable[[float], bool]) -> int | None:
    """Return the least number of orders at which it is; it stays so, since an order never costs
    more than at a lower number."""
    if not is_cheaper(MOST_COMPARED):
        return None
    least, most = 0, int(MOST_COMPARED)
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if is_cheaper(middle) else (middle, most)
    return most
