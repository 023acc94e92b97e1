"""The operator of a world: sends commands about its tasks."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from itertools import count

from roundsman.definition.workflow import Workflow
from roundsman.errors import InvalidInput
from roundsman.model.corrections import (
    Correction,
    changes_json,
    changes_of,
    corrected,
    read_changes,
)
from roundsman.model.events import (
    Cancel,
    CommandSource,
    Erase,
    Extend,
    Move,
    OperatorEvent,
    Resolve,
    Resubmit,
    RunNow,
    UndoAsked,
    UndoPart,
)
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import PERFORM, Task, idempotency_key
from roundsman.submission.corrections import checked_changes
from roundsman.submission.newest_plan import answer_question
from roundsman.wire.commands import command_of
from roundsman.wire.newest_plan import NewestPlanQuestion
from roundsman_testing.ledger import EffectKey, Ledger
from roundsman_testing.memory import MemoryPlans, MemoryStore
from roundsman_testing.world.queues import OPERATOR_SENDER

UNDOES = (ProcessState.UNDOING, ProcessState.UNDO_ERROR)


class Operator:
    """Sends commands, each with its own id. The history of a task says which were refused.

    With `seen`, a command is refused unless the version of the record is `seen`: the version that
    the person saw.
    """

    def __init__(
        self,
        send: Callable[[str, str | None], None],
        task: Callable[[str], Task],
        ledger: Ledger,
        store: MemoryStore,
        plans: MemoryPlans,
        workflows: Mapping[str, Workflow],
    ) -> None:
        """`send` puts the text of a command into the scheduler's queue, from this sender.

        `task` returns the record of an order, and `workflows` are the newest by their names.
        """
        self._store = store
        self._plans = plans
        self._workflows = workflows
        self._send = send
        self._task = task
        self._ledger = ledger
        self._numbers = count(1)
        self.sender: str | None = OPERATOR_SENDER
        """The principal of the commands, in the form of the `SenderId` of SQS; a test may change
        it."""

    def asked(self, reason: str = "", *, seen: int | None = None) -> CommandSource:
        """The sender of a command, with a new command id."""
        return CommandSource(f"command-{next(self._numbers)}", "operator", reason, seen)

    def ask(self, order_id: str, event: OperatorEvent) -> None:
        """Send any command."""
        self._send(command_of(order_id, event).body(), self.sender)

    def resubmit(
        self,
        order_id: str,
        *steps: str,
        fresh_key: bool = False,
        again: bool = False,
        sets: Mapping[str, Json] | None = None,
        removes: Sequence[str] = (),
        used: bool = False,
        not_done: Sequence[str] = (),
        newest_plan: bool = False,
        seen: int | None = None,
    ) -> None:
        """Continue a task that ended in a failure: the given steps, or all that failed.

        `fresh_key` gives the steps a fresh key. `again` restarts a task that is Undone or
        Cancelled. `sets` (by path, such as `lines[0].sku`) and `removes` correct the input; with
        `used`, also what a finished step has used. `not_done` are steps that did not happen. With
        `newest_plan`, the task continues under the version of its workflow that was deployed last.

        Raises InvalidInput if the input is not valid, after its correction and for the plan, and
        ValueError for a text that is not a path.
        """
        changes = changes_of(sets or {}, removes)
        if changes:
            changes = self._checked_changes(order_id, changes)
        plan = self._newest_plan(order_id, changes) if newest_plan else None
        self.ask(
            order_id,
            Resubmit(
                self.asked(seen=seen),
                steps,
                fresh_key,
                again,
                changes=changes,
                used=used,
                not_done=tuple(not_done),
                plan=plan,
            ),
        )

    def undo(self, order_id: str, *steps: str, seen: int | None = None) -> None:
        """Undo every step that may have had an effect, or these steps of a completed order.

        A completed order is taken back as the operator sees it, in its current version.
        """
        task = self._task(order_id)
        if seen is None and task.state is TaskState.COMPLETED:
            seen = task.version
        asked = self.asked(seen=seen)
        self.ask(order_id, UndoPart(asked, steps) if steps else UndoAsked(asked))

    def cancel(self, order_id: str, *, undo: bool = True, seen: int | None = None) -> None:
        """Cancel the task; with `undo`, after undoing every step that may have had an effect."""
        self.ask(order_id, Cancel(self.asked(seen=seen), undo))

    def extend(self, order_id: str, by: timedelta, step: str | None = None) -> None:
        """Give the task, or one of its steps, more time."""
        self.ask(order_id, Extend(self.asked(), round(by.total_seconds()), step))

    def erase(self, order_id: str, reason: str = "") -> None:
        """Erase the contents of an order whose task has ended."""
        self.ask(order_id, Erase(self.asked(reason)))

    def run_now(self, order_id: str) -> None:
        """End the wait for the start of the task, or for the next attempt of its steps."""
        self.ask(order_id, RunNow(self.asked()))

    def move(self, order_id: str) -> None:
        """Let an open task go on under the version of its workflow that was deployed last."""
        self.ask(order_id, Move(self.asked(), self._newest_plan(order_id, ())))

    def resolve(
        self,
        order_id: str,
        step: str,
        *,
        did: bool,
        result: Json = None,
        seen: int | None = None,
    ) -> None:
        """State whether a step, or its undo, had its effect, with its result.

        With `did`, the effect happens in the ledger first, as if the person had made sure of it at
        the service; a sleep has none. Raises ValueError if the step never started.
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
        elif did and record.started_at is not None:
            self._ledger.perform(EffectKey(order_id, step, key), fenced=False)
        self.ask(order_id, Resolve(self.asked(seen=seen), step, did, result))

    def _newest_plan(self, order_id: str, changes: Correction) -> str:
        """The hash of the newest plan of the order's workflow, as the deployed stack answers it."""
        task = self._task(order_id)
        content = corrected(self._input(task), [changes])
        question = NewestPlanQuestion(task.workflow, {order_id: content})
        found = answer_question(question, self._workflows, self._plans)
        if found.problems:
            raise InvalidInput(found.problems[order_id])
        if found.plan is None:
            raise ValueError(f"this world has no workflow {task.workflow!r}")
        return found.plan

    def _checked_changes(self, order_id: str, changes: Correction) -> Correction:
        """The changes of the input, which are checked by its type, with computed fields."""
        task = self._task(order_id)
        # As JSON, since a test may give tuples.
        given = read_changes(parse_json(canonical_json(changes_json(changes))))
        return checked_changes(self._workflows[task.workflow], self._input(task), given)

    def _input(self, task: Task) -> Json:
        row = self._store.order(task.task_id)
        return task.input(None if row is None else row.content)
