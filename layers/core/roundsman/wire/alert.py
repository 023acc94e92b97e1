"""What an operator is told: a subject, JSON for programs, words for people, attributes for filters.

The alerts of failures are in `roundsman.alerts.group_alert`; here is what all alerts have in
common, and those about an agent.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from roundsman.model.instants import clock_time, iso, spoken
from roundsman.model.json import Json
from roundsman.wire.alert_text import AlertText, sanitize

SUBJECT_LIMIT = 99  # SNS takes fewer than 100 ASCII characters, none of them a control character


@dataclass(frozen=True, slots=True)
class Alert:
    """One message to the AlertTopic. `subject` is ASCII, under 100 characters.

    `body` is JSON, which every subscriber gets but those by e-mail, who get `text`, and by SMS, who
    get the one sentence `sms`; where these are empty, they get the body as well.
    """

    subject: str
    body: str
    attributes: Mapping[str, str]
    text: str = ""
    sms: str = ""


def alert_of(
    title: str, document: Mapping[str, Json], *, text: str, sms: str, attributes: Mapping[str, str]
) -> Alert:
    """The alert with this title; its JSON has a line for each field, since people read it too."""
    body = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return Alert(subject(title), body, attributes, text=text, sms=sanitize(sms))


def breaker_opened_alert(agent: str, why: str, *, opened_at: int, until: int) -> Alert:
    """The alert for a service that is not called any more (instants in epoch ms)."""
    happens = (
        "its steps are held: no attempt is counted, and their time stands still; one call is "
        f"tried from {clock_time(until)} on, and work goes on by itself once one is answered"
    )
    return agent_alert(
        "breaker_opened",
        agent,
        severity="error",
        title=f"Roundsman: {agent} is held, its circuit is open",
        summary=f"The circuit of {agent} is open: {why}; {happens}",
        fields={
            "reason": why,
            "since": iso(opened_at),
            "triedFrom": iso(until),
            "whatHappens": happens,
        },
        commands={
            "look": "roundsman agents",
            "hold": f"roundsman hold {agent} --for 30m --reason '...'",
        },
    )


def breaker_closed_alert(agent: str, *, since: int | None, now: int) -> Alert:
    """The alert for a service that answers again. `since` is when its circuit opened, if known."""
    lasted = f" after {spoken(now - since)}" if since is not None else ""
    return agent_alert(
        "breaker_closed",
        agent,
        severity="info",
        title=f"Roundsman: {agent} answers again{lasted}",
        summary=f"{agent} answers again{lasted}; its steps go on by themselves",
        fields={
            "reason": f"a call was answered{lasted}; its steps go on by themselves",
            "since": None if since is None else iso(since),
            "closedAt": iso(now),
            "openFor": None if since is None else now - since,
        },
        commands={"look": "roundsman agents"},
    )


WHAT_FOR = {
    "look": "To look",
    "hold": "To stop calling the service for longer",
    "release": "To let it take work again",
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
    """An alert about an agent as a whole; `commands` say what to do, by what for (WHAT_FOR)."""
    words = AlertText().line(summary)
    for name in ("since", "until", "by", "reason"):
        value = fields.get(name)
        if isinstance(value, str) and value not in summary:
            words.pair(name, value)
    for what_for, command in commands.items():
        words.commands(WHAT_FOR[what_for], command)
    document: dict[str, Json] = {
        "alert": kind,
        "severity": severity,
        "summary": summary,
        "agent": agent,
        **fields,
        "do": commands,
    }
    return alert_of(
        title,
        document,
        text=words.text(),
        sms=summary,
        attributes={
            "kind": kind,
            "workflow": "none",
            "step": "none",
            "severity": severity,
            "agent": agent,
        },
    )


def subject(text: str) -> str:
    """Text as SNS takes it in a subject: printable ASCII, cut to fit."""
    plain = "".join(c if " " <= c <= "~" else "?" for c in text)
    return plain if len(plain) <= SUBJECT_LIMIT else plain[: SUBJECT_LIMIT - 3] + "..."
