"""A smoke test: shown first, then carried out as a work, whose page shows the progress."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite

from roundsman.model.json import Json
from roundsman_console.acts.set_aside.edits import laid_out
from roundsman_console.acts.smoke.events import (
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
from roundsman_console.acts.smoke.smoke import SmokeSpec, run_smoke_test
from roundsman_console.acts.verb import Form
from roundsman_console.base.errors import ConsoleError, WrongFields
from roundsman_console.faces.web.access.session import Session
from roundsman_console.faces.web.command_page import (
    CommandPage,
    FormCommand,
    FormField,
    agreed,
    asking,
)
from roundsman_console.faces.web.work import Work, WorkResult, works_of
from roundsman_console.facts.application import check_event
from roundsman_console.facts.set_aside.masked import masked_body
from roundsman_console.inspector import Inspector


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
    if not agreed(given, session, version):
        then = "It would be cancelled on its way, and must end" if undo else "It must end"
        would = (
            f"The order below would be sent, with an id of its own in place of {ORDER_ID}. {then} "
            f"{spec.expect} within {spec.within:g} s. Nothing was sent."
        )
        return asking(replace(page, text=shown), given, session, version, would)

    def do(work: Work) -> WorkResult:
        work.counts(f"{spec.order_id} must end {spec.expect} within {spec.within:g} s")
        found = run_smoke_test(stack, spec, work.add_line)
        evidence = found.diagnosis.evidence if found.diagnosis else ()
        left = [f"Left behind: {line}." for line in found.left]
        address = f"/orders/{spec.order_id}" if found.state else ""
        return WorkResult(found.sentence, found.ok, [*evidence, *left], found.next, address)

    work = works_of(inspector).start(f"Smoke test of {stack.name}", "/doctor", do)
    return replace(page, goes_to=f"/progress/{work.id}")


def _event(given: Form) -> tuple[str, Mapping[str, Json]]:
    """Where the order event is from, and the event.

    Raises ConsoleError if there is none, and WrongFields for one that is wrong.
    """
    workflow = given.get("workflow", "").strip() or None
    body = given.get("body", "").strip()
    if body:
        if workflow is not None:
            why = "Choose a workflow or give an order event, not both."
            raise WrongFields({"body": why})
        try:
            return "The event", parse_event("The event", body)
        except ConsoleError as error:
            raise WrongFields({"body": str(error)}) from error
    file = event_file(workflow, None)
    return str(file), read_event(file, workflow)


def _within(given: Form) -> float:
    try:
        seconds = float(given.get("within", "").strip() or WITHIN)
    except ValueError:
        seconds = 0.0
    if not isfinite(seconds) or not SHORTEST <= seconds <= LONGEST:
        why = f"The time to wait is {SHORTEST:g} to {LONGEST:g} seconds."
        raise WrongFields({"within": why})
    return seconds


SMOKE = FormCommand("smoke", _show_smoke, _smoke)
