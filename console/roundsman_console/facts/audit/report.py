"""What an audit has found: counts by promise, each violation, and what cannot be judged."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from roundsman.command_line import command_line
from roundsman.model.instants import iso
from roundsman_console.facts.audit.checks import CHECKS, EFFECT_CHECKS, Judgement, Verdict
from roundsman_console.facts.audit.documents import AuditDocument
from roundsman_console.facts.audit.promises import Promise
from roundsman_console.facts.audit.stored_order import BrokenPromise, StoredOrder

MOST_LISTED = 1_000
"""How many violations are kept; the others are counted."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a promise to an order was broken."""

    order_id: str
    workflow: str
    promise: Promise
    found: BrokenPromise


@dataclass(slots=True)
class AuditReport:
    """What an audit has found so far."""

    stack: str | None
    """The name of the stack; None for orders of a file."""
    at: int
    """When it began, in epoch ms."""
    since: int | None = None
    """From when on the orders were submitted, in epoch ms; None for all."""
    read_units: int | None = None
    """About how many read units it takes; None for orders of a file."""
    judged: Counter[Verdict] = field(default_factory=Counter)
    """The number of orders by what is known of all promises together."""
    promises: dict[Promise, Counter[Verdict]] = field(default_factory=dict)
    """The number of orders by promise, and by what is known of it."""
    violations: list[Violation] = field(default_factory=list)
    """The first MOST_LISTED."""
    unknown: Counter[tuple[Promise | None, str]] = field(default_factory=Counter)
    """The number of orders by what cannot be judged, and why; None stands for all promises."""
    examples: dict[tuple[Promise | None, str], str] = field(default_factory=dict)
    """The id of the first of these orders."""
    removed: int | None = None
    """The number of orders whose record was removed; None if that was not counted."""
    more: bool = False
    """Whether there are more orders than were read."""
    stopped: str | None = None
    """Why it ended early; None if it did not."""

    def add(self, order: StoredOrder, judgement: Judgement) -> None:
        """Count an order."""
        task = order.task
        verdicts = {promise: judgement.verdict(promise) for promise in judgement.findings}
        for promise, verdict in verdicts.items():
            self.promises.setdefault(promise, Counter())[verdict] += 1
        self.judged[_of_all(verdicts.values())] += 1
        for promise, found in judgement.broken:
            if len(self.violations) < MOST_LISTED:
                self.violations.append(Violation(task.task_id, task.workflow, promise, found))
        for promise, unknown in judgement.unknown:
            self._count(promise, unknown.why, task.task_id)

    def add_unread(self, order_id: str, why: str) -> None:
        """Count an order of which nothing can be judged."""
        self._count(None, why, order_id)

    def _count(self, promise: Promise | None, why: str, order_id: str) -> None:
        self.unknown[promise, why] += 1
        self.examples.setdefault((promise, why), order_id)

    @property
    def orders(self) -> int:
        """The number of orders that were judged."""
        return self.judged.total()

    @property
    def unread(self) -> int:
        """The number of orders of which nothing could be judged."""
        return sum(n for (promise, _), n in self.unknown.items() if promise is None)

    @property
    def is_well(self) -> bool:
        """Whether no promise was found broken, and the audit has read what it was to read."""
        return not self.judged[Verdict.BROKEN] and self.stopped is None

    @property
    def unjudged(self) -> list[Promise]:
        """The promises that were not judged at all, because stored records do not show them."""
        checked = CHECKS.keys() | self.promises.keys()
        return [promise for promise in Promise if promise not in checked]

    @property
    def shown_by_services(self) -> list[Promise]:
        """Those of them that can be judged if it is known what stands at the services."""
        return [promise for promise in self.unjudged if promise in EFFECT_CHECKS]

    def document(self) -> AuditDocument:
        """Return what was found as JSON for scripts."""
        return {
            "stack": self.stack,
            "at": iso(self.at),
            "since": None if self.since is None else iso(self.since),
            "readUnits": self.read_units,
            "orders": self.orders,
            "followed": self.judged[Verdict.FOLLOWED],
            "partly": self.judged[Verdict.UNKNOWN],
            "broken": self.judged[Verdict.BROKEN],
            "unread": self.unread,
            "removed": self.removed,
            "more": self.more,
            "promises": [
                {
                    "promise": promise.name,
                    "says": promise.value,
                    "followed": count[Verdict.FOLLOWED],
                    "broken": count[Verdict.BROKEN],
                    "unknown": count[Verdict.UNKNOWN],
                }
                for promise, count in self.promises.items()
            ],
            "violations": [
                {
                    "order": one.order_id,
                    "workflow": one.workflow,
                    "promise": one.promise.name,
                    "what": one.found.what,
                    "rows": list(one.found.rows),
                    "command": command_line("show", one.order_id),
                }
                for one in self.violations
            ],
            "unknown": [
                {
                    "promise": None if promise is None else promise.name,
                    "why": why,
                    "orders": count,
                    "example": self.examples[promise, why],
                }
                for (promise, why), count in self.unknown.most_common()
            ],
            "unjudged": [promise.name for promise in self.unjudged],
            "stopped": self.stopped,
        }


def _of_all(verdicts: Collection[Verdict]) -> Verdict:
    """What is known of an order by what is known of each promise."""
    for verdict in (Verdict.BROKEN, Verdict.UNKNOWN):
        if verdict in verdicts:
            return verdict
    return Verdict.FOLLOWED
