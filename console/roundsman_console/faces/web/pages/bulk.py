"""Bulk runs: the list, and one run with its progress and its results."""

from collections.abc import Mapping

from roundsman.errors import UnreadableRecord
from roundsman.model.bulk_run import BulkRecord, OrderResult, RequestAction
from roundsman.model.events import COMMAND_KINDS
from roundsman_console.acts.bulk.start import POSSIBLE, bulk_runs_of, find_run
from roundsman_console.faces.web.forms.bulk import verbs_on_many
from roundsman_console.faces.web.readings.unreadable_parts import part
from roundsman_console.facts.course.marks import group_of
from roundsman_console.inspector import Inspector

RUNS = 20
MOST_IN_FLIGHT = 20
"""The number of orders in flight that the page names."""
MOST_NOTES = 500
"""The number of orders that failed again or were refused that the page lists."""


def read_all(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the newest bulk runs."""
    unreadable = list[UnreadableRecord]()
    return {
        "runs": bulk_runs_of(inspector.stack).newest(RUNS, unreadable.append),
        "unreadable": unreadable,
        "kind_of": kind_of,
        "commands": [(name, command.title) for name, command in verbs_on_many().items()],
        **RESULTS,
    }


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read one bulk run. Raises NotFound if there is none with this id."""
    record, is_open = find_run(inspector.stack, given["run"])
    notes = part(lambda: bulk_runs_of(inspector.stack).notes(record))
    in_flight = [one.order for one in record.progress.on_their_way]
    return {
        "in_flight": in_flight[:MOST_IN_FLIGHT],
        "more_in_flight": max(0, len(in_flight) - MOST_IN_FLIGHT),
        "record": record,
        "is_open": is_open,
        "done": record.progress.results + record.progress.refusals,
        "kind_of": kind_of,
        "group": group_of(record.run),
        "notes": notes,
        "most_notes": MOST_NOTES,
        "actions": [action.value for action in RequestAction if record.state in POSSIBLE[action]],
        **RESULTS,
    }


def kind_of(record: BulkRecord) -> str:
    """Return the name of the command that the run sends."""
    return COMMAND_KINDS[type(record.run.event)]


RESULTS = {"FAILED": OrderResult.FAILED, "results": [*OrderResult]}
