"""Makes the repairs of `roundsman doctor --fix`: only those that are harmless if they are wrong.

A repair sends an inspect command for a task. No repair deletes anything or stores a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from roundsman.aws.sqs.outbox import AwsOutbox
from roundsman.errors import RoundsmanError
from roundsman.model.instants import SECOND
from roundsman_console.inspector.doctor.facts import Finding
from roundsman_console.inspector.read.stack import DeployedStack

A_SECOND = 10
"""How many inspect commands take effect per second, so that the agents are not overloaded."""

MOST_AT_ONCE = 5_000
"""The maximum number of repairs in one run. At A_SECOND, the last one is delayed by less than SQS's
maximum of 15 minutes. The next run makes the rest."""


DOES = "make the scheduler inspect it"
"""The repair in words."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair that was made, or failed."""

    finding: Finding
    problem: str | None = None
    """Why the repair failed; None if it was made."""


def to_do(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that have a fix, at most MOST_AT_ONCE."""
    return [one for one in findings if one.fixable][:MOST_AT_ONCE]


def repair(stack: DeployedStack, findings: Sequence[Finding]) -> list[Repair]:
    """Send an inspect command for the task of each finding."""
    outbox = AwsOutbox(
        stack.sqs,
        scheduler_queue=stack.output("SchedulerQueueUrl"),
        reply_prefix=stack.output("ReplyQueuePrefix"),
    )
    ids = list(dict.fromkeys(one.where for one in findings))
    problem = None
    try:
        # SQS delays are whole seconds, rounded up: the first A_SECOND commands have none.
        outbox.send_inspects([(one, n // A_SECOND * SECOND) for n, one in enumerate(ids)])
    except RoundsmanError as failed:
        problem = str(failed)
    return [Repair(one, problem) for one in findings]
