"""Checks of bulk runs: their rate, their canary, when they stop, and that they skip no order."""

from collections.abc import Iterable, Iterator

from roundsman.aws.dynamodb.bulk_codec import read_notes, read_progress, read_run
from roundsman.model.bulk_run import Run, RunProgress, RunState
from roundsman.model.instants import SECOND
from roundsman.wire.commands import Command
from roundsman_testing.dynamodb.expressions import Item
from roundsman_testing.invariants.rules import Broken, Invariant

PLAN, PROGRESS = "bulk-by#", "bulk#"
FAILED = "-"
NO_CHANCE = 3
"""So many of the last results must have failed to stop a run after its canary."""

ROUNDED = 1
"""The instants of deliveries are in whole ms."""


class BulkRunRows:
    """Follows the bulk runs of a world and checks RATE, CANARY, STOPS and NONE_SKIPPED.

    The caller reports each command that the supervisor has sent (`sent`) and each write of a row
    whose key begins with `bulk` (`written`), and asks after each event for what a run that is
    finished has skipped (`skipped`). `sent` are the commands that are known already.
    """

    def __init__(self, sent: Iterable[tuple[str, str]] = ()) -> None:
        self._runs: dict[str, Run] = {}
        self._known: dict[str, tuple[RunState, RunProgress, int]] = {}
        self._last: dict[str, int] = {}
        self._planned: dict[str, set[str]] = {}
        self._noted: dict[str, set[str]] = {}
        self._finished: set[str] = set()
        self.all_sent = set(sent)
        """The run and the order of each command that a queue took, even if it was lost later."""

    def sent(self, command: Command) -> None:
        """Note that a queue took a command of a run."""
        if command.event is not None:
            self.all_sent.add((command.event.asked.command_id, command.task_id))

    def written(self, key: str, item: Item) -> Iterator[Broken]:
        """Check a row of a run that is stored."""
        if "Orders" in item:
            run_id = key.removeprefix(PLAN).rsplit("#", 2)[1]
            self._planned.setdefault(run_id, set()).update(_text(item, "Orders").split(" "))
        elif "Notes" in item:
            run_id = key.removeprefix(PROGRESS).rpartition("#")[0]
            notes = read_notes(_text(item, "Notes"), key)
            self._noted.setdefault(run_id, set()).update(one.order for one in notes)
        elif "Run" in item:
            starter, _, run_id = key.removeprefix(PLAN).rpartition("#")
            self._runs[run_id] = read_run(_text(item, "Run"), key, run_id, starter)
        elif "Progress" in item:
            run = self._runs.get(key.removeprefix(PROGRESS))
            if run is not None:
                yield from self._of_progress(run, item, key)

    def _of_progress(self, run: Run, item: Item, key: str) -> Iterator[Broken]:
        state, progress = (
            RunState(_text(item, "State")),
            read_progress(_text(item, "Progress"), key),
        )
        asked = len(item.get("Requests", {"L": []}).get("L", ()))
        first = RunState.RUNNING, RunProgress(), 0
        before, earlier, asked_before = self._known.get(run.id, first)
        self._known[run.id] = state, progress, asked
        if state is RunState.FINISHED:
            self._finished.add(run.id)
        yield from self._of_dues(run, earlier, progress)
        for what in self._uncounted(run, progress):
            yield Broken(Invariant.NONE_SKIPPED, run.id, what)
        if progress.sent == earlier.sent:
            return
        if before is not RunState.RUNNING and asked == asked_before:
            what = f"it is {before.value}, and {progress.sent - earlier.sent} orders more are sent"
            yield Broken(Invariant.STOPS, run.id, what)
        for invariant, what in _of_sends(run, progress):
            yield Broken(invariant, run.id, what)

    def _uncounted(self, run: Run, progress: RunProgress) -> Iterator[str]:
        """In which way the progress does not count each order that the run has reached, in words.

        An order is in flight, has a result or is refused.
        """
        counted = len(progress.on_their_way) + progress.results + progress.refusals
        if counted != progress.reached:
            yield f"it has reached {progress.reached} orders, and knows of {counted}"
        for one in progress.on_their_way:
            if one.sent and (run.id, one.order) not in self.all_sent:
                yield f"{one.order} counts as sent, and no command was sent"

    def skipped(self) -> Iterator[Broken]:
        """Check the runs that are finished since the last call: they have dealt with all orders.

        Each was sent to or refused. If there was no news of it, it may still be in flight.
        """
        for run_id in self._finished:
            _, progress, _ = self._known[run_id]
            sent = {order for run, order in self.all_sent if run == run_id}
            known = sent | self._noted.get(run_id, set())
            known |= {one.order for one in progress.on_their_way}
            if left := sorted(self._planned.get(run_id, set()) - known):
                what = f"it is finished, and neither sent to nor refused {' and '.join(left)}"
                yield Broken(Invariant.NONE_SKIPPED, run_id, what)
        self._finished.clear()

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
