"""The table of findings: each kind of trouble with its severity, its words and its commands.

The doctor, the standing alerts, the overview, `roundsman preflight` and `docs/runbook/doctor.md`
read it. What a kind means, how soon a person must act, what repairs it, the command to type next
and the page to read are its row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Self, TypeAlias, get_args


class Severity(StrEnum):
    """How soon a person must act, in the order in which findings are reported."""

    CRITICAL = "critical"  # orders are stuck, or nobody would be alerted if they were
    WARNING = "warning"  # orders are processed, but a safeguard does not work
    NOTICE = "notice"  # for information


AlertSeverity: TypeAlias = Literal["critical", "error", "warning", "info"]
ALERT_SEVERITIES: tuple[AlertSeverity, ...] = get_args(AlertSeverity)
"""The severities of alerts, the worst first."""

DOCTOR = "roundsman doctor"
"""The command to type next for an alert whose kind has none."""


@dataclass(frozen=True, slots=True)
class StandingAlert:
    """How a kind stands as an alert."""

    severity: AlertSeverity
    sentence: str = "{evidence}"
    """`{messages}` is a number of messages, and `{were}` its verb."""


class Trouble(StrEnum):
    """A row of the table: what all findings of a kind have in common. Scripts read the id."""

    severity: Severity
    """The severity in the doctor's report."""
    page: str
    """The page to read, in the folder docs."""
    means: str
    repair: str
    command: str | None
    """The command to type next; None if there is none. `{where}` in it is the place of the finding,
    and `{about}` what the finding names beside it."""
    alert: StandingAlert | None
    """The alert that stands for it; None if none does."""

    def __new__(  # the columns of the table
        cls,
        value: str,
        severity: Severity,
        page: str,
        means: str = "",
        repair: str = "",
        command: str | None = None,
        alert: StandingAlert | None = None,
    ) -> Self:
        """Return the kind with this id and these columns."""
        kind = str.__new__(cls, value)
        kind._value_, kind.severity, kind.page, kind.means = value, severity, page, means
        kind.repair, kind.command, kind.alert = repair, command, alert
        return kind


_CRITICAL, _WARNING, _NOTICE = Severity.CRITICAL, Severity.WARNING, Severity.NOTICE
_DOCTORS, _DEPLOYING = "runbook/doctor.md#findings", "how-to/deploy.md#change-a-running-stack"
_FIX = "roundsman doctor --fix makes the scheduler inspect the task."


class FindingKind(Trouble):
    """The kind of a finding. Scripts read the values."""

    TASK_STUCK = (
        "task-stuck",
        _CRITICAL,
        "runbook/supervisor.md",
        "The task is overdue by more than two supervisor passes, and no supervisor has handled it.",
        _FIX,
        "roundsman show {where}",
    )
    OWED_UNSENT = (
        "owed-unsent",
        _WARNING,
        "runbook/alerts-failed.md",
        "A status, an alert or a rejected message that was decided minutes ago has not been sent.",
        "Find in the scheduler's log what refuses it: the AlertTopic, its key, the reply "
        f"queue, or the RejectedQueue. {_FIX}",
        "roundsman show {where}",
    )
    RECORD_UNREADABLE = (
        "record-unreadable",
        _CRITICAL,
        "runbook/task-unreadable.md",
        "The record cannot be read: a newer version of Roundsman wrote it, or it is damaged. It is "
        "left unchanged, and its task waits.",
        "If it has a newer format, deploy the newer version, and use a command line of that "
        "version. Otherwise restore the item from the backup of the tasks table; the next "
        "supervisor pass continues the task.",
    )
    RECORD_TROUBLED = (
        "record-troubled",
        _CRITICAL,
        "runbook/task-unreadable.md",
        (
            "The supervisor could not handle the record and has postponed it; its task does not "
            "continue."
        ),
        "Read the supervisor's log line 'a record could not be handled', then deploy code "
        "that handles it, or correct the item.",
        "roundsman show {where}",
    )
    PLAN_MISSING = (
        "plan-missing",
        _CRITICAL,
        "runbook/task-unreadable.md",
        "Tasks name a plan that is not stored, or cannot be read. If it is not stored, they are "
        "archived at their next inspection, and cannot be resubmitted.",
        "Restore the row of the ControlTable from its backup, or submit one order of that "
        "workflow's version, which stores it again.",
        "roundsman show {about}",
    )
    CONTROL_UNREADABLE = (
        "control-unreadable",
        _WARNING,
        _DOCTORS,
        "A hold, a mark, a failure group or a lease in the ControlTable cannot be read. Such "
        "a hold still holds its agent; the others are ignored, and overwritten in time.",
        (
            "Release the agent of a hold, or hold it again. Remove by hand what is still there "
            "after an hour."
        ),
        "roundsman release {about}",
    )
    AGENT_WITHOUT_QUEUE = (
        "agent-without-queue",
        _CRITICAL,
        "runbook/steps-without-handler.md",
        "The stack has no request queue for the agent of a step; the attempts of the step fail.",
        "Deploy the agent, with its queues among the outputs.",
        "roundsman agents",
    )
    GROUP_NOT_OPEN = (
        "group-not-open",
        _WARNING,
        "runbook/task-archived.md",
        "Tasks that need a person are in a failure group that is not open: nobody is alerted "
        "about them any more.",
        "Examine one of them, then act on the whole group.",
        "roundsman show {about}",
    )
    ORDER_WITHOUT_TASK = (
        "order-without-task",
        _WARNING,
        "runbook/restore.md",
        "An order is stored without a task, although it is younger than the retention of any "
        "other. Both are written in one transaction. Unless its event set a shorter "
        "retention, the task was deleted, or one table was restored without the other.",
        "Find out from the application what happened to the order. Restore the task's item "
        "from the backup of the tasks table, or send the order under a new id.",
        "roundsman show {where}",
    )
    TASK_WITHOUT_ORDER = (
        "task-without-order",
        _CRITICAL,
        "runbook/restore.md",
        "A task has no order row, so none of its requests can be sent.",
        "Restore the row from the backup of the orders table.",
        "roundsman show {where}",
    )
    SUPERVISOR_LATE = (
        "supervisor-late",
        _CRITICAL,
        "runbook/supervisor.md",
        "No supervisor has visited these shards for more than two passes: nothing overdue is "
        "recovered there.",
        "Check the schedule, and the supervisor's errors and log.",
        None,
        StandingAlert("critical"),
    )
    DEAD_LETTERS = (
        "dead-letters",
        _WARNING,
        "runbook/dead-letters.md",
        "Messages were received as often as allowed and never handled. No task depends on "
        "one: the supervisor starts again what was lost. An order event that was never "
        "accepted is lost until it is sent again.",
        "Read them, correct the cause, and send them again.",
        "roundsman dlq ls {where}",
        StandingAlert("error", "{messages} of {where} failed every delivery"),
    )
    REJECTED = (
        "rejected",
        _NOTICE,
        "runbook/rejected-messages.md",
        "Messages that can never be handled were rejected, each with its reason.",
        "Read them; correct and resend those that should have been valid.",
        "roundsman rejected ls",
        StandingAlert("warning", "{messages} {were} rejected: no redelivery can succeed"),
    )
    SIGNALS_WITHOUT_ID = (
        "signals-without-id",
        _NOTICE,
        "reference/messages.md#signal",
        "An application sends signals without an id. The id of the message counts then, so one "
        "that is sent twice, or moved back to its queue by AWS, counts twice. A later release "
        "refuses them.",
        "Give each signal an id of its own, such as that of the payment. Client.signal gives one, "
        "and so does the command line.",
    )
    QUEUE_UNREAD = (
        "queue-unread",
        _CRITICAL,
        "runbook/backlog.md",
        "No function reads this queue: its event source mapping is missing or disabled.",
        "Enable the mapping, unless somebody disabled it on purpose. If it is missing, "
        "deploy the stack again.",
        "aws lambda update-event-source-mapping --uuid {about} --enabled",
    )
    FUNCTION_NOT_READY = (
        "function-not-ready",
        _CRITICAL,
        "runbook/function-errors.md",
        "The function's last update failed, or it cannot be called.",
        "Read the reason, and deploy again.",
    )
    FUNCTION_STOPPED = (
        "function-stopped",
        _CRITICAL,
        "runbook/throttled.md",
        "The function's reserved concurrency is 0: it is never called.",
        "Remove the reservation, unless somebody set it on purpose.",
        "aws lambda delete-function-concurrency --function-name {about}",
    )
    ORPHAN_VERSION = (
        "orphan-version",
        _NOTICE,
        _DEPLOYING,
        "The function's newest version never ran for good: a deployment that failed published it. "
        "Lambda publishes no second version of the same code, so a deployment of the same code "
        "fails with: A version for this Lambda function exists.",
        "Remove the version, and deploy again. `roundsman changes --execute ARN` leaves none.",
        "{about}",
    )
    SNAPSHOTS_PILE_UP = (
        "snapshots-pile-up",
        _NOTICE,
        _DEPLOYING,
        "SnapStart is on, and former versions of the function keep a snapshot each, which is paid "
        "for as long as the version exists.",
        "Remove the old versions. `roundsman rollback` needs the one before that which runs.",
        "{about}",
    )
    SCHEDULE_DISABLED = (
        "schedule-disabled",
        _CRITICAL,
        "runbook/supervisor.md",
        "A schedule of the stack is disabled. Without the supervisor's schedule, "
        "nothing overdue is recovered.",
        "Enable it, unless somebody disabled it on purpose.",
    )
    TABLE_NOT_READY = (
        "table-not-ready",
        _CRITICAL,
        _DOCTORS,
        "A table cannot be used, or not yet.",
        "Wait if it is being created; otherwise deploy the stack again.",
    )
    TTL_OFF = (
        "ttl-off",
        _WARNING,
        _DOCTORS,
        "Nothing removes rows whose retention has ended; readers still treat them as removed.",
        "Deploy the stack again, or enable TTL on ExpiresAt.",
        (
            "aws dynamodb update-time-to-live --table-name {about} "
            "--time-to-live-specification Enabled=true,AttributeName=ExpiresAt"
        ),
    )
    RECOVERY_OFF = (
        "recovery-off",
        _WARNING,
        "runbook/restore.md",
        (
            "The table cannot be restored to an earlier time, although a parameter of the stack "
            "enables this."
        ),
        "Deploy the stack again, or enable point-in-time recovery.",
        (
            "aws dynamodb update-continuous-backups --table-name {about} "
            "--point-in-time-recovery-specification PointInTimeRecoveryEnabled=true"
        ),
    )
    PROTECTION_OFF = (
        "protection-off",
        _WARNING,
        "how-to/deploy.md",
        "The table can be deleted by a single call. A stack is created so, because a creation "
        "that fails could not remove protected tables.",
        "Deploy the stack with DeletionProtection=true, or with false if it should stay so.",
    )
    ALARM_SILENT = (
        "alarm-silent",
        _WARNING,
        _DOCTORS,
        "An alarm's actions are disabled: it alerts nobody.",
        "Enable its actions.",
        "aws cloudwatch enable-alarm-actions --alarm-names {about}",
    )
    ALERTS_UNHEARD = (
        "alerts-unheard",
        _CRITICAL,
        "runbook/heartbeat.md",
        "The AlertTopic has no confirmed subscription: alerts and alarms reach nobody.",
        "Subscribe to it, or confirm the pending subscription.",
        ("aws sns subscribe --topic-arn {about} --protocol email --notification-endpoint ADDRESS"),
    )


def _alerted(
    page: str, command: str | None, alert: StandingAlert
) -> tuple[Severity, str, str, str, str | None, StandingAlert]:
    """Return the columns of what the doctor does not look for."""
    return Severity.NOTICE, page, "", "", command, alert


_ANY_ALERT = "runbook/index.md#alerts-and-alarms"


class StandingKind(Trouble):
    """What only alerts tell of."""

    GROUP = "group", *_alerted(_ANY_ALERT, "{about}", StandingAlert("error"))
    CIRCUIT = (
        "circuit",
        *_alerted(
            "runbook/circuit-breaker.md",
            "roundsman agents",
            StandingAlert("error", "the circuit of {where} is open: {evidence}"),
        ),
    )
    HOLD = "hold", *_alerted("runbook/held.md", "{about}", StandingAlert("info"))
    BEHIND = (
        "behind",
        *_alerted(
            "runbook/backlog.md",
            "roundsman stats",
            StandingAlert(
                "warning",
                "the scheduler is {evidence} behind: orders are late, and none fails for that",
            ),
        ),
    )
    ALARM = "alarm", *_alerted(_ANY_ALERT, None, StandingAlert("error"))
    ARCHIVED_TASKS = (
        "archived-tasks",
        *_alerted(
            "runbook/task-archived.md", "roundsman ls --state Archived", StandingAlert("error")
        ),
    )
    UNDONE_SHARE = (
        "undone-share",
        *_alerted("runbook/orders-undone.md", "roundsman groups ls", StandingAlert("warning")),
    )


ALARMS: Mapping[str, Trouble] = {
    "ArchivedTasksAlarm": StandingKind.ARCHIVED_TASKS,
    "UndoneShareAlarm": StandingKind.UNDONE_SHARE,
    "RejectedMessagesAlarm": FindingKind.REJECTED,
    "HasNotRunAlarm": FindingKind.SUPERVISOR_LATE,
    "DeadLettersAlarm": FindingKind.DEAD_LETTERS,
    "BacklogAlarm": StandingKind.BEHIND,
    "BehindAlarm": StandingKind.BEHIND,
}
"""The kind with the severity and the command of an alarm, by the end of the alarm's name; any other
alarm is an StandingKind.ALARM."""
