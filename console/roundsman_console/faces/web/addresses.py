"""Which page is meant? An order, a group, a run or an agent by its name, or a printed command."""

import shlex
from collections.abc import Collection, Mapping
from urllib.parse import quote

from roundsman_console.base.constraints import GROUP_ID, RUN_ID
from roundsman_console.base.result import Noun

PAGE_OF: Mapping[Noun, str] = {
    Noun.STACK: "/doctor",
    Noun.ORDERS: "/orders",
    Noun.RUNS: "/bulk",
    Noun.AGENTS: "/agents",
    Noun.GROUPS: "/groups",
    Noun.REJECTED: "/rejected",
    Noun.DEAD_LETTERS: "/dead-letters",
    Noun.WORKFLOWS: "/workflows",
    Noun.SCHEDULES: "/schedules",
}
"""The address of the page that lists what a verb is about."""


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
        return f"/agents/{quote(name)}"
    return page_of_id(name) or f"/orders/{quote(name, safe='')}"


def page_of_command(command: str) -> str | None:
    """Return the address of the page that shows what a printed command shows; None without one."""
    program, verb, *words = shlex.split(command)
    if program != "roundsman":
        return None
    if verb == "show":
        return f"/orders/{quote(words[-1], safe='')}"  # options stand before an id, after `--`
    if verb == "ls" and words[:1] == ["--group"]:
        return page_of_id(words[1])
    return _PAGES.get(verb)


_PAGES: Mapping[str, str] = {
    "dlq": "/dead-letters",
    "rejected": "/rejected",
    "stats": "/#queues",
    "release": "/agents",
    "agents": "/agents",
    "groups": "/groups",
    "schedules": "/schedules",
    "ls": "/orders?state=Archived",
}
"""The pages by the verb of the command."""
