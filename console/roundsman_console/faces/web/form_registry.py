"""Commands as buttons: a form, what the command would do, and its outcome.

A command is sent in two steps, as the command line does it: what would happen is shown first, and
the same form is sent again to carry it out. A form that is wrong, or that AWS refuses, is shown
again with what was typed, and says what is wrong beside the field.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from roundsman_console.acts import verbs
from roundsman_console.acts.verb import Form
from roundsman_console.base.errors import NotFound, WrongFields, sentence_of
from roundsman_console.faces.web import results
from roundsman_console.faces.web.access.session import GO, SHOWN, Session
from roundsman_console.faces.web.command_page import (
    INCIDENT,
    REASON,
    CommandPage,
    FormCommand,
    FormField,
    fields_of,
    incident_of,
)
from roundsman_console.faces.web.forms.bulk import LIMITS, ORDERS, commands_on_many
from roundsman_console.faces.web.forms.order import commands_on_orders
from roundsman_console.faces.web.forms.set_aside import BODY, commands_on_messages
from roundsman_console.faces.web.forms.smoke import SMOKE
from roundsman_console.faces.web.forms.stack_verb import commands_on_stacks
from roundsman_console.faces.web.forms.trial import commands_on_groups
from roundsman_console.faces.web.readings.unreadable_parts import AWS_ERRORS
from roundsman_console.inspector import Inspector

GOES_TO = "goes_to"
"""The value with the address of the page to show instead; empty for the page itself."""


def commands() -> dict[str, FormCommand]:
    """Return the commands in the browser, by the last part of the address of their form."""
    return {
        **commands_on_orders(),
        **commands_on_many(),
        **commands_on_stacks(),
        **commands_on_messages(),
        **commands_on_groups(),
        SMOKE.verb: SMOKE,
    }


def _labels() -> dict[str, FormField]:
    """Return the fields that a person may have filled in, by their names."""
    of_verbs = (field for verb in verbs.VERBS for field in fields_of(verb))
    return {one.name: one for one in (*of_verbs, ORDERS, *LIMITS, BODY)}


def read_form(inspector: Inspector, given: Form) -> Mapping[str, object]:
    """Read an empty form. Raises NotFound if there is no such command, order, agent or message."""
    return {"page": _command(given).show(inspector, given), "at": None}


def carry_out(inspector: Inspector, given: Form, session: Session) -> Mapping[str, object]:
    """Show what the command would do; with the field GO, send it and show its outcome.

    It is sent only if exactly this form was shown, and what it is about is as it was then. Returns
    the address of the page that says so. Raises NotFound if there is no such command.
    """
    command = _command(given)
    try:
        page = command.carry_out(inspector, given, session)
    except WrongFields as wrong:
        page = _shown_again(command, inspector, given, wrong.reasons, "")
    except AWS_ERRORS as error:
        page = _shown_again(command, inspector, given, {}, sentence_of(error))
    if page.done or (GO in given and page.goes_to):
        carried_out = {"person": session.person, "command": page.name, "about": page.about}
        session.journal(json.dumps(carried_out))
    incident = incident_of(given)
    if incident and page.done:
        return {GOES_TO: f"/groups/{incident}?result={results.keep(page)}"}
    return {GOES_TO: page.goes_to or f"/results/{results.keep(page)}"}


def show_again(inspector: Inspector, given: Form, why: str) -> Mapping[str, object]:
    """Show a form with what was typed, and why nothing was done with it.

    Raises NotFound if there is no such command.
    """
    page = _shown_again(_command(given), inspector, given, {}, "")
    page = replace(page, problem=f"{why} {page.problem}".strip())
    return {GOES_TO: f"/results/{results.keep(page)}"}


def _shown_again(
    command: FormCommand,
    inspector: Inspector,
    given: Form,
    errors: Mapping[str, str],
    problem: str,
) -> CommandPage:
    """Return the form with what was typed, and with what is wrong."""
    try:
        page = command.show(inspector, given)
    except AWS_ERRORS as error:
        page, errors, problem = _as_typed(given), {}, sentence_of(error)
    known = {REASON.name, *(one.name for one in page.fields)}
    unplaced = [sentence for name, sentence in errors.items() if name not in known]
    return replace(
        page,
        errors={
            name: page.labelled(sentence, name)
            for name, sentence in errors.items()
            if name in known
        },
        problem=page.labelled(" ".join([problem, *unplaced]).strip()),
        sentence="",
    )


def _as_typed(given: Form) -> CommandPage:
    """Return a form whose subject cannot be read, with everything that was sent."""
    sent = {
        name: text for name, text in given.items() if name not in ("command", INCIDENT, GO, SHOWN)
    }
    incident = incident_of(given)
    labels = _labels()
    fields = [labels[name] for name in sent if name in labels]
    shown = {*labels, REASON.name}
    hidden = {name: text for name, text in sent.items() if name not in shown}
    return CommandPage(
        given["command"],
        given["command"].replace("-", " ").capitalize(),
        "",
        "",
        "",
        f"/groups/{incident}" if incident else "/",
        [replace(one, required=False) for one in fields],
        form=given,
        reason="optional" if REASON.name in sent else "none",
        hidden={**hidden, INCIDENT: incident} if incident else hidden,
    )


def _command(given: Form) -> FormCommand:
    found = commands().get(given["command"])
    if found is None:
        raise NotFound("There is no such command.")
    return found
