"""Telling the other operators that somebody holds an agent, or lets it take work again."""

from roundsman.alerts import Alert, subject
from roundsman.aws.outbox import AwsOutbox
from roundsman.errors import RoundsmanError
from roundsman.ports import Hold
from roundsman.values import Json, canonical_json, iso
from roundsman_console.sentences import complain
from roundsman_console.stack import Stack


def tell_held(stack: Stack, hold: Hold) -> None:
    """That the agent is held, by whom, why and until when."""
    fields: dict[str, Json] = {
        "reason": hold.reason,
        "by": hold.by,
        "since": iso(hold.since),
        "until": iso(hold.until),
        "look": "roundsman agents",
        "release": f"roundsman release {hold.agent}",
    }
    title = f"Roundsman: {hold.agent} is held by {hold.by} until {iso(hold.until)[:16]}Z"
    _tell(stack, "agent_held", hold.agent, title, fields)


def tell_released(stack: Stack, agent: str, by: str, reason: str, at: int) -> None:
    """That the agent takes work again, who let it, and why where that was said."""
    fields: dict[str, Json] = {
        "reason": reason or None,
        "by": by,
        "at": iso(at),
        "look": "roundsman agents",
    }
    title = f"Roundsman: {agent} is released by {by}"
    _tell(stack, "agent_released", agent, title, fields)


def _tell(stack: Stack, kind: str, agent: str, title: str, fields: dict[str, Json]) -> None:
    """What was done stands, also where nobody can be told; that is said."""
    outbox = AwsOutbox(
        stack.sqs,
        stack.sns,
        scheduler_queue=stack.output("SchedulerQueueUrl"),
        reply_prefix=stack.output("ReplyQueuePrefix"),
        alert_topic=stack.output("AlertTopicArn"),
    )
    attributes = {"kind": kind, "workflow": "none", "step": "none", "severity": "info"}
    alert = Alert(
        subject=subject(title),
        body=canonical_json({"alert": kind, "severity": "info", "agent": agent, **fields}),
        attributes={**attributes, "agent": agent},
    )
    try:
        outbox.publish(alert)
    except RoundsmanError as error:
        complain(f"The other operators are not told: {error}.")
