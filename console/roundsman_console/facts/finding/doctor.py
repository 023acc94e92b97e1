"""Checks a stack, and makes the repairs that are harmless if they are wrong.

A repair sends an inspect command for a task. No repair deletes anything or stores a record.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from roundsman.errors import RoundsmanError, TryAgain
from roundsman.model.instants import SECOND
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import AT_ONCE
from roundsman_console.base.clock import now, wait_for
from roundsman_console.facts.finding.orders import look_deep
from roundsman_console.facts.finding.queues import look_at_queues
from roundsman_console.facts.finding.report import (
    Finding,
    Looked,
    Looking,
    Repair,
    Report,
    in_order,
)
from roundsman_console.facts.finding.stack import look_at_stack
from roundsman_console.facts.finding.tasks import TasksRead, findings, read_tasks

A_SECOND = 10
"""How many inspect commands take effect per second, so that the agents are not overloaded."""

MOST_AT_ONCE = 5_000
"""The maximum number of repairs in one run. At A_SECOND, the last one is delayed by less than SQS's
maximum of 15 minutes. The next run makes the rest."""


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

    def check(self) -> Report:
        """Check the stack once."""
        return self._check()[0]

    def _check(self) -> tuple[Report, TasksRead]:
        looking = Looking(self.progress)
        found = [*look_at_stack(self.stack, looking), *look_at_queues(self.stack, looking)]
        facts = read_tasks(self.stack, self.limit, looking)
        found += findings(facts)
        rows = None
        if self.rate is not None:
            deep, rows = look_deep(self.stack, self.rate, looking)
            found += deep
        looked = Looked(
            self.stack.name, facts.now, facts.entries, facts.cut, rows, looking.published
        )
        return Report(looked, in_order(found), looking.unseen), facts

    def repair(self, confirm: Callable[[Sequence[Finding]], None], wait: float) -> Report:
        """Check the stack, ask for confirmation, repair, and check again.

        `confirm` is called with the findings that will be repaired, before the first repair; it
        raises an exception to repair nothing. Waits at most `wait` seconds for the findings to
        disappear. Returns the second report, with the repairs, or the first report if nothing can
        be repaired.
        """
        before, facts = self._check()
        wanted = [one for one in before.findings if one.fixable][:MOST_AT_ONCE]
        if not wanted:
            return replace(before, repairs=())
        confirm(wanted)
        problem = self._inspect(wanted)
        wait_for(lambda: True if self._is_repaired(wanted, facts) else None, wait)
        after = self.check()
        left = {one.place for one in after.findings}
        return replace(
            after, repairs=[Repair(one, problem, one.place not in left) for one in wanted]
        )

    def _inspect(self, wanted: Sequence[Finding]) -> str | None:
        """Send an inspect command for the task of each finding. Returns why that failed."""
        outbox = self.stack.outbox()
        ids = list(dict.fromkeys(one.where for one in wanted))
        try:
            # SQS delays are whole seconds, rounded up: the first A_SECOND commands have none.
            outbox.send_inspects([(one, n // A_SECOND * SECOND) for n, one in enumerate(ids)])
        except RoundsmanError as failed:
            return str(failed)
        return None

    def _is_repaired(self, wanted: Sequence[Finding], facts: TasksRead) -> bool:
        """Return whether the findings of the first AT_ONCE tasks have disappeared.

        Returns False if the tasks cannot be read now.
        """
        ids, at = list(dict.fromkeys(one.where for one in wanted))[:AT_ONCE], now()
        try:
            tasks = list(self.stack.records.load_many(ids, at).tasks.values())
        except TryAgain:
            return False
        places = {one.place for one in findings(replace(facts, now=at, tasks=tasks))}
        return places.isdisjoint(one.place for one in wanted)
