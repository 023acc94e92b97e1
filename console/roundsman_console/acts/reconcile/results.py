"""What reconciling would do and has done, in words and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from roundsman.command_line import REASON, command_line
from roundsman.model.events import COMMAND_KINDS
from roundsman.model.holds import hold_words
from roundsman.model.instants import iso
from roundsman_console.acts.reconcile.reconcile import Does, Reconciliation, RestoredOrder
from roundsman_console.acts.verb import Asked
from roundsman_console.base.counted import counted
from roundsman_console.base.result import HIDDEN, Result
from roundsman_console.facts.order.step_text import span

WORDS = {
    Does.RECONCILE: "open: each goes on, and an attempt under way begins again under its key",
    Does.INSPECT: "ended, and owe a status or an alert: it is sent again",
    Does.NOTHING: "ended: nothing to do",
    Does.DONE: "reconciled before",
    Does.NEW: "submitted after the instant: nothing to do",
    Does.UNREADABLE: "cannot be read: see the doctor",
}


MOST_SHOWN = 50
"""The number of orders with a note that are shown."""


@dataclass(frozen=True, slots=True)
class NotedOrder:
    """What a person should know of an order."""

    order: str
    state: str
    note: str


@dataclass(frozen=True, slots=True)
class Restored(Result):
    """What would be done about the orders of restored tables."""

    reconciliation: Reconciliation

    def words(self) -> Sequence[str]:
        return [line.removeprefix("- ") for line in self.lines()]

    def lines(self) -> Sequence[str]:
        more = len(for_people(self.reconciliation)) - MOST_SHOWN
        noted = [f"- {more} more than these have a note: see --json"] if more > 0 else []
        return [*_summary(self.reconciliation), *noted]

    def rows(self) -> Sequence[NotedOrder]:
        known = for_people(self.reconciliation)[:MOST_SHOWN]
        return [NotedOrder(one.order, one.state or "", note_of(one)) for one in known]

    def document(self) -> Mapping[str, Any]:
        return self.reconciliation.document()


@dataclass(frozen=True, slots=True)
class Began(Result):
    """That the orders are sent now."""

    asked: Annotated[Asked, HIDDEN]


@dataclass(frozen=True, slots=True)
class Reconciled(Restored):
    """What was done about the orders of restored tables."""

    def words(self) -> Sequence[str]:
        return self.lines()

    def lines(self) -> Sequence[str]:
        found = self.reconciliation
        return [
            f"{counted(len(found.sent), 'order')} sent to the scheduler.",
            *_how_to_resume(found),
        ]

    def rows(self) -> Sequence[NotedOrder]:
        return ()

    def error(self) -> Exception | None:
        return self.reconciliation.error


def _summary(found: Reconciliation) -> list[str]:
    counts = found.counts
    lines = [f"The tables as of {iso(found.restored_to)}:"]
    lines += [f"- {counts[does]} {WORDS[does]}" for does in Does if counts[does]]
    if found.archived:
        lines.append(
            f"- {found.archived} archived: a person may have repaired them since, and must again"
        )
    for run in found.runs:
        record = run.record
        kind = COMMAND_KINDS[type(record.run.event)]
        lines.append(
            f"- bulk run {record.run.id} ({kind}, by {record.run.by}) would go on with "
            f"{counted(record.left, 'order')}: it is paused, because what people asked of it since "
            "is lost"
        )
    lines += [
        f"- {hold.target} {hold_words(hold)}, until {iso(hold.until)}: as of the instant; it may "
        "have been released since"
        for hold in found.holds
    ]
    if len(lines) == 1:
        lines.append("No order is open, and none is archived.")
    return lines


def what_it_does(found: Reconciliation) -> str:
    """Return what `--go` does, as a sentence without its end."""
    orders = f"let {counted(found.going, 'order')} go on as of {iso(found.restored_to)}"
    runs = f"pause {len(found.runs)} bulk run{'s' * (len(found.runs) > 1)}"
    does = " and ".join([runs] * bool(found.runs) + [orders] * bool(found.going))
    return does[:1].upper() + does[1:]


def _how_to_resume(found: Reconciliation) -> list[str]:
    """Return a line with the command that resumes each bulk run that is paused."""
    return [
        f"Once you know that it may go on: {command_line('bulk resume', one, options=REASON)}"
        for one in sorted(found.paused)
    ]


def for_people(found: Reconciliation) -> list[RestoredOrder]:
    """Return the orders that a person should look at, or know of."""
    return [one for one in found.orders if note_of(one)]


def note_of(one: RestoredOrder) -> str:
    """Return what a person should know of the order; empty if there is nothing."""
    if one.problem or one.assessment is None:
        return one.problem or ""
    notes = []
    if one.assessment.asks_again:
        notes.append(f"{span(one.assessment.asks_again)} waited for an answer and asks again")
    if one.assessment.several:
        notes.append(
            f"{span(one.assessment.several)} may have been done by another agent: check its service"
        )
    if one.assessment.unknown_items:
        notes.append(
            f"items of {span(one.assessment.unknown_items)} may have been done: an undo includes "
            "them only after the steps before"
        )
    return "; ".join(notes)
