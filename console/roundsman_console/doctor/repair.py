"""What the doctor may mend by itself: only what is conditional, and harmless where it is wrong.

It has the scheduler look at a task, and moves a due entry on the version that was seen. It never
deletes, and stores no record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from roundsman.aws.sqs.outbox import AwsOutbox
from roundsman.errors import RoundsmanError
from roundsman.model.instants import SECOND
from roundsman.ports import Superseded
from roundsman_console.doctor.facts import Finding, InspectRepair, Rearm
from roundsman_console.read.stack import DeployedStack

A_SECOND = 10
"""How many tasks are inspected in a second: what stood still does not run the agents over."""

MOST_AT_ONCE = 5_000
"""What ten a second come to within SQS's longest delay, and less; the rest is mended next time."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One thing that was done, or could not be; `problem` says why not."""

    finding: Finding
    problem: str | None = None


def to_do(findings: Sequence[Finding]) -> list[Finding]:
    """Those that can be mended here, as many as at once."""
    return [one for one in findings if one.fix is not None][:MOST_AT_ONCE]


def repair(stack: DeployedStack, findings: Sequence[Finding]) -> list[Repair]:
    """Do what each finding's fix says. Entries are moved first."""
    done = [_rearm(stack, one, one.fix) for one in findings if isinstance(one.fix, Rearm)]
    return done + _inspect(stack, [one for one in findings if isinstance(one.fix, InspectRepair)])


def _rearm(stack: DeployedStack, finding: Finding, fix: Rearm) -> Repair:
    try:
        saved = stack.tasks.rearm(fix.task, fix.at)
    except RoundsmanError as problem:
        return Repair(finding, str(problem))
    moved_on = "the task has moved on since it was looked at"
    return Repair(finding, moved_on if isinstance(saved, Superseded) else None)


def _inspect(stack: DeployedStack, findings: Sequence[Finding]) -> list[Repair]:
    outbox = AwsOutbox(
        stack.sqs,
        scheduler_queue=stack.output("SchedulerQueueUrl"),
        reply_prefix=stack.output("ReplyQueuePrefix"),
    )
    ids = list(dict.fromkeys(one.fix.task_id for one in findings if one.fix is not None))
    problem = None
    try:
        # SQS counts delays in whole seconds, rounded up: the first ones have none.
        outbox.send_inspects([(one, n // A_SECOND * SECOND) for n, one in enumerate(ids)])
    except RoundsmanError as failed:
        problem = str(failed)
    return [Repair(one, problem) for one in findings]
