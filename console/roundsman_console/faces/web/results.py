"""The results of forms: each has an address of its own, to which the browser is sent.

So a page can be loaded again, and left with Back, and nothing is sent twice.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from roundsman.model.instants import MINUTE
from roundsman_console.base.clock import now
from roundsman_console.base.errors import NotFound
from roundsman_console.faces.web.command_page import CommandPage
from roundsman_console.faces.web.expiring_values import ExpiringValues
from roundsman_console.inspector import Inspector

MOST = 50
"""The number of results that are kept."""
LONGEST = 12 * 60 * MINUTE
"""How long a result is kept, in ms: a shift."""


@dataclass(frozen=True, slots=True)
class KeptPage:
    """What came of a form."""

    page: CommandPage
    at: int
    """In epoch ms."""


_RESULTS: ExpiringValues[KeptPage] = ExpiringValues(most=MOST, longest=LONGEST)


def keep(page: CommandPage) -> str:
    """Keep the page of a form, and return its id."""
    result = secrets.token_urlsafe(12)
    _RESULTS.keep(result, KeptPage(page, now()))
    return result


def find(result: str) -> KeptPage | None:
    """Return the result with this id; None if it is not kept any more."""
    return _RESULTS.get(result)


def read(_inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the result of a form. Raises NotFound if it is not kept any more."""
    found = find(given["result"])
    if found is None:
        raise NotFound(
            "This result is not known any more: the console was started again, or it is long ago. "
            "What was done is in the history of the order and on the page of the bulk run."
        )
    return {"page": found.page, "at": found.at}
