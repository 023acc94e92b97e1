"""Waking the orders that a hold or an open circuit has parked, once it has ended.

A parked order asks nothing while it waits. So when a hold has ended, a supervisor sends an Inspect
to each order that waits for it: urgent ones first, those that have waited longest first, at most
A_SECOND. It finds them in the `parked` index, by what they wait for. That a hold has ended is seen
in the stored holds themselves, so nothing has to be sent for it and nothing can be lost; a new hold
on the same target stops the waking, as it is read again at each visit.

After a round, what still waits is woken again: its Inspect may have been lost, or it may have been
parked on an old view of the agents. The supervisor then visits these orders itself. The rounds end
when nothing is found, or after LAST_ROUND.

The circuit of an agent closes only by the call of an order. So when its recovery time is over, one
order is woken as its trial. If the circuit does not open again and nothing else is heard, twice as
many are woken at each further recovery time, since what was sent may be lost. Only when the circuit
has closed are all orders woken.

How far it has come is stored before anything is sent, on condition of what was read: of two
supervisors, one sends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from roundsman.errors import CallRefused, TryAgain
from roundsman.model.holds import BREAKER, Hold, in_force, on_orders
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.situations import EVERY_ORDER
from roundsman.model.wakes import KNOWN_AFTER, EndedHolds, Wake, ended_holds
from roundsman.ports import (
    Clock,
    LeaseStore,
    Outbox,
    ParkedEntry,
    TaskStore,
    WakeHolds,
    WakeStore,
)
from roundsman.supervisor.parked import A_SECOND, STAGES, ParkedOrders, send_wakes
from roundsman.supervisor.supervisor import VisitTimes

SENT_AHEAD = 10 * SECOND
"""ms after the next visit until which orders are woken by one visit."""

ROUND_EVERY = 5 * MINUTE
"""ms from the end of one round to the next."""

LAST_ROUND = 12
"""The number of rounds after which an order that still waits is left to its own checks."""

TRIED_EVERY = 30 * SECOND
"""ms from one trial of an open circuit to the next, if nothing is heard of the first."""

MOST_TRIALS = 10
"""The number of trials from which on no more orders are woken at once, and they come less often."""

WATCHED_FOR = 60 * MINUTE
"""ms after a circuit has opened in which its recovery times are watched between passes, too."""


@dataclass(slots=True)
class WakeReport:
    """What one visit did, for the log."""

    going: bool = False
    """Whether another visit is needed before the next pass."""
    woken: list[tuple[str, int]] = field(default_factory=list)
    """(target, number of orders) of each target of which orders were woken."""
    tried: list[str] = field(default_factory=list)
    """The agents whose circuit an order was woken to try."""
    problem: str | None = None
    """Why the visit could not be completed; None if it was."""
    refused: str | None = None
    """The call that AWS refused; None if there was none."""


@dataclass(frozen=True, slots=True)
class WakePorts:
    """What orders are woken with."""

    holds: WakeHolds
    wakes: WakeStore
    tasks: TaskStore
    leases: LeaseStore
    outbox: Outbox
    clock: Clock


class Wakes:
    """Wakes what has waited for holds that have ended.

    `look` visits a task as a supervisor does, by its id and shard. `shards` is the configured
    number of shards.
    """

    def __init__(self, ports: WakePorts, *, shards: int, look: Callable[[str, int], None]) -> None:
        self._ports = ports
        self._shards = shards
        self._look = look
        self._done: dict[str, str] = {}

    def visit(self, times: VisitTimes) -> WakeReport:
        """Wake what is to be woken until the next visit.

        Raises nothing: what could not be done is done by the next visit.
        """
        report = WakeReport()
        try:
            self._visit(times, report)
        except (TryAgain, CallRefused) as problem:
            report.problem = str(problem)
            report.going = report.going or isinstance(problem, TryAgain)
            if isinstance(problem, CallRefused):
                report.refused = str(problem)
        return report

    def _visit(self, times: VisitTimes, report: WakeReport) -> None:
        now = self._ports.clock()
        stored = self._ports.holds.stored(latest=False)
        report.going = any(_ends_soon(hold, now) for hold in stored)
        ended = [one for one in ended_holds(stored, now) if self._done.get(one.target) != one.of]
        if not ended:
            return
        wakes = self._ports.wakes.read()
        shards = max(self._shards, self._ports.leases.read().shards)
        parked = ParkedOrders(self._ports.tasks, self._ports.clock, shards)
        for one in ended:
            before = wakes.get(one.target)
            known = before is not None and before.of == one.of
            wake = before if before and known else Wake(of=one.of, seen_at=now)
            if wake.done:
                self._done[one.target] = one.of
            elif one.on_trial:
                self._try(one, before, wake, parked, report)
            else:
                orders = on_orders(in_force(stored, now)) if one.target == EVERY_ORDER else []
                self._wake(one, before, wake, parked, orders, times, report)

    def _wake(  # one visit of one target
        self,
        ended: EndedHolds,
        before: Wake | None,
        wake: Wake,
        parked: ParkedOrders,
        held: Sequence[Hold],
        times: VisitTimes,
        report: WakeReport,
    ) -> None:
        """Wake as many orders of one target as may go on until shortly after the next visit."""
        now = self._ports.clock()
        if now < wake.next_at:
            return
        begin = max(now, wake.sent_to)
        if not wake.round:
            begin = max(begin, wake.seen_at + KNOWN_AFTER)
        most = (times.next_at + SENT_AHEAD - begin) * A_SECOND // SECOND
        report.going = True
        if most <= 0:
            return
        chosen, after = parked.choose(ended.target, wake, held, most)
        moved_on = replace(
            after,
            found=after.found or bool(chosen),
            sent_to=begin + len(chosen) * SECOND // A_SECOND,
        )
        if moved_on.stage == len(STAGES):
            moved_on = _after_round(moved_on, now)
        if not self._ports.wakes.write(ended.target, moved_on, before=before):
            return  # another supervisor wakes them
        if chosen:
            report.woken.append((ended.target, len(chosen)))
        if wake.round:
            for entry in chosen:
                if self._ports.clock() >= times.stop_at:
                    return
                self._look(entry.task_id, entry.shard)
            return
        send_wakes(self._ports.outbox, chosen, begin, now)

    def _try(
        self,
        ended: EndedHolds,
        before: Wake | None,
        wake: Wake,
        parked: ParkedOrders,
        report: WakeReport,
    ) -> None:
        """Wake the order that tries the agent's circuit, or more if nothing is heard of it."""
        now = self._ports.clock()
        if now < wake.next_at:
            report.going = report.going or bool(wake.found)
            return
        most = 2 ** min(wake.trials, MOST_TRIALS)
        chosen = list[ParkedEntry]()
        for stage in STAGES:
            for entry in parked.waiting(ended.target, stage, 0):
                if len(chosen) >= most:
                    break
                chosen.append(entry)
        later = TRIED_EVERY if chosen else TRIED_EVERY * 2 ** min(wake.trials, MOST_TRIALS)
        tried = replace(wake, trials=wake.trials + 1, next_at=now + later, found=bool(chosen))
        if not self._ports.wakes.write(ended.target, tried, before=before) or not chosen:
            return
        report.going = True
        report.tried.append(ended.target)
        if wake.trials:
            for entry in chosen:
                self._look(entry.task_id, entry.shard)
        else:
            self._ports.outbox.send_inspects([(entry.task_id, 0) for entry in chosen])


def _after_round(wake: Wake, now: int) -> Wake:
    """The wake after all that waited was woken once."""
    nothing = not wake.found and wake.round > 0
    return replace(
        wake,
        round=wake.round + 1,
        stage=0,
        found=False,
        next_at=now + (ROUND_EVERY if wake.found else MINUTE),
        done=nothing or wake.round + 1 >= LAST_ROUND,
    )


def _ends_soon(hold: Hold, now: int) -> bool:
    """Whether a hold may end before the next pass, and is watched until then."""
    if hold.until <= now or hold.unreadable:
        return False
    if hold.kind == BREAKER:  # a call may close it at any time
        return now - hold.since < WATCHED_FOR
    return hold.until < now + MINUTE
