"""What an author's function is given: one attempt at a step, and the time that it has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from roundsman.model.json import Json
from roundsman.model.task import item_place
from roundsman.ports import Clock
from roundsman.wire.messages import AgentRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest:
    """One attempt at a step, as the author's function sees it.

    `idempotency_key` is the same in every attempt at this effect: pass it on. `perform_key` is
    the key of the perform: of this very one, or of the one that an undo undoes. `complete_by`
    is epoch ms; what is answered after it is thrown away. `outcome_unknown` says that an earlier
    attempt may have had its effect, and of an undo that nobody knows whether there is anything
    to undo. `input` is the order; `results` are those of the steps that came before, by step; an
    undo is also given what the step itself answered, where that is known.

    For a step that runs once for each item (`for_each`), `step` is `name[3]`, `item` the item and
    `index` the 3; for any other, both are None. `callback_token` is what an answer that comes
    later must name, where the function returns a Callback (see `roundsman.agents.callbacks`).
    """

    task_id: str
    workflow: str
    step: str
    operation: str
    idempotency_key: str
    perform_key: str
    attempt: int
    complete_by: int
    outcome_unknown: bool
    input: Mapping[str, Json]
    results: Mapping[str, Json]
    item: Json = None
    index: int | None = None
    callback_token: str = field(repr=False)
    ends_at: int = field(repr=False)
    clock: Clock = field(repr=False, compare=False)
    show_progress: Callable[[str], None] = field(repr=False, compare=False)

    def time_left(self) -> timedelta:
        """What is left for the work; zero when it is over.

        It is the step's own time from when the attempt began, and ends before `complete_by`. It
        ends a little early (a tenth of what there was, a second at most), so that a call that hangs
        ends in a reason that can still be said, and two seconds before the function itself ends.
        """
        return timedelta(milliseconds=max(0, self.ends_at - self.clock()))

    def progress(self, note: str = "") -> None:
        """Say that the work is alive: call it as often as is handy.

        It is said at once, but at most three times in the step's `heartbeat_within`, and never
        after `complete_by`; without `heartbeat_within` it does nothing. It never fails. `note` is
        for the agent's log only: no order contents.
        """
        self.show_progress(note)


Perform: TypeAlias = Callable[[StepRequest], object]
"""What is bound to a step; it returns the step's result, which must be JSON."""


def step_request(
    asked: AgentRequest,
    order: Mapping[str, Json],
    *,
    callback_token: str,
    ends_at: int,
    clock: Clock,
    show_progress: Callable[[str], None],
) -> StepRequest:
    """The request as its function sees it, which may act until `ends_at` (epoch ms)."""
    place = item_place(asked.step)
    return StepRequest(
        task_id=asked.task_id,
        workflow=asked.workflow,
        step=asked.step,
        operation=asked.operation,
        idempotency_key=asked.idempotency_key,
        perform_key=asked.perform_key or _perform_key(asked.idempotency_key),
        attempt=asked.attempt,
        complete_by=asked.complete_by,
        outcome_unknown=asked.outcome_unknown or asked.read_before,
        input=order,
        results=asked.results,
        item=asked.item,
        index=place[1] if place else None,
        callback_token=callback_token,
        ends_at=ends_at,
        clock=clock,
        show_progress=show_progress,
    )


def _perform_key(key: str) -> str:
    """The key of the perform that belongs to an effect's key: `o-1/charge/undo` undoes
    `o-1/charge/perform`."""
    task, step, operation, *rest = [*key.split("/"), "", ""]
    return "/".join([task, step, "perform", *rest[:-2]]) if operation == "undo" else key
