"""The bulk runs over the orders of a failure group.

A run keeps how its orders were selected for 90 days, so it says what was done about a group when no
order is in it any more.
"""

from weakref import WeakKeyDictionary

from roundsman.errors import UnreadableRecord
from roundsman.model.bulk_run import BulkRecord
from roundsman_console.acts.bulk.start import bulk_runs_of
from roundsman_console.facts.course.marks import group_of
from roundsman_console.inspector import Inspector

MOST_LOOKED_AT = 100
"""The number of runs, the newest ones, that are looked at. Each is read once by a console to learn
its group, which never changes."""

_GROUPS: WeakKeyDictionary[Inspector, dict[str, str | None]] = WeakKeyDictionary()
"""The groups of runs, by the ids of the runs."""


def runs_over(inspector: Inspector, group: str, since: int) -> list[BulkRecord]:
    """Return the runs over the group that started at or after `since` (epoch ms), the oldest first.

    One that cannot be read is left out.
    """
    runs, known = bulk_runs_of(inspector.stack), _GROUPS.setdefault(inspector, {})
    found: list[BulkRecord] = []
    for listed in runs.listed()[::-1][:MOST_LOOKED_AT]:
        if listed.started_at < since:
            break
        if known.get(listed.run_id, group) != group:
            continue
        try:
            record = runs.load(listed.run_id, listed.starter)
        except UnreadableRecord:
            continue
        if record is None:
            continue
        known[listed.run_id] = group_of(record.run)
        if known[listed.run_id] == group:
            found.append(record)
    return found[::-1]
