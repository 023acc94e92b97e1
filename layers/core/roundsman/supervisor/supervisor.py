"""The supervisor visits tasks that may be overdue, gets decisions, stores them and sends actions.

It never claims: it sends Start to the scheduler if a step is ready. The cost of a pass depends on
the tasks that are due before the next pass, not on the tasks that are stored. A pass stops when its
time is over and stores no position, because a handled entry leaves the front of its shard.
Concurrent passes are safe, because every write is conditional on the version that was read; leases
keep the passes from doing the same work twice.

A call that AWS refuses proves nothing about the record it was made for: a permission, a table or a
queue is missing. No record is postponed for it. If a read is refused, it would be refused for every
task, so the pass visits no more tasks. It still sends look-ahead Inspects, which need no record.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from roundsman.alerts.census import GroupCensus, GroupsReport
from roundsman.alerts.reporter import Reporter
from roundsman.definition.plan import Plan
from roundsman.engine.due import Lane, due, is_closed, lane_key
from roundsman.engine.machine import decide
from roundsman.engine.timeouts import late_attempts, late_for, starts_late
from roundsman.errors import CallRefused, SchemaTooNew, TryAgain, UnreadableRecord
from roundsman.model.events import Decision, Inspect, InspectAt, StartTask
from roundsman.model.holds import agents_of
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.task import Task
from roundsman.ports import (
    LONGEST_DELAY,
    AgentBoard,
    Clock,
    DueEntry,
    GroupStore,
    LeaseStore,
    LimitStore,
    Outbox,
    PlanStore,
    Superseded,
    TaskStore,
)
from roundsman.scheduler.lookahead import HANDLED_WITHIN, LookAhead
from roundsman.scheduler.owed import OwedResult, send_owed
from roundsman.scheduler.queue_watch import QueueWatch
from roundsman.supervisor.shard_leases import ShardPass

LONGEST_POSTPONEMENT = 15 * MINUTE
"""The longest time in ms between two visits of a record that cannot be handled.

Once the cause is removed, every such task is visited within this time plus one interval."""

VISIT_INTERVAL = 10 * SECOND
"""ms from one visit to the next, while there is an open run."""

MOST_PUT_OFF = 10_000
"""How many put-off entries an instance remembers over passes that do not finish. If there are more,
it begins anew: a broken record may then use up the time of one more pass."""

UNDONE_COUNT = 20
"""The default of `SupervisorConfig.undone_count`."""


@dataclass(slots=True)
class PassReport:
    """What one pass did, for the log and the metrics."""

    looked_at: int = 0
    """Tasks that were visited."""
    ahead: int = 0
    """Inspects sent for tasks that fall due before the next pass."""
    left_to_others: int = 0
    """Shards that other supervisors hold, or have finished since this pass began."""
    unleased: str | None = None
    """Why the pass continued without leases; None if it had them."""
    behind: int = 0
    """The longest time in ms for which anything has waited for the scheduler, as far as seen."""
    recovered: int = 0
    """Tasks for which the engine changed the record or returned actions."""
    archived: int = 0
    """Tasks that this pass ended."""
    rearmed: int = 0
    """Tasks with nothing to do; only their due entry was moved."""
    superseded: int = 0
    """Decisions that were not stored because another write came first."""
    troubled: int = 0
    """Records and plans that cannot be handled, and 1 if a call was refused."""
    deferred: int = 0
    """Entries that stay due for a later pass."""
    lag: int = 0
    """The age of the oldest due entry in ms."""
    finished: bool = True
    """False if the time was over or a shard could not be read or completed."""
    unread: str | None = None
    """Why a shard could not be read; None if all that were begun could be."""
    refused: str | None = None
    """The first call that AWS refused; None if there was none."""
    blind: bool = False
    """A read was refused, and no task was visited after it."""
    unreadable_plans: set[str] = field(default_factory=set)
    """The ids of plan rows that cannot be read."""
    put_off: set[DueEntry] = field(default_factory=set)
    """Entries that could not be handled now and are still at the front of their shard."""
    groups: GroupsReport = field(default_factory=GroupsReport)
    reasons: list[tuple[str, str]] = field(default_factory=list)
    """(task id or lane, reason) of each recovery and each problem."""
    delivered: list[tuple[str, OwedResult]] = field(default_factory=list)
    """(task id, what became of its owed items)."""


@dataclass(frozen=True, slots=True)
class SupervisorConfig:
    """The configuration of a supervisor."""

    leases: LeaseStore
    instance: str
    """The name of this process, under which it holds leases."""
    shards: int
    """The configured number of shards of the due index."""
    interval: int
    """ms from the start of one pass to the start of the next."""
    undone_count: int = UNDONE_COUNT
    """The number of undone orders in one failure group within 10 minutes that raises an alert.

    0: never."""


class _PlanUnreadable(Exception):
    """The plan's row cannot be read. The records of the tasks that name it are intact."""

    def __init__(self, problem: UnreadableRecord) -> None:
        super().__init__(str(problem))
        self.problem = problem


def put_off_after(before: set[DueEntry], report: PassReport) -> set[DueEntry]:
    """Return the entries that are put off after a pass, if those were put off before it.

    A pass that has not finished has not read them all. At most MOST_PUT_OFF are added up.
    """
    if report.finished or len(before) + len(report.put_off) > MOST_PUT_OFF:
        return report.put_off
    return before | report.put_off


@dataclass(kw_only=True, eq=False)
class Supervisor:
    """Makes passes over the open lanes of the due index."""

    tasks: TaskStore
    plans: PlanStore
    board: AgentBoard
    groups: GroupStore
    outbox: Outbox
    clock: Clock
    jitter: Callable[[], float]
    config: SupervisorConfig
    limits: Callable[[], LimitStore]
    """Returns where the turns of orders are stored that a limit counts."""
    on_trouble: Callable[[str, Exception], None]
    """Called with a task id (or a lane) and the exception for each problem that must be logged."""
    _put_off: set[DueEntry] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        """Create the helpers that keep something from one pass to the next."""
        self._ahead = LookAhead(self.outbox, interval=self.config.interval, clock=self.clock)
        self._queues = QueueWatch(self.board, self.clock, in_passes=True)
        self._reporter = Reporter(
            groups=self.groups, outbox=self.outbox, board=self.board, clock=self.clock
        )
        self._group_rounds = GroupCensus(
            tasks=self.tasks,
            plans=self.plans,
            groups=self.groups,
            board=self.board,
            outbox=self.outbox,
            clock=self.clock,
            undone_count=self.config.undone_count,
        )

    def make_pass(self, *, stop_at: int) -> PassReport:
        """Visit every task that is due now, until `stop_at` (epoch ms) at the latest.

        Tasks that fall due before the next pass are sent to the scheduler as delayed Inspects. Each
        pass begins at a random shard, so that every shard is reached even if no pass completes; an
        entry that was not reached is still due in the next pass.
        """
        report = PassReport()
        until = self._ahead.until(self.clock())
        self._queues.forget()
        shard_pass = ShardPass(
            self.config.leases,
            owner=self.config.instance,
            clock=self.clock,
            shards=self.config.shards,
            lot=self.jitter(),
        )
        # Groups come first, because their cost is bounded: under overload, the shards would use up
        # the time of every pass.
        report.groups = self._group_rounds.make(shard_pass.shards, lambda: self.clock() < stop_at)
        while shard_pass.left and self._has_time(stop_at, report):
            shards = shard_pass.next_shards()
            if not shards:
                report.left_to_others = len(shard_pass.left)
                break
            for shard in shards:
                began_at = self.clock()
                if self._visit_shard(shard, until, stop_at, shard_pass, report):
                    shard_pass.visited(shard, began_at)
        shard_pass.close()
        report.unleased = shard_pass.unleased
        self._put_off = put_off_after(self._put_off, report)
        return report

    def look_at(self, task_id: str, shard: int) -> PassReport:
        """Visit one task now, as if it were due. Raises nothing."""
        report = PassReport()
        self._visit(DueEntry(task_id, self.clock()), shard, report)
        return report

    def _has_time(self, stop_at: int, report: PassReport) -> bool:
        if self.clock() < stop_at:
            return True
        report.finished = False
        return False

    def _visit_shard(
        self, shard: int, until: int, stop_at: int, shard_pass: ShardPass, report: PassReport
    ) -> bool:
        """Visit the due entries, then send look-ahead Inspects; True if the shard is complete."""

        def go_on() -> bool:
            return self._has_time(stop_at, report) and shard_pass.still_held(shard)

        if not go_on():
            return False
        lane, last, ahead = lane_key(Lane.OPEN, shard), list[DueEntry](), list[DueEntry]()
        try:
            for entry in self.tasks.due(lane, until):
                if entry.due_at > self.clock():
                    ahead.append(entry)
                elif entry in self._put_off:
                    last.append(entry)  # it failed before; it must not use up this pass's time too
                elif not go_on():
                    return False
                else:
                    ahead += self._visit(entry, shard, report)
            for entry in last:
                if not go_on():
                    return False
                ahead += self._visit(entry, shard, report)
            soon = [entry for entry in ahead if entry.due_at <= until]
            if soon and self._queues.scheduler_lag() <= HANDLED_WITHIN:
                report.ahead += self._ahead.send(soon, go_on)
        except (TryAgain, CallRefused) as problem:
            report.finished = False  # the other shards may be readable
            report.unread = str(problem)
            report.reasons.append((lane, str(problem)))
            if isinstance(problem, CallRefused):
                self._refused(lane, problem, report)
            return False
        return go_on() and not report.blind

    def _refused(self, whose: str, refused: CallRefused, report: PassReport) -> None:
        """Report the first refused call of a pass; later ones usually have the same cause."""
        if report.refused is None:
            report.refused = str(refused)
            report.troubled += 1
            self.on_trouble(whose, refused)

    def _visit(self, entry: DueEntry, shard: int, report: PassReport) -> list[DueEntry]:
        """Handle one entry, and return the task's next due entry, or an empty list.

        Raises nothing: a fault in one task must not delay the others.
        """
        report.lag = max(report.lag, self.clock() - entry.due_at)
        if report.blind:
            report.deferred += 1
            return []
        report.looked_at += 1
        try:
            due_next = self._inspect(entry, report)
        except (TryAgain, SchemaTooNew, CallRefused) as problem:
            report.deferred += 1  # the entry stays due for a later pass, or for newer code
            report.put_off.add(entry)
            report.reasons.append((entry.task_id, str(problem)))
            if isinstance(problem, CallRefused):
                self._refused(entry.task_id, problem, report)
            return []
        except _PlanUnreadable as unreadable:
            report.deferred += 1  # the entry stays due; a pass after the plan's repair handles it
            report.put_off.add(entry)
            self._report_plan(entry.task_id, shard, unreadable.problem, report)
            return []
        except Exception as problem:  # noqa: BLE001 - a record may break the machine in any way
            report.troubled += 1
            self.on_trouble(entry.task_id, problem)
            self._postpone(entry.task_id, shard, problem, report)
            return []
        return [] if due_next is None else [DueEntry(entry.task_id, due_next)]

    def _inspect(self, entry: DueEntry, report: PassReport) -> int | None:
        """Decide, store and send; return when the task is due next, if it is."""
        task_id = entry.task_id
        try:
            task = self.tasks.load(task_id, self.clock())
            if task is None or is_closed(task):
                return None  # the index lags behind the record
            plan, agents = self._plan_of(task), self.board.agents()
            held = self.board.order_holds()
        except CallRefused:
            report.blind = True
            raise
        queues, now, jitter = self._queues.known(plan, task), self.clock(), self.jitter()
        if task.limit is not None:
            self._compare_turns(task, now)
        if plan is not None:
            agents = agents_of(plan.agents, task, agents, held, now)
        decision = decide(
            plan, task, Inspect(), now, order=None, agents=agents, jitter=jitter, queues=queues
        )
        report.behind = max(report.behind, late_for(decision.task, now))
        late = min(late_attempts(task, now).values(), default=None)
        self._ahead.visited(task_id, late_since=late, start_waits=starts_late(task, now))
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
            self.tasks.rearm(task, due(task, now))
            report.rearmed += 1
        return None if decision.task.ended else due(decision.task, now)

    def _compare_turns(self, task: Task, now: int) -> None:
        """Compare the orders that a limit counts as under way with their tasks."""
        from roundsman.scheduler.order_limits import OrderLimits  # late: few workflows have a limit

        OrderLimits(self.limits(), self.tasks, self.outbox).compare(task, now)

    def _plan_of(self, task: Task) -> Plan | None:
        try:
            return self.plans.plan(task.plan)
        except UnreadableRecord as problem:
            raise _PlanUnreadable(problem) from problem

    def _save(self, task: Task, decision: Decision, now: int) -> bool:
        """Store the decision; False if another write came first.

        Only the supervisor may move `due_at` to a later instant, because its read is consistent.
        """
        moved_on = decision.task
        if not is_closed(moved_on):
            moved_on = replace(moved_on, due_at=due(moved_on, now))
        saved = self.tasks.save(moved_on, seen=task.version, history=decision.history)
        return not isinstance(saved, Superseded)

    def _send(self, before: Task, plan: Plan | None, decision: Decision) -> OwedResult:
        task_id = before.task_id
        for command in decision.actions:
            if isinstance(command, StartTask):
                self.outbox.send_start(task_id)
            elif isinstance(command, InspectAt):
                delay = max(0, command.at - self.clock())
                if delay <= LONGEST_DELAY and self._ahead.may_send(task_id):
                    self.outbox.send_inspect(task_id, delay=delay)
                    self._ahead.sent(task_id, command.at)
        return send_owed(
            decision.task,
            plan,
            seen=before.version,
            tasks=self.tasks,
            outbox=self.outbox,
            clock=self.clock,
            reporter=self._reporter,
            limits=self.limits,
        )

    def _count(self, before: Task, decision: Decision, report: PassReport) -> None:
        if decision.task is not before or decision.actions:
            report.recovered += 1
            report.reasons.append((before.task_id, decision.reason))
        if decision.task.ended and not before.ended:
            report.archived += 1

    def _report_plan(
        self, task_id: str, shard: int, problem: UnreadableRecord, report: PassReport
    ) -> None:
        """Report an unreadable plan: log it once a pass, and add the task to its failure group."""
        if problem.record not in report.unreadable_plans:
            report.unreadable_plans.add(problem.record)
            report.troubled += 1
            self.on_trouble(task_id, problem)
        self._alert(task_id, shard, problem, report)

    def _postpone(self, task_id: str, shard: int, problem: Exception, report: PassReport) -> None:
        """Report a record that cannot be handled, and move its due entry.

        The delay is one minute, doubled each time up to LONGEST_POSTPONEMENT.
        """
        times = self._alert(task_id, shard, problem, report)
        if times is None:
            return  # the entry stays due: a later pass alerts and postpones
        wait = min(MINUTE * 2 ** min(times - 1, 20), LONGEST_POSTPONEMENT)
        try:
            self.tasks.postpone(task_id, self.clock() + wait)
        except (TryAgain, CallRefused) as another:
            self._note(task_id, another, report)

    def _alert(
        self, task_id: str, shard: int, problem: Exception, report: PassReport
    ) -> int | None:
        """Add the task to the failure group of the problem, which is alerted if it is new.

        Returns how many times the task has failed like this; None if that could not be stored.
        """
        try:
            reported = self._reporter.unreadable(task_id, problem)
            return self.tasks.trouble(task_id, (reported.group, shard), self.clock())
        except (TryAgain, CallRefused) as another:
            self._note(task_id, another, report)
            return None

    def _note(self, task_id: str, problem: TryAgain | CallRefused, report: PassReport) -> None:
        if isinstance(problem, CallRefused):
            self._refused(task_id, problem, report)
        else:
            self.on_trouble(task_id, problem)


@dataclass(frozen=True, slots=True)
class VisitTimes:
    """The time that one visit has. Instants are epoch ms."""

    stop_at: int
    """When the visit ends at the latest."""
    next_at: int
    """When the next visit is expected."""
    last: bool
    """Whether another process may make the next visit."""


def keep_passing(
    supervisor: Supervisor,
    *,
    interval: int,
    passes: int,
    stop_at: int,
    clock: Clock,
    sleep: Callable[[int], None],
    report: Callable[[PassReport], None],
    visit: Callable[[VisitTimes], bool] = lambda _: False,
) -> None:
    """Make `passes` passes, `interval` ms from start to start, until `stop_at` at the latest.

    `stop_at` is epoch ms; `sleep` takes ms. EventBridge invokes the function once a minute, so for
    a shorter interval one invocation makes several passes. After each pass, `visit` is called for
    the bulk runs, and again every VISIT_INTERVAL as long as it returns True: there is an open run.
    """
    next_at = clock()
    for number in range(1, passes + 1):
        wait = next_at - clock()
        if clock() + max(0, wait) >= stop_at:
            return
        if wait > 0:
            sleep(wait)
        report(supervisor.make_pass(stop_at=stop_at))
        next_at += interval
        while True:
            next_visit = clock() + VISIT_INTERVAL
            between = next_visit < min(next_at, stop_at)
            last = not between and (number == passes or next_at >= stop_at)
            # The next pass does not wait for a run that has much to do.
            ends_at = stop_at if number == passes else min(stop_at, next_at)
            times = VisitTimes(ends_at, next_visit if between else next_at, last=last)
            if not visit(times) or not between:
                break
            sleep(max(0, next_visit - clock()))
