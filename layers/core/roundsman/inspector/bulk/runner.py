"""Performing a bulk run: the moves that `bulk.moves` decides, and the writes of the progress.

The orders of a send are stored before the send. So the process may end at any point: when the run
is resumed, the orders in flight are checked first, and a command without a trace in its task or
history is sent again. A duplicate has no effect, because the command's id is the run's id.
"""

import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from roundsman.aws.clock import now
from roundsman.aws.errors import aws_errors, is_transient
from roundsman.errors import (
    CallRefused,
    RoundsmanError,
    SchemaTooNew,
    TryAgain,
    UnreadableRecord,
)
from roundsman.inspector.bulk.assess import (
    WOULD_WAIT,
    Eligible,
    NotFor,
    failure_words,
    held_for,
    hold_sentence,
    refusals,
    verdict,
    verdict_of_gone,
    was_taken,
)
from roundsman.inspector.bulk.dry_run import corrected_command, invalid_for_plan, judge_one
from roundsman.inspector.bulk.moves import CheckOrders, Finish, Send, Stop, WaitUntil, next_move
from roundsman.inspector.bulk.run import (
    TRIES,
    InFlightOrder,
    RunProgress,
    RunState,
    nothing_new,
    settled,
    taken_up,
    to_send_again,
    turned_down,
    were_sent,
)
from roundsman.inspector.bulk.store import HELD_FOR, DynamoBulks, Holder, StoredRun
from roundsman.inspector.clock import moment, pause
from roundsman.inspector.errors import InspectorError
from roundsman.inspector.read.stack import DeployedStack
from roundsman.model.events import OperatorEvent
from roundsman.model.instants import SECOND
from roundsman.model.task import Task
from roundsman.wire.commands import command_of
from roundsman.wire.limits import wire_text

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

STORE_EVERY = 10 * SECOND
"""The maximum time in ms between two writes of the record. A stop request is noticed then."""

LONGEST_SLEEP = SECOND  # the maximum delay until Ctrl-C is noticed
TROUBLES = 8  # TryAgain in a row, a second apart, end the run; throttling is over sooner


class RunClock:
    """A clock in epoch ms that changes of the system clock do not affect after its creation.

    A process uses one for all instants of a run: those in its progress, and those that its store
    writes (`bulks_of`), because the runner compares them.
    """

    def __init__(self) -> None:
        self._began, self._at = now(), moment()

    def __call__(self) -> int:
        """Return the current time in epoch ms."""
        return self._began + round((moment() - self._at) * SECOND)


def holder(by: str) -> Holder:
    """Return a new holder for this process."""
    return Holder(secrets.token_hex(8), by, socket.gethostname()[:100])


@dataclass
class BulkRunner:
    """Performs one bulk run."""

    stack: DeployedStack
    bulks: DynamoBulks
    record: StoredRun
    """The run; its progress may be newer than the stored one."""
    clock: Callable[[], int]
    """Returns epoch ms; the clock of `bulks`."""
    interrupted: Callable[[], bool]
    """Returns whether the run is to end as interrupted."""
    tell: Callable[[StoredRun], None]
    """Called with the record after each move."""

    def run(self) -> StoredRun:
        """Perform the run until it is finished, stopped or interrupted; return the stored record.

        Raises InspectorError if another process has taken over the run. Raises RoundsmanError if a
        call to AWS fails or the plan cannot be read, and KeyboardInterrupt on a second Ctrl-C; the
        run is then stored as interrupted, if possible.
        """
        try:
            return self._steps()
        except InspectorError:  # another process has the run, and stores its state
            raise
        except (RoundsmanError, KeyboardInterrupt) as error:
            with suppress(TryAgain, CallRefused, InspectorError):
                self._end(RunState.INTERRUPTED, str(error) or "interrupted")
            raise

    def _steps(self) -> StoredRun:
        troubles = 0
        while self.record.state is RunState.RUNNING:
            try:
                self._step()
                troubles = 0
            except TryAgain:
                troubles += 1
                if troubles == TROUBLES:
                    raise
                pause(1)
            self.tell(self.record)
        return self.record

    def _step(self) -> None:
        at = self.clock()
        move = next_move(self.record.run, self.record.progress, at)
        if self.interrupted() and not isinstance(move, Finish):
            return self._end(RunState.INTERRUPTED, "interrupted")
        if self.record.stop_asked and not isinstance(move, Finish):
            return self._end(RunState.STOPPED, self.record.stop_asked)
        if at - self.record.saved_at >= STORE_EVERY:
            self._store(self.record.progress)
        match move:
            case Send(most):
                self._send(most)
            case CheckOrders(orders):
                self._look(orders)
            case WaitUntil(until):
                pause(max(0.001, min(until - at, LONGEST_SLEEP) / SECOND))
            case Stop(why):
                self._end(RunState.STOPPED, why)
            case Finish():
                self._end(RunState.FINISHED, "")
        return None

    # --- sending -----------------------------------------------------------------------------

    def _send(self, most: int) -> None:
        run, progress = self.record.run, self.record.progress
        orders = self.bulks.orders(run, progress.reached, most)
        tasks = self.stack.records.load_many(orders, now())
        invalid = invalid_for_plan(self.stack, run, list(tasks.tasks.values()))
        to_send: list[InFlightOrder] = []
        refused: list[tuple[str, str]] = []
        eligible: list[Eligible] = []
        for order in orders:
            unfit = tasks.unreadable.get(order) or invalid.get(order)
            found = self._judged(tasks.tasks.get(order), unfit)
            if isinstance(found, NotFor):
                refused.append((order, found.why))
            else:
                to_send.append(InFlightOrder(order, found.to_undo))
                eligible.append(found)
        held = self._held(eligible)
        if held:
            self._end(RunState.STOPPED, held, on_hold=True)
            return
        self._store(taken_up(progress, to_send, refused))
        self._post([tasks.tasks[one.order] for one in to_send])

    def _judged(self, task: Task | None, unfit: str | None) -> Eligible | NotFor:
        return judge_one(self.stack, self.record.run, task, unfit, now())

    def _held(self, eligible: Sequence[Eligible]) -> str:
        """Return the hold that would park a step of these, in words; empty if none or `anyway`."""
        if self.record.run.terms.anyway or not any(one.agents for one in eligible):
            return ""
        holds = self.stack.holds.holds()
        found = next((hold for one in eligible if (hold := held_for(one, holds))), None)
        return f"{hold_sentence(found)}{WOULD_WAIT}" if found else ""

    def _post(self, tasks: Sequence[Task]) -> None:
        """Send the command to each of these tasks, at most 10. Raises TryAgain or CallRefused."""
        if not tasks:
            return
        run = self.record.run
        entries: list[SendMessageBatchRequestEntryTypeDef] = [
            {
                "Id": str(place),
                "MessageBody": wire_text(command_of(task.task_id, self._event(task)).body()),
            }
            for place, task in enumerate(tasks)
        ]
        doing = f"sending commands of {run.id}"
        with aws_errors(doing):
            answer = self.stack.sqs.send_message_batch(
                QueueUrl=self.stack.output("SchedulerQueueUrl"), Entries=entries
            )
        failed = {entry["Id"]: entry for entry in answer.get("Failed", [])}
        accepted = [task.task_id for place, task in enumerate(tasks) if str(place) not in failed]
        self._now(were_sent(self.record.progress, accepted, run.terms, self.clock()))
        for entry in failed.values():
            if entry["SenderFault"] and not is_transient(entry["Code"]):
                raise CallRefused(f"{doing}: {entry['Code']}", entry["Code"])
        if failed:
            raise TryAgain(f"{doing}: SQS refused {len(failed)} of the messages")

    def _event(self, task: Task) -> OperatorEvent:
        """The command for one task: a correction has the computed fields of this order too."""
        fixed = corrected_command(self.stack, self.record.run, task)
        return self.record.run.event_for(task.version) if fixed is None else fixed.event

    # --- checking ----------------------------------------------------------------------------

    def _look(self, orders: Sequence[InFlightOrder]) -> None:
        """Check these orders for results, and send commands again that were refused or not sent.

        An order whose record or history cannot be read is checked again later.
        """
        tasks = self.stack.records.load_many([one.order for one in orders], now())
        again: list[Task] = []
        for one in orders:
            task = tasks.tasks.get(one.order)
            try:
                if one.order in tasks.unreadable:
                    self._now(nothing_new(self.record.progress, one.order, self.clock()))
                elif task is None:
                    self._settle_gone(one)
                elif was_taken(self.record.run, task):
                    self._settle(one, task)
                elif self._is_to_send(one, task):
                    again.append(task)
            except (SchemaTooNew, UnreadableRecord):  # the history is unreadable
                self._now(nothing_new(self.record.progress, one.order, self.clock()))
        for first in range(0, len(again), 10):
            self._post(again[first : first + 10])

    def _settle(self, one: InFlightOrder, task: Task) -> None:
        found, at = verdict(self.record.run, one, task), self.clock()
        progress = self.record.progress
        if found is None:
            self._now(nothing_new(progress, one.order, at))
        else:
            self._now(settled(progress, one.order, found, failure_words(task), at))

    def _settle_anew(self, one: InFlightOrder) -> None:
        """Record the result with a newly read task, after the history shows the command.

        The task that was read before the history may be older than the command. Its old failure
        would be recorded as a new one.
        """
        tasks = self.stack.records.load_many([one.order], now())
        if one.order in tasks.tasks:
            self._settle(one, tasks.tasks[one.order])
        elif one.order in tasks.unreadable:
            self._now(nothing_new(self.record.progress, one.order, self.clock()))
        else:
            self._settle_gone(one)

    def _settle_gone(self, one: InFlightOrder) -> None:
        rows = self.stack.tasks.history(one.order)
        found = verdict_of_gone(self.record.run, one, rows)
        words = ("gone", "it was undone, and its retention has ended")
        self._now(settled(self.record.progress, one.order, found, words, self.clock()))

    def _is_to_send(self, one: InFlightOrder, task: Task) -> bool:
        """Return whether to send the command (again); if not, record the state of the order."""
        rows, at = self.stack.tasks.history(one.order), self.clock()
        progress, said = self.record.progress, refusals(self.record.run, rows)
        if was_taken(self.record.run, task, rows):
            self._settle_anew(one)
            return False
        refused_now = len(said) >= one.tries
        if one.sent and not refused_now:
            self._now(nothing_new(progress, one.order, at))
            return False
        found = self._judged(task, None)
        if isinstance(found, NotFor) or (refused_now and one.tries >= TRIES):
            why = found.why if isinstance(found, NotFor) else said[-1]
            self._now(turned_down(progress, one.order, why, at))
            return False
        self._now(to_send_again(progress, one.order, to_undo=found.to_undo, tried=refused_now))
        return True

    # --- storing -----------------------------------------------------------------------------

    def _now(self, progress: RunProgress) -> None:
        """Set the progress in memory; the next write stores it."""
        self.record = replace(self.record, progress=progress)

    def _store(self, progress: RunProgress) -> None:
        """Store the progress. Raises InspectorError if another process has taken over the run."""
        held = self.record.holder
        until = self.clock() + HELD_FOR
        wanted = replace(self.record, progress=progress, holder=held and replace(held, until=until))
        self._save(wanted)

    def _end(self, state: RunState, why: str, *, on_hold: bool = False) -> None:
        self._save(replace(self.record, state=state, why=why, on_hold=on_hold, holder=None))

    def _save(self, wanted: StoredRun) -> None:
        stored = self.bulks.save(wanted)
        if stored is None:
            raise InspectorError(
                f"Another process now runs {self.record.run.id}; this one sends nothing more. "
                f"See: roundsman bulk show {self.record.run.id}"
            )
        self.record = stored
