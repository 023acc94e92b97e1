"""Documents about stand-ins for services."""

from typing import TypedDict


class ServicesDocument(TypedDict):
    """The remote services of the example; printed when they accept requests."""

    url: str
