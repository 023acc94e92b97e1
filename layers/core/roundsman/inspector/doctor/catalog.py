"""The kinds of findings: the severity of each, what it means, and how to repair it.

A test checks that docs/runbook/findings.md has an entry for each kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from roundsman.inspector.documents.doctor import FindingKind, Severity


@dataclass(frozen=True, slots=True)
class Entry:
    """The properties that all findings of a kind share."""

    severity: Severity
    means: str
    repair: str


_CRITICAL, _WARNING, _NOTICE = Severity.CRITICAL, Severity.WARNING, Severity.NOTICE
_FIX = "roundsman doctor --fix has the scheduler look at it."

CATALOG: Mapping[FindingKind, Entry] = {
    FindingKind.TASK_STUCK: Entry(
        _CRITICAL,
        "Something about the task is overdue by more than two rounds, and no supervisor has moved "
        "it on.",
        _FIX,
    ),
    FindingKind.DUE_LATE: Entry(
        _WARNING,
        "The task's entry in the due index is later than its record says: the supervisor would "
        "find it too late. Nothing of Roundsman writes this.",
        "roundsman doctor --fix moves the entry, unless the task has moved on by then.",
    ),
    FindingKind.OWED_UNSENT: Entry(
        _WARNING,
        "A status or an alert that was decided minutes ago has not gone out.",
        "Look for what refuses it (the AlertTopic, its key, the reply queue) in the scheduler's "
        f"log. {_FIX}",
    ),
    FindingKind.LANE_WRONG: Entry(
        _CRITICAL,
        "The task stands in another lane of the due index than its record says, so no supervisor "
        "watches it, or ls does not list it. Nothing of Roundsman writes this.",
        "A person must put Lane and DueAt right, on the version seen; the evidence says which.",
    ),
    FindingKind.SETTLED_STAYS_OPEN: Entry(
        _WARNING,
        "The task is over and owes nothing, and stands in its open lane still: each round looks at "
        "it in vain, and it never expires. Nothing of Roundsman writes this.",
        "A person must put Lane and DueAt right, on the version seen; the order itself is done.",
    ),
    FindingKind.RECORD_INCONSISTENT: Entry(
        _CRITICAL,
        "The record has a shape that the machine never writes: somebody has changed it by hand, or "
        "there is a defect.",
        "Compare it with its history, and mend the item by hand.",
    ),
    FindingKind.RECORD_UNREADABLE: Entry(
        _CRITICAL,
        "The record is none that any version of Roundsman wrote; its task stands still.",
        "Mend the item in the tasks table; the next round goes on with it.",
    ),
    FindingKind.RECORD_NEWER: Entry(
        _WARNING,
        "A newer version of Roundsman wrote the record than this command line, or the functions, "
        "can read. It is left alone.",
        "Deploy the newer version, and look with a command line of that version.",
    ),
    FindingKind.RECORD_TROUBLED: Entry(
        _CRITICAL,
        "The supervisor could not handle the record and has put it off; its task stands still.",
        "Read the supervisor's log line 'a record could not be handled', then deploy the code that "
        "handles it or mend the item.",
    ),
    FindingKind.PLAN_MISSING: Entry(
        _CRITICAL,
        "Tasks name a plan that is not stored: they are archived when they are next looked at, and "
        "cannot be resubmitted.",
        "Restore the row of the ControlTable from its backup, or submit one order of that "
        "workflow's version, which stores it again.",
    ),
    FindingKind.PLAN_UNREADABLE: Entry(
        _CRITICAL,
        "A stored plan was altered: its tasks stand still.",
        "Restore the row of the ControlTable from its backup.",
    ),
    FindingKind.CONTROL_UNREADABLE: Entry(
        _WARNING,
        "A hold, a mark, a failure group or a lease in the ControlTable cannot be read. Such a "
        "hold holds its agent; all else is passed over, and overwritten in time.",
        "Release the agent of a hold, or hold it anew. What stays for an hour, remove by hand.",
    ),
    FindingKind.AGENT_WITHOUT_QUEUE: Entry(
        _CRITICAL,
        "A step is for an agent that the stack has no request queue for; its attempts fail.",
        "Deploy the agent, with its queues among the outputs.",
    ),
    FindingKind.HELD_WITHOUT_HOLD: Entry(
        _WARNING,
        "A step waits for its agent, long from now, though the agent takes work.",
        f"{_FIX} It notices that nothing is held any more.",
    ),
    FindingKind.UNGROUPED: Entry(
        _NOTICE,
        "The task needs a person and stands in no failure group, so no group's alert counts it. It "
        "was archived before there were groups.",
        "Look at it by itself.",
    ),
    FindingKind.GROUP_NOT_OPEN: Entry(
        _WARNING,
        "Tasks that need a person are in a failure group that is not open: nobody is told of them "
        "any more.",
        "Look at one of them, and act on all of the group.",
    ),
    FindingKind.ORDER_WITHOUT_TASK: Entry(
        _WARNING,
        "An order is stored and has no task, though it is younger than the retention of any other. "
        "Unless its event asked for a shorter one, the task was deleted, or a table was restored "
        "without the other: both are written at once.",
        "Ask the application what became of it. Restore the task's item from the tasks table's "
        "backup, or send the order under a new id.",
    ),
    FindingKind.TASK_WITHOUT_ORDER: Entry(
        _CRITICAL,
        "A task has no order row, so none of its requests can be made.",
        "Restore the row from the orders table's backup.",
    ),
    FindingKind.SUPERVISOR_LATE: Entry(
        _CRITICAL,
        "No supervisor has been through these shards for more than two rounds: nothing overdue is "
        "recovered there.",
        "Look at the schedule, and at the supervisor's errors and log.",
    ),
    FindingKind.LEASE_ABANDONED: Entry(
        _WARNING,
        "A supervisor died while it held these shards, and no other has taken them since.",
        "As with supervisor-late; the next round that runs takes them.",
    ),
    FindingKind.SHARDS_BEYOND: Entry(
        _NOTICE,
        "Open tasks stand in shards beyond the stack's DueShards, which was lowered. Supervisors "
        "visit them only since the row of the leases remembers that there were more.",
        "Keep that row; or raise DueShards again until these tasks are over.",
    ),
    FindingKind.BULK_ABANDONED: Entry(
        _WARNING,
        "A run over many orders is neither finished nor stopped, and nobody carries it on.",
        "Look at it with roundsman bulk show; carry it on, or know that the rest was not done.",
    ),
    FindingKind.DEAD_LETTERS: Entry(
        _WARNING,
        "Messages were received as often as allowed and never handled. No task depends on one: the "
        "supervisor starts again what was lost; an order event that was never taken is lost until "
        "it is sent again.",
        "Read them, mend the cause, and send them again.",
    ),
    FindingKind.REJECTED: Entry(
        _NOTICE,
        "Messages that can never be handled as they are were put aside, each with its reason.",
        "Read them; correct and resend what should have been good.",
    ),
    FindingKind.QUEUE_MISSING: Entry(
        _CRITICAL,
        "A queue of the stack is not there.",
        "Deploy the stack again.",
    ),
    FindingKind.QUEUE_UNREAD: Entry(
        _CRITICAL,
        "No function reads this queue: its event source mapping is missing or disabled.",
        "Enable the mapping, unless somebody has stopped it on purpose; deploy where it is "
        "missing.",
    ),
    FindingKind.QUEUE_BEHIND: Entry(
        _WARNING,
        "The queue fills faster than it is read.",
        "Raise its function's concurrency; look for throttles and slow calls.",
    ),
    FindingKind.QUEUE_DELAYS: Entry(
        _WARNING,
        "The queue delays every message, which nothing counts on: complete-bys pass meanwhile.",
        "Set the queue's DelaySeconds to 0.",
    ),
    FindingKind.NO_REDRIVE: Entry(
        _CRITICAL,
        "The queue has no dead-letter queue: a message that breaks its function comes again and "
        "again until it is dropped, unseen.",
        "Deploy the stack again, which puts the redrive policy back.",
    ),
    FindingKind.REDRIVE_TOO_SOON: Entry(
        _WARNING,
        "A message goes to the dead-letter queue after its first failure, however slight.",
        "Deploy the stack with MaxReceiveCount of 2 or more.",
    ),
    FindingKind.VISIBILITY_TOO_SHORT: Entry(
        _CRITICAL,
        "A message comes again while its function may still be at it.",
        "Raise the queue's visibility timeout to six times the function's timeout.",
    ),
    FindingKind.VISIBILITY_SHORT: Entry(
        _NOTICE,
        "The visibility timeout is less than six times the function's timeout: messages may be "
        "counted as failed that were only throttled.",
        "Raise the stack's parameter for it, or lower the function's timeout.",
    ),
    FindingKind.RETENTION_TOO_SHORT: Entry(
        _CRITICAL,
        "Messages are dropped before they could be handled or seen.",
        "Deploy the stack again, or shorten what they wait for.",
    ),
    FindingKind.TIMEOUT_TOO_SHORT: Entry(
        _WARNING,
        "The agent's function ends before a step's complete-by, so calls that may still succeed "
        "are cut off.",
        "Raise the function's timeout, and its queues' visibility timeout with it.",
    ),
    FindingKind.FUNCTION_NOT_READY: Entry(
        _CRITICAL,
        "The function's last update failed, or it cannot be called.",
        "Read the reason, and deploy again.",
    ),
    FindingKind.FUNCTION_STOPPED: Entry(
        _CRITICAL,
        "The function's reserved concurrency is 0: it is never called.",
        "Remove the reservation, unless somebody has stopped it on purpose.",
    ),
    FindingKind.FUNCTION_THROTTLED: Entry(
        _WARNING,
        "Lambda refused calls of the function: the account's concurrency, or its reservation, is "
        "used up.",
        "Lower the concurrency of other functions, or have the account's limit raised.",
    ),
    FindingKind.SCHEDULE_DISABLED: Entry(
        _CRITICAL,
        "A schedule of the stack is disabled or gone: without the supervisor's nothing overdue is "
        "recovered.",
        "Enable it, unless somebody has stopped it on purpose.",
    ),
    FindingKind.TABLE_NOT_READY: Entry(
        _CRITICAL,
        "A table, or an index of it, cannot be used (yet).",
        "Wait while it is being created; otherwise deploy the stack again.",
    ),
    FindingKind.TTL_OFF: Entry(
        _WARNING,
        "Nothing removes what is past its retention; readers treat it as gone all the same.",
        "Deploy the stack again, or enable TTL on ExpiresAt.",
    ),
    FindingKind.RECOVERY_OFF: Entry(
        _WARNING,
        "The table cannot be restored to an earlier moment, though the stack says that it can.",
        "Deploy the stack again, or enable point-in-time recovery.",
    ),
    FindingKind.ALARM_MISSING: Entry(
        _WARNING,
        "An alarm of the stack is not there: what it watches fails in silence.",
        "Deploy the stack again.",
    ),
    FindingKind.ALARM_SILENT: Entry(
        _WARNING,
        "An alarm's actions are disabled, or it has none: it rings where nobody hears it.",
        "Enable its actions.",
    ),
    FindingKind.ALARM_RINGS: Entry(
        _WARNING,
        "An alarm is in ALARM.",
        "docs/runbook/index.md has the page for each alarm.",
    ),
    FindingKind.ALERTS_UNHEARD: Entry(
        _CRITICAL,
        "Nobody has confirmed a subscription to the AlertTopic: alerts and alarms reach no one.",
        "Subscribe to it, or confirm the subscription that waits.",
    ),
}
"""The entry of every kind."""
