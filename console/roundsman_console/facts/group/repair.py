"""Where the cause of an incident is repaired: who owns the agent, and the links to look at.

An application says it in the outputs of its template, by the name of the agent: `PaymentOwner`,
`PaymentRunbook` and `PaymentDashboard`. Pure; nothing is asked of AWS.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from roundsman.model.instants import MINUTE
from roundsman_console.aws.links import aws_console_of
from roundsman_console.aws.stack import DeployedStack

AROUND = 5 * MINUTE
"""The time before the first and after the last failure of which the log is shown, in ms."""


@dataclass(frozen=True, slots=True)
class Link:
    """An address outside of the console."""

    title: str
    address: str


@dataclass(frozen=True, slots=True)
class RepairHelp:
    """Who and what helps to repair the service of an agent."""

    owner: str
    """Empty if the application does not say it."""
    owner_output: str
    """The output of the application's template that says it."""
    links: tuple[Link, ...]
    logs: str
    """The command that shows the log of the agent; empty for a stack that has no log in AWS."""


def repair_of(stack: DeployedStack, agent: str, first: int, last: int, at: int) -> RepairHelp:
    """Return what helps to repair an agent whose calls failed from `first` to `last`.

    `at` is now; all are epoch ms.
    """
    title = "".join(word.capitalize() for word in agent.split("_"))
    owner = f"{title}Owner"
    links = [
        Link(what, address)
        for what in ("Runbook", "Dashboard")
        if is_link(address := stack.outputs.get(f"{title}{what}", ""))
    ]
    group = f"/aws/lambda/{stack.name}/{agent}"
    aws = aws_console_of(stack)
    if aws is not None:
        address = aws.logs([agent], first - AROUND, last + AROUND, errors=True)
        links.append(Link(f"Logs of {agent}", address))
    minutes = (at - first + AROUND) // MINUTE
    return RepairHelp(
        stack.outputs.get(owner, ""),
        owner,
        tuple(links),
        f"aws logs tail {group} --since {minutes}m" if stack.has_cloudwatch else "",
    )


def is_link(address: str) -> bool:
    """Return whether a text is an address on the web that a page may link to."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("https", "http") and bool(parts.netloc)
