"""Checks every record against the invariants at the moment when it is written."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from roundsman.alerts.group import AlertKind
from roundsman.aws.dynamodb.holds import HOLDS
from roundsman.aws.dynamodb.settled import is_row
from roundsman.definition.plan import Plan
from roundsman.engine.due import is_closed, parked_for
from roundsman.model.failure import Group
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman.model.task import REJECTION, Task
from roundsman.wire.alert import Alert
from roundsman.wire.commands import Command
from roundsman.wire.messages import AgentRequest, Reply
from roundsman_console.facts.audit.stored_order import NEVER, StandingEffect, StoredOrder
from roundsman_testing.dynamodb.expressions import Item
from roundsman_testing.invariants.added import Added
from roundsman_testing.invariants.attempts import Attempts
from roundsman_testing.invariants.bulk import BulkRunRows
from roundsman_testing.invariants.calls import Calls
from roundsman_testing.invariants.claims import Claims
from roundsman_testing.invariants.commands import Commands
from roundsman_testing.invariants.inputs import Inputs
from roundsman_testing.invariants.keys import Keys
from roundsman_testing.invariants.looks import Looks
from roundsman_testing.invariants.rules import (
    Broken,
    Invariant,
    of_alert,
    of_change,
    of_effects,
    of_ended,
    of_history,
    of_knowledge,
    of_retention,
    of_stored,
)
from roundsman_testing.invariants.statuses import Statuses
from roundsman_testing.invariants.stored import Contents, OrderRows, RowsOfTasks, SearchKeys
from roundsman_testing.ledger import Ledger
from roundsman_testing.memory import TABLES

BEGUN_ANEW = (TaskState.UNDONE, TaskState.CANCELLED)
"""The end states that only `resubmit --again` reopens."""

COMPARED = (Invariant.EXPLAINED, Invariant.KNOWN)
"""The invariants that compare the record of a task with its effects."""


def _changes_history(before: Task, after: Task) -> bool:
    """Whether a row is stored with this write: of a failed attempt, a command or a signal."""
    counted = any(
        record.failure_count > before.step(name).failure_count
        for name, record in after.steps.items()
    )
    was, now = (before.command_ids, before.signals_left), (after.command_ids, after.signals_left)
    return counted or was != now


class InvariantWatch:
    """Follows the tasks of a world and collects broken invariants.

    `tasks` holds the last record of each task; `due` the due entries of open tasks (epoch ms);
    `broken` the broken invariants so far. `on_write` is a hook for the store. It does not raise,
    because the caller could take the exception for a failure of the store.

    `on_reopened` is called with the id of each task that goes on after its end. `groups` returns
    the failure groups that are stored now.
    """

    def __init__(
        self,
        plan_of: Callable[[str], Plan | None],
        ledger: Ledger,
        clock: Callable[[], int],
        *,
        interval: int,
        slack: int = 0,
        apart: int = 0,
        order_retention: int | None = None,
    ) -> None:
        """Start without tasks.

        `interval` is the time between two passes of the supervisors, in ms. `slack` is how late a
        due entry may be because clocks differ, and `apart` how far they differ, both in ms.
        `order_retention` is the time in ms for which orders are kept; None: for ever.
        """
        self._slack = slack
        self._apart = apart
        self._plan_of = plan_of
        self._ledger = ledger
        self._clock = clock
        self._dirty: dict[str, None] = {}
        self.claims = Claims()
        self.calls = Calls()
        self._attempts = Attempts(apart)
        self._keys = Keys(apart)
        self._added = Added()
        self._commands = Commands(apart)
        self._statuses = Statuses()
        self._histories: dict[str, None] = {}
        self._rows = RowsOfTasks()
        self._order_rows = OrderRows(order_retention)
        self._search_keys = SearchKeys()
        self._contents = Contents()
        self._inputs = Inputs(self._contents.of)
        self._bulk_runs = BulkRunRows()
        self._unaudited: dict[str, None] = {}
        self.looks = Looks(interval)
        self.tasks: dict[str, Task] = {}
        self.decisions = self.ends = 0
        """How many decisions were stored, and how many of them ended a task."""
        self.due: dict[str, int] = {}
        self.parked: set[str] = set()
        """The tasks that wait for the end of a hold, or for their turn."""
        self.passes_limit: set[str] = set()
        """The tasks that a person has let begin before their turn."""
        self.broken: list[Broken] = []
        self.on_reopened: Callable[[str], None] = lambda _: None
        self.groups: Callable[[], Sequence[Group]] = tuple
        self._open: set[str] = set()
        self._failed: dict[str, set[str]] = {}
        self._alerted: set[str] = set()
        self._begun_anew: dict[str, dict[str, int]] = {}
        self._effects_unknown: frozenset[str] = frozenset()
        self._rejected: set[tuple[str, str]] = set()

    def begin_anew(
        self,
        tasks: Mapping[str, Task],
        before: Mapping[str, Sequence[Item]],
        after: Mapping[str, Sequence[Item]],
        *,
        effects_unknown: Iterable[str],
    ) -> None:
        """Follow tables that were restored.

        `tasks` are the last records of then, also of tasks that were removed by then. `before` and
        `after` are the items of each table before the restore and after it. What agents were asked
        and what they replied is still known, and so are the statuses that were sent. The records of
        the tasks in `effects_unknown` are not compared with their effects, because the services
        have gone on since then.
        """
        broken, now = list(self.broken), self._clock()
        for table, items in before.items():
            for item in items:
                self.on_stored(table, item, None)
        self._bulk_runs = BulkRunRows(self._bulk_runs.all_sent)
        for table, items in after.items():
            for item in items:
                self.on_stored(table, None, item)
        self._histories.clear()
        self._search_keys.forget()
        self.broken[:] = broken  # these records were checked when they were stored
        self.calls.forget_results()
        self._keys.forget()
        self.claims.begin_anew(tasks.values())
        for task in self.tasks.values():
            self.looks.written(None, task, now, is_open=False)
        self.looks.failed(now)
        self.tasks.clear()
        self.tasks.update(tasks)
        self.due.clear()
        self.parked.clear()
        for task in tasks.values():
            if parked_for(task) is not None:
                self.parked.add(task.task_id)
            is_open = task.lane.startswith("open#")
            if is_open:
                self.due[task.task_id] = task.due_at
            self.looks.written(self._plan_of(task.plan), task, now, is_open=is_open)
        groups = self.groups()
        self._open = {group.id for group in groups if group.closed_at is None}
        self._alerted |= {group.id for group in groups if group.alerted_at is not None}
        self._unaudited = dict.fromkeys(tasks)
        self._effects_unknown = frozenset(effects_unknown)
        self._dirty = dict.fromkeys(tasks)

    def on_write(self, task: Task) -> None:
        """Check a record that is stored, or removed instead of being stored."""
        before = self.tasks.get(task.task_id)
        self.tasks[task.task_id] = task
        self.decisions += before is None or before.version != task.version
        self.ends += task.ended and (before is None or not before.ended)
        if before is not None and before.ended and not task.ended:
            self.on_reopened(task.task_id)
        if parked_for(task) is not None:
            self.parked.add(task.task_id)
        else:
            self.parked.discard(task.task_id)
        if task.lane.startswith("open#"):
            self.due[task.task_id] = task.due_at
        else:
            self.due.pop(task.task_id, None)
        self._dirty[task.task_id] = None
        self._unaudited[task.task_id] = None
        self._order_rows.of_record(task.task_id)
        if task.failure is not None:
            self._failed.setdefault(task.failure, set()).add(task.task_id)
        plan, now = self._plan_of(task.plan), self._clock()
        self.looks.written(plan, task, now, is_open=task.task_id in self.due)
        if plan is not None:
            self.broken += of_change(plan, before, task, now, slack=self._slack)
        self.broken += self.claims.of_change(plan, before, task, now)
        same = before is not None and before.created_at == task.created_at
        self._contents.of_record(before if same else None, task)
        self._search_keys.of_record(before if same else None, task)
        self._of_promises(plan, before if same else None, task, now)
        if before is not None and before.state in BEGUN_ANEW and not task.ended:
            # It has forgotten the steps that were added to it, which may be added once more.
            names = {*self._begun_anew.get(task.task_id, NEVER), *before.steps, *task.steps}
            rounds = {name: task.step(name).round for name in names}
            self._begun_anew[task.task_id] = rounds

    def _of_rejections(self, before: Task, after: Task) -> None:
        """Check that what is not owed any more was sent: the rejected messages of signals."""
        for owed in before.owed:
            sent = (after.task_id, owed.signal) in self._rejected
            if owed.kind == REJECTION and owed not in after.owed and not sent:
                what = f"the signal {owed.signal} was to be rejected, and was not"
                self.broken.append(Broken(Invariant.ACCOUNTED, after.task_id, what))

    def _of_limit(self, plan: Plan | None, before: Task | None, task: Task) -> Iterator[Broken]:
        """Check, when an order begins that a limit counts, that there is room for it."""
        if plan is None or plan.limit is None or not task.has_turn:
            return
        if (before is not None and before.has_turn) or task.task_id in self.passes_limit:
            return
        alike = (one for one in self.tasks.values() if one.limit == task.limit and one.has_turn)
        under_way = [one.task_id for one in alike if one.task_id not in self.passes_limit]
        if len(under_way) > plan.limit.at_once:
            what = f"{', '.join(under_way)} are under way, and at most {plan.limit.at_once} may be"
            yield Broken(Invariant.AT_ONCE, task.task_id, what)

    def _of_promises(self, plan: Plan | None, before: Task | None, task: Task, now: int) -> None:
        """Check what applications and people rely on, and no other part of the engine does."""
        self.broken += of_retention(before, task, now, self._apart)
        self.broken += self._of_limit(plan, before, task)
        self.broken += self._statuses.of_change(before, task)
        if before is not None:
            self._of_rejections(before, task)
        if before is not None and before.version < task.version:
            if _changes_history(before, task):
                self._histories[task.task_id] = None
            self.broken += self._commands.of_change(before, task, now)
            self.broken += self.calls.written(before, task, now)
            self._keys.written(before, task, now)
            if plan is not None:
                self.broken += self._attempts.of_change(plan, before, task, now)
                self.broken += self._added.of_change(plan, before, task)
                self.broken += self._inputs.of_change(plan, before, task)

    def on_stored(self, table: str, old: Item | None, new: Item | None) -> None:
        """Check an item that is stored, changed or removed. A hook of the tables."""
        item = new or old or {}
        if table == TABLES.control:
            key = str(item["ControlId"].get("S"))
            if key == HOLDS:
                self.calls.holds_may_have_changed = True
            elif new is not None and key.startswith("bulk"):
                self.broken += self._bulk_runs.written(key, new)
        elif table == TABLES.history:
            self._histories[str(item["TaskId"].get("S"))] = None
            self._contents.of_history(old, new)
        elif table == TABLES.orders:
            self._contents.written(old, new)
            self._order_rows.written(old, new)
            self._search_keys.written(old, new)
        elif is_row(item):
            self._rows.of_row(old, new)
        else:
            self._rows.of_record(old, new)

    def content_of(self, order_id: str) -> Json:
        """The content of a stored order; None if there is none or it was erased."""
        return self._contents.of(order_id)

    def on_read_back(self, decided: Task, stored: Task) -> None:
        """Check a record that has rows of settled steps: it is read right after its write."""
        other = [name for name, one in decided.steps.items() if stored.steps.get(name) != one]
        other += stored.steps.keys() - decided.steps.keys()
        if other:
            what = f"{' and '.join(other)}: read back, it is not what was decided"
            self.broken.append(Broken(Invariant.ROWS, decided.task_id, what))

    def on_request(self, request: AgentRequest) -> None:
        """Check a request that a queue accepted, even if it loses it later."""
        self.claims.accepted(request)
        self.broken += self.calls.accepted(request)
        task = self.tasks.get(request.task_id)
        plan = self._plan_of(task.plan) if task is not None else None
        if task is not None and plan is not None:
            self.broken += self._inputs.accepted(plan, task, request)
            self.broken += self._keys.accepted(plan, task, request)

    def on_call(self, agent: str, request: AgentRequest, at: int) -> None:
        """Check a call of an agent's function at `at` (epoch ms, by the agent's clock)."""
        self.broken += self.calls.called(agent, request, at)

    def on_command(self, command: Command) -> None:
        """Note a command that a scheduler is about to handle."""
        self._commands.arrived(command)

    def on_bulk_command(self, command: Command) -> None:
        """Note a command of a bulk run that a queue accepted, even if it loses it later."""
        self._bulk_runs.sent(command)

    def on_reply(self, reply: Reply) -> None:
        """Note a reply that a scheduler is about to handle."""
        self._attempts.replied(reply)
        self._added.replied(reply)
        if reply.error is not None:
            self._contents.replied(reply.error.message)

    def on_rejected_signal(self, task_id: str, signal: str) -> None:
        """Note that a signal that was accepted is sent as a rejected message."""
        self._rejected.add((task_id, signal))

    def on_status(self, task_id: str, name: str, seq: int) -> None:
        """Check a status that is sent."""
        self.broken += self._statuses.sent(task_id, name, seq)

    def at_rest(self, read: Callable[[str], StoredOrder | None]) -> None:
        """Check what is stored once nothing is left to happen, as `roundsman audit` does.

        `read` returns what is stored of an order; None if its record was removed. Only the orders
        that have changed since the last call are read.
        """
        for task_id in self._unaudited:
            order = read(task_id)
            if order is None:
                continue
            begun_anew = self._begun_anew.get(task_id, NEVER)
            unknown = COMPARED if task_id in self._effects_unknown else ()
            known = replace(
                order,
                effects=self._standing(task_id),
                begun_anew=begun_anew,
                at_rest=True,
                slack=self._slack,
            )
            self.broken += [one for one in of_stored(known) if one.invariant not in unknown]
        self._unaudited.clear()

    def touched(self, task_id: str) -> None:
        """Note that an effect of this task may have been performed or undone."""
        self._dirty[task_id] = None

    def on_load(self, task_id: str) -> None:
        """Note that a scheduler or a supervisor read this task."""
        self.broken += self.looks.looked(task_id, self._clock())

    def on_alert(self, alert: Alert) -> None:
        """Check an alert when it is published, because the stored tasks may change right after."""
        group = alert.attributes.get("group", "")
        if not group:
            return  # about the sender of a command, and no failure
        failed = self._failed.get(group, ())
        self.broken += of_alert(alert, failed, self._standing_in(group))
        about = [self.tasks[task_id] for task_id in failed if task_id in self.tasks]
        self.broken += self._contents.of_alert(alert, about, self._plan_of)
        if alert.attributes.get("news") == AlertKind.CLEAR:
            self._alerted.discard(group)
        else:
            self._alerted.add(group)

    def look(
        self, sent: Mapping[str, Collection[str]], read: Callable[[str], StoredOrder | None]
    ) -> None:
        """Check each task that changed since the last call against its history, effects and
        statuses.

        Called after each event. `sent` maps each task to the names of the statuses sent for it, and
        `read` is as in `at_rest`.
        """
        for task_id in self._histories:
            order = read(task_id)
            self.broken += () if order is None else of_history(order)
        self._histories.clear()
        self.broken += chain(
            self._rows.disagree(),
            self._order_rows.disagree(self.tasks),
            self._search_keys.disagree(self.tasks, self._contents.of, self._plan_of),
            self._bulk_runs.skipped(),
            self._contents.told(self.tasks, self._plan_of),
        )
        groups = self.groups()
        is_open = {group.id for group in groups if group.closed_at is None}
        for closed in self._open - is_open:
            self._dirty.update(dict.fromkeys(self._standing_in(closed)))
            self._alerted.discard(closed)
        self._open = is_open
        for group in groups:
            if group.id in is_open - self._alerted and group.alerted_at is not None:
                what = f"{group.id} counts as alerted, and no alert was sent"
                self.broken.append(Broken(Invariant.ALERTED, group.opened_by, what))
        for task_id in self._dirty:
            task = self.tasks.get(task_id)
            plan = self._plan_of(task.plan) if task is not None else None
            if task is None or plan is None:
                continue
            standing = self._standing(task_id)
            found = chain(
                of_effects(plan, task, standing, self._begun_anew.get(task_id, NEVER)),
                of_knowledge(task, standing),
            )
            unknown = COMPARED if task_id in self._effects_unknown else ()
            self.broken += [one for one in found if one.invariant not in unknown]
            self.broken += chain(
                of_ended(task, sent.get(task_id, ()), is_open),
                self._statuses.of_ended(task),
            )
        self._dirty.clear()

    def _standing(self, task_id: str) -> list[StandingEffect]:
        """The effects of this task that stand, each with how often it came about."""
        count = self._ledger.count
        return [
            StandingEffect(one.step, one.key, count[one.key])
            for one in self._ledger.standing(task_id)
        ]

    def _standing_in(self, group: str) -> list[str]:
        """The Archived tasks that are in this failure group and owe nothing."""
        return [
            task.task_id
            for task in (self.tasks.get(task_id) for task_id in self._failed.get(group, ()))
            if task is not None and task.failure == group and is_closed(task)
            if task.state is TaskState.ARCHIVED
        ]

    def open_tasks(self) -> list[Task]:
        """The tasks that have not ended."""
        return [task for task in self.tasks.values() if not task.ended]
