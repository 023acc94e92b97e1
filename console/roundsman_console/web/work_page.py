"""One work that was begun here: its progress, and how it ended. Nothing is asked of AWS."""

from collections.abc import Mapping

from roundsman_console.inspector import Inspector
from roundsman_console.web.work import works_of


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read one work. Raises NotFound if it is not known."""
    work = works_of(inspector).find(given["work"])
    return {"work": work, "result": work.result, "lines": tuple(work.lines)}
