"""Checks of bulk runs: their rate, their canary, and when they send nothing more."""

from collections.abc import Iterator

from roundsman.aws.dynamodb.bulk_codec import read_progress, read_run
from roundsman.model.bulk_run import Run, RunProgress, RunState
from roundsman.model.instants import SECOND
from roundsman_testing.dynamodb.expressions import Item
from roundsman_testing.invariants.rules import Broken, Invariant

PLAN, PROGRESS = "bulk-by#", "bulk#"
FAILED = "-"
NO_CHANCE = 3
"""So many of the last results must have failed to stop a run after its canary."""

ROUNDED = 1
"""The instants of deliveries are in whole ms."""


class BulkRunRows:
    """Follows the bulk runs of a world and checks RATE, CANARY and STOPS.

    The caller reports each write of a row whose key begins with `bulk` (`written`).
    """

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._known: dict[str, tuple[RunState, RunProgress, int]] = {}
        self._last: dict[str, int] = {}

    def written(self, key: str, item: Item) -> Iterator[Broken]:
        """Check a row of a run that is stored."""
        if key.startswith(PLAN) and "Run" in item:
            starter, _, run_id = key.removeprefix(PLAN).rpartition("#")
            self._runs[run_id] = read_run(_text(item, "Run"), key, run_id, starter)
        run_id = key.removeprefix(PROGRESS)
        run = self._runs.get(run_id)
        if run is None or not key.startswith(PROGRESS) or "Progress" not in item:
            return
        state, progress = (
            RunState(_text(item, "State")),
            read_progress(_text(item, "Progress"), key),
        )
        asked = len(item.get("Requests", {"L": []}).get("L", ()))
        first = RunState.RUNNING, RunProgress(), 0
        before, earlier, asked_before = self._known.get(run_id, first)
        self._known[run_id] = state, progress, asked
        yield from self._of_dues(run, earlier, progress)
        if progress.sent == earlier.sent:
            return
        if before is not RunState.RUNNING and asked == asked_before:
            what = f"it is {before.value}, and {progress.sent - earlier.sent} orders more are sent"
            yield Broken(Invariant.STOPS, run_id, what)
        for invariant, what in _of_sends(run, progress):
            yield Broken(invariant, run_id, what)

    def _of_dues(self, run: Run, earlier: RunProgress, progress: RunProgress) -> Iterator[Broken]:
        """Check the deliveries that are new: each comes after the one before, at the rate."""
        known = {(one.order, one.due) for one in earlier.on_their_way}
        new = [one.due for one in progress.on_their_way if (one.order, one.due) not in known]
        gap = SECOND / run.terms.rate - ROUNDED
        for due in sorted(new):
            after = due - self._last.get(run.id, 0)
            self._last[run.id] = due
            if after < gap:
                what = f"a command follows {after} ms after another, and not {gap:g}"
                yield Broken(Invariant.RATE, run.id, what)


def _of_sends(run: Run, progress: RunProgress) -> Iterator[tuple[Invariant, str]]:
    """Check a progress with which orders are sent."""
    terms, recent = run.terms, progress.recent
    on_their_way, failed = len(progress.on_their_way), recent.count(FAILED)
    known = len(recent)
    if known < terms.canary < known + on_their_way:
        what = f"{on_their_way} orders are in flight, after {known} results of {terms.canary}"
        yield Invariant.CANARY, what
    of = known if known > terms.canary else min(terms.canary, run.selected)
    certain = known <= terms.canary or failed >= NO_CHANCE
    if certain and failed > terms.stop_at * of:
        yield Invariant.STOPS, f"{failed} of {of} failed again, and more orders are sent"


def _text(item: Item, name: str) -> str:
    return str(item[name].get("S"))
