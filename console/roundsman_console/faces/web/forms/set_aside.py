"""Rejected messages and dead letters: corrected, sent again, and deleted."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from roundsman_console.acts.set_aside.again import (
    Assessed,
    SendOptions,
    SendResult,
    send_all,
    send_corrected,
)
from roundsman_console.acts.set_aside.edits import difference, edited_body, laid_out, masked_changes
from roundsman_console.acts.set_aside.verbs import RedriveVerb
from roundsman_console.acts.verb import Form, Item
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import InvalidArgument, WrongFields
from roundsman_console.faces.web.access.session import Session
from roundsman_console.faces.web.command_page import (
    CommandPage,
    FormCommand,
    FormField,
    agreed,
    asking,
    not_sent,
    page_of,
    sent_page,
)
from roundsman_console.facts.set_aside.assess import ResendVerdict, order_of
from roundsman_console.facts.set_aside.masked import masked_body
from roundsman_console.facts.set_aside.messages import (
    SetAside,
    SetAsideQueue,
    dead_queues,
    held,
    rejected_queue,
)
from roundsman_console.facts.set_aside.peek import QueuePeek
from roundsman_console.facts.set_aside.queues import Source, find_source
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
        "resend": _form("rejected resend", REJECTED),
        "resend-all": FormCommand("rejected resend", _show_resend_all, _resend_all),
        "redrive": FormCommand(RedriveVerb.name, _show_redrive, _redrive),
        "correct": _form("dlq redrive", DEAD),
    }


@dataclass(frozen=True, slots=True)
class _Kind:
    """What differs between the forms of rejected messages and those of dead letters."""

    is_dead: bool
    back: str
    correct: str
    does: str

    @contextmanager
    def held(self, stack: DeployedStack, given: Form) -> Iterator[tuple[QueuePeek, "_Message"]]:
        """Find the message of a form, and hold it."""
        places = dead_queues(stack) if self.is_dead else [rejected_queue(stack)]
        with held(places, given.get("message", "")) as (look, one):
            yield look, _Message(self, one, masked_body(stack, one.body))


REJECTED = _Kind(
    False,
    "/rejected",
    "resend",
    "Sends the message to its queue again, as you correct it here, and deletes the rejected one. "
    "The code that handles the message checks it first.",
)
DEAD = _Kind(
    True,
    "/dead-letters",
    "correct",
    "Sends the order event to its queue again, as you correct it here, and deletes the dead "
    "letter. The code that handles the event checks it first.",
)


@dataclass(frozen=True, slots=True)
class _Message:
    """A message as a form shows it."""

    kind: _Kind
    one: SetAside
    masked: str
    """Its text with masked values masked."""

    def edited(self, given: Form) -> str:
        """Return the text that a person means who edited the masked one. Raises WrongFields."""
        try:
            return edited_body(given.get(BODY.name, ""), self.masked, self.one.body)
        except InvalidArgument as error:
            raise WrongFields({BODY.name: str(error)}) from error

    @property
    def version(self) -> str:
        """Its state, for the signature of a form."""
        return _version(self.one.body)

    @property
    def problems(self) -> Sequence[str]:
        """Why it is where it is."""
        return [str(problem) for problem in self.one.problems]

    def correction(self, given: Form) -> CommandPage:
        """Return the form that corrects it."""
        return CommandPage(
            self.kind.correct,
            "Correct and send",
            self.kind.does,
            self.one.message_id,
            "message",
            self.kind.back,
            (BODY, ANYWAY),
            form={"body": laid_out(self.masked), **given},
            problems=self.problems,
            reason="none",
        )


def _form(verb: str, kind: _Kind) -> FormCommand:
    return FormCommand(verb, partial(_show, kind), partial(_correct, kind))


def _show(kind: _Kind, inspector: Inspector, given: Form) -> CommandPage:
    with kind.held(inspector.stack, given) as (_, message):
        return message.correction(given)


def _correct(kind: _Kind, inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack, anyway = inspector.stack, given.get("anyway") == "yes"
    with kind.held(stack, given) as (look, message):
        body = message.edited(given)
        go = agreed(given, session, message.version)
        whole = None if body == message.one.body else body
        sent = send_corrected(stack, look, message.one, whole=whole, anyway=anyway, dry_run=not go)
    page, judged = message.correction(given), sent.judged
    if sent.sent:
        return sent_page(page, order_of(body), f"Sent to {sent.source.name} ({judged.why}).")
    failing = judged.verdict in (ResendVerdict.REJECTED, ResendVerdict.FAILS)
    refused = failing and not anyway
    diff = difference(laid_out(message.masked), laid_out(masked_body(stack, body)))
    words = f"{judged.verdict.words}: {judged.why}. Nothing was sent."
    words = f"{words[0].upper()}{words[1:]}"
    if masked_changes(diff, message.one.body, body):
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
    page, place = _show_resend_all(inspector, given), rejected_queue(inspector.stack)
    result = send_all(place, SendOptions(AT_ONCE), partial(_agreed, given, session))
    if result.dry:
        return _would_send(page, result, "sent", "be rejected again", given, session)
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
    wanted = SendOptions(AT_ONCE, verb.only, RATE, verb.anyway)
    result = send_all(SetAsideQueue(stack, source), wanted, partial(_agreed, given, session))
    if result.dry:
        if verb.only:
            body = result.assessed[0].message.body
            page = replace(page, text=laid_out(masked_body(stack, body)))
        return _would_send(page, result, "sent back", "stay", given, session)
    words = f"{len(result.sent)} sent back to {source.name}, {result.left} left."
    return _sent_many(page, result, words)


def _agreed(given: Form, session: Session, result: SendResult) -> bool:
    """Whether the form is to be carried out, and exactly these messages were shown."""
    return agreed(given, session, _version(*_going(result)))


def _going(result: SendResult) -> list[str]:
    return [one.message.message_id for one in result.going]


def _would_send(
    page: CommandPage, result: SendResult, sent: str, left: str, given: Form, session: Session
) -> CommandPage:
    going = _going(result)
    stay = len(result.assessed) - len(going)
    words = f"{counted(len(going), 'message')} would be {sent}, {stay} would {left}."
    items = [_item(one) for one in result.assessed]
    page = replace(
        page,
        items=items,
        items_are=("Message", "Contents"),
        sentence=not_sent(given, False) + words,
    )
    return asking(page, given, session, _version(*going), words) if going else page


def _sent_many(page: CommandPage, result: SendResult, words: str) -> CommandPage:
    if result.error is not None:
        return replace(page, sentence=f"{words} {result.error}", refused=True)
    return replace(page, sentence=words, done=True)


def _item(one: Assessed) -> Item:
    message, judged = one.message, one.judged
    what = judged.what if message.is_dead else message.order or "?"
    return Item(message.message_id, what, judged.verdict.words, judged.why, one.goes)


def _version(*texts: str) -> str:
    """The state of messages, by their texts or ids."""
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
