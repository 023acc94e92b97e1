"""The verb on all orders of a stack: reconcile."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from roundsman.command_line import command_line
from roundsman.model.instants import iso
from roundsman.model.json import sha256
from roundsman_console.acts.documents.reconcile import ReconcileDocument
from roundsman_console.acts.reconcile.reconcile import (
    RATE,
    Does,
    Reconciliation,
    check_rate,
    check_supervisor,
    look_at_restored,
    send_all,
    stop_command,
)
from roundsman_console.acts.reconcile.results import (
    MOST_SHOWN,
    WORDS,
    Began,
    Reconciled,
    Restored,
    for_people,
    note_of,
    what_it_does,
)
from roundsman_console.acts.verb import (
    Argument,
    Asked,
    Confirmed,
    Item,
    Preview,
    Progress,
    StackVerb,
    no_progress,
)
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import Interrupted, InvalidArgument
from roundsman_console.base.limits import HIGHEST_RATE, LOWEST_RATE
from roundsman_console.base.result import Result
from roundsman_console.base.typed_inputs import read_instant

SAMPLES = 3
"""The number of orders that are named of those about which the same is done."""


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError as error:
        raise InvalidArgument(f"The rate is a number, not {text!r}.") from error
    check_rate(rate)
    return rate


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileVerb(StackVerb):
    """Let the orders go on after the tables were restored to an instant.

    Stop the supervisor first. Bulk runs that were under way are paused. Running the command again
    sends only what was not reached.

    Example: roundsman reconcile --restored-to 2027-01-15T08:00:00Z
    """

    name = "reconcile"
    title = "Reconcile"
    reason = "Reason, stored in each task's history."
    needs_reason = "optional"
    document = ReconcileDocument
    confirmed = Confirmed.BY_GO
    searches = True

    restored_to: Annotated[
        int,
        Argument(
            "--restored-to",
            "As restored, in UTC: 2027-01-15T08:00:00Z.",
            metavar="INSTANT",
            label="Restored to, in UTC",
            hint="2027-01-15T08:00:00Z",
            read=read_instant,
        ),
    ]
    """In epoch ms."""
    rate: Annotated[
        float,
        Argument(
            "--rate",
            f"Orders per second: {LOWEST_RATE:g} to {HIGHEST_RATE:g}; {RATE:g} by default.",
            label="Orders a second",
            hint=f"{LOWEST_RATE:g} to {HIGHEST_RATE:g}.",
            proposed=f"{RATE:g}",
            read=_rate,
        ),
    ] = RATE

    def preview(self, stack: DeployedStack) -> Preview:
        return self.search(stack, no_progress)

    def search(self, stack: DeployedStack, progress: Progress) -> Preview:
        progress("reading the orders")
        at = self.restored_to
        found = look_at_restored(stack, at, progress=lambda n: progress(f"{n} orders read"))
        begins = f"{counted(found.going, 'order')} would go on as of {iso(at)}. Nothing was sent."
        blocked = ""
        if found.does_something and not found.supervisor_stopped:
            blocked = f"The supervisor is running. Stop it first: {stop_command(stack)}"

        def go(asked: Asked) -> Began:
            check_supervisor(stack, found)
            reason = asked.reason or f"the tables were restored to {iso(at)}"
            return Began(replace(asked, reason=reason))

        return Preview(
            begins,
            go,
            _version(found),
            f"{what_it_does(found)}?" if found.does_something else "",
            found=Restored(found),
            items=_items(found),
            blocked=blocked,
            command=command_line("reconcile", options=("--restored-to", iso(at), "--go")),
            goes_on=partial(self._send, stack, found),
        )

    def _send(
        self, stack: DeployedStack, found: Reconciliation, began: Result, progress: Progress
    ) -> Iterator[Result]:
        if not isinstance(began, Began):
            return
        try:
            send_all(
                stack,
                found,
                by=began.asked.by,
                reason=began.asked.reason,
                rate=self.rate,
                progress=lambda n: progress(f"{n} of {found.going} orders sent"),
            )
        except Interrupted as interrupted:
            found.error = interrupted
        yield Reconciled(found)


def _version(found: Reconciliation) -> str:
    """Which orders are sent, for the signature of the form."""
    orders = [one.order for one in found.orders if one.goes]
    runs = [one.record.run.id for one in found.runs]
    return sha256(json.dumps([found.restored_to, orders, runs]))


def _items(found: Reconciliation) -> list[Item]:
    """The orders by what is done about them, and those that a person should know of."""
    kinds = []
    for does in Does:
        orders = [one for one in found.orders if one.does is does]
        if orders:
            some = ", ".join(one.order for one in orders[:SAMPLES])
            many = counted(len(orders), "order")
            kinds.append(Item(many, some, does.value, WORDS[does], orders[0].goes))
    known = for_people(found)
    notes = [
        Item(one.order, one.state or "", one.does.value, note_of(one), one.goes)
        for one in known[:MOST_SHOWN]
    ]
    more = len(known) - MOST_SHOWN
    if more > 0:
        options = ("--restored-to", iso(found.restored_to), "--json")
        see = f"see: {command_line('reconcile', options=options)}"
        notes.append(Item(f"{more} more", "", "", see, False))
    return kinds + notes
