"""The answer of a callback."""

from dataclasses import replace

from roundsman_console.acts.callback.answers import send_answer
from roundsman_console.acts.callback.verbs import AnswerVerb
from roundsman_console.acts.order.commands import CommandOutcome
from roundsman_console.acts.verb import Form
from roundsman_console.base.limits import WAIT
from roundsman_console.faces.web.command_page import (
    CommandPage,
    FormCommand,
    agreed,
    asking,
    page_of,
)
from roundsman_console.faces.web.session import Session
from roundsman_console.inspector import Inspector


def _show_answer(inspector: Inspector, given: Form) -> CommandPage:
    return page_of(AnswerVerb, inspector.stack.name, "stack", "/orders", given)


def _answer(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    page, verb = _show_answer(inspector, given), AnswerVerb.read_form(given)
    answered = send_answer(inspector.stack, verb, wait=0, dry_run=True)
    if answered.outcome is CommandOutcome.DRY_RUN:
        version = str(answered.task.version) if answered.task else ""
        if not agreed(given, session, version):
            return asking(page, given, session, version, answered.sentence)
        answered = send_answer(inspector.stack, verb, wait=WAIT)
    refused = answered.outcome is CommandOutcome.REFUSED
    return replace(
        page,
        sentence=answered.sentence,
        refused=refused,
        done=not refused,
        about=answered.reply.task_id,
        back=f"/orders/{answered.reply.task_id}",
    )


ANSWER = FormCommand("answer", _show_answer, _answer)
