"""The kinds of findings: the severity of each, what it means, and how to repair it.

A test checks that docs/runbook/doctor.md has an entry for each kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from roundsman_console.facts.doctor.documents import FindingKind, Severity


@dataclass(frozen=True, slots=True)
class Entry:
    """The properties that all findings of a kind share."""

    severity: Severity
    means: str
    repair: str


_CRITICAL, _WARNING, _NOTICE = Severity.CRITICAL, Severity.WARNING, Severity.NOTICE
_FIX = "roundsman doctor --fix makes the scheduler inspect the task."

CATALOG: Mapping[FindingKind, Entry] = {
    FindingKind.TASK_STUCK: Entry(
        _CRITICAL,
        "The task is overdue by more than two supervisor passes, and no supervisor has handled it.",
        _FIX,
    ),
    FindingKind.OWED_UNSENT: Entry(
        _WARNING,
        "A status, an alert or a rejected message that was decided minutes ago has not been sent.",
        "Find in the scheduler's log what refuses it: the AlertTopic, its key, the reply "
        f"queue, or the RejectedQueue. {_FIX}",
    ),
    FindingKind.RECORD_UNREADABLE: Entry(
        _CRITICAL,
        "The record cannot be read: a newer version of Roundsman wrote it, or it is damaged. It is "
        "left unchanged, and its task waits.",
        "If it has a newer format, deploy the newer version, and use a command line of that "
        "version. Otherwise restore the item from the backup of the tasks table; the next "
        "supervisor pass continues the task.",
    ),
    FindingKind.RECORD_TROUBLED: Entry(
        _CRITICAL,
        (
            "The supervisor could not handle the record and has postponed it; its task does not "
            "continue."
        ),
        "Read the supervisor's log line 'a record could not be handled', then deploy code "
        "that handles it, or correct the item.",
    ),
    FindingKind.PLAN_MISSING: Entry(
        _CRITICAL,
        "Tasks name a plan that is not stored, or cannot be read. If it is not stored, they are "
        "archived at their next inspection, and cannot be resubmitted.",
        "Restore the row of the ControlTable from its backup, or submit one order of that "
        "workflow's version, which stores it again.",
    ),
    FindingKind.CONTROL_UNREADABLE: Entry(
        _WARNING,
        "A hold, a mark, a failure group or a lease in the ControlTable cannot be read. Such "
        "a hold still holds its agent; the others are ignored, and overwritten in time.",
        (
            "Release the agent of a hold, or hold it again. Remove by hand what is still there "
            "after an hour."
        ),
    ),
    FindingKind.AGENT_WITHOUT_QUEUE: Entry(
        _CRITICAL,
        "The stack has no request queue for the agent of a step; the attempts of the step fail.",
        "Deploy the agent, with its queues among the outputs.",
    ),
    FindingKind.GROUP_NOT_OPEN: Entry(
        _WARNING,
        "Tasks that need a person are in a failure group that is not open: nobody is alerted "
        "about them any more.",
        "Examine one of them, then act on the whole group.",
    ),
    FindingKind.ORDER_WITHOUT_TASK: Entry(
        _WARNING,
        "An order is stored without a task, although it is younger than the retention of any "
        "other. Both are written in one transaction. Unless its event set a shorter "
        "retention, the task was deleted, or one table was restored without the other.",
        "Find out from the application what happened to the order. Restore the task's item "
        "from the backup of the tasks table, or send the order under a new id.",
    ),
    FindingKind.TASK_WITHOUT_ORDER: Entry(
        _CRITICAL,
        "A task has no order row, so none of its requests can be sent.",
        "Restore the row from the backup of the orders table.",
    ),
    FindingKind.SUPERVISOR_LATE: Entry(
        _CRITICAL,
        "No supervisor has visited these shards for more than two passes: nothing overdue is "
        "recovered there.",
        "Check the schedule, and the supervisor's errors and log.",
    ),
    FindingKind.DEAD_LETTERS: Entry(
        _WARNING,
        "Messages were received as often as allowed and never handled. No task depends on "
        "one: the supervisor starts again what was lost. An order event that was never "
        "accepted is lost until it is sent again.",
        "Read them, correct the cause, and send them again.",
    ),
    FindingKind.REJECTED: Entry(
        _NOTICE,
        "Messages that can never be handled were rejected, each with its reason.",
        "Read them; correct and resend those that should have been valid.",
    ),
    FindingKind.SIGNALS_WITHOUT_ID: Entry(
        _NOTICE,
        "An application sends signals without an id. The id of the message counts then, so one "
        "that is sent twice, or moved back to its queue by AWS, counts twice. A later release "
        "refuses them.",
        "Give each signal an id of its own, such as that of the payment. Client.signal gives one, "
        "and so does the command line.",
    ),
    FindingKind.QUEUE_UNREAD: Entry(
        _CRITICAL,
        "No function reads this queue: its event source mapping is missing or disabled.",
        "Enable the mapping, unless somebody disabled it on purpose. If it is missing, "
        "deploy the stack again.",
    ),
    FindingKind.FUNCTION_NOT_READY: Entry(
        _CRITICAL,
        "The function's last update failed, or it cannot be called.",
        "Read the reason, and deploy again.",
    ),
    FindingKind.FUNCTION_STOPPED: Entry(
        _CRITICAL,
        "The function's reserved concurrency is 0: it is never called.",
        "Remove the reservation, unless somebody set it on purpose.",
    ),
    FindingKind.ORPHAN_VERSION: Entry(
        _NOTICE,
        "The function's newest version never ran for good: a deployment that failed published it. "
        "Lambda publishes no second version of the same code, so a deployment of the same code "
        "fails with: A version for this Lambda function exists.",
        "Remove the version, and deploy again. `roundsman changes --execute ARN` leaves none.",
    ),
    FindingKind.SNAPSHOTS_PILE_UP: Entry(
        _NOTICE,
        "SnapStart is on, and former versions of the function keep a snapshot each, which is paid "
        "for as long as the version exists.",
        "Remove the old versions. `roundsman rollback` needs the one before that which runs.",
    ),
    FindingKind.SCHEDULE_DISABLED: Entry(
        _CRITICAL,
        "A schedule of the stack is disabled. Without the supervisor's schedule, "
        "nothing overdue is recovered.",
        "Enable it, unless somebody disabled it on purpose.",
    ),
    FindingKind.TABLE_NOT_READY: Entry(
        _CRITICAL,
        "A table cannot be used, or not yet.",
        "Wait if it is being created; otherwise deploy the stack again.",
    ),
    FindingKind.TTL_OFF: Entry(
        _WARNING,
        "Nothing removes rows whose retention has ended; readers still treat them as removed.",
        "Deploy the stack again, or enable TTL on ExpiresAt.",
    ),
    FindingKind.RECOVERY_OFF: Entry(
        _WARNING,
        (
            "The table cannot be restored to an earlier time, although a parameter of the stack "
            "enables this."
        ),
        "Deploy the stack again, or enable point-in-time recovery.",
    ),
    FindingKind.PROTECTION_OFF: Entry(
        _WARNING,
        "The table can be deleted by a single call. A stack is created so, because a creation "
        "that fails could not remove protected tables.",
        "Deploy the stack with DeletionProtection=true, or with false if it should stay so.",
    ),
    FindingKind.ALARM_SILENT: Entry(
        _WARNING,
        "An alarm's actions are disabled: it alerts nobody.",
        "Enable its actions.",
    ),
    FindingKind.ALERTS_UNHEARD: Entry(
        _CRITICAL,
        "The AlertTopic has no confirmed subscription: alerts and alarms reach nobody.",
        "Subscribe to it, or confirm the pending subscription.",
    ),
}
"""The entry of every kind."""
