"""Runs all checks, and orders their findings by severity and kind."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from roundsman_console.inspector.doctor import queue_checks, stack_checks, task_checks
from roundsman_console.inspector.doctor.facts import Finding, StackFacts
from roundsman_console.inspector.documents.doctor import FindingKind, Severity

Check: TypeAlias = Callable[[StackFacts], Iterator[Finding]]

OF_TASKS: Sequence[Check] = (
    task_checks.stuck_tasks,
    task_checks.unsent_owed,
    task_checks.unreadable,
    task_checks.lost_plans,
    task_checks.agents_without_queue,
    task_checks.groups_not_open,
    task_checks.orphans,
)
OF_THE_STACK: Sequence[Check] = (
    stack_checks.supervisors,
    stack_checks.control_rows,
    stack_checks.functions,
    stack_checks.schedules,
    stack_checks.tables,
    stack_checks.alarms,
    stack_checks.topic,
    queue_checks.put_aside,
    queue_checks.readers,
)


def findings(facts: StackFacts) -> list[Finding]:
    """Run all checks, and return the findings in the order of `in_order`."""
    return in_order(chain.from_iterable(check(facts) for check in (*OF_THE_STACK, *OF_TASKS)))


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity, kind and place; keep one of those with equal kind and place."""
    kinds, severities = list(FindingKind), list(Severity)
    once = {(one.kind, one.where): one for one in found}
    return sorted(
        once.values(),
        key=lambda one: (severities.index(one.entry.severity), kinds.index(one.kind), one.where),
    )


def findings_of_tasks(facts: StackFacts) -> list[Finding]:
    """Run the checks of tasks, plans and orders, and return the findings unsorted."""
    return list(chain.from_iterable(check(facts) for check in OF_TASKS))
