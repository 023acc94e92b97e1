"""Masking: what is shown of a task, without the values that its workflow marks as masked.

The paths of the masked fields are in the task's plan, so no code of the application is needed.
Every view of a task is made from `shown`, which replaces the values by MASK: in results, in
messages of errors and in reasons. What is to be decided or sent is made from the task itself.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from roundsman.definition.plan import Plan
from roundsman.engine.history import keeps_reason
from roundsman.model.corrections import Change, Path, path_text
from roundsman.model.events import HistoryRow
from roundsman.model.json import Json, canonical_json
from roundsman.model.task import (
    ERASED,
    StepError,
    StepRecord,
    Task,
    Termination,
    UnreadSignal,
)
from roundsman.ports import OrderRow
from roundsman_console.stack.stack import DeployedStack

MASK = "(masked)"
"""Stands for every masked value, whatever its length or kind."""

WHOLE_WORD_BELOW = 4
"""A shorter value is replaced only where it is a whole word: else `1` would hide every date."""


@dataclass(frozen=True, slots=True)
class MaskedPaths:
    """The masked fields of an input."""

    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, paths: Iterable[str]) -> "MaskedPaths":
        """Return the fields with these paths: `card.number`, `guests[].passport`, `pins.*.pin`."""
        return cls(
            tuple(re.compile(re.escape(path).replace(r"\*", ".+")) for path in sorted(set(paths)))
        )

    def includes(self, path: Path) -> bool:
        """Whether the value at the path is masked: it is a masked field, or inside of one."""
        return any(self._is_field(path[: length + 1]) for length in range(len(path)))

    def masked(self, value: Json, path: Path = ()) -> Json:
        """Return the value at the path, with MASK for each masked value in it."""
        if self.includes(path):
            return MASK
        if isinstance(value, Mapping):
            return {name: self.masked(inner, (*path, name)) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.masked(inner, (*path, index)) for index, inner in enumerate(value)]
        return value

    def values(self, value: Json, path: Path = ()) -> Iterator[Json]:
        """Yield each masked text and number in the value at the path."""
        if isinstance(value, Mapping):
            for name, inner in value.items():
                yield from self.values(inner, (*path, name))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                yield from self.values(inner, (*path, index))
        elif self.includes(path):
            yield value

    def _is_field(self, path: Path) -> bool:
        text = re.sub(r"\[[0-9]+\]", "[]", path_text(path))
        return any(pattern.fullmatch(text) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class Mask:
    """What is not shown of one task."""

    paths: MaskedPaths
    texts: re.Pattern[str] | None
    """Matches the masked values in texts; None if there are none."""
    everything: bool = False
    """The masked values are not known, since the order row is missing: no text of an error, and no
    result, is shown."""
    erased_at: int | None = None
    """When the contents of the order were erased (epoch ms); None if they were not."""
    signals: frozenset[str] = frozenset()
    """The names of the signals whose data is not shown."""

    def text(self, text: str) -> str:
        """Return the text with MASK for each masked value in it."""
        if self.everything and text:
            return MASK
        return text if self.texts is None else self.texts.sub(MASK, text)

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
        hidden = self.everything or self.erased_at is not None or signal.name in self.signals
        return replace(signal, data=MASK if hidden else self.json(signal.data))

    def _reason(self, row: HistoryRow) -> str:
        """The masked reason of the row.

        The history is erased after the values that are looked for in it. Until then, every reason
        from before the erasure is masked.
        """
        if self.erased_at is None or row.at > self.erased_at:
            return self.text(row.reason)
        return row.reason if keeps_reason(row.kind) or row.reason == ERASED else MASK


NO_MASK = Mask(MaskedPaths(), None)
UNKNOWN_MASK = Mask(MaskedPaths(), None, everything=True)
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
    paths, found = MaskedPaths.of(plan.masked), list[Json]()
    everything = False
    if plan.masked:
        try:
            inputs = [] if row is None else _inputs(task, row.content)
        except ValueError:  # the row is that of another order: it was restored, or altered
            inputs = []
        everything = not inputs
        for each in inputs:
            found += paths.values(each)
    for name, record in task.steps.items():
        if _result_is_masked(plan, name):
            found += _leaves(record.result)
            found += _leaves(None if record.left_out is None else record.left_out.whole)
    steps = [*plan.steps.values(), *plan.kinds.values()]
    signals = frozenset(step.signal for step in steps if step.signal and step.result_masked)
    return Mask(paths, _pattern(found), everything, task.erased_at, signals)


def _inputs(task: Task, content: Json) -> list[Json]:
    """The input before and after each correction: an error may quote what was corrected since."""
    return [task.input(content, count) for count in range(len(task.corrections) + 1)]


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
    hidden = mask.everything or (plan is not None and _result_is_masked(plan, name))

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


def _leaves(value: Json) -> Iterator[Json]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _pattern(values: Iterable[Json]) -> re.Pattern[str] | None:
    """A pattern of the values as they may stand in a text; None if there are none.

    A text also stands in JSON, with escapes. True, false and null are everywhere, so they are left
    out: they are masked as fields only.
    """
    texts = set[str]()
    for value in values:
        if isinstance(value, str):
            texts |= {value, value.strip(), canonical_json(value)[1:-1]}
        elif value is not None and not isinstance(value, bool):
            texts.add(canonical_json(value))
    longest_first = sorted(texts - {""}, key=lambda text: (-len(text), text))
    if not longest_first:
        return None
    return re.compile("|".join(_in_text(text) for text in longest_first))


def _in_text(text: str) -> str:
    found = re.escape(text)
    whole_word = len(text) < WHOLE_WORD_BELOW or text.isdecimal()
    return rf"(?<!\w){found}(?!\w)" if whole_word else found
