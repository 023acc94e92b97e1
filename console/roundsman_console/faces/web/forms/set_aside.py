"""Rejected messages and dead letters: corrected, sent again, and deleted."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from roundsman_console.acts.set_aside.edits import difference, edited_body, laid_out, masked_changes
from roundsman_console.acts.set_aside.redrive import Redrive, RedriveResult, redrive
from roundsman_console.acts.set_aside.resend import ResendResult, resend, resend_all, send_corrected
from roundsman_console.acts.set_aside.verbs import (
    DropDeadLetterVerb,
    DropRejectedVerb,
    DropVerb,
    RedriveVerb,
)
from roundsman_console.acts.verb import Form
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import InvalidArgument, WrongFields
from roundsman_console.faces.web.command_page import (
    CommandPage,
    FormCommand,
    FormField,
    Item,
    agreed,
    asking,
    not_sent,
    page_of,
    sent_page,
)
from roundsman_console.faces.web.session import Session
from roundsman_console.facts.set_aside.assess import JudgedMessage, ResendVerdict, order_of
from roundsman_console.facts.set_aside.listing import (
    Dead,
    dead_letters,
    delete_dead_letter,
    find_dead_letter,
)
from roundsman_console.facts.set_aside.masked import masked_body
from roundsman_console.facts.set_aside.peek import MOST, WHILE_ASKED, QueuePeek, chosen
from roundsman_console.facts.set_aside.queues import Source, find_source
from roundsman_console.facts.set_aside.rejections import (
    RejectedLetter,
    find_rejection,
    look_at_rejected,
)
from roundsman_console.inspector import Inspector

AT_ONCE = 100
"""The number of messages that one form sends at most. More of them: send the form again."""
RATE = 10.0
"""Messages per second."""
BODY = FormField(
    "body", "The message", "body", "Masked values that stay as they are are kept.", required=True
)
ANYWAY = FormField("anyway", "Send it even if it would be rejected again", "check")


def commands_on_messages() -> dict[str, FormCommand]:
    """Return the commands on rejected messages and dead letters, by their names in the browser."""
    return {
        "resend": FormCommand("rejected resend", partial(_show_correction, _rejected), _resend),
        "resend-all": FormCommand("rejected resend", _show_resend_all, _resend_all),
        "drop-rejected": FormCommand(
            DropRejectedVerb.name, partial(_show_drop, _rejected), _drop_rejected
        ),
        "redrive": FormCommand(RedriveVerb.name, _show_redrive, _redrive),
        "correct": FormCommand("dlq redrive", partial(_show_correction, _dead), _correct),
        "drop-dead": FormCommand(DropDeadLetterVerb.name, partial(_show_drop, _dead), _drop_dead),
    }


@dataclass(frozen=True, slots=True)
class _Kind:
    """What differs between the forms of rejected messages and those of dead letters."""

    back: str
    correct: str
    does: str
    drop: str
    drop_verb: type[DropVerb]


REJECTED = _Kind(
    "/rejected",
    "resend",
    "Sends the message to its queue again, as you correct it here, and deletes the rejected one. "
    "The code that handles the message checks it first.",
    "drop-rejected",
    DropRejectedVerb,
)
DEAD = _Kind(
    "/dead-letters",
    "correct",
    "Sends the order event to its queue again, as you correct it here, and deletes the dead "
    "letter. The code that handles the event checks it first.",
    "drop-dead",
    DropDeadLetterVerb,
)


@dataclass(frozen=True, slots=True)
class _Message:
    """A message as a form shows it."""

    kind: _Kind
    id: str
    real: str
    masked: str
    """The text with masked values masked."""
    problems: Sequence[str]
    """Why it is where it is."""

    def edited(self, given: Form) -> str:
        """Return the text that a person means who edited the masked one. Raises WrongFields."""
        try:
            return edited_body(given.get(BODY.name, ""), self.masked, self.real)
        except InvalidArgument as error:
            raise WrongFields({BODY.name: str(error)}) from error

    @property
    def version(self) -> str:
        """Its state, for the signature of a form."""
        return _version(self.real)


def _message_of(stack: DeployedStack, one: RejectedLetter | Dead) -> _Message:
    if isinstance(one, RejectedLetter):
        kind, real, problems = REJECTED, one.body, [str(problem) for problem in one.problems]
    else:
        kind, real, problems = DEAD, one.letter.body, [one.reason]
    return _Message(kind, one.message_id, real, masked_body(stack, real), problems)


def _rejected(stack: DeployedStack, given: Form) -> RejectedLetter:
    with look_at_rejected(stack) as look:
        return find_rejection(look, given.get("message", ""))


def _dead(stack: DeployedStack, given: Form) -> Dead:
    return find_dead_letter(stack, given.get("message", ""))


Read: TypeAlias = Callable[[DeployedStack, Form], RejectedLetter | Dead]


# One message, corrected


def _show_correction(read: Read, inspector: Inspector, given: Form) -> CommandPage:
    stack = inspector.stack
    return _correction_page(_message_of(stack, read(stack, given)), given)


def _correction_page(message: _Message, given: Form) -> CommandPage:
    return CommandPage(
        message.kind.correct,
        "Correct and send",
        message.kind.does,
        message.id,
        "message",
        message.kind.back,
        (BODY, ANYWAY),
        form={"body": laid_out(message.masked), **given},
        problems=message.problems,
        reason="none",
    )


def _resend(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack = inspector.stack
    with look_at_rejected(stack) as look:
        one = find_rejection(look, given.get("message", ""))
        message = _message_of(stack, one)
        body = message.edited(given)
        go = agreed(given, session, message.version)
        sent = resend(
            stack,
            look,
            one,
            whole=None if body == one.body else body,
            sets=(),
            removes=(),
            anyway=given.get("anyway") == "yes",
            dry_run=not go,
        )
    found = _Corrected(stack, message, body, sent.source, sent.judged, sent=sent.sent)
    return _corrected_page(found, given, session, go=go)


def _correct(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack, anyway = inspector.stack, given.get("anyway") == "yes"
    first = _dead(stack, given)
    with QueuePeek(stack.sqs, first.source.dead_url) as look:
        held = dead_letters(first.source, list(look.letters(MOST)))
        dead = chosen(held, first.message_id, "dead letter", f"of {first.source.name}")
        message = _message_of(stack, dead)
        body = message.edited(given)
        go = agreed(given, session, message.version)
        judged, sent = send_corrected(stack, look, dead, body, anyway=anyway, dry_run=not go)
    found = _Corrected(stack, message, body, dead.source, judged, sent=sent is not None)
    return _corrected_page(found, given, session, go=go)


@dataclass(frozen=True, slots=True)
class _Corrected:
    """A message, what it is corrected to, and what comes of that."""

    stack: DeployedStack
    message: _Message
    body: str
    source: Source
    judged: JudgedMessage
    sent: bool


def _corrected_page(found: _Corrected, given: Form, session: Session, *, go: bool) -> CommandPage:
    """The page that shows what is corrected, and what comes of the message."""
    page, judged, message = _correction_page(found.message, given), found.judged, found.message
    if found.sent:
        words = f"Sent to {found.source.name} ({judged.why})."
        return sent_page(page, order_of(found.body), words)
    failing = judged.verdict in (ResendVerdict.REJECTED, ResendVerdict.FAILS)
    refused = failing and given.get("anyway") != "yes"
    diff = difference(laid_out(message.masked), laid_out(masked_body(found.stack, found.body)))
    words = f"{judged.verdict.words}: {judged.why}. Nothing was sent."
    words = f"{words[0].upper()}{words[1:]}"
    if masked_changes(diff, message.real, found.body):
        words += " A masked value changes."
    elif not diff:
        words += " Nothing is corrected."
    return replace(
        page,
        sentence=not_sent(given, go) + words,
        refused=refused,
        asks=not refused,
        diff=diff,
        problems=[str(problem) for problem in judged.problems],
        shown="" if refused else session.sign(given, message.version),
    )


# One message, deleted


def _show_drop(read: Read, inspector: Inspector, given: Form) -> CommandPage:
    stack = inspector.stack
    return _drop_page(_message_of(stack, read(stack, given)), given)


def _drop_page(message: _Message, given: Form) -> CommandPage:
    kind = message.kind
    return replace(
        page_of(kind.drop_verb, message.id, "message", kind.back, given, kind.drop),
        text=laid_out(message.masked),
        problems=message.problems,
    )


def _drop_rejected(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    with look_at_rejected(inspector.stack, WHILE_ASKED) as look:
        one = find_rejection(look, given.get("message", ""))
        return _dropped(inspector.stack, one, given, session, lambda: look.delete(one.letter))


def _drop_dead(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack = inspector.stack
    dead = _dead(stack, given)
    return _dropped(stack, dead, given, session, lambda: delete_dead_letter(stack, dead))


def _dropped(
    stack: DeployedStack,
    one: RejectedLetter | Dead,
    given: Form,
    session: Session,
    delete: Callable[[], None],
) -> CommandPage:
    """Delete the message if that was shown; return the page that asks for it, or says so."""
    message = _message_of(stack, one)
    page = _drop_page(message, given)
    if agreed(given, session, message.version):
        delete()
        return replace(page, sentence=f"Deleted {page.about}.", done=True, text="")
    would = f"{page.about} would be deleted for good. Nobody can undo that."
    return asking(page, given, session, message.version, would)


# Several messages


def _show_resend_all(_inspector: Inspector, given: Form) -> CommandPage:
    return CommandPage(
        "resend-all",
        "Send all that would be accepted",
        "Sends, unchanged, every rejected message that would be accepted now.",
        "",
        "message",
        "/rejected",
        form=given,
        reason="none",
    )


def _resend_all(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    page = _show_resend_all(inspector, given)
    result = resend_all(inspector.stack, AT_ONCE, partial(_agreed, given, session))
    items = [
        _item(one.rejection.message_id, order_of(one.rejection.body), one.judged, one.goes)
        for one in result.assessed
    ]
    if result.dry:
        return _would_send(page, items, "sent", "be rejected again", given, session)
    return _sent_many(page, result, f"{len(result.sent)} sent, {result.left} left.")


def _show_redrive(inspector: Inspector, given: Form) -> CommandPage:
    return _redrive_page(find_source(inspector.stack, given.get("queue", "")), given)


def _redrive_page(source: Source, given: Form) -> CommandPage:
    page = page_of(RedriveVerb, source.name, "queue", "/dead-letters", given, "redrive")
    return replace(page, does=f"{page.does} At most {AT_ONCE} are sent at once.")


def _redrive(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack, verb = inspector.stack, RedriveVerb.read_form(given)
    source = find_source(stack, verb.queue)
    page = _redrive_page(source, given)
    wanted = Redrive(source, verb.only, AT_ONCE, RATE, verb.anyway)
    result = redrive(stack, wanted, partial(_agreed, given, session))
    found = result.candidates
    if result.dry:
        if verb.only:
            page = replace(page, text=laid_out(masked_body(stack, found[0].dead.letter.body)))
        items = [_item(one.dead.message_id, one.judged.what, one.judged, one.goes) for one in found]
        return _would_send(page, items, "sent back", "stay", given, session)
    left = len(found) - len(result.sent)
    return _sent_many(page, result, f"{len(result.sent)} sent back to {source.name}, {left} left.")


def _agreed(given: Form, session: Session, result: ResendResult | RedriveResult) -> bool:
    """Whether the form is to be carried out, and exactly these messages were shown."""
    return agreed(given, session, _version(*(one.message_id for one in result.going)))


def _would_send(
    page: CommandPage, items: Sequence[Item], sent: str, left: str, given: Form, session: Session
) -> CommandPage:
    going = [one.name for one in items if one.goes]
    words = (
        f"{counted(len(going), 'message')} would be {sent}, {len(items) - len(going)} would {left}."
    )
    page = replace(page, items=items, sentence=not_sent(given, False) + words)
    return asking(page, given, session, _version(*going), words) if going else page


def _sent_many(page: CommandPage, result: ResendResult | RedriveResult, words: str) -> CommandPage:
    if result.error is not None:
        return replace(page, sentence=f"{words} {result.error}", refused=True)
    return replace(page, sentence=words, done=True)


def _item(name: str, what: str | None, judged: JudgedMessage, goes: bool) -> Item:
    return Item(name, what or "?", judged.verdict.words, judged.why, goes)


def _version(*texts: str) -> str:
    """The state of messages, by their texts or ids."""
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
