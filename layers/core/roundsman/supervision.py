"""The supervisor: visits what may be overdue, lets the machine decide, and moves it on.

It never claims: what can go on is sent to the scheduler. A pass costs what is due, not what is
stored. Two passes at once are safe, since every write is conditional on the version it read.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from roundsman.alerts import trouble_alert
from roundsman.delivery import Delivered, deliver_owed
from roundsman.due import Lane, due, lane_key, settled
from roundsman.errors import CallRefused, SchemaTooNew, TryAgain
from roundsman.events import Decision, Inspect, InspectAt, StartTask
from roundsman.machine import decide
from roundsman.plan import Plan
from roundsman.ports import AgentBoard, Clock, DueEntry, Outbox, PlanStore, Superseded, TaskStore
from roundsman.scheduling import LONGEST_DELAY
from roundsman.task import Task
from roundsman.values import MINUTE

LONGEST_POSTPONEMENT = 6 * 60 * MINUTE


@dataclass(slots=True)
class PassReport:
    """What one pass did, for the log and the metrics. `lag` is the oldest overdue entry in ms."""

    looked_at: int = 0
    recovered: int = 0
    archived: int = 0
    rearmed: int = 0
    superseded: int = 0
    troubled: int = 0
    deferred: int = 0
    lag: int = 0
    finished: bool = True
    reasons: list[tuple[str, str]] = field(default_factory=list)
    delivered: list[tuple[str, Delivered]] = field(default_factory=list)


class Supervisor:
    """Makes passes over the open lanes of the due index."""

    def __init__(
        self,
        *,
        tasks: TaskStore,
        plans: PlanStore,
        board: AgentBoard,
        outbox: Outbox,
        clock: Clock,
        jitter: Callable[[], float],
        shards: int,
        on_trouble: Callable[[str, Exception], None],
    ) -> None:
        self._tasks = tasks
        self._plans = plans
        self._board = board
        self._outbox = outbox
        self._clock = clock
        self._jitter = jitter
        self._shards = shards
        self._on_trouble = on_trouble

    def make_pass(self, *, stop_at: int) -> PassReport:
        """Visit every task that is due now, until `stop_at` (epoch ms) at the latest.

        Each pass begins at a shard drawn by lot, so that passes that always run out of time still
        reach them all; what one did not reach is still due for the next.
        """
        report = PassReport()
        now = self._clock()
        first = int(self._jitter() * self._shards)
        for offset in range(self._shards):
            if self._clock() >= stop_at:
                report.finished = False
                break
            shard = (first + offset) % self._shards
            try:
                self._visit_shard(shard, now, stop_at, report)
            except TryAgain as problem:
                report.finished = False  # the other shards may be readable
                report.reasons.append((lane_key(Lane.OPEN, shard), str(problem)))
        return report

    def _visit_shard(self, shard: int, now: int, stop_at: int, report: PassReport) -> None:
        for entry in self._tasks.due(lane_key(Lane.OPEN, shard), now):
            if self._clock() >= stop_at:
                report.finished = False
                return
            report.lag = max(report.lag, now - entry.due_at)
            self._visit(entry, report)

    def _visit(self, entry: DueEntry, report: PassReport) -> None:
        """One task by itself: whatever is wrong with it must not keep the others waiting."""
        report.looked_at += 1
        try:
            self._inspect(entry.task_id, report)
        except (TryAgain, SchemaTooNew) as problem:
            report.deferred += 1  # the entry stays; a later pass or newer code comes back to it
            report.reasons.append((entry.task_id, str(problem)))
        except Exception as problem:  # noqa: BLE001 - a record may break the machine in any way
            report.troubled += 1
            self._on_trouble(entry.task_id, problem)
            self._postpone(entry.task_id, problem)

    def _inspect(self, task_id: str, report: PassReport) -> None:
        task = self._tasks.load(task_id, self._clock())
        if task is None or settled(task):
            return  # the index lags behind the record
        plan = self._plans.plan(task.plan)
        now = self._clock()
        decision = decide(
            plan,
            task,
            Inspect(),
            now,
            order=None,
            agents=self._board.agents(),
            jitter=self._jitter(),
        )
        if decision.task is not task and not self._save(task, decision, now):
            report.superseded += 1
            return
        self._count(task, decision, report)
        try:
            self._send(task, plan, decision, report)
        except CallRefused as refused:  # by the stack, not for this record: nothing to postpone
            report.troubled += 1
            self._on_trouble(task_id, refused)
            raise TryAgain(f"{task_id}: {refused}") from refused
        if decision.task is task and not task.owed:
            self._tasks.rearm(task, due(task, now))
            report.rearmed += 1

    def _save(self, task: Task, decision: Decision, now: int) -> bool:
        """The supervisor alone may raise the due instant: it read the record just now."""
        moved_on = decision.task
        if not settled(moved_on):
            moved_on = replace(moved_on, due_at=due(moved_on, now))
        saved = self._tasks.save(moved_on, seen=task.version, history=decision.history)
        return not isinstance(saved, Superseded)

    def _send(
        self, before: Task, plan: Plan | None, decision: Decision, report: PassReport
    ) -> None:
        task_id = before.task_id
        for command in decision.commands:
            if isinstance(command, StartTask):
                self._outbox.send_start(task_id)
            elif isinstance(command, InspectAt):
                delay = max(0, command.at - self._clock())
                if delay <= LONGEST_DELAY:
                    self._outbox.send_inspect(task_id, delay=delay)
        delivered = deliver_owed(
            decision.task,
            plan,
            seen=before.version,
            tasks=self._tasks,
            outbox=self._outbox,
            clock=self._clock,
        )
        report.delivered.append((task_id, delivered))

    def _count(self, before: Task, decision: Decision, report: PassReport) -> None:
        if decision.task is not before or decision.commands:
            report.recovered += 1
            report.reasons.append((before.task_id, decision.reason))
        if decision.task.ended and not before.ended:
            report.archived += 1

    def _postpone(self, task_id: str, problem: Exception) -> None:
        """Alert, then come back later and later: doubled from a minute up to six hours."""
        now = self._clock()
        try:
            times = self._tasks.trouble(task_id)
            self._outbox.publish(trouble_alert(task_id, type(problem).__name__, now))
            wait = min(MINUTE * 2 ** min(times - 1, 20), LONGEST_POSTPONEMENT)
            self._tasks.postpone(task_id, now + wait)
        except (TryAgain, CallRefused) as another:
            self._on_trouble(task_id, another)  # still due: a later pass alerts and postpones


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
