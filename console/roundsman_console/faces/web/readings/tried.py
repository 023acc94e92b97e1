"""The orders that were tried in this console, the last one of each failure group.

A command on one order is in the history of the order. That it was sent to learn something about a
group is known here only, until the console ends.
"""

from weakref import WeakKeyDictionary

from roundsman_console.facts.group.trial import TriedOrder
from roundsman_console.inspector import Inspector

MOST = 100
"""The number of groups of which it is remembered; the earliest trial is forgotten first."""

_TRIED: WeakKeyDictionary[Inspector, dict[str, TriedOrder]] = WeakKeyDictionary()


def note_tried(inspector: Inspector, tried: TriedOrder) -> None:
    """Remember the order, in place of the one that was tried before for its group."""
    found = _TRIED.setdefault(inspector, {})
    found.pop(tried.group, None)
    found[tried.group] = tried
    for group in [*found][:-MOST]:
        del found[group]


def tried_here(inspector: Inspector, group: str) -> TriedOrder | None:
    """Return the last order of the group that was tried in this console; None if none was."""
    return _TRIED.get(inspector, {}).get(group)
