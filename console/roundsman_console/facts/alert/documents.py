"""Documents about standing alerts: alerts whose cause still exists."""

from typing import Literal, TypeAlias, TypedDict

from roundsman_console.base.constraints import Count, Instant

AlertKind: TypeAlias = Literal[
    "group", "circuit", "hold", "alarm", "behind", "rejected", "dead_letters"
]
"""The source of an alert."""

AlertSeverity: TypeAlias = Literal["critical", "error", "warning", "info"]


class AlertDocument(TypedDict):
    """One alert whose cause still exists."""

    kind: AlertKind
    about: str
    """The id of the group, the agent, the alarm's name in the template, the queue, or
    `scheduler`."""
    severity: AlertSeverity
    since: Instant | None
    """When the problem began; null if it is not known."""
    count: Count | None
    """The number of orders of a group or messages of a queue; null for other kinds."""
    sentence: str
    next: str
    """The command to run next."""


class AlertListDocument(TypedDict):
    """The alerts whose cause still exists, the newest first."""

    alerts: list[AlertDocument]
    more: bool
    """Whether further alerts were left out."""
    unread: list[str]
    """What could not be read, and why; the exit code is then 1."""
