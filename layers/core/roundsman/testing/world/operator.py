"""What a person at the operator's desk, or the application, asks of a world's tasks."""

from collections.abc import Callable
from datetime import timedelta
from itertools import count

from roundsman.model.events import (
    Asked,
    Cancel,
    Extend,
    OperatorEvent,
    Resolve,
    Resubmit,
    RunNow,
    UndoAsked,
)
from roundsman.model.json import Json
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, Task, idempotency_key
from roundsman.testing.ledger import EffectKey, Ledger
from roundsman.wire.commands import command_of

UNDOES = (ProcessState.UNDOING, ProcessState.UNDO_ERROR)


class Operator:
    """Sends commands, each with an id of its own; whether one was refused says the history.

    `seen` is the version of the record that the person saw, where the command is to be refused
    on any other.
    """

    def __init__(
        self, send: Callable[[str], None], task: Callable[[str], Task], ledger: Ledger
    ) -> None:
        """`send` puts a command's text into the scheduler's queue."""
        self._send = send
        self._task = task
        self._ledger = ledger
        self._numbers = count(1)

    def asked(self, reason: str = "", *, seen: int | None = None) -> Asked:
        """Who asks, by a command id that was not used before."""
        return Asked(f"command-{next(self._numbers)}", "operator", reason, seen)

    def ask(self, order_id: str, event: OperatorEvent) -> None:
        """Send any command."""
        self._send(command_of(order_id, event).body())

    def resubmit(
        self,
        order_id: str,
        *steps: str,
        fresh_key: bool = False,
        again: bool = False,
        seen: int | None = None,
    ) -> None:
        """Go on with a task that a failure has ended."""
        self.ask(order_id, Resubmit(self.asked(seen=seen), steps, fresh_key, again))

    def undo(self, order_id: str, *, seen: int | None = None) -> None:
        """Compensate whatever may have happened."""
        self.ask(order_id, UndoAsked(self.asked(seen=seen)))

    def cancel(self, order_id: str, *, undo: bool = True, seen: int | None = None) -> None:
        """Stop; with `undo`, compensate first."""
        self.ask(order_id, Cancel(self.asked(seen=seen), undo))

    def extend(self, order_id: str, by: timedelta, step: str | None = None) -> None:
        """More time."""
        self.ask(order_id, Extend(self.asked(), round(by.total_seconds()), step))

    def run_now(self, order_id: str) -> None:
        """Wait no longer."""
        self.ask(order_id, RunNow(self.asked()))

    def resolve(
        self,
        order_id: str,
        step: str,
        *,
        did: bool,
        result: Json = None,
        seen: int | None = None,
    ) -> None:
        """Say how a step ended. What the person says, they have seen to at the service first.

        Raises ValueError for a step that was never begun.
        """
        task = self._task(order_id)
        if step not in task.steps:
            begun = ", ".join(task.steps)
            raise ValueError(f"{order_id} has begun no step {step!r}; it has {begun}")
        record = task.step(step)
        key = idempotency_key(order_id, step, PERFORM, record)
        undoes = record.process_state in UNDOES
        if did and undoes:
            self._ledger.undo(order_id, key)
        elif did:
            self._ledger.perform(EffectKey(order_id, step, key), fenced=False)
        self.ask(order_id, Resolve(self.asked(seen=seen), step, did, result))
