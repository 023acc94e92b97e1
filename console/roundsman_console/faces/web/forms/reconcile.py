"""The orders of restored tables: shown first, then sent as a work, which shows the progress."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from roundsman.command_line import command_line
from roundsman.model.instants import iso
from roundsman_console.acts.actor import read_name, read_reason
from roundsman_console.acts.reconcile.reconcile import (
    Does,
    Reconciliation,
    RestoredOrder,
    check_supervisor,
    look_at_restored,
    send_all,
    stop_command,
)
from roundsman_console.acts.reconcile.verbs import RATE, ReconcileVerb
from roundsman_console.acts.reconcile.words import (
    WORDS,
    for_people,
    how_to_resume,
    note_of,
    summary,
)
from roundsman_console.acts.verb import Form
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import InspectorError
from roundsman_console.faces.web.command_page import (
    CommandPage,
    FormCommand,
    Item,
    not_sent,
    page_of,
)
from roundsman_console.faces.web.dry_run_pages import shown_or_followed
from roundsman_console.faces.web.kept import Kept
from roundsman_console.faces.web.session import GO, Session
from roundsman_console.faces.web.work import Work, WorkResult, works_of
from roundsman_console.inspector import Inspector

MOST_SHOWN = 50
"""The number of orders with a note that the dry run of `reconcile` lists."""
SAMPLES = 3


RESTORED: Kept[Reconciliation] = Kept()


def _show_reconcile(inspector: Inspector, given: Form) -> CommandPage:
    form = {"rate": f"{RATE:g}", **given}
    return page_of(ReconcileVerb, inspector.stack.name, "stack", "/doctor", form)


def _reconcile(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack, page = inspector.stack, _show_reconcile(inspector, given)
    verb, by = ReconcileVerb.read_form(given), read_name(None)
    at = verb.restored_to
    reason = read_reason(
        given.get("reason", "").strip() or f"the tables were restored to {iso(at)}"
    )
    kept = RESTORED.of(given) if GO in given else None
    if kept is not None and session.take(given, _version(kept)):
        try:
            check_supervisor(stack, kept)
        except InspectorError as error:
            return replace(page, sentence=str(error), refused=True)
        work = works_of(inspector).start(
            f"Reconcile {stack.name}", "/doctor", lambda work: _send(stack, kept, verb.rate, work)
        )
        return replace(page, goes_to=f"/progress/{work.id}")

    def look(work: Work) -> CommandPage:
        work.counts("reading the orders")
        found = look_at_restored(
            stack, at, by=by, reason=reason, progress=lambda n: work.counts(f"{n} orders read")
        )
        shown = ""
        if found.does_something and found.supervisor_stopped:
            shown = session.sign(given, _version(found))
            RESTORED.keep(shown, found)
        running = f" The supervisor is running. Stop it first: {stop_command(stack)}"
        return replace(
            page,
            sentence=f"{not_sent(given, False)}{counted(found.going, 'order')} would go on as of "
            f"{iso(at)}. Nothing was sent."
            f"{running if found.does_something and not found.supervisor_stopped else ''}",
            problems=[line.removeprefix("- ") for line in summary(found)],
            items=_items(found),
            asks=bool(shown),
            shown=shown,
        )

    return shown_or_followed(inspector, page, look)


def _send(stack: DeployedStack, found: Reconciliation, rate: float, work: Work) -> WorkResult:
    send_all(
        stack, found, rate=rate, progress=lambda n: work.counts(f"{n} of {found.going} orders sent")
    )
    sentence = " ".join(
        [f"{counted(len(found.sent), 'order')} sent to the scheduler.", *how_to_resume(found)]
    )
    if found.error is not None:
        return WorkResult(f"{sentence} {found.error}", good=False)
    return WorkResult(sentence, good=True)


def _version(found: Reconciliation) -> str:
    """Which orders are sent, for the signature of the form."""
    orders = [one.order for one in found.orders if one.goes]
    text = json.dumps([found.restored_to, orders, [one.record.run.id for one in found.runs]])
    return hashlib.sha256(text.encode()).hexdigest()


def _items(found: Reconciliation) -> list[Item]:
    """The orders by what is done about them, and those that a person should know of."""
    kinds: list[Item] = []
    for does in Does:
        orders = [one for one in found.orders if one.does is does]
        if orders:
            kinds.append(
                Item(
                    counted(len(orders), "order"),
                    _some(orders),
                    does.value,
                    WORDS[does],
                    orders[0].goes,
                )
            )
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


def _some(orders: Sequence[RestoredOrder]) -> str:
    return ", ".join(one.order for one in orders[:SAMPLES])


RECONCILE = FormCommand("reconcile", _show_reconcile, _reconcile)
