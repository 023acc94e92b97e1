"""Reports failures to their failure groups; the process that opens a group alerts at once.

The alert that a decision owes is done once the failure group is open. From then on the
supervisor's passes handle the group: if this process dies before it has alerted, they find a group
that was not alerted. So 10,000 orders that fail for the same cause cost one alert, and one read of
the groups every 5 s (KNOWN_FOR) by each instance that handles them.
"""

from dataclasses import dataclass, field, replace

from roundsman.alerts.group import (
    AlertKind,
    alerted,
    census_of,
    left_to_others,
    opened,
    rejoined,
    room_for,
)
from roundsman.alerts.group_alert import group_alert
from roundsman.alerts.samples import Sample
from roundsman.definition.plan import Plan
from roundsman.errors import CallRefused, TryAgain, UnreadableRecord
from roundsman.model.credit import credited_now
from roundsman.model.events import Agents
from roundsman.model.failure import ARCHIVED, NO_STEP, UNREADABLE, Failure, Group, failure_of
from roundsman.model.instants import SECOND
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman.ports import AgentBoard, Clock, GroupStore, Member, Outbox
from roundsman.wire.alert import Alert

KNOWN_FOR = 5 * SECOND
"""How long in ms an instance assumes that a group is open, without a read.

It must be much less than CLEAR_FOR, the time between a group becoming calm and being closed."""

MAX_WRITE_ATTEMPTS = 5
"""Attempts to open or rejoin a group when other writes come first."""

UNKNOWN_WORKFLOW = "unknown"
TOO_MANY_KINDS = "TooManyKinds"


@dataclass(frozen=True, slots=True)
class Reported:
    """The failure group that a failure was added to."""

    group: str
    unpublished: str | None = None
    """Why the group's first alert could not be published; None if there is no such problem."""


@dataclass(kw_only=True, eq=False)
class Reporter:
    """Reports failures for one instance of a function. `board`: which agents are on hold."""

    groups: GroupStore
    outbox: Outbox
    board: AgentBoard
    clock: Clock
    _known: dict[str, int] = field(default_factory=dict, init=False)
    _stored: frozenset[str] = field(default=frozenset(), init=False)
    _full: dict[int, int] = field(default_factory=dict, init=False)

    def failed(self, task: Task, plan: Plan | None) -> Reported | None:
        """Make sure that the task's failure group is open, and alert if it is new.

        The task is Archived, or open with an unexpected error. Returns None if it no longer is. If
        too many groups are open, the group is the overflow group of the workflow, and the caller
        must store it in the task's record. Raises TryAgain and CallRefused if the group could not
        be opened. A first alert that could not be published is left to the supervisor.
        """
        failure = failure_of(task)
        if failure is None:
            return None
        return self._report(failure, Sample(task, plan))

    def ended(self, before: Task, task: Task, plan: Plan | None) -> str | None:
        """If this decision has undone the task, make sure that its failure group is open.

        Best effort: returns the reason if that was not possible, else None. An undone order is an
        ordinary outcome, so no alert is owed for it.
        """
        if task.state is not TaskState.UNDONE or before.state is TaskState.UNDONE:
            return None
        failure = failure_of(task)
        if failure is None:
            return None  # an operator or the application asked for the undo
        sample = Sample(task, plan)
        try:
            if self._open(self._new(failure, sample), sample) is None:
                return "too many failure groups are open"
        except (TryAgain, CallRefused) as problem:
            return str(problem)
        return None

    def unreadable(self, task_id: str, problem: Exception) -> Reported:
        """Report a task record that cannot be handled. Raises TryAgain and CallRefused."""
        failure = unreadable_failure(problem)
        now = self.clock()
        group = opened(failure, agent="", task_id=task_id, since=now, now=now)
        return self._reported(group, None)

    def _report(self, failure: Failure, sample: Sample) -> Reported:
        return self._reported(self._new(failure, sample), sample)

    def _reported(self, group: Group, sample: Sample | None) -> Reported:
        stands = self._open(group, sample)
        if stands is None:
            stands = self._open(_overflow(group), sample)
        if stands is None:
            raise TryAgain(f"{group.id}: no failure group could be opened")
        return stands

    def _new(self, failure: Failure, sample: Sample) -> Group:
        now = self.clock()
        task = sample.task
        return opened(
            failure,
            agent=agent_of_step(failure, sample),
            task_id=task.task_id,
            since=now if task.failed_at is None else task.failed_at,
            now=now,
        )

    def _open(self, group: Group, sample: Sample | None) -> Reported | None:
        """Make sure that the group is open, and alert if it is new; None if there is no room."""
        for _ in range(MAX_WRITE_ATTEMPTS):
            now = self.clock()
            if self._known.get(group.id, 0) > now:
                return Reported(group.id)
            if self._was_full(group, now):
                return None
            found = self._find(group.id, now)
            if found is None:
                found = self.groups.open(group)
                if found is None:
                    self._full[room_for(group) or 0] = now + KNOWN_FOR
                    return None
                if found == group:
                    return self._opened(group, sample)
            if found.closed_at is not None:
                anew = replace(group, version=found.version + 1)
                if self.groups.change(anew, seen=found.version):
                    return self._opened(anew, sample)
                continue
            back = rejoined(found, now)
            if back is None or self.groups.change(back, seen=found.version):
                self._remember(group.id, now)
                return Reported(group.id)
        raise TryAgain(
            f"{group.id}: other writes of the failure group came first {MAX_WRITE_ATTEMPTS} times"
        )

    def _find(self, group: str, now: int) -> Group | None:
        """Read all groups and return the one with this id; remember the others that stay open."""
        found: Group | None = None
        groups = self.groups.groups()
        self._stored = frozenset(each.id for each in groups)
        for each in groups:
            if each.id == group:
                found = each
            elif each.closed_at is None and each.clear_since is None:
                self._remember(each.id, now)
        return found

    def _was_full(self, group: Group, now: int) -> bool:
        """Whether there was no room for a new group in the last KNOWN_FOR.

        A failed conditional write costs as much as a successful one of the whole row, and error
        messages that never repeat would cause one for each order.
        """
        return group.id not in self._stored and self._full.get(room_for(group) or 0, 0) > now

    def _remember(self, group: str, now: int) -> None:
        self._known = {known: until for known, until in self._known.items() if until > now}
        self._known[group] = now + KNOWN_FOR

    def _opened(self, group: Group, sample: Sample | None) -> Reported:
        """Send the first alert of a group that this instance has opened."""
        now = self.clock()
        self._remember(group.id, now)
        if group.undone:
            return Reported(group.id)
        complete_by = credited_now(sample.task, now).complete_by if sample else 0
        member = Member(group.opened_by, group.since, complete_by)
        samples = [sample] if sample else []
        agents = known_agents(self.board)
        alert = group_alert(AlertKind.FIRST, group, census_of([member]), samples, agents, now)
        try:
            self._publish(group, alert, now)
        except (TryAgain, CallRefused) as problem:
            return Reported(group.id, unpublished=str(problem))
        return Reported(group.id)

    def _publish(self, group: Group, alert: Alert, now: int) -> None:
        try:
            self.outbox.publish(alert)
        except (TryAgain, CallRefused):
            self.groups.change(left_to_others(group), seen=group.version)
            raise
        self.groups.change(alerted(group, 1, now), seen=group.version)


def known_agents(board: AgentBoard) -> Agents | None:
    """The state of the agents; None if it cannot be read, since an alert must not wait for it."""
    try:
        return board.agents()
    except (TryAgain, CallRefused, UnreadableRecord):
        return None


def unreadable_failure(problem: Exception) -> Failure:
    """The failure of a record that cannot be handled, identified by the exception's type alone."""
    return Failure(UNKNOWN_WORKFLOW, NO_STEP, UNREADABLE, type(problem).__name__, "")


def _overflow(group: Group) -> Group:
    """The workflow's overflow group, for failures that get no group of their own."""
    failure = Failure(group.workflow, NO_STEP, ARCHIVED, TOO_MANY_KINDS, "")
    return opened(
        failure,
        agent="",
        task_id=group.opened_by,
        since=group.since,
        now=group.opened_at,
        overflow=True,
    )


def agent_of_step(failure: Failure, sample: Sample) -> str:
    """The agent of the step that failed; empty if no step failed or the plan is missing."""
    plan = sample.plan
    step = plan.steps.get(failure.step) if plan is not None else None
    return step.agent if step is not None else ""
