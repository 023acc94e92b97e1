"""Which page is meant? An order, a failure group, a bulk run or an agent by its name."""

from collections.abc import Collection
from urllib.parse import quote

from roundsman_console.orders.page import address_found


def address_of(place: str, agents: Collection[str]) -> str:
    """Return the address of the page about a failure group, a bulk run, an agent or an order.

    `agents` are the names of the stack's agents. Any other text is the id of an order.
    """
    name = place.strip()
    return f"/agents#agent-{quote(name)}" if name in agents else address_found(name)
