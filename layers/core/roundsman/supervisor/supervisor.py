"""The supervisor: visits what may be overdue, lets the machine decide, and moves it on.

It never claims: what can go on is sent to the scheduler. A pass costs what is due before the next
one, not what is stored. It stops when its time is over, and needs no mark of how far it came: what
was handled has left the front of its shard. Two passes at once are safe, since every write is
conditional on the version it read; leases keep them from doing the same work twice.

A call that is refused says nothing about the record it was made for: a right is lost, or a table
or a queue. Nothing is postponed for it. What the supervisor may not read it may not read for any
task, so the pass visits no other; it goes on to send ahead what falls due, which needs no record.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from roundsman.alerts.census import GroupCensus, GroupsReport
from roundsman.alerts.reporter import Reporter
from roundsman.engine.due import Lane, due, lane_key, settled
from roundsman.engine.machine import decide
from roundsman.errors import CallRefused, SchemaTooNew, TryAgain, UnreadableRecord
from roundsman.model.events import Decision, Inspect, InspectAt, StartTask
from roundsman.model.instants import MINUTE
from roundsman.model.plan import Plan
from roundsman.model.queue_lag import with_unread
from roundsman.model.task import Task
from roundsman.ports import (
    LONGEST_DELAY,
    AgentBoard,
    Clock,
    DueEntry,
    GroupStore,
    LeaseStore,
    Outbox,
    PlanStore,
    Superseded,
    TaskStore,
)
from roundsman.scheduler.lookahead import LookAhead
from roundsman.scheduler.owed import OwedResult, send_owed
from roundsman.supervisor.shard_pass import ShardPass

LONGEST_POSTPONEMENT = 15 * MINUTE
"""How long a record that cannot be handled is left alone: so long after its repair, or the end of
whatever made it look broken, and an interval more, every task has been looked at."""

UNDONE_COUNT = 20


@dataclass(slots=True)
class PassReport:
    """What one pass did, for the log and the metrics. `lag` is the oldest overdue entry in ms.

    `ahead` counts the Inspects sent for what falls due before the next pass. `left_to_others`
    are shards that other supervisors hold or have just been through. `unleased` says why the
    pass went on without leases, if it did. `put_off` are entries that stand at the front of
    their shard still, since nothing could be done about them for now. `refused` says which call
    AWS refused first, if it did any; `blind` that it was a read, so that no task was visited from
    then on. `unreadable_plans` are named by their rows. `groups` is what was done about failure
    groups.
    """

    looked_at: int = 0
    ahead: int = 0
    left_to_others: int = 0
    unleased: str | None = None
    recovered: int = 0
    archived: int = 0
    rearmed: int = 0
    superseded: int = 0
    troubled: int = 0
    deferred: int = 0
    lag: int = 0
    finished: bool = True
    refused: str | None = None
    blind: bool = False
    unreadable_plans: set[str] = field(default_factory=set)
    put_off: set[DueEntry] = field(default_factory=set)
    groups: GroupsReport = field(default_factory=GroupsReport)
    reasons: list[tuple[str, str]] = field(default_factory=list)
    delivered: list[tuple[str, OwedResult]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SupervisorConfig:
    """Where and how often a supervisor makes its rounds.

    `instance` is this process's own name, under which it holds `leases`; `interval` is in ms,
    from the start of a pass to the start of the next. `undone_count` orders that are undone alike
    within ten minutes are alerted; 0: they never are.
    """

    leases: LeaseStore
    instance: str
    shards: int
    interval: int
    undone_count: int = UNDONE_COUNT


class _PlanUnreadable(Exception):
    """The plan's row was altered. Nothing is wrong with the records of the tasks that name it."""

    def __init__(self, problem: UnreadableRecord) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Supervisor:
    """Makes passes over the open lanes of the due index."""

    def __init__(
        self,
        *,
        tasks: TaskStore,
        plans: PlanStore,
        board: AgentBoard,
        groups: GroupStore,
        outbox: Outbox,
        clock: Clock,
        jitter: Callable[[], float],
        beat: SupervisorConfig,
        on_trouble: Callable[[str, Exception], None],
    ) -> None:
        self._tasks = tasks
        self._plans = plans
        self._board = board
        self._outbox = outbox
        self._clock = clock
        self._jitter = jitter
        self._beat = beat
        self._on_trouble = on_trouble
        self._ahead = LookAhead(outbox, interval=beat.interval, clock=clock)
        self._put_off: set[DueEntry] = set()
        self._reporter = Reporter(groups=groups, outbox=outbox, board=board, clock=clock)
        self._group_rounds = GroupCensus(
            tasks=tasks,
            plans=plans,
            groups=groups,
            board=board,
            outbox=outbox,
            clock=clock,
            undone_count=beat.undone_count,
        )

    def make_pass(self, *, stop_at: int) -> PassReport:
        """Visit every task that is due now, until `stop_at` (epoch ms) at the latest.

        What falls due before the next pass is sent to the scheduler, to be looked at then. Each
        pass begins at a shard drawn by lot, so that passes that always run out of time still
        reach them all; what one did not reach is still due for the next.
        """
        report = PassReport()
        until = self._ahead.until(self._clock())
        way = ShardPass(
            self._beat.leases,
            owner=self._beat.instance,
            clock=self._clock,
            shards=self._beat.shards,
            lot=self._jitter(),
        )
        # First, since it is bounded: in an overload the shards alone would use up each pass.
        report.groups = self._group_rounds.make(way.shards, lambda: self._clock() < stop_at)
        while way.left and self._has_time(stop_at, report):
            shards = way.next_shards()
            if not shards:
                report.left_to_others = len(way.left)
                break
            for shard in shards:
                began_at = self._clock()
                if self._visit_shard(shard, until, stop_at, way, report):
                    way.visited(shard, began_at)
        way.close()
        report.unleased = way.unleased
        self._put_off = report.put_off if report.finished else self._put_off | report.put_off
        return report

    def _has_time(self, stop_at: int, report: PassReport) -> bool:
        if self._clock() < stop_at:
            return True
        report.finished = False
        return False

    def _visit_shard(
        self, shard: int, until: int, stop_at: int, way: ShardPass, report: PassReport
    ) -> bool:
        """Visit what is due, then send ahead what will be; whether it came to the shard's end."""

        def go_on() -> bool:
            return self._has_time(stop_at, report) and way.still_held(shard)

        if not go_on():
            return False
        lane, last, ahead = lane_key(Lane.OPEN, shard), list[DueEntry](), list[DueEntry]()
        try:
            for entry in self._tasks.due(lane, until):
                if entry.due_at > self._clock():
                    ahead.append(entry)
                elif entry in self._put_off:
                    last.append(entry)  # it stood in the way once; no pass ends at it twice
                elif not go_on():
                    return False
                else:
                    ahead += self._visit(entry, shard, report)
            for entry in last:
                if not go_on():
                    return False
                ahead += self._visit(entry, shard, report)
            soon = [entry for entry in ahead if entry.due_at <= until]
            report.ahead += self._ahead.send(soon, go_on)
        except (TryAgain, CallRefused) as problem:
            report.finished = False  # the other shards may be readable
            report.reasons.append((lane, str(problem)))
            if isinstance(problem, CallRefused):
                self._refused(lane, problem, report)
            return False
        return go_on() and not report.blind

    def _refused(self, whose: str, refused: CallRefused, report: PassReport) -> None:
        """Report it once a pass: the next calls are refused for the same reason, as a rule."""
        if report.refused is None:
            report.refused = str(refused)
            report.troubled += 1
            self._on_trouble(whose, refused)

    def _visit(self, entry: DueEntry, shard: int, report: PassReport) -> list[DueEntry]:
        """One task by itself: whatever is wrong with it must not keep the others waiting.

        Its next entry, where there is one.
        """
        report.lag = max(report.lag, self._clock() - entry.due_at)
        if report.blind:
            report.deferred += 1
            return []
        report.looked_at += 1
        try:
            due_next = self._inspect(entry, report)
        except (TryAgain, SchemaTooNew, CallRefused) as problem:
            report.deferred += 1  # the entry stays; a later pass or newer code comes back to it
            report.put_off.add(entry)
            report.reasons.append((entry.task_id, str(problem)))
            if isinstance(problem, CallRefused):
                self._refused(entry.task_id, problem, report)
            return []
        except _PlanUnreadable as unreadable:
            report.deferred += 1  # once its plan is repaired, the next pass goes on with the task
            report.put_off.add(entry)
            self._tell_of_plan(entry.task_id, shard, unreadable.problem, report)
            return []
        except Exception as problem:  # noqa: BLE001 - a record may break the machine in any way
            report.troubled += 1
            self._on_trouble(entry.task_id, problem)
            self._postpone(entry.task_id, shard, problem, report)
            return []
        return [] if due_next is None else [DueEntry(entry.task_id, due_next)]

    def _inspect(self, entry: DueEntry, report: PassReport) -> int | None:
        """Let the machine decide, store it, send what follows; when the task is due next."""
        task_id = entry.task_id
        try:
            task = self._tasks.load(task_id, self._clock())
            if task is None or settled(task):
                return None  # the index lags behind the record
            plan, agents = self._plan_of(task), self._board.agents()
        except CallRefused:
            report.blind = True
            raise
        if plan is not None:
            agents = with_unread(agents, plan, task.priority)
        now, jitter = self._clock(), self._jitter()
        decision = decide(plan, task, Inspect(), now, order=None, agents=agents, jitter=jitter)
        if decision.task is not task and not self._save(task, decision, now):
            report.superseded += 1
            return None
        self._count(task, decision, report)
        delivered = self._send(task, plan, decision)
        report.delivered.append((task_id, delivered))
        if unnoted := self._reporter.ended(task, decision.task, plan):
            report.groups.problems.append((task_id, unnoted))
        if delivered.still_owed:
            report.put_off.add(entry)
        elif decision.task is task and not task.owed:
            self._tasks.rearm(task, due(task, now))
            report.rearmed += 1
        return None if decision.task.ended else due(decision.task, now)

    def _plan_of(self, task: Task) -> Plan | None:
        try:
            return self._plans.plan(task.plan)
        except UnreadableRecord as problem:
            raise _PlanUnreadable(problem) from problem

    def _save(self, task: Task, decision: Decision, now: int) -> bool:
        """The supervisor alone may raise the due instant: it read the record just now."""
        moved_on = decision.task
        if not settled(moved_on):
            moved_on = replace(moved_on, due_at=due(moved_on, now))
        saved = self._tasks.save(moved_on, seen=task.version, history=decision.history)
        return not isinstance(saved, Superseded)

    def _send(self, before: Task, plan: Plan | None, decision: Decision) -> OwedResult:
        task_id = before.task_id
        for command in decision.actions:
            if isinstance(command, StartTask):
                self._outbox.send_start(task_id)
            elif isinstance(command, InspectAt):
                delay = max(0, command.at - self._clock())
                if delay <= LONGEST_DELAY:
                    self._outbox.send_inspect(task_id, delay=delay)
        return send_owed(
            decision.task,
            plan,
            seen=before.version,
            tasks=self._tasks,
            outbox=self._outbox,
            clock=self._clock,
            reporter=self._reporter,
        )

    def _count(self, before: Task, decision: Decision, report: PassReport) -> None:
        if decision.task is not before or decision.actions:
            report.recovered += 1
            report.reasons.append((before.task_id, decision.reason))
        if decision.task.ended and not before.ended:
            report.archived += 1

    def _tell_of_plan(
        self, task_id: str, shard: int, problem: UnreadableRecord, report: PassReport
    ) -> None:
        """Alert it, with the tasks that wait for it. Log it once a pass, and not for each."""
        if problem.record not in report.unreadable_plans:
            report.unreadable_plans.add(problem.record)
            report.troubled += 1
            self._on_trouble(task_id, problem)
        self._alert(task_id, shard, problem, report)

    def _postpone(self, task_id: str, shard: int, problem: Exception, report: PassReport) -> None:
        """Report it, then come back later and later, doubled from a minute, up to the longest."""
        times = self._alert(task_id, shard, problem, report)
        if times is None:
            return  # still due: a later pass alerts and postpones
        wait = min(MINUTE * 2 ** min(times - 1, 20), LONGEST_POSTPONEMENT)
        try:
            self._tasks.postpone(task_id, self._clock() + wait)
        except (TryAgain, CallRefused) as another:
            self._note(task_id, another, report)

    def _alert(
        self, task_id: str, shard: int, problem: Exception, report: PassReport
    ) -> int | None:
        """Have the task in the group of what breaks like this; how often it has, if that worked."""
        try:
            reported = self._reporter.unreadable(task_id, problem)
            return self._tasks.trouble(task_id, (reported.group, shard), self._clock())
        except (TryAgain, CallRefused) as another:
            self._note(task_id, another, report)
            return None

    def _note(self, task_id: str, problem: TryAgain | CallRefused, report: PassReport) -> None:
        if isinstance(problem, CallRefused):
            self._refused(task_id, problem, report)
        else:
            self._on_trouble(task_id, problem)


def keep_passing(
    supervisor: Supervisor,
    *,
    interval: int,
    passes: int,
    stop_at: int,
    clock: Clock,
    sleep: Callable[[int], None],
    report: Callable[[PassReport], None],
) -> None:
    """Make so many passes, `interval` ms from start to start, until `stop_at` at the latest.

    The timer ticks once a minute; a shorter interval is several passes in one invocation.
    """
    next_at = clock()
    for _ in range(passes):
        wait = next_at - clock()
        if clock() + max(0, wait) >= stop_at:
            return
        if wait > 0:
            sleep(wait)
        report(supervisor.make_pass(stop_at=stop_at))
        next_at += interval
