"""The argument of an author's function: one attempt at a step, and the time that it has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import BinaryIO, TypeAlias, TypeVar, cast

from roundsman.definition.input_types import read_input
from roundsman.errors import InvalidInput, Problem
from roundsman.model.json import Json, copied
from roundsman.model.task import EndOfTask, item_place, step_of
from roundsman.ports import Clock, PayloadStore
from roundsman.wire.messages import AgentRequest

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest:
    """One attempt at a step, as the author's function receives it."""

    task_id: str
    workflow: str
    step: str
    """The name of the step; `name[3]` for an item of a step that runs `for_each` item."""
    operation: str
    """`perform` or `undo`."""
    idempotency_key: str
    """The same in every attempt at this effect. Pass it to the service."""
    perform_key: str
    """The idempotency key of the perform: this one, or the one that an undo compensates."""
    attempt: int
    complete_by: int
    """Epoch ms; a reply after it is discarded."""
    outcome_unknown: bool
    """An earlier attempt may have had its effect. For an undo: it is unknown whether there is an
    effect to undo."""
    input: Mapping[str, Json]
    """The order."""
    results: Mapping[str, Json]
    """The results of the preceding steps, by step. For an undo, also the result of the step itself,
    if that is known."""
    left_out: tuple[str, ...] = ()
    """The steps whose results are not in `results`, because they were left out of the order's
    record: this step itself for an undo, or for an attempt after one whose result could not be
    taken."""
    unanswered: tuple[str, ...] = ()
    """The preceding steps that nobody has answered in time: the result of each is its `otherwise`.
    An item of a `for_each` step is named as in `step`."""
    ending: EndOfTask | None = None
    """Of a closing step: the end that the order has come to, and why. `results` then has those of
    all steps, of undone ones too. None for other steps."""
    item: Json = None
    """The item of a `for_each` step; None for other steps."""
    index: int | None = None
    """The index of the item; None for other steps."""
    step_input: Json = None
    """What the step was added with, by `Step.named(input=...)`; None for other steps."""
    reminder: int | None = None
    """The number of this reminder, from 1, if the function is to remind of a callback; None if it
    is to perform or to undo. A reminder has an `idempotency_key` of its own, and the
    `callback_token` of the attempt that waits."""
    callback_token: str = field(repr=False)
    """Identifies this attempt in a later reply, if the function returns a Callback (see
    `roundsman.agents.callbacks`)."""
    ends_at: int = field(repr=False)
    """When the attempt must end (epoch ms); see `time_left`."""
    clock: Clock = field(repr=False, compare=False)
    show_progress: Callable[[str], None] = field(repr=False, compare=False)
    payloads: PayloadStore | None = field(default=None, repr=False, compare=False)
    """Where `open` and `upload` find payloads; None if the stack has no PayloadBucket."""

    def input_as(self, kind: type[T]) -> T:
        """Return the order as a TypedDict or a dataclass.

        Fields that the type does not have are left out. Raises InvalidInput if the order does not
        have the type, which happens only if the type has changed since the order was accepted.
        """
        return read_input(kind, self.input, open_to_more=True)

    def step_input_as(self, kind: type[T]) -> T:
        """Return what the step was added with as a TypedDict or a dataclass.

        Fields that the type does not have are left out. Raises InvalidInput if it does not have the
        type, and if the step was not added at run time.
        """
        value = self.step_input
        if not isinstance(value, Mapping):
            raise InvalidInput([Problem("", "the step has no step input that is an object")])
        return read_input(kind, value, open_to_more=True)

    def open(self, payload: object) -> BinaryIO:
        """Return a file with what a reference leads to: one in the input, a result or an answer.

        It is read once, piece by piece, and cannot be sought in. When its last byte was read, its
        size and its hash are checked. Reading and this raise TransientError if the bucket does not
        answer or the data is wrong, and PayloadError if no retry helps: the reference is of another
        order, or nothing is there.
        """
        from roundsman.agents.payloads import for_an_attempt, opened  # late: few agents need it

        with for_an_attempt():
            return opened(payload, self.task_id, self.payloads)

    def upload(self, data: bytes | BinaryIO) -> dict[str, Json]:
        """Store up to 50 MB, and return the reference to it, which the result of the step may have.

        A file is read from where it stands, piece by piece. The same data may be stored again:
        it has the same reference. Raises TransientError and PayloadError like `open`.
        """
        from roundsman.agents.payloads import for_an_attempt, uploaded  # late: few agents need it

        with for_an_attempt():
            return uploaded(data, self.task_id, self.payloads)

    def came(self, step: str) -> bool:
        """Return whether the result of a preceding step is an answer that came.

        False if nobody has answered in time, so that it is the step's `otherwise`; of a `for_each`
        step if that is so for at least one item.
        """
        return all(one != step and step_of(one) != step for one in self.unanswered)

    def time_left(self) -> timedelta:
        """The time left for the work; zero when it is over.

        It is the step's own time, counted from the start of the attempt, or the time until
        `complete_by` if that is shorter; less a tenth, at most 1 s, so that a call that hangs can
        still be reported. It also ends at least 2 s before the Lambda function times out.
        """
        return timedelta(milliseconds=max(0, self.ends_at - self.clock()))

    def progress(self, note: str = "") -> None:
        """Report that the work continues. It may be called as often as convenient.

        A heartbeat is sent at once, but at most three times in the step's `heartbeat_within`, and
        never after `complete_by`. Without `heartbeat_within`, nothing is sent. Raises nothing.
        `note` is for the agent's log only; it must not contain order contents.
        """
        self.show_progress(note)


Perform: TypeAlias = Callable[[StepRequest], object]
"""A function that is bound to a step; it returns the step's result, which must be JSON."""


def step_request(
    asked: AgentRequest,
    order: Mapping[str, Json],
    *,
    callback_token: str,
    ends_at: int,
    clock: Clock,
    show_progress: Callable[[str], None],
    payloads: PayloadStore | None = None,
) -> StepRequest:
    """Create the StepRequest of a message; its function may act until `ends_at` (epoch ms)."""
    place = item_place(asked.step)
    return StepRequest(
        task_id=asked.task_id,
        workflow=asked.workflow,
        step=asked.step,
        operation=asked.operation,
        idempotency_key=_effect_key(asked),
        perform_key=asked.perform_key or _perform_key(asked.idempotency_key),
        attempt=asked.attempt,
        complete_by=asked.complete_by,
        outcome_unknown=asked.outcome_unknown or asked.read_before,
        input=order,
        results=asked.results,
        left_out=asked.left_out,
        unanswered=asked.unanswered,
        ending=asked.ending,
        item=asked.item,
        index=place[1] if place else None,
        step_input=asked.step_input,
        reminder=asked.reminder,
        callback_token=callback_token,
        ends_at=ends_at,
        clock=clock,
        show_progress=show_progress,
        payloads=payloads,
    )


def own_request(request: StepRequest) -> StepRequest:
    """Return the request with an `input`, `results`, `item` and `step_input` of its own.

    Each call of an author's function gets one: what the function changes in it stays with that
    call.
    """
    return replace(
        request,
        input=cast("Mapping[str, Json]", copied(request.input)),
        results=cast("Mapping[str, Json]", copied(request.results)),
        item=copied(request.item),
        step_input=copied(request.step_input),
    )


def _effect_key(asked: AgentRequest) -> str:
    """The key of what the function does now: each reminder is an effect of its own."""
    if asked.reminder is None:
        return asked.idempotency_key
    return f"{asked.idempotency_key}/reminder/{asked.reminder}"


def _perform_key(key: str) -> str:
    """The key of the perform: `o-1/charge/perform` for `o-1/charge/undo`, and for itself."""
    task, step, operation, *rest = [*key.split("/"), "", ""]
    return "/".join([task, step, "perform", *rest[:-2]]) if operation == "undo" else key
