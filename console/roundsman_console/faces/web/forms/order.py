"""The commands on an order: what the engine would decide, and the command that is sent."""

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import quote

from roundsman.client import Client
from roundsman.definition.plan import Plan
from roundsman.model.events import CommandSource
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.acts import verbs
from roundsman_console.acts.actor import read_name
from roundsman_console.acts.changes import plan_lines
from roundsman_console.acts.order.send import send_command, task_after
from roundsman_console.acts.order.sent import CommandResult
from roundsman_console.acts.order.verbs import OrderVerb, ResubmitVerb, RunVerb
from roundsman_console.acts.set_aside.edits import edited_body, laid_out
from roundsman_console.acts.verb import Form
from roundsman_console.base.clock import now
from roundsman_console.base.errors import InvalidArgument, WrongFields
from roundsman_console.base.limits import WAIT
from roundsman_console.base.result import CommandOutcome
from roundsman_console.faces.web.access.session import Session
from roundsman_console.faces.web.command_page import (
    REASON,
    CommandPage,
    FormCommand,
    FormField,
    StepChange,
    agreed,
    asking,
    not_sent,
    page_of,
    read_both,
    reason_of,
    sent_page,
)
from roundsman_console.facts.order.effects import may_stand, step_names
from roundsman_console.facts.order.masks import mask_of
from roundsman_console.facts.order.step_text import span
from roundsman_console.facts.set_aside.assess import ResendVerdict, judge, order_of
from roundsman_console.facts.set_aside.queues import find_source
from roundsman_console.inspector import Inspector

INPUT = "input"
"""The field of the whole input, which is shown with masked values."""
CONFIRM = FormField(
    "confirm", "The order's id, to confirm", hint="It cannot be brought back.", required=True
)


def commands_on_orders() -> dict[str, FormCommand]:
    """Return the commands on an order, and on a new one, by their names in the browser."""
    found = {
        verb.name: FormCommand(verb.name, partial(_show, verb), partial(_order_command, verb))
        for verb in verbs.order_verbs()
    }
    return {**found, "submit": FormCommand("submit", _show_submit, _submit)}


def links_of(task: Task) -> list[type[OrderVerb]]:
    """Return the verbs that are offered for the task; none for one that is erased."""
    if task.erased_at is not None:
        return []
    return [verb for verb in verbs.order_verbs() if verb.fits(task)]


def _show(verb: type[OrderVerb], inspector: Inspector, given: Form) -> CommandPage:
    return _of_order(inspector, verb, given).page


@dataclass(frozen=True, slots=True)
class _Order:
    """The order of a form."""

    page: CommandPage
    task: Task | None
    """None if the form is confirmed by the id of the order, which may have no task any more."""
    plan: Plan | None
    input: "_Input | None"


def _with_input(page: CommandPage, found: "_Input | None") -> CommandPage:
    """Fill the field of the whole input; leave it out if there is no input to correct."""
    if found is None:
        fields = [field for field in page.fields if field.name != INPUT]
        return replace(page, fields=fields)
    return replace(page, form={INPUT: laid_out(found.shown), **page.form})


def _of_order(inspector: Inspector, verb: type[OrderVerb], given: Form) -> _Order:
    order = given.get("order", "")
    if verb.names_order:
        page = page_of(verb, order, "order", f"/orders/{quote(order, safe='')}", given)
        page = replace(page, fields=(*page.fields, CONFIRM))
        return _Order(in_states(page, verb, ()), None, None, None)
    task, plan, _ = inspector.task(order)
    page = page_of(verb, task.task_id, "order", f"/orders/{task.task_id}", given)
    names = step_names(task, plan)
    stands = may_stand(task, plan) if verb.undoes else ()
    page = in_states(replace(page, steps=names, stands=stands), verb, {task.state})
    found = _input_of(inspector, verb, task, plan)
    return _Order(_with_input(page, found), task, plan, found)


def in_states(
    page: CommandPage, verb: type[OrderVerb], states: Collection[TaskState]
) -> CommandPage:
    """Return the page of a verb for orders in these states: only what applies to them."""
    left_out = verb.left_out_in(states)
    # A box that is not checked is not sent: what is proposed is for the empty form only.
    proposed = {} if REASON.name in page.form else verb.proposed_in(states)
    return replace(
        page,
        does=verb.does_in(states),
        fields=[field for field in page.fields if field.name not in left_out],
        form={**proposed, **page.form},
    )


@dataclass(frozen=True, slots=True)
class _Input:
    """The input of an order, as JSON."""

    shown: str
    """With masked values masked."""
    real: str


def _input_of(
    inspector: Inspector, verb: type[OrderVerb], task: Task, plan: Plan | None
) -> _Input | None:
    """Read the input of an order; None if its order row is missing or was erased, or the verb does
    not correct it.
    """
    if verb is not ResubmitVerb:
        return None
    row = inspector.stack.tasks.order(task.task_id)
    if row is None or row.erased_at is not None:
        return None
    content = task.input(row.content)
    masked = mask_of(inspector.stack, task, plan).input(content)
    return _Input(json.dumps(masked), json.dumps(content))


def _as_meant(given: Form, found: _Input | None) -> Form:
    """Return the form with the real input that a person means who edited the masked one.

    It is left out if it is as it was. Raises WrongFields if a masked value was moved.
    """
    text = given.get(INPUT, "")
    try:
        edited = edited_body(text, found.shown, found.real) if found and text.strip() else ""
    except InvalidArgument as error:
        raise WrongFields({INPUT: str(error)}) from error
    changed = found is not None and edited != found.real
    return {**given, INPUT: edited if changed else ""}


def _order_command(
    kind: type[OrderVerb], inspector: Inspector, given: Form, session: Session
) -> CommandPage:
    found, by = _of_order(inspector, kind, given), read_name(None)
    page, task, plan = found.page, found.task, found.plan
    (reason, _), verb = read_both(
        lambda: read_both(lambda: reason_of(kind, given), lambda: _confirmed(page, given)),
        lambda: kind.read_form(_as_meant(given, found.input)),
    )
    send = partial(send_command, inspector.stack, page.about, verb, by=by, reason=reason, wait=WAIT)
    looked = send(dry_run=True) if task is None else None
    task = looked.task if looked is not None else task
    version = str(task.version) if task else "no task"
    go = agreed(given, session, version)
    result = looked if looked is not None and not go else send(dry_run=not go)
    asks = result.outcome is CommandOutcome.DRY_RUN
    sentence = page.labelled(result.sentence)
    if asks and task is not None and verb.name == RunVerb.name:
        sentence = f"{sentence} {_begins_now(task, plan)}"
    if asks and result.plan is not None:
        sentence += " The order would continue under the newest plan."
    page = replace(
        page,
        changes=_changes(plan, verb, by, reason, result) if asks else (),
        inputs=[(page.about, result.input)] if result.input else (),
        problems=plan_lines(result.plan) if asks and result.plan else (),
        stands=() if go else page.stands,
    )
    if asks:
        return asking(page, given, session, version, sentence)
    if result.outcome is CommandOutcome.DONE:
        sentence = f"Done. The history of {page.about} has: {sentence}"
    refused = result.outcome is CommandOutcome.REFUSED
    words = not_sent(given, go) + sentence
    return replace(page, sentence=words, refused=refused, done=go and not refused)


def _begins_now(task: Task, plan: Plan | None) -> str:
    """Return what would begin now: the steps that wait for an attempt, or the whole order."""
    at = now()
    waits = [
        name
        for name in step_names(task, plan)
        if (before := task.step(name).not_before) is not None and before > at
    ]
    if not waits:
        return "It would go on now."
    return f"The next attempt of {span(waits)} would begin now; nothing else changes."


def _changes(
    plan: Plan | None, verb: OrderVerb, by: str, reason: str, result: CommandResult
) -> list[StepChange]:
    """What the engine would decide, step by step; empty if the plan or the input changes too."""
    before = result.task
    if before is None or verb.newest_plan or result.input:
        return []
    event = verb.event(CommandSource("c-0", by, reason, before.version))
    after = task_after(plan, before, event)
    if after is None:
        return []
    names = step_names(after, plan)
    return [found for name in names if (found := _change(name, before, after)) is not None]


def _change(name: str, before: Task, after: Task) -> StepChange | None:
    old, new = before.step(name), after.step(name)
    if (old.process_state, old.round) == (new.process_state, new.round):
        return None  # nothing that a person could see
    key = "a new key" if new.round != old.round else "the same key"
    return StepChange(name, old.process_state, new.process_state, key)


def _confirmed(page: CommandPage, given: Form) -> None:
    """Raise WrongFields if the order's id is to be typed, and was not."""
    if CONFIRM in page.fields and given.get(CONFIRM.name, "").strip() != page.about:
        why = "Give the order's id to confirm that its contents are removed for ever."
        raise WrongFields({CONFIRM.name: why})


def _show_submit(inspector: Inspector, given: Form) -> CommandPage:
    return CommandPage(
        "submit",
        "Send an order",
        "Sends an order event to the SubmissionQueue, as an application does. An event that would "
        "be rejected is not sent.",
        inspector.stack.name,
        "stack",
        "/orders",
        (FormField("body", "The event, as JSON", "body", required=True),),
        form=given,
        reason="none",
    )


def _submit(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack, page, body = inspector.stack, _show_submit(inspector, given), given.get("body", "")
    judged = judge(stack, find_source(stack, "SubmissionQueue"), body, now())
    if judged.verdict in (ResendVerdict.REJECTED, ResendVerdict.FAILS):
        problems = [str(problem) for problem in judged.problems]
        words = f"Nothing was sent: {judged.verdict.words}."
        return replace(page, sentence=words, refused=True, problems=problems or [judged.why])
    if not agreed(given, session, ""):
        would = f"{judged.what}: {judged.verdict.words}, {judged.why}."
        return asking(page, given, session, "", would)
    Client(stack.outputs, sqs=stack.sqs).submit_text(body)
    return sent_page(page, order_of(body), "Sent. The order is shown once it is accepted.")
