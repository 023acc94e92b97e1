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
from roundsman_console.acts.actor import read_name
from roundsman_console.acts.order.changes_text import plan_lines
from roundsman_console.acts.order.commands import CommandResult, send_command, task_after
from roundsman_console.acts.order.erasure import erase_order
from roundsman_console.acts.order.verbs import (
    OF_ONE_OR_MANY,
    OF_ORDERS,
    EraseVerb,
    OrderVerb,
    ResubmitVerb,
    RunVerb,
)
from roundsman_console.acts.set_aside.edits import edited_body, laid_out
from roundsman_console.acts.verb import Form
from roundsman_console.base.clock import now
from roundsman_console.base.errors import InvalidArgument, WrongFields
from roundsman_console.base.limits import WAIT
from roundsman_console.base.result import CommandOutcome
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
from roundsman_console.faces.web.session import Session
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
        for verb in OF_ONE_OR_MANY
    }
    return {
        **found,
        "erase": FormCommand("erase", _show_erase, _erase),
        "submit": FormCommand("submit", _show_submit, _submit),
    }


def links_of(task: Task) -> list[type[OrderVerb]]:
    """Return the verbs that are offered for the task; none for one that is erased."""
    return [] if task.erased_at is not None else [verb for verb in OF_ORDERS if verb.fits(task)]


def _show(verb: type[OrderVerb], inspector: Inspector, given: Form) -> CommandPage:
    page, task, plan = _of_order(inspector, verb, given)
    return _with_input(page, _input_of(inspector, verb, task, plan))


def _with_input(page: CommandPage, found: "_Input | None") -> CommandPage:
    """Fill the field of the whole input; leave it out if there is no input to correct."""
    if found is None:
        fields = [field for field in page.fields if field.name != INPUT]
        return replace(page, fields=fields)
    return replace(page, form={INPUT: laid_out(found.shown), **page.form})


def _of_order(
    inspector: Inspector, verb: type[OrderVerb], given: Form
) -> tuple[CommandPage, Task, Plan | None]:
    task, plan, _ = inspector.task(given.get("order", ""))
    page = page_of(verb, task.task_id, "order", f"/orders/{task.task_id}", given)
    names = step_names(task, plan)
    stands = may_stand(task, plan) if verb.undoes else ()
    return in_states(replace(page, steps=names, stands=stands), verb, {task.state}), task, plan


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
    page, task, plan = _of_order(inspector, kind, given)
    version, by = str(task.version), read_name(None)
    original = _input_of(inspector, kind, task, plan)
    page = _with_input(page, original)
    reason, verb = read_both(
        lambda: reason_of(page, given), lambda: kind.read_form(_as_meant(given, original))
    )
    go = agreed(given, session, version)
    result = send_command(
        inspector.stack, page.about, verb, by=by, reason=reason, wait=WAIT, dry_run=not go
    )
    asks = result.outcome is CommandOutcome.DRY_RUN
    sentence = page.labelled(result.sentence)
    if asks and verb.name == RunVerb.name:
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
    return _result_page(page, given, result, sentence, go=go)


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


def _result_page(
    page: CommandPage, given: Form, result: CommandResult, sentence: str, *, go: bool
) -> CommandPage:
    """Return the page of a command that was sent, or is refused."""
    refused = result.outcome is CommandOutcome.REFUSED
    words = not_sent(given, go) + sentence
    return replace(page, sentence=words, refused=refused, done=go and not refused)


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


def _show_erase(_inspector: Inspector, given: Form) -> CommandPage:
    # The order may have no task any more: its retention is over, or its record was lost.
    order = given.get("order", "")
    page = page_of(EraseVerb, order, "order", f"/orders/{quote(order, safe='')}", given)
    does = f"{page.does} The reason is kept: do not write personal data in it."
    return replace(page, does=does, fields=(CONFIRM,))


def _erase(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    page, by, order = _show_erase(inspector, given), read_name(None), given.get("order", "")
    reason, confirmed = read_both(lambda: reason_of(page, given), lambda: _confirmed(given, order))
    stack = inspector.stack
    result = erase_order(stack, order, by=by, reason=reason, wait=WAIT, dry_run=True)
    version = str(result.task.version) if result.task else "no task"
    go = confirmed and agreed(given, session, version)
    if go:
        result = erase_order(stack, order, by=by, reason=reason, wait=WAIT)
    if result.outcome is CommandOutcome.DRY_RUN:
        return asking(page, given, session, version, result.sentence)
    return _result_page(page, given, result, result.sentence, go=go)


def _confirmed(given: Form, order: str) -> bool:
    """Return True if the order's id was typed. Raises WrongFields if not."""
    if given.get(CONFIRM.name, "").strip() != order:
        why = "Give the order's id to confirm that its contents are removed for ever."
        raise WrongFields({CONFIRM.name: why})
    return True


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
