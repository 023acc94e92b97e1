"""Trying one order of a failure group, to see whether the cause is gone before all go on.

The page of the group shows which order it is, so its form is carried out when it is sent, once. If
the order has changed since, it is shown what would be done, as with every other command. The order
passes the holds of operators, and what else waits for them waits on.
"""

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from roundsman.model.failure import RETRIED, failure_of
from roundsman.model.task import Task
from roundsman_console.acts.actor import read_name
from roundsman_console.acts.order.send import send_command
from roundsman_console.acts.order.verbs import OrderVerb, ResubmitVerb, RunVerb
from roundsman_console.acts.verb import Form
from roundsman_console.base.clock import now
from roundsman_console.base.errors import NotFound, Unconfirmed
from roundsman_console.base.limits import WAIT
from roundsman_console.base.result import CommandOutcome
from roundsman_console.faces.web.access.session import GO, SHOWN, Session
from roundsman_console.faces.web.command_page import (
    INCIDENT,
    CommandPage,
    FormCommand,
    agreed,
    asking,
    incident_of,
    page_of,
    reason_of,
)
from roundsman_console.faces.web.readings.tried import note_tried
from roundsman_console.facts.group.trial import TriedOrder, attempts_of
from roundsman_console.facts.order.lookup import load_task
from roundsman_console.inspector import Inspector

TRY_ONE = "try-one"


def commands_on_groups() -> dict[str, FormCommand]:
    """Return the commands on a failure group, by their names in the browser."""
    return {TRY_ONE: FormCommand(ResubmitVerb.name, _show, _try)}


def trial_form(task: Task, group: str, session: Session) -> Mapping[str, str]:
    """Return the fields of the form that tries this order, signed as if it had been shown."""
    form = {"order": task.task_id, INCIDENT: group}
    shown = session.sign({**form, "command": TRY_ONE}, str(task.version))
    return {**form, GO: "yes", SHOWN: shown}


def verb_for(how: str) -> type[OrderVerb]:
    """Return the verb by which orders go on that failed in this way."""
    return RunVerb if how == RETRIED else ResubmitVerb


def _show(inspector: Inspector, given: Form) -> CommandPage:
    return _read(inspector, given)[0]


def _read(inspector: Inspector, given: Form) -> tuple[CommandPage, Task, str]:
    """Return the form, the task of the order and how it failed.

    Raises NotFound if there is no such order, or if it is not in the group.
    """
    group, order = incident_of(given), given.get("order", "")
    task = load_task(inspector.stack, order)
    failure = failure_of(task)
    if not group or failure is None or task.failure != group:
        raise NotFound(f"{task.task_id} is not in this failure group now: somebody has handled it.")
    kind = verb_for(failure.how)
    page = page_of(kind, task.task_id, "order", f"/orders/{quote(order, safe='')}", given, TRY_ONE)
    page = replace(
        page,
        title="Try one order",
        does=f"{kind.does_in({task.state})} The others of the group stay as they are.",
        fields=(),
        form={**kind.proposed_in({task.state}), **page.form},
    )
    return page, task, failure.how


def _try(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    page, task, how = _read(inspector, given)
    kind, version = verb_for(how), str(task.version)
    reason, by = reason_of(kind, given), read_name(None)
    verb = kind.read_form({**kind.proposed_in({task.state}), "past_holds": "yes"})
    signed = {
        name: text for name, text in given.items() if name in ("command", "order", INCIDENT, SHOWN)
    }
    go = agreed(given, session, version) or (GO in given and session.take(signed, version))
    if not go:
        would = f"{task.task_id} would be sent alone."
        return asking(page, given, session, version, would)
    failure = failure_of(task)
    step = failure.step if failure else ""
    tried = TriedOrder(
        task.task_id,
        task.failure or "",
        step,
        how,
        task.version,
        attempts_of(task, step),
        now(),
        by,
        reason,
    )
    try:
        result = send_command(inspector.stack, task.task_id, verb, by=by, reason=reason, wait=WAIT)
    except Unconfirmed:  # it was sent
        note_tried(inspector, tried)
        raise
    if result.outcome is CommandOutcome.REFUSED:
        return replace(page, sentence=page.labelled(result.sentence), refused=True)
    note_tried(inspector, tried)
    return replace(page, sentence=f"{task.task_id} is tried: this page follows it.", done=True)
