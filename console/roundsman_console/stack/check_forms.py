"""Checks of the whole stack that take a while: a smoke test, and the orders of restored tables.

Each is shown first. It then runs as a work, whose page shows the progress.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite

from roundsman.command_line import command_line
from roundsman.model.instants import iso
from roundsman.model.json import Json
from roundsman_console.application import check_event
from roundsman_console.bulk.dry_run_pages import shown_or_followed
from roundsman_console.cli_errors import ConsoleError
from roundsman_console.dead_letter.edits import laid_out
from roundsman_console.dead_letter.masked import masked_body
from roundsman_console.errors import InspectorError, InvalidArgument
from roundsman_console.inspector import Inspector
from roundsman_console.orders.counts_text import count_of_orders
from roundsman_console.reconcile.reconcile import (
    Does,
    Reconciliation,
    RestoredOrder,
    check_supervisor,
    look_at_restored,
    send_all,
    stop_command,
)
from roundsman_console.reconcile.text import WORDS, for_people, how_to_resume, note_of, summary
from roundsman_console.reconcile.verbs import RATE, ReconcileVerb
from roundsman_console.smoke.events import (
    BY,
    ENDS,
    LONGEST,
    ORDER_ID,
    SHORTEST,
    WITHIN,
    declared_workflows,
    event_file,
    expected_end,
    parse_event,
    read_event,
    with_new_id,
)
from roundsman_console.smoke.smoke import SmokeSpec, run_smoke_test
from roundsman_console.stack.stack import DeployedStack
from roundsman_console.verbs.actor import read_name, read_reason
from roundsman_console.verbs.verb import Form
from roundsman_console.web.command_page import (
    CommandPage,
    FormCommand,
    FormField,
    Item,
    not_sent,
    page_of,
)
from roundsman_console.web.kept import Kept
from roundsman_console.web.session import GO, Session
from roundsman_console.web.work import Work, WorkResult, works_of

MOST_SHOWN = 50
"""The number of orders with a note that the dry run of `reconcile` lists."""
SAMPLES = 3


def commands_that_check() -> Mapping[str, FormCommand]:
    """Return these commands, by their names in the browser."""
    return {
        "smoke": FormCommand("smoke", _show_smoke, _smoke),
        "reconcile": FormCommand("reconcile", _show_reconcile, _reconcile),
    }


# A smoke test


def _show_smoke(inspector: Inspector, given: Form) -> CommandPage:
    return CommandPage(
        "smoke",
        "Smoke test",
        "Sends one order through the stack and follows it to its end. The order is real: it has "
        "the effects of any order.",
        inspector.stack.name,
        "stack",
        "/doctor",
        (
            FormField(
                "workflow",
                "Workflow, of events/smoke",
                "steps",
                "The first by default.",
                options=declared_workflows(),
            ),
            FormField("body", "Or another order event, as JSON", "lines"),
            FormField("undo", "Cancel the order on its way, and undo its effects", "check"),
            FormField(
                "expect",
                "How it must end",
                "steps",
                "Completed by default, or Cancelled if it is cancelled.",
                options=ENDS,
            ),
            FormField("within", "Seconds to wait", hint="1 to 3600."),
        ),
        form={"within": f"{WITHIN:g}", **given},
        reason="none",
    )


def _smoke(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack, page = inspector.stack, _show_smoke(inspector, given)
    name, event = _event(given)
    undo = given.get("undo") == "yes"
    spec = SmokeSpec(
        event=with_new_id(event),
        file=name,
        expect=expected_end(given.get("expect", "").strip() or None, undo=undo),
        undo=undo,
        within=_within(given),
        by=BY,
    )
    try:
        check_event(name, json.dumps(spec.event))
    except ConsoleError as error:
        return replace(page, sentence=str(error), refused=True)
    shown = laid_out(masked_body(stack, json.dumps({**event, "orderId": ORDER_ID})))
    version = hashlib.sha256(json.dumps(event).encode()).hexdigest()
    if not (go := GO in given and session.take(given, version)):
        then = "It would be cancelled on its way, and must end" if undo else "It must end"
        words = (
            f"{not_sent(given, go)}The order below would be sent, with an id of its own in place "
            f"of {ORDER_ID}. {then} {spec.expect} within {spec.within:g} s. Nothing was sent."
        )
        return replace(
            page, sentence=words, text=shown, asks=True, shown=session.sign(given, version)
        )

    def do(work: Work) -> WorkResult:
        work.counts(f"{spec.order_id} must end {spec.expect} within {spec.within:g} s")
        found = run_smoke_test(stack, spec, work.add_line)
        evidence = found.diagnosis.evidence if found.diagnosis else ()
        left = [f"Left behind: {line}." for line in found.left]
        address = f"/orders/{spec.order_id}" if found.task else ""
        return WorkResult(found.sentence, found.ok, [*evidence, *left], found.next, address)

    work = works_of(inspector).start(f"Smoke test of {stack.name}", "/doctor", do)
    return replace(page, goes_to=f"/progress/{work.id}")


def _event(given: Form) -> tuple[str, Mapping[str, Json]]:
    """Where the order event is from, and the event. Raises ConsoleError if there is none."""
    workflow = given.get("workflow", "").strip() or None
    body = given.get("body", "").strip()
    if body:
        if workflow is not None:
            raise InvalidArgument("Choose a workflow or give an order event, not both.")
        return "The event", parse_event("The event", body)
    file = event_file(workflow, None)
    return str(file), read_event(file, workflow)


def _within(given: Form) -> float:
    try:
        seconds = float(given.get("within", "").strip() or WITHIN)
    except ValueError:
        seconds = 0.0
    if not isfinite(seconds) or not SHORTEST <= seconds <= LONGEST:
        raise InvalidArgument(f"The time to wait is {SHORTEST:g} to {LONGEST:g} seconds.")
    return seconds


# The orders of restored tables


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
            sentence=f"{not_sent(given, False)}{count_of_orders(found.going)} would go on as of "
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
        [f"{count_of_orders(len(found.sent))} sent to the scheduler.", *how_to_resume(found)]
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
                    count_of_orders(len(orders)),
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
