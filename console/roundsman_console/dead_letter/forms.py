"""Rejected messages and dead letters: corrected, sent again, and deleted."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from roundsman_console.clock import now
from roundsman_console.dead_letter.assess import Judged, Verdict, judge, order_of
from roundsman_console.dead_letter.browse import (
    delete_dead_letter,
    find_dead_letter,
    look_at,
)
from roundsman_console.dead_letter.edits import difference, edited_body, laid_out, masked_changes
from roundsman_console.dead_letter.listing import Dead, dead_letters
from roundsman_console.dead_letter.masked import masked_body
from roundsman_console.dead_letter.peek import MOST, WHILE_ASKED, QueuePeek, find_letter
from roundsman_console.dead_letter.queues import Source, counts, find_source, sources
from roundsman_console.dead_letter.redrive import Redrive, redrive
from roundsman_console.dead_letter.rejections import (
    Rejection,
    look_at_rejected,
    read_rejection,
)
from roundsman_console.dead_letter.resend import resend, resend_all, send_corrected
from roundsman_console.dead_letter.verbs import (
    DropDeadLetterVerb,
    DropRejectedVerb,
    RedriveVerb,
)
from roundsman_console.errors import InspectorError
from roundsman_console.inspector import Inspector
from roundsman_console.stack.stack import DeployedStack
from roundsman_console.verbs.verb import Form
from roundsman_console.web.command_page import (
    CommandPage,
    FormCommand,
    FormField,
    Item,
    not_sent,
    page_of,
)
from roundsman_console.web.session import GO, Session

AT_ONCE = 100
"""The number of messages that one form sends at most. More of them: send the form again."""
RATE = 10.0
"""Messages per second."""
WHERE = "the RejectedQueue"
BODY = FormField("body", "The message", "body", "Masked values that stay as they are are kept.")
ANYWAY = FormField("anyway", "Send it even if it would be rejected again", "check")


def commands_on_messages() -> dict[str, FormCommand]:
    """Return the commands on rejected messages and dead letters, by their names in the browser."""
    return {
        "resend": FormCommand("rejected resend", _show_resend, _resend),
        "resend-all": FormCommand("rejected resend", _show_resend_all, _resend_all),
        "drop-rejected": FormCommand(DropRejectedVerb.name, _show_drop_rejected, _drop_rejected),
        "redrive": FormCommand(RedriveVerb.name, _show_redrive, _redrive),
        "correct": FormCommand("dlq redrive", _show_correct, _correct),
        "drop-dead": FormCommand(DropDeadLetterVerb.name, _show_drop_dead, _drop_dead),
    }


# Rejected messages


def _rejection(look: QueuePeek, given: Form) -> Rejection:
    return read_rejection(find_letter(look, given.get("message", ""), WHERE))


def _resend_page(stack: DeployedStack, one: Rejection, given: Form) -> tuple[CommandPage, str]:
    """The page of the form, and the message as it is shown."""
    masked = masked_body(stack, one.body)
    page = CommandPage(
        "resend",
        "Correct and send",
        "Sends the message to its queue again, as you correct it here, and deletes the rejected "
        "one. The code that handles the message checks it first.",
        one.letter.message_id,
        "message",
        "/rejected",
        (BODY, ANYWAY),
        form={"body": laid_out(masked), **given},
        problems=[str(problem) for problem in one.problems],
        reason="none",
    )
    return page, masked


def _show_resend(inspector: Inspector, given: Form) -> CommandPage:
    with look_at_rejected(inspector.stack) as look:
        return _resend_page(inspector.stack, _rejection(look, given), given)[0]


def _resend(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack = inspector.stack
    with look_at_rejected(stack) as look:
        one = _rejection(look, given)
        page, masked = _resend_page(stack, one, given)
        body = edited_body(given.get("body", ""), masked, one.body)
        go = GO in given and session.take(given, _version(one.body))
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
    if sent.sent:
        return _sent_page(page, sent.source, sent.judged, body)
    anyway = given.get("anyway") == "yes"
    return _decision(
        _Decision(stack, masked, one.body, body, sent.judged, anyway), page, given, session, go=go
    )


def _sent_page(page: CommandPage, source: Source, judged: Judged, body: str) -> CommandPage:
    order = order_of(body)
    return replace(
        page,
        sentence=f"Sent to {source.name} ({judged.why}).",
        done=True,
        about=order or page.about,
        back=f"/orders/{order}" if order else page.back,
        problems=(),
    )


@dataclass(frozen=True, slots=True)
class _Decision:
    """A message as it is shown and as it is, what it is corrected to, and what comes of that."""

    stack: DeployedStack
    masked: str
    real: str
    body: str
    judged: Judged
    anyway: bool

    @property
    def refused(self) -> bool:
        return self.judged.verdict in (Verdict.REJECTED, Verdict.FAILS) and not self.anyway


def _decision(
    found: _Decision, page: CommandPage, given: Form, session: Session, *, go: bool
) -> CommandPage:
    """The page that shows what is corrected, and what would come of the message."""
    diff = difference(laid_out(found.masked), laid_out(masked_body(found.stack, found.body)))
    words = f"{found.judged.verdict.words}: {found.judged.why}. Nothing was sent."
    words = f"{words[0].upper()}{words[1:]}"
    if masked_changes(diff, found.real, found.body):
        words += " A masked value changes."
    elif not diff:
        words += " Nothing is corrected."
    return replace(
        page,
        sentence=not_sent(given, go) + words,
        refused=found.refused,
        asks=not found.refused,
        diff=diff,
        problems=[str(problem) for problem in found.judged.problems],
        shown="" if found.refused else session.sign(given, _version(found.real)),
    )


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
    stack, page = inspector.stack, _show_resend_all(inspector, given)
    items = _would_be_accepted(stack)
    version = _version(*(one.name for one in items if one.goes))
    going = sum(one.goes for one in items)
    if not (go := GO in given and session.take(given, version)):
        words = f"{_messages(going)} would be sent, {len(items) - going} would be rejected again."
        asks = going > 0
        return replace(
            page,
            sentence=not_sent(given, go) + words,
            items=items,
            asks=asks,
            shown=session.sign(given, version) if asks else "",
        )
    result = resend_all(stack, AT_ONCE, confirm=lambda _: None)
    words = f"{len(result.sent)} sent, {result.left} left."
    if result.error is not None:
        return replace(page, sentence=f"{words} {result.error}", refused=True)
    return replace(page, sentence=words, done=True)


def _would_be_accepted(stack: DeployedStack) -> list[Item]:
    known = {source.physical: source for source in sources(stack)}
    with look_at_rejected(stack) as look:
        found = [read_rejection(letter) for letter in look.letters(AT_ONCE)]
    items = []
    for one in found:
        source = known.get(one.queue)
        if source is None:
            verdict, why = Verdict.REJECTED, "it came from no queue of the stack"
        else:
            judged = judge(stack, source, one.body, now())
            verdict, why = judged.verdict, judged.why
        items.append(_item(one.letter.message_id, order_of(one.body), verdict, why))
    return items


def _show_drop_rejected(inspector: Inspector, given: Form) -> CommandPage:
    with look_at_rejected(inspector.stack) as look:
        return _drop_page(inspector.stack, _rejection(look, given), given)


def _drop_page(stack: DeployedStack, one: Rejection, given: Form) -> CommandPage:
    message = one.letter.message_id
    return replace(
        page_of(DropRejectedVerb, message, "message", "/rejected", given, "drop-rejected"),
        text=laid_out(masked_body(stack, one.body)),
        problems=[str(problem) for problem in one.problems],
    )


def _drop_rejected(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    with look_at_rejected(inspector.stack, WHILE_ASKED) as look:
        one = _rejection(look, given)
        page = _drop_page(inspector.stack, one, given)
        go, page = _asked(page, given, session, _version(one.body))
        if go:
            look.delete(one.letter)
    return page


# Dead letters


def _show_redrive(inspector: Inspector, given: Form) -> CommandPage:
    return _redrive_page(find_source(inspector.stack, given.get("queue", "")), given)


def _redrive_page(source: Source, given: Form) -> CommandPage:
    page = page_of(RedriveVerb, source.name, "queue", "/dead-letters", given, "redrive")
    return replace(page, does=f"{page.does} At most {AT_ONCE} are sent at once.")


def _redrive(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack = inspector.stack
    verb = RedriveVerb.read_form(given)
    source = find_source(stack, verb.queue)
    page, letters = _redrive_page(source, given), _letters(stack, source, verb.only or "")
    items = [_dead_item(stack, dead, verb.anyway) for dead in letters]
    version = _version(*(one.name for one in items if one.goes))
    going = sum(one.goes for one in items)
    if not (go := GO in given and session.take(given, version)):
        words = f"{_messages(going)} would be sent back, {len(items) - going} would stay."
        return replace(
            page,
            sentence=not_sent(given, go) + words,
            items=items,
            text=laid_out(masked_body(stack, letters[0].letter.body)) if verb.only else "",
            asks=going > 0,
            shown=session.sign(given, version) if going else "",
        )
    result = redrive(stack, Redrive(source, verb.only, AT_ONCE, RATE, verb.anyway, dry=False))
    left = len(result.candidates) - len(result.sent)
    words = f"{len(result.sent)} sent back to {source.name}, {left} left."
    if result.error is not None:
        return replace(page, sentence=f"{words} {result.error}", refused=True)
    return replace(page, sentence=words, done=True)


def _letters(stack: DeployedStack, source: Source, only: str) -> Sequence[Dead]:
    """The dead letters that the form means. Raises InspectorError if it names one not there."""
    [found] = look_at(stack, source.name, AT_ONCE)
    meant = [dead for dead in found.dead if dead.letter.message_id.startswith(only)]
    if only and len(meant) != 1:
        raise InspectorError(
            f"{len(meant)} of the first {AT_ONCE} dead letters of {source.name} begin so. Another "
            "reader may hide one; it is visible again within a minute."
        )
    return meant


def _dead_item(stack: DeployedStack, dead: Dead, anyway: bool) -> Item:
    judged = judge(stack, dead.source, dead.letter.body, now())
    item = _item(dead.letter.message_id, judged.what, judged.verdict, judged.why)
    return replace(item, goes=anyway or judged.verdict is not Verdict.FAILS)


def _show_correct(inspector: Inspector, given: Form) -> CommandPage:
    stack = inspector.stack
    dead = find_dead_letter(stack, given.get("message", ""))
    return _correct_page(dead, masked_body(stack, dead.letter.body), given)


def _correct_page(dead: Dead, masked: str, given: Form) -> CommandPage:
    return CommandPage(
        "correct",
        "Correct and send",
        "Sends the order event to its queue again, as you correct it here, and deletes the dead "
        "letter. The code that handles the event checks it first.",
        dead.letter.message_id,
        "message",
        "/dead-letters",
        (BODY, ANYWAY),
        form={"body": laid_out(masked), **given},
        problems=[dead.reason],
        reason="none",
    )


def _correct(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack, anyway = inspector.stack, given.get("anyway") == "yes"
    source = find_dead_letter(stack, given.get("message", "")).source
    with QueuePeek(stack.sqs, source.dead_url) as look:
        dead = _held(look, source, given.get("message", ""))
        real = dead.letter.body
        masked = masked_body(stack, real)
        page = _correct_page(dead, masked, given)
        body = edited_body(given.get("body", ""), masked, real)
        go = GO in given and session.take(given, _version(real))
        judged, sent = send_corrected(stack, look, dead, body, anyway=anyway, dry_run=not go)
    if sent is not None:
        return _sent_page(page, source, judged, body)
    return _decision(
        _Decision(stack, masked, real, body, judged, anyway), page, given, session, go=go
    )


def _held(look: QueuePeek, source: Source, message: str) -> Dead:
    for dead in dead_letters(source, list(look.letters(MOST))):
        if dead.letter.message_id == message:
            return dead
    raise InspectorError(
        f"{message} is hidden by another reader now; it is visible again within a minute."
    )


def _show_drop_dead(inspector: Inspector, given: Form) -> CommandPage:
    stack = inspector.stack
    return _drop_dead_page(stack, find_dead_letter(stack, given.get("message", "")), given)


def _drop_dead_page(stack: DeployedStack, dead: Dead, given: Form) -> CommandPage:
    message = dead.letter.message_id
    return replace(
        page_of(DropDeadLetterVerb, message, "message", "/dead-letters", given, "drop-dead"),
        text=laid_out(masked_body(stack, dead.letter.body)),
        problems=[dead.reason],
    )


def _drop_dead(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack = inspector.stack
    dead = find_dead_letter(stack, given.get("message", ""))
    counts(stack.sqs, dead.source.dead_url)  # raises if a look could move messages
    page = _drop_dead_page(stack, dead, given)
    go, page = _asked(page, given, session, _version(dead.letter.body))
    if go:
        delete_dead_letter(stack, dead)
    return page


def _asked(
    page: CommandPage, given: Form, session: Session, version: str
) -> tuple[bool, CommandPage]:
    """Whether to delete the message, and the page that asks for it or says that it was done."""
    if GO in given and session.take(given, version):
        return True, replace(page, sentence=f"Deleted {page.about}.", done=True, text="")
    asked = f"{not_sent(given, False)}{page.about} would be deleted for good. Nobody can undo that."
    return False, replace(page, sentence=asked, asks=True, shown=session.sign(given, version))


def _item(name: str, what: str | None, verdict: Verdict, why: str) -> Item:
    return Item(name, what or "?", verdict.words, why, verdict is not Verdict.REJECTED)


def _messages(many: int) -> str:
    return "1 message" if many == 1 else f"{many} messages"


def _version(*texts: str) -> str:
    """The state of messages, by their texts or ids."""
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
