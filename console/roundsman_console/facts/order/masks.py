"""Masking: what is shown of a task, without the values that its workflow marks as masked.

The paths of the masked fields are in the task's plan, so no code of the application is needed.
Every view of a task is made from `shown`, which replaces the values by MASK: in results, in
messages of errors and in reasons. What is to be decided or sent is made from the task itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from roundsman.definition.plan import Plan
from roundsman.engine.history import keeps_reason
from roundsman.engine.masks import texts_of
from roundsman.model.corrections import Change
from roundsman.model.events import HistoryRow
from roundsman.model.json import Json, canonical_json
from roundsman.model.masked_values import EVERYTHING, MASK, MaskedPaths, MaskedTexts
from roundsman.model.task import (
    ERASED,
    StepError,
    StepRecord,
    Task,
    Termination,
    UnreadSignal,
)
from roundsman.ports import OrderRow
from roundsman_console.aws.stack import DeployedStack


@dataclass(frozen=True, slots=True)
class Mask:
    """What is not shown of one task."""

    paths: MaskedPaths
    texts: MaskedTexts
    """Finds the masked values in texts. If they are not known, since the order row is missing, no
    text of an error, and no result, is shown."""
    erased_at: int | None = None
    """When the contents of the order were erased (epoch ms); None if they were not."""
    signals: frozenset[str] = frozenset()
    """The names of the signals whose data is not shown."""

    def text(self, text: str) -> str:
        """Return the text with MASK for each masked value in it."""
        return self.texts.text(text)

    def json(self, value: Json) -> Json:
        """Return the value with MASK for each masked value in its texts and numbers."""
        if isinstance(value, Mapping):
            return {self.text(name): self.json(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.json(inner) for inner in value]
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool):
            return value
        return value if self.text(canonical_json(value)) == canonical_json(value) else MASK

    def input(self, content: Json) -> Json:
        """Return the input of the task, with MASK for each masked field."""
        return self.json(self.paths.masked(content))

    def error(self, error: StepError | None) -> StepError | None:
        """Return the error with a masked message."""
        return error and replace(error, message=self.text(error.message))

    def history(self, rows: Sequence[HistoryRow]) -> list[HistoryRow]:
        """Return the history rows with masked reasons and data of signals."""
        return [
            replace(row, reason=self._reason(row), signal=self._signal(row.signal)) for row in rows
        ]

    def _signal(self, signal: UnreadSignal | None) -> UnreadSignal | None:
        if signal is None or signal.data is None:
            return signal
        hidden = self.texts.everything or self.erased_at is not None or signal.name in self.signals
        return replace(signal, data=MASK if hidden else self.json(signal.data))

    def _reason(self, row: HistoryRow) -> str:
        """The masked reason of the row.

        The history is erased after the values that are looked for in it. Until then, every reason
        from before the erasure is masked.
        """
        if self.erased_at is None or row.at > self.erased_at:
            return self.text(row.reason)
        return row.reason if keeps_reason(row.kind) or row.reason == ERASED else MASK


NO_MASK = Mask(MaskedPaths(), MaskedTexts())
UNKNOWN_MASK = Mask(MaskedPaths(), EVERYTHING)
"""Of a task whose plan or order cannot be read: it shows no text of its errors and results."""


def mask_of(stack: DeployedStack, task: Task, plan: Plan | None) -> Mask:
    """Return what is not shown of the task. The order is read if its plan masks fields of it."""
    row = stack.tasks.order(task.task_id) if plan is not None and plan.masked else None
    return mask_with(task, plan, row)


def mask_with(task: Task, plan: Plan | None, row: OrderRow | None) -> Mask:
    """Return what is not shown of the task, whose order is `row`; None if the order is missing.

    The order is needed only if the plan masks fields of it. Nothing is masked without a plan: the
    plan says what is masked, and a person who repairs a task whose plan is gone needs its reasons.
    """
    if plan is None or not plan.masks:
        return NO_MASK
    texts = texts_of(plan, task, None if row is None else row.content)
    masked = (step for step in plan.all_steps if step.result_masked)
    signals = frozenset(step.signal for step in masked if step.signal)
    return Mask(MaskedPaths.of(plan.masked), texts, task.erased_at, signals)


def shown(task: Task, plan: Plan | None, mask: Mask) -> Task:
    """Return the task as it is shown: with MASK for each masked value."""
    if mask is NO_MASK:
        return task
    return replace(
        task,
        steps={name: _step(name, record, plan, mask) for name, record in task.steps.items()},
        ending=_ending(task.ending, mask),
        owed=tuple(replace(owed, detail=mask.text(owed.detail)) for owed in task.owed),
        corrections=tuple(
            tuple(_change(change, mask) for change in correction) for correction in task.corrections
        ),
    )


def _step(name: str, record: StepRecord, plan: Plan | None, mask: Mask) -> StepRecord:
    hidden = mask.texts.everything or (plan is not None and _result_is_masked(plan, name))

    def masked(result: Json) -> Json:
        return MASK if hidden and result is not None else mask.json(result)

    result, left_out = masked(record.result), record.left_out
    if left_out is not None:
        whole = masked(left_out.whole)
        left_out = replace(left_out, why=mask.text(left_out.why), whole=whole)
    return replace(record, result=result, left_out=left_out, error=mask.error(record.error))


def _ending(ending: Termination | None, mask: Mask) -> Termination | None:
    return ending and replace(ending, why=mask.text(ending.why), error=mask.error(ending.error))


def _change(change: Change, mask: Mask) -> Change:
    if change.removed:
        return change
    return replace(change, value=mask.json(mask.paths.masked(change.value, change.path)))


def _result_is_masked(plan: Plan, name: str) -> bool:
    step = plan.defined(name)
    return step is not None and step.result_masked
