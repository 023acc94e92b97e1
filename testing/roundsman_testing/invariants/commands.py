"""Checks of commands: what a command asks for shows in the record that is stored with it.

The same write stores the start of the steps that are ready after the command. So such a step may be
claimed, parked, skipped or failed in the record.
"""

from collections.abc import Iterator
from typing import TypeAlias

from roundsman.engine.claims import KEY_EXPIRED
from roundsman.engine.restored import VERSIONS_SKIPPED
from roundsman.model.events import (
    COMMAND_KINDS,
    Cancel,
    Erase,
    Extend,
    Move,
    OperatorEvent,
    Reconcile,
    Resolve,
    Resubmit,
    RunNow,
    Signalled,
    UndoAsked,
    UndoPart,
)
from roundsman.model.instants import SECOND
from roundsman.model.situations import WithoutAgent
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AfterUndo, StepRecord, Task
from roundsman.wire.commands import Command
from roundsman_testing.invariants.rules import Broken, Invariant, signal_ids

End: TypeAlias = tuple[TaskState, bool, tuple[str, ...]]
"""In which state a task is to end, whether after an undo, and of which part; empty for all."""

KEEPS_ENDING = (Extend, RunNow, Move, Reconcile, Signalled, Erase)
"""The commands after which a task that is ending ends as before."""

FAILED = frozenset({ProcessState.ERROR, ProcessState.UNDO_ERROR})
TO_UNDO = frozenset({ProcessState.UNDOING, ProcessState.UNDO_ERROR})
IS_DONE = frozenset({ProcessState.PROCESSED, ProcessState.UNDOING})
"""The states of a step that a person resolves as done. Its undo may begin with the same write."""

GOES_ON = frozenset({ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING})
"""The states of a step that a person resolves as not done."""


class Commands:
    """Follows the commands of a world and checks CARRIED_OUT.

    The caller reports each command before a scheduler handles it (`arrived`), and each stored
    record (`of_change`). `apart` is how far the clocks of parts differ, in ms.
    """

    def __init__(self, apart: int = 0) -> None:
        self._apart = apart
        self._asked: dict[tuple[str, str], OperatorEvent] = {}

    def arrived(self, command: Command) -> None:
        """Note what a command asks for."""
        if command.event is not None:
            self._asked[command.task_id, command.event.asked.command_id] = command.event

    def of_change(self, before: Task, after: Task, now: int) -> Iterator[Broken]:
        """Check two records of a task, the later one stored at `now` (epoch ms)."""
        if before.command_ids == after.command_ids:
            event = None
        else:
            event = self._asked.get((after.task_id, after.command_ids[-1]))
            if event is None:
                return  # it did not come through a queue of the world
            why = self._not_done(before, after, event, now)
            if why:
                what = f"{COMMAND_KINDS[type(event)]} {event.asked.command_id} is carried out"
                yield Broken(Invariant.CARRIED_OUT, after.task_id, f"{what}, and {why}")
        keeps = event is None or isinstance(event, KEEPS_ENDING)
        if keeps and before.ending is not None and _ends(after) != _ends(before):
            what = f"it was to end by {_ends(before)}, and now by {_ends(after)}"
            yield Broken(Invariant.CARRIED_OUT, after.task_id, f"{what}: nobody asked for that")

    def _not_done(self, before: Task, after: Task, event: OperatorEvent, now: int) -> str:
        """What the command asks for and the record does not show; empty if there is nothing."""
        why = ""
        match event:
            case Cancel():
                why = _not_ending(after, (TaskState.CANCELLED, event.undo, ()))
            case UndoAsked():
                why = _not_ending(after, (TaskState.UNDONE, True, ()))
            case UndoPart():
                earlier = () if before.ending is None else before.ending.part
                part = tuple(dict.fromkeys((*earlier, *event.steps)))
                why = _not_ending(after, (TaskState.COMPLETED, True, part))
            case Resubmit():
                why = next(_not_again(before, after, event, now - self._apart), "")
            case Resolve():
                why = _not_resolved(before, after, event)
            case Extend():
                why = _not_extended(before, after, event)
            case RunNow():
                why = _still_waits(before, after, now + self._apart)
            case Move():
                why = "" if after.plan == event.plan else "it has another plan"
            case Reconcile():
                why = _not_reconciled(before, after, event, now - self._apart)
            case Signalled():
                # It may have lost its last step in the same write: ACCOUNTED follows it then.
                known = (*signal_ids(after), *after.signals_left)
                why = "" if event.asked.command_id in known else "it is not stored"
            case Erase():
                why = "it is not erased" if after.erased_at is None else ""
        return why


def _ends(task: Task) -> End | None:
    """How the task is to end; None if it goes on."""
    ending = task.ending
    return None if ending is None else (ending.how, ending.undo, ending.part)


def _not_ending(after: Task, wanted: End) -> str:
    if _ends(after) != wanted:
        return f"the task is to end by {_ends(after)}, not by {wanted}"
    failed = wanted[1] and any(map(_undo_has_failed, after.steps.values()))
    return "an undo that has failed is not made again" if failed else ""


def _undo_has_failed(record: StepRecord) -> bool:
    """Whether the undo has failed, though it may be sent: the lifetime of its key is not over."""
    expired = record.error is not None and record.error.type == KEY_EXPIRED
    return record.process_state is ProcessState.UNDO_ERROR and not expired


def _not_again(before: Task, after: Task, event: Resubmit, now: int) -> Iterator[str]:
    anew = before.state in (TaskState.UNDONE, TaskState.CANCELLED)
    undoes = not anew and before.ending is not None and before.ending.undo
    failed = {name for name, one in after.steps.items() if one.process_state in FAILED}
    old = {name for name in failed if (after.steps[name].finished_at or 0) < now}
    if _ends(after) != (_ends(before) if undoes else None) and failed == old:
        yield f"the task is to end by {_ends(after)}"
    if after.start_at < now:
        yield "its time does not begin anew"
    if len(after.corrections) != len(before.corrections) + bool(event.changes):
        yield f"it has {len(after.corrections)} corrections"
    if event.plan not in (None, after.plan):
        yield "it has another plan"
    for name, earlier in before.steps.items():
        record, had_failed = after.step(name), earlier.process_state is ProcessState.ERROR
        asked = not event.steps or name in event.steps
        if asked and name in old and not (undoes and had_failed):
            yield f"{name} is still {record.process_state}"
        fresh = anew or (event.fresh_key and had_failed)
        if fresh and earlier.started_at is not None and not _has_new_key(earlier, record):
            yield f"{name} keeps its key"


def _not_resolved(before: Task, after: Task, event: Resolve) -> str:
    earlier, record = before.step(event.step), after.step(event.step)
    state = record.process_state
    if earlier.process_state in TO_UNDO:
        goes_on = state in TO_UNDO and record.tried == earlier.tried  # not at another agent
        return f"{event.step} is still {state}" if goes_on else ""
    if event.did:
        # What comes after it may fail at once, and its own undo with that: its key has expired.
        not_sent = state is ProcessState.UNDO_ERROR and not _undo_has_failed(record)
        done = state in IS_DONE or not_sent
        done = done and record.result == event.result and record.left_out is None
        return "" if done else f"{event.step} is {state}, or has another result"
    is_same = record.locked_by is not None and record.locked_by == earlier.locked_by
    if state not in GOES_ON or is_same or record.failure_count:
        return f"{event.step} is {state} after {record.failure_count} failures"
    keeps = event.fresh_key and not _has_new_key(earlier, record)
    return f"{event.step} keeps its key" if keeps else ""


def _has_new_key(before: StepRecord, after: StepRecord) -> bool:
    """Whether the step goes on under a fresh key, perhaps after its undo."""
    return after.round > before.round or after.after_undo is AfterUndo.NEW_KEY


def _not_extended(before: Task, after: Task, event: Extend) -> str:
    more, wanted = after.complete_by - before.complete_by, event.seconds * SECOND
    if event.step is not None:
        earlier, record = before.step(event.step), after.step(event.step)
        if record.locked_by != earlier.locked_by:
            return ""  # its time was over, and its request is sent again
        more = _until(record) - _until(earlier)
    return f"{more} ms are added, and not {wanted}" if more < wanted else ""


def _until(record: StepRecord) -> int:
    """Until when the step sleeps, waits for a signal, is polled, or may take, with the time of its
    next attempt."""
    if isinstance(record.situation, WithoutAgent):
        return record.situation.until
    if record.polling is not None:
        return record.polling.until
    return (record.until or 0) + record.extra


def _still_waits(before: Task, after: Task, now: int) -> str:
    if before.state is TaskState.SCHEDULED:
        return f"it is to start at {after.start_at}" if after.start_at > now else ""
    for name, record in after.steps.items():
        waits = record.process_state is ProcessState.PENDING and record.held_since is None
        if waits and (record.not_before or 0) > now:
            return f"{name} still waits"
    return ""


def _not_reconciled(before: Task, after: Task, event: Reconcile, now: int) -> str:
    if after.version < before.version + VERSIONS_SKIPPED:
        return f"its version is {after.version}"
    lost = now - max(event.restored_to, before.start_at)
    if before.ending is None and after.complete_by < before.complete_by + lost:
        return f"it has {after.complete_by - before.complete_by} ms more, and not {lost}"
    for name, earlier in before.steps.items():
        performs = earlier.process_state is ProcessState.PROCESSING
        again = earlier.under_way and not (performs and not before.performs(name))
        if again and after.step(name).locked_by == earlier.locked_by:
            return f"the attempt of {name} does not begin again"
    return ""
