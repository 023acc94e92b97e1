"""The commands on an order: what the engine would decide, and the command that is sent."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

from roundsman.model.events import CommandSource
from roundsman.model.json import Json, parse_json
from roundsman.model.plan import Plan
from roundsman.model.task import Task
from roundsman_console.arguments import read_name, read_reason
from roundsman_console.cli_errors import USAGE, ConsoleError
from roundsman_console.inspector import Inspector
from roundsman_console.inspector.errors import InvalidArgument
from roundsman_console.inspector.inspector import WAIT
from roundsman_console.inspector.operate.commands import (
    CommandOutcome,
    CommandResult,
    CommandSpec,
    send_command,
    task_after,
)
from roundsman_console.inspector.operate.erasure import erase_order
from roundsman_console.inspector.read.masks import mask_of
from roundsman_console.inspector.views.task_view import may_stand, step_names
from roundsman_console.render.plan import plan_lines
from roundsman_console.web.commands.edits import edited_body, laid_out
from roundsman_console.web.commands.order_forms import (
    ERASE,
    ORDER_COMMANDS,
    WHOLE_INPUT,
    Form,
    FormField,
)
from roundsman_console.web.commands.page import CommandPage, FormCommand, StepChange, not_sent
from roundsman_console.web.session import GO, Session

INPUT = FormField(
    "input",
    "The whole input, as JSON",
    "body",
    "Masked values that stay as they are are kept.",
    folded="Edit the whole input",
)


def commands_on_orders() -> dict[str, FormCommand]:
    """Return the commands on an order, by their names in the browser."""
    found = {name: FormCommand(name, _shows(name), _carries_out(name)) for name in ORDER_COMMANDS}
    return {**found, "erase": FormCommand("erase", _show_erase, _erase)}


def _shows(name: str) -> Callable[[Inspector, Form], CommandPage]:
    def show(inspector: Inspector, given: Form) -> CommandPage:
        page, task, plan = _of_order(inspector, name, given)
        found = _input_of(inspector, task, plan) if name == "resubmit" else None
        return _with_input(page, found, given)

    return show


def _with_input(page: CommandPage, found: "_Input | None", given: Form) -> CommandPage:
    """Add the field of the whole input to the form that corrects it."""
    if found is None:
        return page
    form = {INPUT.name: laid_out(found.shown), **given}
    return replace(page, fields=(*page.fields, INPUT), form=form)


def _carries_out(name: str) -> Callable[[Inspector, Form, Session], CommandPage]:
    return lambda inspector, given, session: _order_command(inspector, name, given, session)


def _of_order(
    inspector: Inspector, name: str, given: Form
) -> tuple[CommandPage, Task, Plan | None]:
    command = ORDER_COMMANDS[name]
    task, plan, _ = inspector.task(given.get("order", ""))
    page = CommandPage(
        name,
        command.title,
        command.does,
        task.task_id,
        "order",
        f"/orders/{task.task_id}",
        command.fields,
        step_names(task, plan),
        given,
        stands=may_stand(task, plan),
    )
    return page, task, plan


@dataclass(frozen=True, slots=True)
class _Input:
    """The input of an order, as JSON."""

    shown: str
    """With masked values masked."""
    real: str


def _input_of(inspector: Inspector, task: Task, plan: Plan | None) -> _Input | None:
    """Read the input of an order; None if its order row is missing, or was erased."""
    row = inspector.stack.tasks.order(task.task_id)
    if row is None or row.erased_at is not None:
        return None
    content = task.input(row.content)
    masked = mask_of(inspector.stack, task, plan).input(content)
    return _Input(json.dumps(masked), json.dumps(content))


def _whole_input(given: Form, found: _Input | None) -> Mapping[str, Json] | None:
    """Return the input that a person edited; None if it is as it was.

    Raises InvalidArgument if it is not a JSON object, or if a masked value was moved, and
    ConsoleError if single fields are corrected too.
    """
    text = given.get(INPUT.name, "")
    if found is None or not text.strip():
        return None
    edited = edited_body(text, found.shown, found.real)
    if edited == found.real:
        return None
    if given.get("sets", "").strip() or given.get("removes", "").strip():
        raise ConsoleError("Give either --input, or --set and --remove.", USAGE)
    whole = parse_json(edited)
    if not isinstance(whole, Mapping):
        raise InvalidArgument("The corrected input is not a JSON object.")
    return whole


def _order_command(inspector: Inspector, name: str, given: Form, session: Session) -> CommandPage:
    page, task, plan = _of_order(inspector, name, given)
    version = str(task.version)
    reason, by = read_reason(given.get("reason", "")), read_name(None)
    original = _input_of(inspector, task, plan) if page.name == "resubmit" else None
    page = _with_input(page, original, given)
    whole = _whole_input(given, original)
    form = given if whole is None else {**given, WHOLE_INPUT: "yes"}
    spec = replace(ORDER_COMMANDS[page.name].spec(page.about, form), input=whole)
    go = GO in given and session.take(given, version)
    result = send_command(inspector.stack, spec, by=by, reason=reason, wait=WAIT, dry_run=not go)
    asks = result.outcome is CommandOutcome.DRY_RUN
    return replace(
        page,
        sentence=not_sent(given, go) + _sentence(result),
        refused=result.outcome is CommandOutcome.REFUSED,
        asks=asks,
        done=go and result.outcome is not CommandOutcome.REFUSED,
        changes=_changes(plan, spec, by, reason, result) if asks else (),
        inputs=[(page.about, result.input)] if result.input else (),
        problems=plan_lines(result.plan) if asks and result.plan else (),
        stands=() if go else page.stands,
        shown=session.sign(given, version) if asks else "",
    )


def _sentence(result: CommandResult) -> str:
    if result.plan is not None and result.outcome is CommandOutcome.DRY_RUN:
        return f"{result.sentence} The order would continue under the newest plan."
    return result.sentence


def _changes(
    plan: Plan | None, spec: CommandSpec, by: str, reason: str, result: CommandResult
) -> list[StepChange]:
    """What the engine would decide, step by step; empty if the plan or the input changes too."""
    before = result.task
    if before is None or spec.newest_plan or result.input:
        return []
    event = spec.event(CommandSource("c-0", by, reason, before.version))
    after = task_after(plan, before, event)
    if after is None:
        return []
    names = step_names(after, plan)
    return [found for name in names if (found := _change(name, before, after)) is not None]


def _change(name: str, before: Task, after: Task) -> StepChange | None:
    old, new = before.step(name), after.step(name)
    if old == new:
        return None
    key = "a new key" if new.round != old.round else "the same key"
    return StepChange(name, old.process_state, new.process_state, key)


def _show_erase(_inspector: Inspector, given: Form) -> CommandPage:
    # The order may have no task any more: its retention is over, or its record was lost.
    order = given.get("order", "")
    return CommandPage(
        "erase",
        ERASE.title,
        ERASE.does,
        order,
        "order",
        f"/orders/{quote(order, safe='')}",
        ERASE.fields,
        form=given,
    )


def _erase(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    page, by = _show_erase(inspector, given), read_name(None)
    reason, order = read_reason(given.get("reason", "")), page.about
    confirmed = given.get("confirm", "").strip() == order
    stack = inspector.stack
    result = erase_order(stack, order, by=by, reason=reason, wait=WAIT, dry_run=True)
    version = str(result.task.version) if result.task else "no task"
    go = GO in given and confirmed and session.take(given, version)
    if go:
        result = erase_order(stack, order, by=by, reason=reason, wait=WAIT)
    possible = result.outcome is CommandOutcome.DRY_RUN
    sentence = not_sent(given, go) + result.sentence
    if possible and not confirmed:
        sentence += " Give the order's id to confirm that its contents are removed for ever."
    return replace(
        page,
        sentence=sentence,
        refused=result.outcome is CommandOutcome.REFUSED,
        asks=possible and confirmed,
        done=go and result.outcome is not CommandOutcome.REFUSED,
        shown=session.sign(given, version) if possible and confirmed else "",
    )
