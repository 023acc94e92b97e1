"""Alerts to operators: the parts that all alerts share, those about agents, and about senders.

An alert has a subject, JSON for programs, text for people, and attributes for SNS subscription
filters. The alerts about failures are in `roundsman.alerts.group_alert`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from roundsman.command_line import REASON, command_line
from roundsman.model.holds import EVERY_WORKFLOW
from roundsman.model.instants import format_duration, iso, second
from roundsman.model.json import Json
from roundsman.wire.alert_email import AlertText, sanitize

UNKNOWN = "a principal that is not known"
SUBJECT_LIMIT = 99  # SNS accepts fewer than 100 ASCII characters, without control characters


@dataclass(frozen=True, slots=True)
class Alert:
    """One message to the AlertTopic."""

    subject: str
    """Printable ASCII, less than 100 characters."""
    body: str
    """JSON, for all subscribers except those by e-mail and SMS."""
    attributes: Mapping[str, str]
    """The message attributes, for subscription filters."""
    text: str = ""
    """The text for subscribers by e-mail; if it is empty, they get `body`."""
    sms: str = ""
    """One sentence for subscribers by SMS; if it is empty, they get `body`."""


def alert_of(
    title: str,
    document: Mapping[str, Json],
    words: AlertText,
    *,
    thread: str,
    filters: Mapping[str, str],
) -> Alert:
    """Return an alert with this title as its subject.

    `document` has the fields `alert`, its kind, `severity` and `summary`. These are its attributes
    too, with `filters`. A chat shows the alerts with the same `thread` together. The JSON has one
    line per field, because people read it too.
    """
    from roundsman.wire.alert_chat import chat_fields  # alerts are rare, cold starts are not

    kind, summary, text = str(document["alert"]), str(document["summary"]), words.text()
    severity = {"severity": str(document["severity"])}
    attributes = {"kind": kind, "workflow": "none", "step": "none", **severity, **filters}
    chat = chat_fields(kind, thread, title=title, summary=summary, text=text)
    body = json.dumps({**document, **chat}, indent=2, ensure_ascii=False, allow_nan=False)
    return Alert(subject(title), body, attributes, text=text, sms=sanitize(summary))


def breaker_opened_alert(agent: str, why: str, *, opened_at: int, until: int) -> Alert:
    """Return the alert that an agent's circuit breaker has opened.

    `opened_at` and `until` are epoch ms; from `until` on the breaker tries one call.
    """
    happens = (
        "its steps are on hold, no attempt is counted, and their time limits are paused; one test "
        f"call is made from {second(until)} on, and work continues automatically after one "
        "test call is answered"
    )
    return agent_alert(
        "breaker_opened",
        agent,
        severity="error",
        title=f"Roundsman: agent {agent} is on hold, because its circuit is open",
        summary=f"The circuit of agent {agent} is open: {why}; {happens}",
        fields={
            "reason": why,
            "since": iso(opened_at),
            "triedFrom": iso(until),
            "whatHappens": happens,
        },
        commands={
            "look": "roundsman agents",
            "hold": command_line("hold", agent, options=("--for", "30m", *REASON)),
        },
    )


def breaker_closed_alert(agent: str, *, since: int | None, now: int) -> Alert:
    """Return the alert that an agent's circuit breaker has closed.

    `since` is when it opened, None if that is not known. Instants are epoch ms.
    """
    lasted = f" after {format_duration(now - since)}" if since is not None else ""
    return agent_alert(
        "breaker_closed",
        agent,
        severity="info",
        title=f"Roundsman: the service of agent {agent} answers again{lasted}",
        summary=(
            f"The service of agent {agent} answers again{lasted}; "
            "the agent's steps continue automatically"
        ),
        fields={
            "reason": f"a call was answered{lasted}; the agent's steps continue automatically",
            "since": None if since is None else iso(since),
            "closedAt": iso(now),
            "openFor": None if since is None else now - since,
        },
        commands={"look": "roundsman agents"},
    )


WHAT_FOR = {
    "look": "To see the state of all agents",
    "hold": "To stop calls to the service for 30 minutes",
    "release": "To release the agent, so that it accepts work again",
}

WHAT_FOR_ORDERS = {
    "look": "To see what is on hold",
    "release": "To let the orders go on",
}


def agent_alert(
    kind: str,
    agent: str,
    *,
    severity: str,
    title: str,
    summary: str,
    fields: Mapping[str, Json],
    commands: Mapping[str, str],
) -> Alert:
    """Return an alert about an agent. `commands` maps a key of WHAT_FOR to a shell command."""
    about = {"agent": agent}
    return _held_alert(kind, about, severity, title, summary, fields, commands, WHAT_FOR)


def orders_alert(
    kind: str,
    workflow: str | None,
    *,
    title: str,
    summary: str,
    fields: Mapping[str, Json],
    commands: Mapping[str, str],
) -> Alert:
    """Return an alert that orders are on hold, or go on: of a workflow, or all if it is None.

    `commands` maps a key of WHAT_FOR_ORDERS to a shell command.
    """
    about = {"workflow": workflow}
    return _held_alert(kind, about, "warning", title, summary, fields, commands, WHAT_FOR_ORDERS)


def _held_alert(
    kind: str,
    about: Mapping[str, str | None],
    severity: str,
    title: str,
    summary: str,
    fields: Mapping[str, Json],
    commands: Mapping[str, str],
    what_for: Mapping[str, str],
) -> Alert:
    words = AlertText().line(summary)
    for name in ("since", "until", "by", "reason"):
        value = fields.get(name)
        if isinstance(value, str) and value not in summary:
            words.pair(name, value)
    for name, command in commands.items():
        words.commands(what_for[name], command)
    document: dict[str, Json] = {
        "alert": kind,
        "severity": severity,
        "summary": summary,
        **about,
        **fields,
        "do": commands,
    }
    return alert_of(
        title,
        document,
        words,
        thread="/".join(f"{name}:{value or EVERY_WORKFLOW}" for name, value in about.items()),
        filters={name: value for name, value in about.items() if value is not None},
    )


def late_answer_alert(task_id: str, workflow: str, step: str, *, went_on: bool) -> Alert:
    """Return the alert that a callback was answered after the undo of its step, or after its step
    `went_on` without the answer.

    The service rejects what comes after the undo, so nothing was performed. But somebody outside
    may believe that the answer counts.
    """
    if went_on:
        late = f"{step} of {task_id} was answered after it had gone on without an answer"
        so = "the answer changes nothing, but whoever answered may believe that it counts"
    else:
        late = f"{step} of {task_id} was answered after its undo"
        so = "nothing is performed any more, but whoever answered may believe that it is"
    return _order_alert(
        "late_answer",
        task_id,
        severity="warning",
        title=f"Roundsman: {late}",
        summary=f"{late}; {so}",
        fields={"order": task_id, "workflow": workflow, "step": step},
        look="To see the order, with the sender of the answer",
    )


def closing_failed_alert(task_id: str, workflow: str, steps: str, end: str) -> Alert:
    """Return the alert that a task has ended although closing steps of it have failed.

    `steps` are their names, `end` is the end of the task.
    """
    what = f"{task_id} is {end}, and its closing steps have failed: {steps}"
    return _order_alert(
        "closing_failed",
        task_id,
        severity="warning",
        title=f"Roundsman: {task_id} is {end}, but its closing steps have failed",
        summary=f"{what}; the end stands, and what they were to do is left to a person",
        fields={"order": task_id, "workflow": workflow, "steps": steps, "end": end},
        look="To see the order, with the errors of the steps",
    )


def foreign_command_alert(kind: str, task_id: str, by: str, sender: str | None) -> Alert:
    """Return the alert that a principal sent a command without being an operator's.

    `kind` is the command, such as `cancel`, and `by` the name that it gives itself. `sender` is the
    principal that AWS authenticated; None if it is not known. The reason in the command is left
    out: any text may be in it.
    """
    return _order_alert(
        "foreign_command",
        task_id,
        severity="critical",
        title=f"Roundsman: {kind} of {task_id} came from a principal that is not an operator's",
        summary=(
            f"{kind} of {task_id} came from {sender or UNKNOWN}, which is not in OperatorRoleIds; "
            f"it calls itself {by}, and the command was executed like any other"
        ),
        fields={"command": kind, "order": task_id, "sender": sender, "by": by},
        look="To see the order, with the sender of each of its commands",
    )


def _order_alert(
    kind: str,
    task_id: str,
    *,
    severity: str,
    title: str,
    summary: str,
    fields: Mapping[str, str | None],
    look: str,
) -> Alert:
    """Return an alert about an order, with the command that shows it; `look` is what it is for."""
    commands = {"look": command_line("show", task_id)}
    words = AlertText().line(summary)
    for name, value in fields.items():
        words.pair(name, value or UNKNOWN)
    words.commands(look, commands["look"])
    document = {"alert": kind, "severity": severity, "summary": summary, **fields, "do": commands}
    filters = {name: fields.get(name) or "none" for name in ("workflow", "step")}
    return alert_of(title, document, words, thread=f"order:{task_id}", filters=filters)


def subject(text: str) -> str:
    """Return the text as a valid SNS subject: printable ASCII, cut to SUBJECT_LIMIT characters.

    Other characters become `?`.
    """
    plain = "".join(c if " " <= c <= "~" else "?" for c in text)
    return plain if len(plain) <= SUBJECT_LIMIT else plain[: SUBJECT_LIMIT - 3] + "..."
