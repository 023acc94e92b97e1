"""Reading a shift from a stack: bounded, whatever the number of orders.

There is no index of commands by time. So the commands are looked for in the orders that a person
has most likely touched: those that failed, those that ended last, and the open ones that are due
first. What was not looked at is said.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from roundsman.engine.due import Lane
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.bulk_run import BulkRecord
from roundsman.model.events import HistoryRow
from roundsman.model.failure import Group
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.aws.group_notes import GroupNote
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.base.threads import map_in_threads
from roundsman_console.base.typed_inputs import read_past
from roundsman_console.facts.course.marks import (
    EventMark,
    deployment_marks,
    group_of,
    hold_marks,
    read_versions_of,
    within,
)
from roundsman_console.facts.finding.attention import of_supervisor
from roundsman_console.facts.finding.report import Finding, Looking, worst_first
from roundsman_console.facts.finding.standing import (
    AlarmChange,
    alarm_changes,
    counted_groups,
    read_standing,
)
from roundsman_console.facts.group.over import FailuresInHistories, read_failures
from roundsman_console.facts.order.lookup import mask_of_order, shown_tasks
from roundsman_console.facts.orders.open_orders import entries_of
from roundsman_console.facts.shift.report import (
    NOT_KEPT,
    Shift,
    alert_changes,
    alerts_not_kept,
    failed_groups,
    given_commands,
    is_of_run,
    open_problems,
    shift_run,
)

USUAL = "12h"
LONGEST = 7 * 86_400
"""How long ago a shift may begin, in seconds."""
MOST_FAILED = 500
"""The number of orders that are read of those that need a person, those that ended last."""
MOST_ENDED = 1_000
"""The same of the orders that ended in another way."""
MOST_OPEN = 300
"""The number of open orders that are read, those that are due first."""
MOST_HISTORIES = 60
"""The number of histories that are read, each by a request, of orders with a command."""
MOST_RUNS = 20
"""The number of bulk runs that are read, the newest ones; each takes two requests."""
MOST_CAUSES = 5
"""The number of groups with a bulk run of which orders are read to say what they were."""
MOST_OF_A_RUN = 4
"""The number of orders that are read for it of its first and of its last bulk run, from both ends
of the plan."""
MOST_NOTED = 20
"""The number of groups whose notes are read, those with the newest ones; each by a request."""
MOST_ROWS = 200
"""The number of groups, of commands and of notes that are listed."""
READERS = 8  # the number of histories, or of groups, that are read at the same time


def read_begin(text: str, at: int) -> int:
    """Return when a shift begins, by what a person typed. Raises InvalidArgument.

    It is an instant, or how long before `at` (epoch ms), which is now, it is: `8h`.
    """
    return read_past(text, at, most=LONGEST)


@dataclass(frozen=True, slots=True)
class LaneRead:
    """The orders of one lane that were read."""

    tasks: Sequence[Task] = ()
    whole: bool = True
    """Whether there are no others."""


@dataclass(frozen=True, slots=True)
class ShiftOrders:
    """The orders that were read for a shift."""

    failed: LaneRead
    ended: LaneRead
    opened: LaneRead

    @property
    def tasks(self) -> Sequence[Task]:
        """All of them: those first that a person has most likely touched."""
        return (*self.failed.tasks, *self.opened.tasks, *self.ended.tasks)

    @property
    def failures(self) -> Sequence[Task]:
        """Those that ended in a failure."""
        undone = (task for task in self.ended.tasks if task.state is TaskState.UNDONE)
        return (*self.failed.tasks, *undone)


def read_shift(stack: DeployedStack, since: int) -> Shift:
    """Read what happened since `since` (epoch ms). A part that cannot be read is in `unread`."""
    looking, until = Looking(), now()
    rows, marks, runs, deployed = (
        list[Group](),
        list[EventMark](),
        list[BulkRecord](),
        list[EventMark](),
    )
    alarms, open_now, histories = list[AlarmChange](), list[Finding](), _Histories()
    shown: Sequence[Task] = ()
    notes = list[GroupNote]()
    left_out = [*NOT_KEPT]
    counted: Sequence[Group] = ()
    with looking.at("Failure groups"):
        rows = stack.groups.groups()
        counted = counted_groups(stack, until)
    with looking.at("What is open now"):
        standing = read_standing(stack, counted)
        open_now = [*standing.standing, *_supervisor(stack, until)]
        for one in standing.unseen:
            looking.missed(one.what, one.why, lacking=one.lacking, cause=one.cause)
    with looking.at("Alarms"):
        alarms = [*alarm_changes(stack, since)]
    with looking.at("Holds and releases"):
        marks = within(hold_marks(stack.holds.stored(), until), since, until + 1)
    with looking.at("Deployments"):
        deployed = within(deployment_marks(read_versions_of(stack)), since, until + 1)
    with looking.at("Bulk runs"):
        runs = _runs(stack, since, looking, left_out)
    with looking.at("Notes"):
        notes = _notes(stack, since, left_out)
    orders = read_orders(stack, since, until, looking)
    with looking.at("The causes of failures"):
        shown = shown_tasks(stack, orders.failures)
    told = _told(stack, runs, looking, left_out)
    with looking.at("Commands on single orders"):
        histories = _read_histories(stack, orders.tasks)
    counts = {one.id: one.count for one in counted}
    groups = failed_groups(rows, shown, runs, told, since, counts=counts, histories=histories.rows)
    commands = given_commands(histories.rows, since)
    left_out += _not_looked_at(orders, histories)
    left_out += alerts_not_kept(groups, rows)
    for noun, found in (("failure group", groups), ("command", commands), ("note", notes)):
        left_out += _too_many(noun, found)
    return Shift(
        stack=stack.name,
        since=since,
        until=until,
        open_now=open_problems(worst_first(open_now)),
        groups=groups[:MOST_ROWS],
        alerts=alert_changes(rows, alarms, since),
        holds=marks,
        commands=commands[-MOST_ROWS:],
        bulk_runs=[shift_run(run) for run in runs],
        notes=notes[-MOST_ROWS:],
        deployments=deployed,
        left_out=left_out,
        unread=[f"{one.what}: {one.why}" for one in looking.unseen if not one.lacking],
    )


def read_orders(stack: DeployedStack, since: int, at: int, looking: Looking) -> ShiftOrders:
    """Read the orders that a person may have touched since `since`, at `at` (both epoch ms).

    It takes a request for each shard and lane, at least, and one for each 100 orders: with 16
    shards at most some 70, however many orders there are.
    """
    failed = ended = opened = LaneRead()
    with looking.at("Orders that need a person"):
        failed = _read_lane(stack, Lane.ARCHIVED, since, MOST_FAILED, at)
    with looking.at("Orders that ended"):
        ended = _read_lane(stack, Lane.DONE, since, MOST_ENDED, at)
    with looking.at("Open orders"):
        opened = _read_lane(stack, Lane.OPEN, 0, MOST_OPEN, at)
    return ShiftOrders(failed, ended, opened)


def _supervisor(stack: DeployedStack, at: int) -> list[Finding]:
    visits = (lease.visited_at for lease in stack.leases.read().by_shard.values())
    visited, by_aws = max(visits, default=0) or None, stack.ping.aws_time(at)
    return of_supervisor(visited, by_aws, stack.supervisor_interval)


def _runs(
    stack: DeployedStack, since: int, looking: Looking, left_out: list[str]
) -> list[BulkRecord]:
    """Return the runs that were started since then or are open; add what was left out of them."""
    store = stack.bulk_runs
    listed = [one for one in store.listed() if one.started_at >= since or one.is_open]
    found = list[BulkRecord]()
    for one in listed[-MOST_RUNS:]:
        with looking.at(f"Bulk run {one.run_id}"):
            record = store.load(one.run_id, one.starter)
            found += [] if record is None else [record]
    if len(listed) > MOST_RUNS:
        left_out.append(f"Of {len(listed)} bulk runs, the {MOST_RUNS} newest were read.")
    return found


def _notes(stack: DeployedStack, since: int, left_out: list[str]) -> list[GroupNote]:
    """Return the notes since then in one line each, the earliest first.

    Add of which groups they were not read.
    """
    noted = stack.group_notes.noted_since(since)
    found = map_in_threads(READERS, stack.group_notes.of, noted[:MOST_NOTED])
    if len(noted) > MOST_NOTED:
        left_out.append(
            f"Of {len(noted)} failure groups with a note, the {MOST_NOTED} with the newest were "
            "read."
        )
    notes = (note for row in found for note in row if note.at >= since)
    lines = (replace(note, text=" ".join(note.text.split())) for note in notes)
    return sorted(lines, key=lambda one: one.at)


def _read_lane(stack: DeployedStack, lane: Lane, since: int, most: int, at: int) -> LaneRead:
    entries = entries_of(stack, lane, since=since, newest_first=lane is not Lane.OPEN)
    found = list(islice(entries, most + 1))
    tasks = stack.records.load_many([one.task_id for one in found[:most]], at).tasks
    return LaneRead([*tasks.values()], whole=len(found) <= most)


def _told(
    stack: DeployedStack, runs: Sequence[BulkRecord], looking: Looking, left_out: list[str]
) -> Mapping[str, FailuresInHistories]:
    """Read what the orders of bulk runs tell of their groups, of the MOST_CAUSES latest.

    Add what was left out of them.
    """
    over: dict[str, list[BulkRecord]] = {}
    for run in reversed(runs):
        group = group_of(run.run)
        if group is not None:
            over.setdefault(group, []).append(run)
    found: dict[str, FailuresInHistories] = {}
    for group, of_group in islice(over.items(), MOST_CAUSES):
        last_and_first = of_group[:1] + of_group[1:][-1:]
        with looking.at(f"Failure group {group}"):
            found[group] = read_failures(stack, last_and_first, MOST_OF_A_RUN)
    if len(over) > MOST_CAUSES:
        left_out.append(
            f"Of {len(over)} failure groups with a bulk run, {MOST_CAUSES} were read, those with "
            "the newest: the causes and times of others may not be known."
        )
    if any(len(of_group) > 2 for of_group in over.values()):
        left_out.append(
            "Of more than two bulk runs over one failure group, the orders of the first and of the "
            "last run were read."
        )
    return found


@dataclass(frozen=True, slots=True)
class _Histories:
    rows: Mapping[str, Sequence[HistoryRow]] = field(default_factory=dict)
    left: int = 0
    """The number of orders with a command whose history was not read."""


def _read_histories(stack: DeployedStack, tasks: Sequence[Task]) -> _Histories:
    """Read the histories of the orders that took a command of a person, as they are shown."""
    touched = [
        task for task in tasks if any(not is_of_run(command) for command in task.command_ids)
    ]
    some = touched[:MOST_HISTORIES]
    histories = map_in_threads(READERS, lambda task: _history(stack, task), some)
    rows = {task.task_id: found for task, found in zip(some, histories, strict=True)}
    return _Histories(rows, len(touched) - len(some))


def _history(stack: DeployedStack, task: Task) -> Sequence[HistoryRow]:
    """Return the history of an order as it is shown; nothing of one that cannot be read."""
    with suppress(SchemaTooNew, UnreadableRecord):
        return mask_of_order(stack, task).history(stack.tasks.history(task.task_id))
    return ()


def _not_looked_at(orders: ShiftOrders, histories: _Histories) -> list[str]:
    """Return in sentences of which orders it is not known what was done with them."""
    found = []
    if not orders.failed.whole:
        found.append(
            f"Of the orders that need a person, the {MOST_FAILED} that failed last were read."
        )
    if not orders.ended.whole:
        found.append(
            f"Of the orders that ended, the {MOST_ENDED} that ended last were read: commands on "
            "others are in their histories."
        )
    if not orders.opened.whole:
        found.append(f"Of the open orders, the {MOST_OPEN} that are due first were read.")
    if histories.left:
        found.append(
            f"The histories of {counted(histories.left, 'further order')} with a command were not "
            "read."
        )
    return found


def _too_many(noun: str, rows: Sequence[object]) -> list[str]:
    more = len(rows) - MOST_ROWS
    return [f"{counted(more, f'further {noun}')} not listed."] if more > 0 else []
