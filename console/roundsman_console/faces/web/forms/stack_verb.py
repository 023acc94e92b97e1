"""The form of a verb that says itself what it would do: no other form is written for it."""

from contextlib import closing
from dataclasses import replace

from roundsman_console.acts import verbs
from roundsman_console.acts.actor import read_name
from roundsman_console.acts.verb import Asked, Form, Preview, Progress, StackVerb, Subject
from roundsman_console.base.errors import InspectorError, NotPossible
from roundsman_console.base.limits import WAIT
from roundsman_console.base.result import CommandOutcome, Result
from roundsman_console.faces.web.access.session import GO, SHOWN, Session
from roundsman_console.faces.web.addresses import PAGE_OF, address_of, page_of_id
from roundsman_console.faces.web.command_page import (
    INCIDENT,
    CommandPage,
    FormCommand,
    NextStep,
    WayBackForm,
    agreed,
    asking,
    page_of,
    read_both,
    reason_of,
)
from roundsman_console.faces.web.previews import agreed_preview, search
from roundsman_console.faces.web.readings.released import note_result
from roundsman_console.faces.web.result_tables import tables_of
from roundsman_console.faces.web.work import Work, WorkResult, works_of
from roundsman_console.inspector import Inspector


def commands_on_stacks() -> dict[str, FormCommand]:
    """Return the commands of the verbs that say themselves what they would do, by their names."""
    return {name_of(kind): _form_of(kind) for kind in verbs.stack_verbs()}


def name_of(kind: type[StackVerb]) -> str:
    """Return the name of a verb in the browser."""
    return kind.name.replace(" ", "-")


def form_on(kind: type[StackVerb], subject: Subject, given: Form) -> CommandPage:
    """Return the form of a verb on what it is about. Nothing is read."""
    key = next((name for name, text in subject.given.items() if text == subject.about), "")
    back = page_of_id(subject.about) or PAGE_OF[kind.noun]
    page = page_of(kind, subject.about, key, back, given, name_of(kind))
    left_out = {*subject.given, *subject.left_out}
    hidden = {name: text for name, text in subject.given.items() if name != key}
    return replace(
        page,
        does=subject.does or page.does,
        fields=[one for one in page.fields if one.name not in left_out],
        hidden={**hidden, **page.hidden},
        problems=subject.notes,
        text=subject.text,
        sentence=subject.impossible,
        impossible=bool(subject.impossible),
        at_once=kind.at_once,
    )


def _form_of(kind: type[StackVerb]) -> FormCommand:
    def show(inspector: Inspector, given: Form) -> CommandPage:
        return form_on(kind, kind.subject(inspector.stack, given), given)

    def carry_out(inspector: Inspector, given: Form, session: Session) -> CommandPage:
        reason, verb = read_both(lambda: reason_of(kind, given), lambda: kind.read_form(given))
        by = read_name(None) if kind.stores_name() else ""
        asked = Asked(by, reason, WAIT)
        if kind.searches:
            return _searched(verb, show(inspector, given), inspector, given, session, asked)
        try:
            found = verb.preview(inspector.stack)
        except NotPossible as why:
            return replace(show(inspector, given), sentence=str(why), impossible=True)
        if isinstance(found, Result):
            return _ended(show(inspector, given), found, done=False)
        with closing(found):
            subject = found.subject or kind.subject(inspector.stack, given)
            page = form_on(kind, subject, given)
            if page.impossible:
                return page
            page = replace(page, problems=[*page.problems, *found.notes])
            if not kind.at_once and not agreed(given, session, found.version):
                return asking(page, given, session, found.version, found.sentence)
            result = found.go(asked)
        return _done(found, result, page, inspector, session)

    return FormCommand(kind.name, show, carry_out)


def _searched(
    verb: StackVerb,
    page: CommandPage,
    inspector: Inspector,
    given: Form,
    session: Session,
    asked: Asked,
) -> CommandPage:
    """Return the page of a verb that may take minutes to find what it would do."""
    kept = agreed_preview(given, session)
    if kept is not None:
        try:
            return _done(kept, kept.go(asked), page, inspector, session)
        except InspectorError as error:
            return replace(page, sentence=str(error), refused=True)

    def look(progress: Progress) -> Preview:
        found = verb.search(inspector.stack, progress)
        if isinstance(found, Result):
            raise InspectorError(" ".join(found.words()))
        return found

    return search(inspector, page, given, session, look)


def _done(
    found: Preview, result: Result, page: CommandPage, inspector: Inspector, session: Session
) -> CommandPage:
    """Return the page of what came of a verb, and begin the rest of it."""
    note_result(inspector, result)
    if found.goes_on is None or result.words():
        page = _with_way_back(_ended(page, result, done=True), result, session)
    return page if found.goes_on is None else _goes_on(page, inspector, found, result)


def _goes_on(
    page: CommandPage, inspector: Inspector, found: Preview, result: Result
) -> CommandPage:
    """Return the page of what was done, which follows the rest of it."""
    parts = found.goes_on

    def do(work: Work) -> WorkResult:
        notes, good = list[str](), True
        for part in () if parts is None else parts(result, work.counts):
            note_result(inspector, part)
            early = part.error()
            notes += [*part.words(), *part.warnings(), *([str(early)] if early else [])]
            good = good and part.ended() is CommandOutcome.DONE and not (part.warnings() or early)
        return WorkResult(page.sentence or " ".join(notes), good, notes if page.sentence else ())

    try:
        title = f"{page.title} {page.about}"
        work = works_of(inspector).start(title, page.back, do, done=page.sentence)
    except InspectorError:  # too much runs in this console
        if not found.left:
            raise
        return replace(page, sentence=f"{page.sentence} {found.left}".strip())
    follow = f"/progress/{work.id}"
    return replace(page, goes_to=follow, next=[NextStep("See how far it is", follow)])


def _with_way_back(page: CommandPage, result: Result, session: Session) -> CommandPage:
    """Add the form that takes back what was done, signed as if it had been shown."""
    back, noun = result.way_back(), result.look_next()
    incident = page.hidden.get(INCIDENT, "")
    if noun is not None and not incident:
        page = replace(page, next=[NextStep(noun.value.capitalize(), PAGE_OF[noun])])
    if back is None:
        return page
    form = {**back.form, **({INCIDENT: incident} if incident else {})}
    shown = session.sign({**form, "command": back.name}, back.version)
    return replace(
        page, way_back=WayBackForm(back.title, back.name, {**form, GO: "yes", SHOWN: shown})
    )


def _ended(page: CommandPage, result: Result, *, done: bool) -> CommandPage:
    """Return the page of what came of a verb: its sentences, or its fields as tables."""
    words, refused = result.words(), result.ended() is CommandOutcome.REFUSED
    first, *more = words or ["Done."]
    order = result.leads_to()
    if order:
        page = replace(page, about=order, back=address_of(order, ()))
    return replace(
        page,
        sentence=" ".join([first, *result.warnings()]),
        problems=more,
        text="",
        tables=[] if words else tables_of(result),
        refused=refused,
        done=done and not refused,
    )
