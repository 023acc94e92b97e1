"""Which page is meant? An order, a failure group, a bulk run or an agent by its name."""

from collections.abc import Collection
from urllib.parse import quote

from roundsman_console.constraints import GROUP_ID, RUN_ID


def page_of_id(text: str) -> str | None:
    """Return the address of the page of a failure group or a bulk run; None for another text.

    An e-mail about a failure names its group. An order whose id looks like that of a group or of a
    run is on the page of its id, and not found here.
    """
    if GROUP_ID.fullmatch(text):
        return f"/groups/{text}"
    return f"/bulk/{text}" if RUN_ID.fullmatch(text) else None


def address_of(place: str, agents: Collection[str]) -> str:
    """Return the address of the page about a failure group, a bulk run, an agent or an order.

    `agents` are the names of the stack's agents. Any other text is the id of an order.
    """
    name = place.strip()
    if name in agents:
        return f"/agents#agent-{quote(name)}"
    return page_of_id(name) or f"/orders/{quote(name, safe='')}"
