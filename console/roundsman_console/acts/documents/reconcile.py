"""The document about bringing on the orders of restored tables."""

from typing import Literal, TypedDict

from roundsman.model.states import TaskState
from roundsman_console.acts.documents.bulk import BulkRunSummaryDocument
from roundsman_console.base.constraints import Count, Instant
from roundsman_console.facts.hold.documents import HoldDocument


class ReconciledOrderDocument(TypedDict):
    """One order of the restored tables."""

    orderId: str
    state: TaskState | None
    """The state of the restored record; null if the record cannot be read."""
    does: Literal["reconcile", "inspect", "nothing", "done", "new", "unreadable"]
    """`reconcile` and `inspect` are the commands that are sent; `nothing`: the order owes nothing;
    `done`: the command took effect before; `new`: the order was submitted after the instant."""
    owes: Literal["attempts", "steps", "start", "end", "statuses", "person", "nothing"] | None
    """What the restored record owes; null if nothing is to be sent."""
    again: list[str]
    """The steps whose attempts begin again."""
    asksAgain: list[str]
    """Those of them that waited for a callback: their agents ask again."""
    severalAgents: list[str]
    """The steps that another agent may have performed since the instant, under another key."""
    unknownItems: list[str]
    """The fan-outs that may have been performed since the instant for items which nobody knows
    before the steps before them are done again."""
    problem: str | None
    """Why the record cannot be read; null if it can."""
    sent: bool


class ReconciledCountsDocument(TypedDict):
    """How many orders have each value of `does`."""

    reconcile: Count
    inspect: Count
    nothing: Count
    done: Count
    new: Count
    unreadable: Count


class RestoredRunDocument(BulkRunSummaryDocument):
    """A bulk run that would go on with the restored tables."""

    paused: bool
    """Whether a pause was requested."""


class RestoredHoldDocument(HoldDocument):
    """A hold by an operator that is in force again."""

    agent: str | None
    """The agent; null for a hold on orders."""
    workflow: str | None
    """The workflow of a hold on orders, or `*` for all; null for a hold on an agent."""


class ReconcileDocument(TypedDict):
    """What brings on the orders of restored tables, and whether it was sent."""

    command: Literal["reconcile"]
    restoredTo: Instant
    dryRun: bool
    supervisorStopped: bool
    counts: ReconciledCountsDocument
    archived: Count
    """The orders that were archived at the instant and wait for a person."""
    sent: Count
    orders: list[ReconciledOrderDocument]
    bulkRuns: list[RestoredRunDocument]
    """The runs that would go on, and are paused."""
    holds: list[RestoredHoldDocument]
