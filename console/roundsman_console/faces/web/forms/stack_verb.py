"""The form of a verb that says itself what it would do: no other form is written for it."""

from collections.abc import Mapping
from dataclasses import replace

from roundsman_console.acts import verbs
from roundsman_console.acts.actor import read_name
from roundsman_console.acts.verb import Asked, Form, StackVerb
from roundsman_console.base.errors import NotPossible
from roundsman_console.base.limits import WAIT
from roundsman_console.base.result import CommandOutcome, Result
from roundsman_console.faces.web.addresses import address_of, page_of_id
from roundsman_console.faces.web.command_page import (
    CommandPage,
    FormCommand,
    agreed,
    asking,
    page_of,
    read_both,
    reason_of,
)
from roundsman_console.faces.web.result_tables import tables_of
from roundsman_console.faces.web.session import Session
from roundsman_console.inspector import Inspector

BACK: Mapping[str, str] = {"answer": "/orders", "rollback": "/doctor"}
"""The page to which the form of a verb on the stack leads back, if not to the overview."""


def commands_on_stacks() -> dict[str, FormCommand]:
    """Return the commands of the verbs that say themselves what they would do, by their names."""
    return {kind.name.replace(" ", "-"): _form_of(kind) for kind in verbs.stack_verbs()}


def _form_of(kind: type[StackVerb]) -> FormCommand:
    def show(inspector: Inspector, given: Form) -> CommandPage:
        stack, name = inspector.stack, kind.name.replace(" ", "-")
        about = kind.find(stack, given.get(kind.about, "")) if kind.about else stack.name
        back = page_of_id(about) or BACK.get(kind.name, "/")
        return page_of(kind, about, kind.about or "stack", back, given, name)

    def carry_out(inspector: Inspector, given: Form, session: Session) -> CommandPage:
        page = show(inspector, given)
        reason, verb = read_both(lambda: reason_of(page, given), lambda: kind.read_form(given))
        try:
            found = verb.preview(inspector.stack)
        except NotPossible as why:
            return replace(page, sentence=str(why), impossible=True)
        if isinstance(found, Result):
            return _ended(page, found, done=False)
        if not agreed(given, session, found.version):
            page = replace(page, problems=found.notes)
            return asking(page, given, session, found.version, found.sentence)
        by = read_name(None) if kind.needs_reason != "none" else ""
        return _ended(page, found.go(Asked(by, reason, WAIT)), done=True)

    return FormCommand(kind.name, show, carry_out)


def _ended(page: CommandPage, result: Result, *, done: bool) -> CommandPage:
    """Return the page of what came of a verb: its sentences, or its fields as tables."""
    words, refused = result.words(), result.ended() is CommandOutcome.REFUSED
    first, *more = words or ["Done."]
    order = result.leads_to()
    if order:
        page = replace(page, about=order, back=address_of(order, ()))
    return replace(
        page,
        sentence=first,
        problems=more,
        tables=[] if words else tables_of(result),
        refused=refused,
        done=done and not refused,
    )
