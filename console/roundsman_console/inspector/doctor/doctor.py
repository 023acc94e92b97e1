"""Checks a stack, and repairs what is safe to repair."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from roundsman.aws.clock import now
from roundsman.errors import TryAgain
from roundsman_console.inspector.clock import wait_for
from roundsman_console.inspector.doctor.checks import findings, findings_of_tasks, in_order
from roundsman_console.inspector.doctor.deep import look_deep
from roundsman_console.inspector.doctor.facts import Finding, StackFacts
from roundsman_console.inspector.doctor.gather import gather
from roundsman_console.inspector.doctor.gather_tasks import AT_ONCE, dynamodb_client, read_tasks
from roundsman_console.inspector.doctor.readings import Looking
from roundsman_console.inspector.doctor.repair import Repair, repair, to_do
from roundsman_console.inspector.doctor.report import Looked, Report
from roundsman_console.inspector.documents.doctor import FindingKind
from roundsman_console.inspector.read.stack import DeployedStack

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class Doctor:
    """One check of a stack, with or without repairs."""

    stack: DeployedStack
    limit: int
    """The maximum number of tasks to read per lane."""
    rate: int | None
    """The maximum number of rows per second of a deep check; None for no deep check."""
    progress: Callable[[str], None] = lambda _: None
    """Called with what is being read."""

    def check(self) -> tuple[Report, StackFacts]:
        """Check the stack once. Returns the report and the facts that it is based on."""
        looking = Looking(self.progress)
        gathered = gather(self.stack, self.limit, looking)
        facts, walk = gathered.facts, gathered.walk
        found, rows = findings(facts), None
        if self.rate is not None:
            deep = look_deep(self.stack, facts, self.rate, looking)
            found, rows = in_order([*found, *deep.findings]), deep.rows
        looked = Looked(self.stack.name, facts.now, dict(walk.entries), walk.cut, rows)
        return Report(looked, found, looking.unseen), facts

    def repair(self, confirm: Callable[[Sequence[Finding]], None], wait: float) -> Report:
        """Check the stack, ask for confirmation, repair, and check again.

        `confirm` is called with the findings that will be repaired, before the first repair; it
        raises an exception to repair nothing. Waits at most `wait` seconds for the findings to
        disappear. Returns the second report, with the repairs, or the first report if nothing can
        be repaired.
        """
        before, facts = self.check()
        wanted = to_do(before.findings)
        if not wanted:
            return replace(before, repairs=())
        confirm(wanted)
        done = repair(self.stack, wanted)
        client = dynamodb_client()
        wait_for(lambda: True if self._is_repaired(client, done, facts) else None, wait)
        after, _ = self.check()
        left = _places(after.findings)
        return replace(after, repairs=[(one, _place(one.finding) not in left) for one in done])

    def _is_repaired(
        self, client: "DynamoDBClient", done: Sequence[Repair], facts: StackFacts
    ) -> bool:
        """Return whether the findings of the first AT_ONCE repaired tasks have disappeared.

        Returns False if the tasks cannot be read now.
        """
        ids = list(dict.fromkeys(one.finding.where for one in done))[:AT_ONCE]
        at = now()
        try:
            seen = read_tasks(client, self.stack, ids, at)
        except TryAgain:
            return False
        found = _places(findings_of_tasks(replace(facts, now=at, tasks=seen)))
        return not found & {_place(one.finding) for one in done}


def _place(finding: Finding) -> tuple[FindingKind, str]:
    return finding.kind, finding.where


def _places(found: Sequence[Finding]) -> set[tuple[FindingKind, str]]:
    return set(map(_place, found))
