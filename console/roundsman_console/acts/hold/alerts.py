"""Alerts to the operators that an agent or orders were held or released."""

from roundsman.errors import RoundsmanError
from roundsman.model.holds import ALL_ORDERS, Hold
from roundsman.model.instants import iso
from roundsman.wire.alert import Alert, agent_alert, orders_alert
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.hold.view import release_command, workflow_of


def alert_held(stack: DeployedStack, hold: Hold) -> str | None:
    """Send the alert that an operator holds an agent, or orders.

    Returns the error if it cannot be sent.
    """
    held = f"{hold.target} is held by {hold.by} until {iso(hold.until)[:16]}Z"
    title = f"Roundsman: {held}"
    fields = {
        "reason": hold.reason,
        "by": hold.by,
        "since": iso(hold.since),
        "until": iso(hold.until),
    }
    commands = {"look": "roundsman agents", "release": release_command(hold)}
    if hold.agent:
        alert = agent_alert(
            "agent_held",
            hold.agent,
            severity="info",
            title=title,
            summary=f"{held}: {hold.reason}",
            fields=fields,
            commands=commands,
        )
    else:
        undos = "undos wait too" if hold.undos else "undos go on"
        alert = orders_alert(
            "orders_held",
            workflow_of(hold),
            title=title,
            summary=f"{held}, and no step of its orders begins; {undos}: {hold.reason}",
            fields={**fields, "undosToo": hold.undos},
            commands=commands,
        )
    return _publish(stack, alert)


def alert_released(stack: DeployedStack, agent: str, by: str, reason: str, at: int) -> str | None:
    """Send the alert that an operator released the agent at `at` (epoch ms).

    Returns the error if it cannot be sent.
    """
    why = f": {reason}" if reason else ""
    return _publish(
        stack,
        agent_alert(
            "agent_released",
            agent,
            severity="info",
            title=f"Roundsman: {agent} is released by {by}",
            summary=f"{agent} is released by {by}, and takes work again{why}",
            fields={"reason": reason or None, "by": by, "at": iso(at)},
            commands={"look": "roundsman agents"},
        ),
    )


def alert_orders_released(
    stack: DeployedStack, hold: Hold, share: int, by: str, reason: str, at: int
) -> str | None:
    """Send the alert that an operator let a share of the orders go on at `at` (epoch ms).

    `hold` is the one that held them, and `share` is in percent. Returns the error if it cannot be
    sent.
    """
    goes = "all orders go" if share == ALL_ORDERS else f"{share} % of the orders go"
    why = f": {reason}" if reason else ""
    return _publish(
        stack,
        orders_alert(
            "orders_released",
            workflow_of(hold),
            title=f"Roundsman: {hold.target} is released by {by}: {goes} on",
            summary=f"{hold.target} is released by {by}, and {goes} on{why}",
            fields={"reason": reason or None, "by": by, "at": iso(at), "share": share},
            commands={"look": "roundsman agents"},
        ),
    )


def _publish(stack: DeployedStack, alert: Alert) -> str | None:
    """Publish the alert. Its failure is no error: the hold or release is already done."""
    outbox = stack.outbox()
    try:
        outbox.publish(alert)
    except RoundsmanError as error:
        return str(error)
    return None
