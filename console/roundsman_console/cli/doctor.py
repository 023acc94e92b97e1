"""`roundsman doctor`: checks a stack, reports problems, and repairs what is safe to repair."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from roundsman.aws.clock import now
from roundsman.errors import TryAgain
from roundsman_console.cli.operate import AsJson, Yes
from roundsman_console.cli_errors import FAILED, sentences
from roundsman_console.confirm import confirm
from roundsman_console.doctor.catalog import FindingKind
from roundsman_console.doctor.checks import findings, findings_of_tasks, in_order
from roundsman_console.doctor.deep import look_deep
from roundsman_console.doctor.facts import Finding, StackFacts
from roundsman_console.doctor.gather import gather
from roundsman_console.doctor.gather_tasks import AT_ONCE, dynamodb_client, read_tasks
from roundsman_console.doctor.readings import Looking
from roundsman_console.doctor.repair import Repair, repair, to_do
from roundsman_console.doctor.report import Looked, Report, print_plan, print_report
from roundsman_console.polling import wait_for
from roundsman_console.read.stack import DeployedStack, StackOption, find_stack

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Deep = Annotated[
    bool, typer.Option("--deep", help="Read every row of the tasks and orders tables.")
]
Rate = Annotated[int, typer.Option(min=1, max=100_000, help="With --deep: rows a second at most.")]
Limit = Annotated[int, typer.Option(min=1, help="Tasks to read of each lane at most.")]
Mend = Annotated[bool, typer.Option("--fix", help="Mend what is safe to mend, after asking.")]
Wait = Annotated[float, typer.Option(min=0, max=900, help="Seconds to wait for what is mended.")]


def doctor_command(
    fix: Mend = False,
    deep: Deep = False,
    limit: Limit = 1_000,
    rate: Rate = 500,
    yes: Yes = False,
    wait: Wait = 15.0,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Find what is stuck, lost or inconsistent, and times out of order. Example: roundsman doctor

    Ends with 0 where all is well, and with 1 where something was found or could not be looked at.
    With --fix it mends what is safe to mend, after showing it: roundsman doctor --fix
    """
    with sentences():
        found = find_stack(stack)
        visit = Visit(found, limit, rate if deep else None, quiet=as_json)
        report = visit.mend(yes=yes, wait=wait) if fix else visit.look()[0]
        if as_json:
            print(json.dumps(report.document()))
        else:
            print_report(report, Console(highlight=False))
        if not report.well:
            raise typer.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class Visit:
    """One check of a stack, with or without repairs."""

    stack: DeployedStack
    limit: int
    """The maximum number of tasks to read per lane."""
    rate: int | None
    """The maximum number of rows per second of a deep check; None for no deep check."""
    quiet: bool
    """Print no progress, and print the repair plan on standard error (for --json)."""

    def look(self) -> tuple[Report, StackFacts]:
        """Check the stack once. Returns the report and the facts that it is based on."""
        looking = Looking(quiet=self.quiet)
        gathered = gather(self.stack, self.limit, looking)
        facts, walk = gathered.facts, gathered.walk
        found, rows = findings(facts), None
        if self.rate is not None:
            deep = look_deep(self.stack, facts, self.rate, looking)
            found, rows = in_order([*found, *deep.findings]), deep.rows
        looked = Looked(self.stack.name, facts.now, dict(walk.entries), walk.cut, rows)
        return Report(looked, found, looking.unseen), facts

    def mend(self, *, yes: bool, wait: float) -> Report:
        """Check the stack, print the repairs, ask for confirmation, repair, and check again.

        Waits at most `wait` seconds for the findings to disappear. Returns the second report, with
        the repairs, or the first report if nothing can be repaired. Raises ConsoleError if the
        user does not confirm.
        """
        before, facts = self.look()
        wanted = to_do(before.findings)
        if not wanted:
            return replace(before, repairs=())
        print_plan(wanted, Console(stderr=self.quiet, highlight=False))
        tasks = len({one.where for one in wanted})
        confirm(f"Mend {tasks} task{'s' if tasks > 1 else ''} so?", yes=yes)
        done = repair(self.stack, wanted)
        client = dynamodb_client()
        wait_for(lambda: True if self._mended(client, done, facts) else None, wait)
        after, _ = self.look()
        left = _places(after.findings)
        return replace(after, repairs=[(one, _place(one.finding) not in left) for one in done])

    def _mended(self, client: "DynamoDBClient", done: Sequence[Repair], facts: StackFacts) -> bool:
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
