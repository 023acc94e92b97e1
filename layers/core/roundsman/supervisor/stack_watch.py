"""The watch over the stack itself, for a stack that has few alarms or one.

After a pass, the supervisor looks at the queues of submission and of the scheduler, at the
RejectedQueue and at their dead-letter queues. It looks at the queues of the agents every
AGENTS_EVERY, and at each look while work is open. What is wrong is stored, and alerted by the rules
of `roundsman.alerts.stack_faults`.

Messages wait if each look has seen some in the queue, for the patience of a backlog: outside of
CloudWatch, SQS does not report the age of the oldest message. A message of submission that was read
counts too, since nothing else shows that its function fails at each message. In the other queues
only what nobody has read counts, because a call of an agent may take long.

The calls of a look are bounded by the number of queues, and end with the time of the invocation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from roundsman.alerts.group import AlertKind
from roundsman.alerts.stack_faults import judge, sent, stack_fault_alert
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.stack_faults import FaultKind, QueueLook, Sighting, StackFaults, fault_key
from roundsman.ports import Clock, StackFaultStore, StackQueues
from roundsman.wire.alert import Alert

SUBMISSION, SCHEDULER, REJECTED = "SubmissionQueue", "SchedulerQueue", "RejectedQueue"
ENGINE_QUEUES = (SUBMISSION, SCHEDULER, REJECTED)

EVERY = 50 * SECOND
"""The shortest time in ms between two looks: a little less than the minute between passes, and more
than the interval of a supervisor that makes several passes a minute."""

AGENTS_EVERY = 5 * MINUTE - 10 * SECOND
"""The longest time in ms between two looks at the queues of agents: five minutes, and not six if a
pass begins a little early."""

QUEUE_KINDS = (FaultKind.DEAD_LETTERS, FaultKind.REJECTED, FaultKind.BACKLOG)


@dataclass(frozen=True, slots=True)
class PassFacts:
    """What a pass says of the stack."""

    lag: int
    """The age of the oldest due entry in ms."""
    behind: int
    """The longest time in ms for which anything has waited for the scheduler, as far as seen."""
    worked: bool
    """Whether the pass visited any task."""


@dataclass(frozen=True, slots=True)
class WatchConfig:
    """When what a watch sees is a fault. Times are in ms."""

    backlog_after: int
    """How long messages must wait in a queue."""
    interval: int
    """From the start of one pass to the start of the next."""
    urgent_queues: bool
    """Whether agents read their urgent queues; else nothing is sent to these, and they are not
    counted."""

    @property
    def late_after(self) -> int:
        """The lag that is too long: five passes, at least ten minutes."""
        return max(10 * MINUTE, 5 * self.interval)

    @property
    def behind_after(self) -> int:
        """The wait for the scheduler that is too long: three passes, at least five minutes."""
        return max(5 * MINUTE, 3 * self.interval)

    @property
    def patience(self) -> Mapping[FaultKind, int]:
        """How long each kind must be seen before it is alerted: LATE, for three passes."""
        late = 2 * max(self.interval, MINUTE) - 10 * SECOND
        return {FaultKind.BACKLOG: self.backlog_after, FaultKind.LATE: late}


@dataclass(slots=True)
class WatchReport:
    """What a look did, for the log."""

    alerted: list[tuple[str, AlertKind]] = field(default_factory=list)
    """(fault, kind of news) of each alert that was published."""
    problems: list[str] = field(default_factory=list)
    """What could not be read, stored or published; a later look does it."""
    refused: str | None = None
    """The first call that AWS refused; None if there was none."""


@dataclass(kw_only=True, eq=False)
class StackWatch:
    """Looks at the stack after a pass, and alerts what is wrong with it."""

    queues: StackQueues
    faults: StackFaultStore
    publish: Callable[[Alert], None]
    clock: Clock
    config: WatchConfig
    _looked_at: int | None = field(default=None, init=False)
    _agents_at: int | None = field(default=None, init=False)
    _work_open: bool = field(default=False, init=False)

    def look(self, facts: PassFacts, go_on: Callable[[], bool]) -> WatchReport | None:
        """Look at the stack while `go_on` returns True; None if the last look was just before.

        Raises nothing.
        """
        now = self.clock()
        if self._looked_at is not None and now - self._looked_at < EVERY:
            return None
        self._looked_at = now
        report = WatchReport()
        seen = self._of_the_pass(facts)
        looked_at = {
            fault_key(FaultKind.BEHIND, "scheduler"),
            fault_key(FaultKind.LATE, "supervisor"),
        }
        names = set[str]()
        found = self._count(ENGINE_QUEUES, go_on, report)
        work_open = facts.worked or any(each.visible or each.hidden for each in found)
        agents_due = self._agents_at is None or now - self._agents_at >= AGENTS_EVERY
        whole = False
        if agents_due or work_open or self._work_open:
            names = self._names(report)
            counted = [name for name in sorted(names) if self._is_used(name)]
            of_agents = self._count(counted, go_on, report)
            whole = bool(names) and len(of_agents) == len(counted)
            if whole:
                self._agents_at = now
            self._work_open = any(each.visible or each.hidden for each in of_agents)
            found += of_agents
        for each in found:
            looked_at |= {fault_key(kind, each.name) for kind in QUEUE_KINDS}
            seen += self._of_queue(each)
        self._store(seen, looked_at, {*ENGINE_QUEUES, *names} if whole else None, report)
        return report

    def _is_used(self, name: str) -> bool:
        return self.config.urgent_queues or not name.endswith("UrgentRequestQueue")

    def _of_the_pass(self, facts: PassFacts) -> list[Sighting]:
        found = []
        if facts.behind > self.config.behind_after:
            found.append(Sighting(FaultKind.BEHIND, "scheduler", facts.behind))
        if facts.lag > self.config.late_after:
            found.append(Sighting(FaultKind.LATE, "supervisor", facts.lag))
        return found

    def _of_queue(self, look: QueueLook) -> list[Sighting]:
        if look.name == REJECTED:
            amount = look.visible + look.hidden
            return [Sighting(FaultKind.REJECTED, REJECTED, amount)] if amount else []
        found = []
        if look.dead:
            found.append(Sighting(FaultKind.DEAD_LETTERS, look.name, look.dead))
        waiting = look.visible + (look.hidden if look.name == SUBMISSION else 0)
        if waiting:
            found.append(Sighting(FaultKind.BACKLOG, look.name, waiting))
        return found

    def _names(self, report: WatchReport) -> set[str]:
        try:
            return set(self.queues.of_agents())
        except (TryAgain, CallRefused) as problem:
            _note(problem, report)
            return set()

    def _count(
        self, names: "tuple[str, ...] | list[str]", go_on: Callable[[], bool], report: WatchReport
    ) -> list[QueueLook]:
        found = []
        for name in names:
            if not go_on():
                report.problems.append("the time of the invocation was over")
                break
            try:
                found.append(self.queues.look(name))
            except (TryAgain, CallRefused) as problem:
                _note(problem, report)
        return found

    def _store(
        self,
        seen: list[Sighting],
        looked_at: set[str],
        existing: set[str] | None,
        report: WatchReport,
    ) -> None:
        """Store what was seen, publish the alerts that follow, and store that they are sent.

        `existing` are the names of all queues; None if they are not all known. A fault of a queue
        that does not exist any more counts as not seen.
        """
        now = self.clock()
        try:
            stored = self.faults.read()
            gone = {
                key
                for key, fault in stored.by_key.items()
                if existing is not None
                and fault.kind in QUEUE_KINDS
                and fault.about not in existing
            }
            judged = judge(stored.by_key, seen, looked_at | gone, self.config.patience, now)
            after = StackFaults(stored.version + 1, judged.faults)
            if judged.faults == stored.by_key or not self.faults.write(after, seen=stored.version):
                return  # nothing is new, or another supervisor has looked and sends the alerts
        except (TryAgain, CallRefused) as problem:
            _note(problem, report)
            return
        for key, news in judged.news:
            try:
                self.publish(stack_fault_alert(news, judged.faults[key], now))
            except (TryAgain, CallRefused) as problem:
                _note(problem, report)
            else:
                report.alerted.append((key, news))
        if report.alerted:
            self._note_sent(after, report)

    def _note_sent(self, stored: StackFaults, report: WatchReport) -> None:
        done = sent(stored.by_key, report.alerted, self.clock())
        try:
            self.faults.write(StackFaults(stored.version + 1, done), seen=stored.version)
        except (TryAgain, CallRefused) as problem:
            _note(problem, report)


def _note(problem: TryAgain | CallRefused, report: WatchReport) -> None:
    report.problems.append(str(problem))
    if isinstance(problem, CallRefused) and report.refused is None:
        report.refused = str(problem)
