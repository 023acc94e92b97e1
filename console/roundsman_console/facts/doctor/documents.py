"""Documents about the findings of a check of a stack."""

from enum import StrEnum
from typing import Annotated, TypedDict

from roundsman_console.base.constraints import Count, Instant, Keyword


class Severity(StrEnum):
    """How soon a person must act, in the order in which findings are reported."""

    CRITICAL = "critical"  # orders are stuck, or nobody would be alerted if they were
    WARNING = "warning"  # orders are processed, but a safeguard does not work
    NOTICE = "notice"  # for information


class FindingKind(StrEnum):
    """The kind of a finding. Scripts read the values."""

    TASK_STUCK = "task-stuck"
    OWED_UNSENT = "owed-unsent"
    RECORD_UNREADABLE = "record-unreadable"
    RECORD_TROUBLED = "record-troubled"
    PLAN_MISSING = "plan-missing"
    CONTROL_UNREADABLE = "control-unreadable"
    AGENT_WITHOUT_QUEUE = "agent-without-queue"
    GROUP_NOT_OPEN = "group-not-open"
    ORDER_WITHOUT_TASK = "order-without-task"
    TASK_WITHOUT_ORDER = "task-without-order"
    SUPERVISOR_LATE = "supervisor-late"
    DEAD_LETTERS = "dead-letters"
    REJECTED = "rejected"
    SIGNALS_WITHOUT_ID = "signals-without-id"
    QUEUE_UNREAD = "queue-unread"
    FUNCTION_NOT_READY = "function-not-ready"
    FUNCTION_STOPPED = "function-stopped"
    ORPHAN_VERSION = "orphan-version"
    SNAPSHOTS_PILE_UP = "snapshots-pile-up"
    SCHEDULE_DISABLED = "schedule-disabled"
    TABLE_NOT_READY = "table-not-ready"
    TTL_OFF = "ttl-off"
    RECOVERY_OFF = "recovery-off"
    PROTECTION_OFF = "protection-off"
    ALARM_SILENT = "alarm-silent"
    ALERTS_UNHEARD = "alerts-unheard"


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
