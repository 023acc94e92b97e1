"""Documents about what is wrong with a stack: the doctor's findings, and the alerts that stand."""

from typing import Annotated, Literal, TypeAlias, TypedDict

from roundsman_console.base.constraints import Count, Instant, Keyword
from roundsman_console.facts.finding.table import AlertSeverity, FindingKind, Severity

AlertSource: TypeAlias = Literal[
    "group", "circuit", "hold", "alarm", "behind", "rejected", "dead_letters"
]
"""The source of an alert."""


class AlertDocument(TypedDict):
    """One alert whose cause still exists."""

    kind: AlertSource
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
    page: str
    """The page to read, in the folder docs."""


class AlertListDocument(TypedDict):
    """The alerts whose cause still exists, the newest first."""

    alerts: list[AlertDocument]
    more: bool
    """Whether further alerts were left out."""
    unread: list[str]
    """What could not be read, and why; the exit code is then 1."""


class LookedDocument(TypedDict):
    """How much was read."""

    open: Count
    """The number of open tasks that were read, those due first."""
    archived: Count
    """The number of archived tasks that were read, the oldest first."""
    cut: list[Annotated[str, Keyword("enum", ("open", "archived"))]]
    """The lanes that have more tasks than were read."""
    deepRows: Count | None
    """The number of rows that --deep read; null without it."""


class FindingDocument(TypedDict):
    """One thing that is wrong."""

    kind: FindingKind
    """docs/runbook/doctor.md has an entry for each kind."""
    severity: Severity
    where: str
    """The order, queue, function, table, alarm or shard."""
    evidence: str
    means: str
    repair: str
    command: str | None
    """The command to run next; null if there is none."""
    page: str
    """The page to read, in the folder docs."""
    fixable: bool
    """Whether --fix repairs it."""


class UnseenDocument(TypedDict):
    """A part of the stack that could not be read."""

    what: str
    why: str
    lacking: bool
    """Whether the deployment does not have this part at all."""


class RepairDocument(TypedDict):
    """A repair of one finding."""

    kind: FindingKind
    where: str
    does: str
    """The repair in words."""
    mended: bool
    """Whether the finding is gone."""
    problem: str | None
    """Why the repair could not be made; null if it was made."""


class ReportDocument(TypedDict):
    """The findings of a check of a stack, and what was repaired."""

    stack: str
    """The name of the stack."""
    at: Instant
    """When the stack was read."""
    well: bool
    """Whether nothing is wrong and every part that the deployment has was read; the exit code is
    then 0."""
    looked: LookedDocument
    findings: list[FindingDocument]
    """The most severe finding first."""
    unseen: list[UnseenDocument]
    """The parts that could not be read."""
    repairs: list[RepairDocument] | None
    """What --fix did; null without it."""
