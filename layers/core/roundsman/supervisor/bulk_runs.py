"""A supervisor carries out bulk runs: the moves that `bulk_moves` decides, and their writes.

The supervisor visits the open runs every VISIT_INTERVAL, between its passes. A visit checks the
orders in flight, and sends the commands that are to be delivered soon: the messages of one visit
are spread by their delays, so that the scheduler receives them at the run's rate.

The orders of a send are stored before the send. So the process may end at any point: the next visit
checks the orders in flight, and a command without a trace in its task or history is sent again. A
duplicate has no effect, because the command's id is the run's id.

Each write of a run is conditional on the version that was read. So of two supervisors that carry
out the same run, one sends nothing. That a run names its carrier saves the other the reads.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

from roundsman.engine.bulk_eligibility import (
    GONE,
    NOT_BY_THIS_RUN,
    WOULD_WAIT,
    Eligible,
    NotFor,
    event_for,
    failure_words,
    held_for,
    hold_sentence,
    judged,
    refusals,
    result_of,
    result_of_gone,
    was_taken,
)
from roundsman.engine.bulk_moves import (
    CheckOrders,
    Finish,
    GiveUp,
    Send,
    Stop,
    WaitUntil,
    next_move,
)
from roundsman.errors import CallRefused, SchemaTooNew, TryAgain, UnreadableRecord
from roundsman.model.bulk_run import (
    TRIES,
    BulkRecord,
    InFlightOrder,
    ListedRun,
    OrderNote,
    OrderResult,
    PlannedOrder,
    RunProgress,
    RunState,
    nothing_new,
    requested,
    taken_up,
    to_send_again,
    turned_down,
    were_sent,
    with_result,
)
from roundsman.model.events import Move, Resubmit
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.json import Json
from roundsman.model.record_limits import cut
from roundsman.model.task import Task
from roundsman.ports import (
    LONGEST_DELAY,
    BulkRunStore,
    Clock,
    HoldStore,
    OrderStore,
    Outbox,
    PlanStore,
    TaskStore,
)
from roundsman.supervisor.supervisor import VisitTimes
from roundsman.wire.commands import command_of

SENDS_AHEAD = 20 * SECOND
"""ms after a visit until which its commands are delivered: two intervals, so that the rate stays
the same if a visit is late. SQS takes no message back, so a run that stops still delivers commands
for this time."""

CARRIED_FOR = 25 * SECOND
"""ms after a write in which no other supervisor carries the run out. The last visit of an
invocation releases the run."""

SENT_AGAIN_AFTER = 2 * MINUTE
"""ms after the delivery of a command without any trace of it, when it is sent again."""

LONGEST_NOTE = 300  # bytes
MOST_NOTES = 100
"""The number of orders that failed again or were refused, from which they are stored."""
"""Characters of a sentence in the list of orders that failed again or were refused."""


@dataclass(slots=True)
class BulkReport:
    """What one visit did, for the log and the metrics."""

    open: int = 0
    """Runs that are to be visited again."""
    checked: int = 0
    """Orders that were checked for a result."""
    sent: int = 0
    """Commands that were sent."""
    moved: list[tuple[str, str]] = field(default_factory=list)
    """(run id, why) of each run that changed its state or could not be carried on."""
    refused: str | None = None
    """The first call that AWS refused; None if there was none."""


@dataclass(frozen=True, slots=True)
class BulkPorts:
    """What bulk runs are carried out with."""

    runs: BulkRunStore
    tasks: TaskStore
    orders: OrderStore
    plans: PlanStore
    holds: HoldStore
    outbox: Outbox
    clock: Clock


class _Overtaken(Exception):
    """Another supervisor has stored the progress first, and carries the run out."""


@dataclass(eq=False)
class BulkRuns:
    """Carries out the open bulk runs.

    `instance` is the name of this process. `on_trouble` is called with a run id and the exception
    for each problem that must be logged.
    """

    ports: BulkPorts
    _: KW_ONLY
    instance: str
    on_trouble: Callable[[str, Exception], None]

    def visit(self, times: VisitTimes) -> BulkReport:
        """Carry each open run as far as it can go now.

        Raises nothing: a fault of one run must not delay the others, nor the passes.
        """
        report = BulkReport()
        try:
            found = self.ports.runs.open_runs()
        except (TryAgain, CallRefused) as problem:
            self._note("bulk", problem, report)
            report.open = int(isinstance(problem, TryAgain))
            return report
        for one in found:
            try:
                report.open += self._visit_one(one, times, report)
            except _Overtaken:
                report.open += 1
            except Exception as problem:  # noqa: BLE001 - a record may break the decisions
                report.open += 1
                self._note(one.run_id, problem, report)
        return report

    def _visit_one(self, one: ListedRun, times: VisitTimes, report: BulkReport) -> bool:
        """Carry one run on; False if nothing is left to do for it."""
        runs, now = self.ports.runs, self.ports.clock()
        if now >= times.stop_at:
            return True
        record = runs.load(one.run_id, one.starter)
        if record is None:
            runs.close(one)
            return False
        if record.carrier != self.instance and record.carried_until > now:
            return True
        visit = _Visit(self.ports, self.instance, record, times, report, self.on_trouble)
        request = runs.request(one) if one.asked_at > record.asked_at else None
        if request is not None:
            visit.change(requested(record, request, now))
        going = visit.carry()
        if visit.refused is not None:
            self._note(one.run_id, visit.refused, report)
        if not going:
            runs.close(one)
        return going

    def _note(self, run_id: str, problem: Exception, report: BulkReport) -> None:
        report.moved.append((run_id, str(problem)))
        if isinstance(problem, CallRefused):
            if report.refused is None:
                report.refused = str(problem)
                self.on_trouble(run_id, problem)
        elif not isinstance(problem, TryAgain):
            self.on_trouble(run_id, problem)


@dataclass(eq=False)
class _Visit:
    """One visit to one run. Its progress in memory may be newer than the stored one."""

    ports: BulkPorts
    instance: str
    record: BulkRecord
    times: VisitTimes
    report: BulkReport
    on_trouble: Callable[[str, Exception], None]
    _notes: list[OrderNote] = field(default_factory=list, init=False)
    _changed: bool = field(default=False, init=False)
    refused: CallRefused | None = field(default=None, init=False)
    """Why commands could not be sent; the run is stopped then."""

    def change(self, record: BulkRecord) -> None:
        """Set the record in memory; the next write stores it."""
        if record.state is not self.record.state:
            why = f": {record.why}" if record.why else ""
            self.report.moved.append((record.run.id, f"{record.state.value}{why}"))
        self.record = record
        self._changed = True

    def carry(self) -> bool:
        """Make the moves that can be made now. Returns False if the run needs no other visit.

        Raises _Overtaken, TryAgain, CallRefused or UnreadableRecord; what was not stored is then
        done again by the next visit.
        """
        while not self._time_is_over():
            now = self.ports.clock()
            ahead = max(now + SENDS_AHEAD, self.times.next_at + SENDS_AHEAD // 2)
            match next_move(self.record, now, ahead):
                case Send(most):
                    self._send(most)
                case CheckOrders(orders):
                    self._check(orders)
                    if len(self._notes) >= MOST_NOTES:  # they are one item, of at most 400 KB
                        self._save()
                case WaitUntil():
                    break
                case Stop(why):
                    self.change(replace(self.record, state=RunState.STOPPED, why=why))
                case Finish():
                    self.change(replace(self.record, state=RunState.FINISHED))
                case GiveUp():
                    self._save_if_needed(going=False)
                    return False
        self._save_if_needed(going=True)
        return True

    def _time_is_over(self) -> bool:
        return self.ports.clock() >= self.times.stop_at

    # --- sending -----------------------------------------------------------------------------

    def _send(self, most: int) -> None:
        record = self.record
        place = record.progress.reached
        try:
            batch = self.ports.runs.orders(record.run, place, most)
        except UnreadableRecord as problem:
            # The results of the orders that were sent are stored with it.
            self.change(replace(record, state=RunState.STOPPED, why=str(problem)))
            return
        tasks: list[tuple[PlannedOrder, Task]] = []
        to_send: list[InFlightOrder] = []
        refused: list[tuple[str, str]] = []
        eligible: list[Eligible] = []
        for offset, planned in enumerate(batch):
            task, found = self._judge(planned)
            if isinstance(found, NotFor) or task is None:
                refused.append((planned.order, found.why if isinstance(found, NotFor) else GONE))
                continue
            to_send.append(InFlightOrder(planned.order, found.to_undo, place=place + offset))
            tasks.append((planned, task))
            eligible.append(found)
        held = self._held(eligible)
        if held:
            self.change(replace(record, state=RunState.STOPPED, why=held, on_hold=True))
            return
        self._notes += [_note(order, why, failed=False) for order, why in refused]
        now = self.ports.clock()
        self._set(taken_up(record.progress, to_send, refused, record.run.terms, now))
        self._save()
        self._post(tasks)

    def _judge(self, planned: PlannedOrder) -> tuple[Task | None, Eligible | NotFor]:
        """The order's task, and whether it is eligible for the run's command now.

        An order whose record or plan cannot be read, or on which the engine fails, is not eligible;
        the others are not affected.
        """
        now, run = self.ports.clock(), self.record.run
        event = run.event
        plan, next_plan, order = None, None, None
        try:
            task = self.ports.tasks.load(planned.order, now)
            if task is not None:
                plan = self.ports.plans.plan(task.plan)
                if isinstance(event, Resubmit | Move) and event.plan is not None:
                    next_plan = self.ports.plans.plan(event.plan)
                if isinstance(event, Resubmit):
                    order = self._content(event, planned)
            return task, judged(run, planned, plan, task, now, next_plan, order=order)
        except (SchemaTooNew, UnreadableRecord) as problem:
            return None, NotFor(str(problem))
        except (TryAgain, CallRefused):
            raise
        except Exception as defect:  # noqa: BLE001  # of one record; the run goes on without it
            self.on_trouble(run.id, defect)
            return None, NotFor(f"its record cannot be handled: {type(defect).__name__}")

    def _content(self, event: Resubmit, planned: PlannedOrder) -> Json:
        """The content of the order row, if the command corrects the input."""
        if not event.changes and not planned.changes:
            return None
        row = self.ports.orders.order(planned.order)
        return None if row is None else row.content

    def _held(self, eligible: Sequence[Eligible]) -> str:
        """Return the hold that would park a step of these, in words; empty if there is none."""
        anyway = self.record.run.terms.anyway or self.record.anyway
        if anyway or not any(one.agents for one in eligible):
            return ""
        holds = self.ports.holds.holds()
        found = next((hold for one in eligible if (hold := held_for(one, holds))), None)
        return f"{hold_sentence(found)}{WOULD_WAIT}" if found else ""

    def _post(self, tasks: Sequence[tuple[PlannedOrder, Task]]) -> None:
        """Send the command to each of these tasks, to be delivered in its turn. Raises TryAgain.

        If AWS refuses the call, the run is stopped: it would refuse it again.
        """
        if not tasks:
            return
        run, now = self.record.run, self.ports.clock()
        dues = {one.order: one.due for one in self.record.progress.on_their_way}
        commands = [
            (
                command_of(task.task_id, event_for(run, planned, task)),
                min(LONGEST_DELAY, max(0, dues[task.task_id] - now)),
            )
            for planned, task in tasks
        ]
        try:
            self.ports.outbox.send_commands(commands)
        except CallRefused as refused:
            self.refused = refused
            self.change(replace(self.record, state=RunState.STOPPED, why=str(refused)))
            return
        self.report.sent += len(commands)
        self._set(were_sent(self.record.progress, [task.task_id for _, task in tasks]))

    # --- checking ----------------------------------------------------------------------------

    def _check(self, orders: Sequence[InFlightOrder]) -> None:
        """Check these orders for results, and send commands again that were refused or not sent.

        An order whose record or history cannot be read, or on which the engine fails, is checked
        again later.
        """
        again: list[tuple[PlannedOrder, Task]] = []
        for one in orders:
            if self._time_is_over():
                break
            self.report.checked += 1
            try:
                task = self.ports.tasks.load(one.order, self.ports.clock())
                if task is None:
                    self._settle_gone(one)
                elif was_taken(self.record.run, task):
                    self._settle(one, task)
                else:
                    again += self._without_trace(one, task)
            except (SchemaTooNew, UnreadableRecord):
                self._set(nothing_new(self.record.progress, one.order, self.ports.clock()))
            except (TryAgain, CallRefused):
                raise
            except Exception as defect:  # noqa: BLE001  # of one record, as above
                self.on_trouble(self.record.run.id, defect)
                self._set(nothing_new(self.record.progress, one.order, self.ports.clock()))
        if again:
            self._save()
            self._post(again)

    def _settle(self, one: InFlightOrder, task: Task) -> None:
        found, now = result_of(self.record.run, one, task), self.ports.clock()
        if found is None:
            self._set(nothing_new(self.record.progress, one.order, now))
        else:
            self._record_result(one, found, failure_words(task))

    def _settle_gone(self, one: InFlightOrder) -> None:
        rows = self.ports.tasks.history(one.order)
        found = result_of_gone(self.record.run, one, rows)
        if found is None:
            self._refuse(one, NOT_BY_THIS_RUN)
            return
        words = ("gone", "it failed again or was undone, and its retention has ended")
        self._record_result(one, found, words)

    def _record_result(
        self, one: InFlightOrder, result: OrderResult, failure: tuple[str, str]
    ) -> None:
        if result is OrderResult.FAILED:
            self._notes.append(_note(one.order, failure[1], failed=True))
        now = self.ports.clock()
        self._set(with_result(self.record.progress, one.order, result, failure, now))

    def _refuse(self, one: InFlightOrder, why: str) -> None:
        self._notes.append(_note(one.order, why, failed=False))
        now = self.ports.clock()
        self._set(turned_down(self.record.progress, one.order, why, now))

    def _without_trace(self, one: InFlightOrder, task: Task) -> list[tuple[PlannedOrder, Task]]:
        """Return the order if its command is to be sent (again); if not, record its state.

        The record of the task does not show the command. Its history may.
        """
        record, now = self.record, self.ports.clock()
        rows = self.ports.tasks.history(one.order)
        if was_taken(record.run, task, rows):
            # The task was read before the history: its old failure would count as a new one.
            latest = self.ports.tasks.load(one.order, now)
            if latest is None:
                self._settle_gone(one)
            else:
                self._settle(one, latest)
            return []
        refused = refusals(record.run, rows, since=one.due)
        silent = one.tries < TRIES and now >= one.due + SENT_AGAIN_AFTER
        if (one.sent and not refused and not silent) or record.state is not RunState.RUNNING:
            self._set(nothing_new(record.progress, one.order, now))
            return []
        (planned,) = self.ports.runs.orders(record.run, one.place, 1)
        latest, found = self._judge(planned)
        if isinstance(found, NotFor) or latest is None or (refused and one.tries >= TRIES):
            why = found.why if isinstance(found, NotFor) else refused[-1] if refused else GONE
            self._refuse(one, why)
            return []
        self._set(
            to_send_again(
                record.progress,
                one.order,
                to_undo=found.to_undo,
                tried=one.sent,
                terms=record.run.terms,
                now=now,
            )
        )
        return [(planned, latest)]

    # --- storing -----------------------------------------------------------------------------

    def _set(self, progress: RunProgress) -> None:
        self.change(replace(self.record, progress=progress))

    def _save_if_needed(self, *, going: bool) -> None:
        """Store what changed, and keep the run, or release it for another process."""
        now, mine = self.ports.clock(), self.record.carrier == self.instance
        release = self.times.last or not going
        ends_soon = self.record.carried_until < now + CARRIED_FOR // 2
        if self._changed or (mine and release) or (not release and (ends_soon or not mine)):
            self._save(release=release)

    def _save(self, *, release: bool = False) -> None:
        """Store the record. Raises _Overtaken if another supervisor came first."""
        until = 0 if release else self.ports.clock() + CARRIED_FOR
        carrier = "" if release else self.instance
        wanted = replace(self.record, carrier=carrier, carried_until=until)
        stored = self.ports.runs.save(wanted, self._notes)
        if stored is None:
            raise _Overtaken
        self.record, self._changed, self._notes = stored, False, []


def _note(order: str, reason: str, *, failed: bool) -> OrderNote:
    return OrderNote(order, failed, cut(reason, LONGEST_NOTE))
