"""Where a failure is reported: to its group. Whoever opens the group alerts, at once.

What a decision owes the operators is that its failure's group is open. From then on the group is
in the hands of the supervisor's passes: should this process die before it has alerted, they find a
group that nobody was told of. So ten thousand orders that fail alike cost one alert, and one read
of the groups every few seconds by each instance that handles them.
"""

from dataclasses import dataclass, replace

from roundsman.alerts.group import (
    News,
    alerted,
    census_of,
    left_to_others,
    opened,
    rejoined,
    room_for,
)
from roundsman.alerts.group_alert import group_alert
from roundsman.alerts.samples import Sample
from roundsman.errors import CallRefused, TryAgain, UnreadableRecord
from roundsman.model.events import Agents
from roundsman.model.failure import ARCHIVED, NO_STEP, UNREADABLE, Failure, Group, failure_of
from roundsman.model.instants import SECOND
from roundsman.model.plan import Plan
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman.ports import AgentBoard, Clock, GroupStore, Member, Outbox
from roundsman.wire.alert import Alert

KNOWN_FOR = 5 * SECOND
"""How long an instance takes a group for open without asking: far less than CLEAR_FOR, the time
between the first sign that a group may be closed and its being closed."""

RACES = 5

UNKNOWN_WORKFLOW = "unknown"
TOO_MANY_KINDS = "TooManyKinds"


@dataclass(frozen=True, slots=True)
class Reported:
    """The group that a failure stands in, and why its first alert is still to be told, if it is."""

    group: str
    untold: str | None = None


class Reporter:
    """Reports failures for one instance of a function. `board` says whether agents are held."""

    def __init__(
        self, *, groups: GroupStore, outbox: Outbox, board: AgentBoard, clock: Clock
    ) -> None:
        self._groups = groups
        self._outbox = outbox
        self._board = board
        self._clock = clock
        self._known: dict[str, int] = {}
        self._stored: frozenset[str] = frozenset()
        self._full: dict[int, int] = {}

    def archived(self, task: Task, plan: Plan | None) -> Reported | None:
        """Have the task's failure in a group that is open, and alert where it is a new one.

        None where the task does not stand failed any more. Where too many groups are open, that is
        its workflow's overflow group, and the task's record is to say so. Raises TryAgain and
        CallRefused where the group could not be opened; a first alert that could not be published
        is left to the supervisor.
        """
        failure = failure_of(task)
        if failure is None:
            return None
        return self._report(failure, Sample(task, plan))

    def ended(self, before: Task, task: Task, plan: Plan | None) -> str | None:
        """Note where this decision has undone the task; why that could not be noted, if so.

        An undone order is an ordinary outcome: nothing is owed for it, and it waits for nothing.
        """
        if task.state is not TaskState.UNDONE or before.state is TaskState.UNDONE:
            return None
        failure = failure_of(task)
        if failure is None:
            return None  # a person asked for it
        sample = Sample(task, plan)
        try:
            if self._open(self._new(failure, sample), sample) is None:
                return "too many groups are open"
        except (TryAgain, CallRefused) as problem:
            return str(problem)
        return None

    def unreadable(self, task_id: str, problem: Exception) -> Reported:
        """Report a record that cannot be handled. Raises TryAgain and CallRefused."""
        failure = unreadable_failure(problem)
        now = self._clock()
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
        now = self._clock()
        task = sample.task
        return opened(
            failure,
            agent=agent_of_step(failure, sample),
            task_id=task.task_id,
            since=now if task.ended_at is None else task.ended_at,
            now=now,
        )

    def _open(self, group: Group, sample: Sample | None) -> Reported | None:
        """Have the group open, and alert where it is new; None where there is no room for it."""
        for _ in range(RACES):
            now = self._clock()
            if self._known.get(group.id, 0) > now:
                return Reported(group.id)
            if self._was_full(group, now):
                return None
            found = self._find(group.id, now)
            if found is None:
                found = self._groups.open(group)
                if found is None:
                    self._full[room_for(group) or 0] = now + KNOWN_FOR
                    return None
                if found == group:
                    return self._opened(group, sample)
            if found.closed_at is not None:
                anew = replace(group, version=found.version + 1)
                if self._groups.change(anew, seen=found.version):
                    return self._opened(anew, sample)
                continue
            back = rejoined(found, now)
            if back is None or self._groups.change(back, seen=found.version):
                self._remember(group.id, now)
                return Reported(group.id)
        raise TryAgain(f"{group.id}: lost the race for the failure group {RACES} times")

    def _find(self, group: str, now: int) -> Group | None:
        """The group as it is stored; the others that stay open for long enough are remembered."""
        found: Group | None = None
        groups = self._groups.groups()
        self._stored = frozenset(each.id for each in groups)
        for each in groups:
            if each.id == group:
                found = each
            elif each.closed_at is None and each.clear_since is None:
                self._remember(each.id, now)
        return found

    def _was_full(self, group: Group, now: int) -> bool:
        """Whether there was no room for it a moment ago: a refused write costs as much as one that
        is done, the whole row, and texts that never repeat would try it for each order.
        """
        return group.id not in self._stored and self._full.get(room_for(group) or 0, 0) > now

    def _remember(self, group: str, now: int) -> None:
        self._known = {known: until for known, until in self._known.items() if until > now}
        self._known[group] = now + KNOWN_FOR

    def _opened(self, group: Group, sample: Sample | None) -> Reported:
        """Tell of a group that this instance has opened."""
        now = self._clock()
        self._remember(group.id, now)
        if group.undone:
            return Reported(group.id)
        member = Member(group.opened_by, group.since, sample.task.complete_by if sample else 0)
        samples = [sample] if sample else []
        agents = known_agents(self._board)
        alert = group_alert(News.FIRST, group, census_of([member]), samples, agents, now)
        try:
            self._publish(group, alert, now)
        except (TryAgain, CallRefused) as problem:
            return Reported(group.id, untold=str(problem))
        return Reported(group.id)

    def _publish(self, group: Group, alert: Alert, now: int) -> None:
        try:
            self._outbox.publish(alert)
        except (TryAgain, CallRefused):
            self._groups.change(left_to_others(group), seen=group.version)
            raise
        self._groups.change(alerted(group, 1, now), seen=group.version)


def known_agents(board: AgentBoard) -> Agents | None:
    """What is known of the agents; None where that cannot be read: no alert waits for it."""
    try:
        return board.agents()
    except (TryAgain, CallRefused, UnreadableRecord):
        return None


def unreadable_failure(problem: Exception) -> Failure:
    """What records that break in the same way have in common: not their contents."""
    return Failure(UNKNOWN_WORKFLOW, NO_STEP, UNREADABLE, type(problem).__name__, "")


def _overflow(group: Group) -> Group:
    """The group of what is left out where too many are open: one a workflow."""
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
    """The agent of the step that failed; empty where none did, or the plan is missing."""
    plan = sample.plan
    step = plan.steps.get(failure.step) if plan is not None else None
    return step.agent if step is not None else ""
