"""What happened to a stack since an instant, and what is open now. Pure.

Nothing is stored for it. It is made of what the stack keeps for other ends, so it also says what is
not kept: `NOT_KEPT`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from roundsman.model.bulk_run import BulkRecord, OrderResult, RunState
from roundsman.model.events import COMMAND_KINDS, HistoryRow
from roundsman.model.failure import NO_STEP, Failure, Group, failure_of, normalised
from roundsman.model.instants import second
from roundsman.model.task import Task, step_of
from roundsman_console.aws.group_notes import GroupNote
from roundsman_console.base.constraints import RUN_ID, GroupId, RunId
from roundsman_console.base.constraints import Count as Number
from roundsman_console.base.result import COUNT, EPOCH_MS, EpochMs, Shown, Unit
from roundsman_console.facts.course.marks import EventMark, group_of
from roundsman_console.facts.finding.report import Finding
from roundsman_console.facts.finding.standing import AlarmChange
from roundsman_console.facts.finding.table import DOCTOR, AlertSeverity
from roundsman_console.facts.group.over import FailuresInHistories
from roundsman_console.facts.group.reading import Standing, standing_of
from roundsman_console.facts.order.step_times import FAILURES, retry_at

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

UNKNOWN = "not known"
COMPARED = 100
"""The number of characters of a cause that are looked for in a history, which may cut the rest."""
NOT_KEPT = (
    "The stack keeps no list of what happened, so earlier events may be missing.",
    "An agent or a workflow keeps only its last hold, and after a release only that it was "
    "released.",
    "A failure group keeps only its last alert, and none after its all-clear was sent. An alarm "
    "keeps only its last change.",
    "A failure group that is over is known only from its orders and from bulk runs.",
)
"""What a shift cannot say, whatever is read."""


MOST_NAMED = 5
"""The number of groups that a sentence names."""
NO_ALERT = (
    "No alert is known. The alerts of a failure group are not kept after its all-clear was sent."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedGroup:
    """Orders that failed for one cause."""

    first_at: Annotated[int | None, Shown("First", EPOCH_MS, missing=UNKNOWN)]
    """When the first of them failed, as far as that is known."""
    last_at: Annotated[int | None, Shown("Last", EPOCH_MS, missing=UNKNOWN)]
    group: GroupId
    standing: Annotated[Standing, Shown("Now")]
    """Whether it is `over`, or `calm`: without an order now."""
    orders: Annotated[Number | None, Shown("Orders, at least", COUNT, missing=UNKNOWN)]
    """The largest number of orders that is known to have been in the group at one time."""
    workflow: str
    step: str
    """The failed step; `none` if the orders failed as a whole."""
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChange:
    """An alert that was sent, and whether it said that a problem began or is over."""

    at: Annotated[int, Shown("At", EPOCH_MS)]
    change: Literal["raised", "cleared"]
    about: str
    """The failure group, or the alarm."""
    sentence: Annotated[str, Shown("What")]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenCommand:
    """A command of a person on one order, also one that was refused."""

    at: Annotated[int, Shown("At", EPOCH_MS)]
    order: str
    command: str
    """The name of the command; `refused` if the scheduler refused it."""
    by: str
    """Who sent it, as they say themselves."""
    sender: Annotated[str | None, Shown("AWS principal", missing=UNKNOWN)]
    """The principal, as AWS authenticated it."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResults:
    """What has become of the orders of a bulk run."""

    done: Number
    """The number of orders that the command has brought to an end."""
    failed_again: Number
    refused: Number
    not_reached: Number

    def words(self) -> str:
        """Return the numbers in words, without those that are 0: `40 done, 5 failed again`."""
        found = {
            "done": self.done,
            "failed again": self.failed_again,
            "refused": self.refused,
            "not reached": self.not_reached,
        }
        return ", ".join(f"{many:,} {what}" for what, many in found.items() if many) or "none yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftRun:
    """A bulk run that was started in the time, or is still open."""

    started_at: Annotated[int, Shown("Started", EPOCH_MS)]
    run: RunId
    command: str
    group: GroupId | None
    """The failure group of its orders; null if they were selected in another way."""
    by: str
    reason: str
    state: RunState
    selected: Annotated[Number, Shown("Orders", COUNT)]
    progress: Annotated[
        RunResults, Shown(unit=Unit(RunResults, lambda found: found, lambda found: found.words()))
    ]
    requests: Annotated[Sequence[str], Shown("Asked for")]
    """One sentence for each person who paused, resumed or stopped it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenProblem:
    """What is wrong now, as `roundsman alerts` lists it."""

    since: Annotated[int | None, Shown(unit=EPOCH_MS, missing=UNKNOWN)]
    severity: AlertSeverity
    sentence: Annotated[str, Shown("What")]
    next: str
    """The command to run next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """What happened to a stack since an instant, and what is open now."""

    stack: str
    since: EpochMs
    until: EpochMs
    """When it was read."""
    open_now: Sequence[OpenProblem]
    groups: Sequence[FailedGroup]
    """The failure groups with a failure in the time, or that ended in it."""
    alerts: Sequence[AlertChange]
    holds: Sequence[EventMark]
    """The holds and open circuits that began or ended."""
    commands: Sequence[GivenCommand]
    """The commands on single orders; those of bulk runs are not among them."""
    bulk_runs: Sequence[ShiftRun]
    notes: Sequence[GroupNote]
    """The notes on failure groups."""
    deployments: Sequence[EventMark]
    left_out: Sequence[str]
    """What is not known, since it is not kept or was not looked for."""
    unread: Sequence[str]
    """What could not be read, and why."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the shift as people read it: the same on a page and at a terminal."""

    title: str
    rows: "Sequence[DataclassInstance]"
    nothing: str
    """What is said if there is no row and all of it was read."""


def sections(shift: Shift) -> list[Section]:
    """Return the parts in the order in which they are shown: what is open first."""
    return [
        Section("Needs attention now", shift.open_now, "Nothing needs attention."),
        Section("Failures", shift.groups, "No order is known to have failed."),
        Section("Alerts", shift.alerts, NO_ALERT),
        Section("Holds and releases", shift.holds, "Nothing was held or released."),
        Section("Commands on single orders", shift.commands, "No command was found."),
        Section("Bulk runs", shift.bulk_runs, "No bulk run was started."),
        Section("Notes", shift.notes, "No note was written on a failure group."),
        Section("Deployments", shift.deployments, "No version of a function was published."),
    ]


# ---- failures -------------------------------------------------------------------------------


def failed_groups(
    rows: Iterable[Group],
    failed: Iterable[Task],
    runs: Iterable[BulkRecord],
    told: Mapping[str, FailuresInHistories],
    since: int,
    *,
    counts: Mapping[str, int] | None = None,
    histories: Mapping[str, Sequence[HistoryRow]] | None = None,
) -> list[FailedGroup]:
    """Return the groups that failed at or after `since` (epoch ms), those that are open first.

    `rows` are the stored groups, and `counts` how many orders are in each now. `failed` are the
    orders that ended in a failure since then, as they are shown. `told` is what the orders of bulk
    runs have in their histories, by group, and `histories` are those of orders with a command.
    A row forgets the orders that have left the group, so all of these are looked at.
    """
    stored, members = {row.id: row for row in rows}, _by_group(failed)
    over: dict[str, list[BulkRecord]] = {}
    for run in runs:
        name = group_of(run.run)
        if name is not None:
            over.setdefault(name, []).append(run)
    found = []
    for name in dict.fromkeys((*stored, *members, *over)):
        row = stored.get(name)
        if row is None or max(row.since, row.last_at, row.closed_at or 0) >= since:
            known = told.get(name, FailuresInHistories())
            group = _Known(row, members.get(name, ()), over.get(name, ()), known, histories or {})
            found.append(group.failed((counts or {}).get(name)))
    return sorted(found, key=lambda one: (one.standing == "over", -(one.last_at or 0), one.group))


def _by_group(failed: Iterable[Task]) -> dict[str, list[Task]]:
    found: dict[str, list[Task]] = {}
    for task in failed:
        if task.failure is not None:
            found.setdefault(task.failure, []).append(task)
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    """All that is known of a group."""

    row: Group | None
    members: Sequence[Task]
    runs: Sequence[BulkRecord]
    told: FailuresInHistories
    histories: Mapping[str, Sequence[HistoryRow]]

    def failed(self, count: int | None) -> FailedGroup:
        row, read = self.row, self.told.read
        workflow, step, cause = self._what()
        alike = self._alike(step, cause)
        times = [
            *(at for task in self.members if (at := task.failed_at) is not None),
            *(one.at for one in read),
            *(at for _, at in alike),
            *((at for at in (row.since, row.last_at) if at) if row else ()),
        ]
        orders = {
            *(task.task_id for task in self.members),
            *self.told.planned,
            *(order for order, _ in alike),
        }
        counted = (row.count, row.alerted_count) if row else ()
        selected = (one.run.selected for one in self.runs)
        return FailedGroup(
            first_at=min(times, default=None),
            last_at=max(times, default=None),
            group=self._name(),
            standing=self._standing(count),
            orders=max([len(orders), *counted, *selected]) or None,
            workflow=workflow,
            step=step,
            cause=cause,
        )

    def _name(self) -> str:
        if self.row is not None:
            return self.row.id
        named = (task.failure for task in self.members)
        return next((one for one in named if one), None) or group_of(self.runs[0].run) or ""

    def _standing(self, count: int | None) -> Standing:
        if self.row is None:
            failure = self._failure()
            return standing_of(None, failure.how if failure else "", len(self.members))
        return standing_of(self.row, self.row.how, self.row.count if count is None else count)

    def _failure(self) -> Failure | None:
        failures = (failure_of(task) for task in self.members)
        return next((one for one in failures if one is not None), None)

    def _what(self) -> tuple[str, str, str]:
        """Return the workflow, the step and the cause."""
        row, read = self.row, self.told.read
        if row is not None:
            return row.workflow, row.step, _cause(row.error_type, row.message)
        if self.members:
            failure = self._failure()
            step = failure.step if failure else NO_STEP
            cause = _cause(failure.error_type, failure.message) if failure else UNKNOWN
            return self.members[0].workflow, step, cause
        if read:
            return read[0].workflow, read[0].step or NO_STEP, read[0].why
        return UNKNOWN, UNKNOWN, UNKNOWN

    def _alike(self, step: str, cause: str) -> list[tuple[str, int]]:
        """Return the orders with a command that had failed so, each with the time of a failure."""
        words = normalised(cause)[:COMPARED]
        return [
            (order, row.at)
            for order, rows in self.histories.items()
            for row in rows
            if cause != UNKNOWN
            and row.kind in FAILURES
            and retry_at(row.reason) is None
            and step == (step_of(row.step) if row.step else NO_STEP)
            and words in normalised(row.reason)
        ]


def _cause(error_type: str, message: str) -> str:
    return ": ".join(words for words in (error_type, message) if words) or UNKNOWN


# ---- alerts ---------------------------------------------------------------------------------


def alert_changes(
    rows: Iterable[Group], alarms: Iterable[AlarmChange], since: int
) -> list[AlertChange]:
    """Return the alerts at or after `since` (epoch ms) that are still known, the first one first.

    Of a group the last alert is known, and of an alarm the last change.
    """
    found = [
        AlertChange(
            at=one.at,
            change="raised" if one.raised else "cleared",
            about=one.name,
            sentence=one.description or UNKNOWN,
        )
        for one in alarms
    ]
    for row in rows:
        cause = _cause(row.error_type, row.message)
        if row.alerted_at is not None:
            # The stored number of orders in the alert is lowered when orders leave the group.
            words = f"orders of {row.workflow}: {cause}"
            found.append(
                AlertChange(at=row.alerted_at, change="raised", about=row.id, sentence=words)
            )
        if row.closed_at is not None:
            found.append(
                AlertChange(at=row.closed_at, change="cleared", about=row.id, sentence=cause)
            )
    return sorted((one for one in found if one.at >= since), key=lambda one: one.at)


def alerts_not_kept(groups: Iterable[FailedGroup], rows: Iterable[Group]) -> list[str]:
    """Return in a sentence of which groups the alerts are not kept."""
    stored = {row.id for row in rows}
    gone = [one.group for one in groups if one.standing == "over" and one.group not in stored]
    if not gone:
        return []
    more = f" and {len(gone) - MOST_NAMED} more" if len(gone) > MOST_NAMED else ""
    are = "the group is" if len(gone) == 1 else "these groups are"
    return [f"The alerts of {', '.join(gone[:MOST_NAMED])}{more} are not kept: {are} over."]


# ---- commands, bulk runs, what is open ----------------------------------------------------


def is_of_run(command_id: str) -> bool:
    """Return whether a command was sent by a bulk run, whose id is that of its commands."""
    return RUN_ID.fullmatch(command_id) is not None


def given_commands(histories: Mapping[str, Sequence[HistoryRow]], since: int) -> list[GivenCommand]:
    """Return the commands at or after `since` (epoch ms), without those of bulk runs.

    `histories` has the rows of each order, as they are shown.
    """
    found = [
        GivenCommand(
            at=row.at,
            order=order,
            command=row.kind,
            by=row.by,
            sender=row.sender,
            reason=row.reason.removeprefix(f"{row.kind} by {row.by}: "),
        )
        for order, rows in histories.items()
        for row in rows
        if row.at >= since
        and row.by is not None
        and row.command_id is not None
        and not is_of_run(row.command_id)
    ]
    return sorted(found, key=lambda one: one.at)


def shift_run(record: BulkRecord) -> ShiftRun:
    """Return a bulk run with what it has done."""
    run, progress = record.run, record.progress
    return ShiftRun(
        started_at=run.started_at,
        run=run.id,
        command=COMMAND_KINDS[type(run.event)],
        group=group_of(run),
        by=run.by,
        reason=run.reason,
        state=record.state,
        selected=run.selected,
        progress=RunResults(
            done=progress.results - progress.count(OrderResult.FAILED),
            failed_again=progress.count(OrderResult.FAILED),
            refused=progress.refusals,
            not_reached=record.left,
        ),
        requests=record.requests,
    )


def open_problems(found: Iterable[Finding]) -> list[OpenProblem]:
    """Return what is wrong now, in the given order."""
    return [
        OpenProblem(
            since=one.since,
            severity=one.severity,
            sentence=one.sentence,
            next=one.command or DOCTOR,
        )
        for one in found
    ]


def time_words(shift: Shift) -> str:
    """Return of which time the shift is, in words."""
    return f"{shift.stack} from {second(shift.since)} to {second(shift.until)}"
