"""Commands on the whole stack: a new order, the answer of a callback, the way back to versions."""

from collections.abc import Mapping
from dataclasses import replace

from roundsman.client import Client
from roundsman_console.callback.answers import send_answer
from roundsman_console.callback.verbs import AnswerVerb
from roundsman_console.clock import now
from roundsman_console.dead_letter.assess import Verdict, judge, order_of
from roundsman_console.dead_letter.queues import find_source
from roundsman_console.inspector import Inspector
from roundsman_console.inspector.inspector import WAIT
from roundsman_console.order.commands import CommandOutcome
from roundsman_console.stack.rollback import AFTERWARDS, find_changes, go_back
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


def commands_on_stacks() -> Mapping[str, FormCommand]:
    """Return the commands on the whole stack, by their names in the browser."""
    return {
        "submit": FormCommand("submit", _show_submit, _submit),
        "answer": FormCommand("answer", _show_answer, _answer),
        "rollback": FormCommand("rollback", _show_rollback, _rollback),
    }


def _show_submit(inspector: Inspector, given: Form) -> CommandPage:
    return CommandPage(
        "submit",
        "Send an order",
        "Sends an order event to the SubmissionQueue, as an application does. An event that would "
        "be rejected is not sent.",
        inspector.stack.name,
        "stack",
        "/orders",
        (FormField("body", "The event, as JSON", "body"),),
        form=given,
        reason="none",
    )


def _submit(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack, page, body = inspector.stack, _show_submit(inspector, given), given.get("body", "")
    judged = judge(stack, find_source(stack, "SubmissionQueue"), body, now())
    if judged.verdict in (Verdict.REJECTED, Verdict.FAILS):
        problems = [str(problem) for problem in judged.problems]
        words = f"Nothing was sent: {judged.verdict.words}."
        return replace(page, sentence=words, refused=True, problems=problems or [judged.why])
    if not (go := GO in given and session.take(given, "")):
        words = f"{not_sent(given, go)}{judged.what}: {judged.verdict.words}, {judged.why}."
        return replace(page, sentence=words, asks=True, shown=session.sign(given, ""))
    Client(stack.outputs, sqs=stack.sqs).submit_text(body)
    order = order_of(body)
    return replace(
        page,
        sentence="Sent. The order is shown once it is accepted.",
        done=True,
        about=order or page.about,
        back=f"/orders/{order}" if order else page.back,
    )


def _show_answer(inspector: Inspector, given: Form) -> CommandPage:
    return page_of(AnswerVerb, inspector.stack.name, "stack", "/orders", given)


def _answer(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    page, verb = _show_answer(inspector, given), AnswerVerb.read_form(given)
    answered = send_answer(inspector.stack, verb, wait=0, dry_run=True)
    if answered.outcome is CommandOutcome.DRY_RUN:
        version = str(answered.task.version) if answered.task else ""
        if not (go := GO in given and session.take(given, version)):
            words = not_sent(given, go) + answered.sentence
            return replace(page, sentence=words, asks=True, shown=session.sign(given, version))
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


def _show_rollback(inspector: Inspector, given: Form) -> CommandPage:
    return CommandPage(
        "rollback",
        "Go back",
        "Lets each changed function run the version again that it ran before the last deployment, "
        "which takes seconds. Deploy the former code afterwards.",
        inspector.stack.name,
        "stack",
        "/doctor",
        form=given,
        reason="none",
    )


def _rollback(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack, page = inspector.stack, _show_rollback(inspector, given)
    changes = find_changes(stack)
    if not changes:
        words = "Every function runs the version from before the last deployment."
        return replace(page, sentence=words)
    version = str([(one.function, one.running, one.former) for one in changes])
    if not (go := GO in given and session.take(given, version)):
        items = [
            Item(one.name, f"version {one.running}", f"version {one.former}", "", True)
            for one in changes
        ]
        return replace(
            page,
            sentence=not_sent(given, go) + "These functions would go back.",
            items=items,
            asks=True,
            shown=session.sign(given, version),
        )
    go_back(stack, changes)
    return replace(page, sentence=f"{stack.name} went back. {AFTERWARDS}", done=True)
