"""What is stored of one order, without its contents, and what a check of it can find."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from roundsman.definition.plan import Plan
from roundsman.engine.history import ROWS_A_VERSION
from roundsman.model.events import HistoryRow
from roundsman.model.json import Json
from roundsman.model.task import ERASED, StepError, StepRecord, Task
from roundsman.ports import OrderRow

LEFT_OUT = "(left out)"
"""Stands for each text and each value that the order may have caused."""

REFUSED = "refused"
"""The kind of the history row of a command that was not carried out."""

NEVER: Mapping[str, int] = {}
"""No step was begun again."""


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """A promise that was not kept."""

    what: str
    """How it was broken. It quotes no content of the order."""
    rows: tuple[int, ...] = ()
    """The `seq` of the rows of the history that show it."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A promise that cannot be judged, or not in every part."""

    why: str
    """The reason, in the same words for every order, so that orders can be counted by it."""


Finding: TypeAlias = BrokenPromise | Unknown
Findings: TypeAlias = Iterator[Finding]
"""What a check finds about one order; nothing if the promise was kept."""


@dataclass(frozen=True, slots=True)
class StoredRow:
    """The row of an order in the orders table, without its content."""

    created_at: int
    """When it was stored, in epoch ms."""
    expires_at: int | None = None
    """When it may be removed, in epoch ms; None if it does not expire."""
    has_content: bool = True
    """Whether its content is there: it was not erased."""


@dataclass(frozen=True, slots=True)
class StandingEffect:
    """An effect that stands at a service, as the service's own records say."""

    step: str
    """The step; `pick[1]` for an item of a fan-out."""
    key: str
    """The idempotency key of the perform."""
    times: int = 1
    """How often the effect came about under this key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOrder:
    """What is stored of one order. A part that was not read is None."""

    task: Task
    """The record, without contents (`without_contents`)."""
    at: int
    """When it was read, in epoch ms."""
    plan: Plan | None = None
    """The plan that the record names; None if it is not stored either."""
    row: StoredRow | None = None
    row_read: bool = False
    """Whether the order row was looked for: `row` is None also if there is none."""
    history: Sequence[HistoryRow] | None = None
    """The rows of the history by `seq`, without their reasons; those of a task that had the same id
    before are not among them."""
    effects: Sequence[StandingEffect] | None = None
    """What stands at the services."""
    troubled: bool = False
    """Whether the supervisor failed to handle the record, and has postponed it."""
    at_rest: bool = False
    """Whether nothing is left to happen: what follows a write of the record has followed."""
    slack: int = 0
    """How far the clocks of those who wrote the record may differ, in ms."""
    begun_anew: Mapping[str, int] = field(default_factory=dict)
    """The round of each step in which a person last began the task again (`resubmit --again`), as
    far as it is known."""

    @property
    def expanded(self) -> Plan | None:
        """The plan in which each item of a fan-out is a step; None if there is no plan."""
        return None if self.plan is None else self.plan.for_task(self.task)

    @property
    def commands(self) -> tuple[HistoryRow, ...]:
        """The rows of the commands that were carried out, the oldest first."""
        rows = self.history or ()
        return tuple(row for row in rows if row.command_id is not None and row.kind != REFUSED)

    def was_commanded(self, *kinds: str, after: int = 0) -> bool:
        """Whether a command of one of these kinds was carried out.

        Only commands whose row has a `seq` greater than `after` count.
        """
        return any(row.kind in kinds and row.seq > after for row in self.commands)


def stored_order(
    task: Task,
    plan: Plan | None,
    row: OrderRow | None,
    history: Sequence[HistoryRow],
    *,
    at: int,
    troubled: bool = False,
    slack: int = 0,
) -> StoredOrder:
    """Return what is stored of an order and was read at `at` (epoch ms), without its contents."""
    return StoredOrder(
        task=without_contents(task),
        at=at,
        plan=plan,
        row=None if row is None else stored_row(row),
        row_read=True,
        history=without_reasons(task, history),
        troubled=troubled,
        slack=slack,
    )


def stored_row(row: OrderRow) -> StoredRow:
    """Return an order row without its content."""
    return StoredRow(row.created_at, row.expires_at, row.content is not None)


def version_of(row: HistoryRow) -> int:
    """Return the version of the record that was stored together with the row."""
    return row.seq // ROWS_A_VERSION


def without_reasons(task: Task, rows: Sequence[HistoryRow]) -> tuple[HistoryRow, ...]:
    """Return the rows of this task by `seq`, without what an order or a person has said in them.

    The rows of an earlier task with the same id are left out: they are older than the task.
    """
    own = (row for row in rows if row.at >= task.created_at)
    plain = (replace(row, reason=_text(row.reason), by=None, sender=None) for row in own)
    return tuple(sorted(plain, key=lambda row: row.seq))


def without_contents(task: Task) -> Task:
    """Return the record without the results, messages and reasons in it.

    LEFT_OUT stands for each of them that is there and not erased, so that a check can tell.
    """
    ending = task.ending
    return replace(
        task,
        steps={name: _step(one) for name, one in task.steps.items()},
        ending=ending and replace(ending, why=_text(ending.why), error=_error(ending.error)),
        corrections=tuple(() for _ in task.corrections),
        owed=tuple(replace(one, detail="") for one in task.owed),
        settled=tuple(replace(row, steps={}) for row in task.settled),
        correlation_id=None,
        reply_to=None if task.reply_to is None else LEFT_OUT,
        tenant=None,
        erased_by=None if task.erased_by is None else LEFT_OUT,
    )


def _step(record: StepRecord) -> StepRecord:
    result: Json = None if record.result is None else LEFT_OUT
    return replace(record, result=result, error=_error(record.error))


def _error(error: StepError | None) -> StepError | None:
    return error and replace(error, message=_text(error.message))


def _text(text: str) -> str:
    return text if text in ("", ERASED) else LEFT_OUT
