"""The recurring orders: when they run next, and what became of their last runs."""

from collections.abc import Mapping

from roundsman_console.facts.schedule.reading import OVERLAPS
from roundsman_console.inspector import Inspector


def read(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the schedules."""
    return {"found": inspector.schedules(), "overlaps": OVERLAPS}
