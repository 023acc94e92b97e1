"""What differs between an order and another one, such as the last that completed. Pure.

It is made of what a person is shown, in which masked values are masked already. Two masked values
are not compared: whoever can send an order could find a masked value out by guesses. Where each
order has its own id, that is no difference.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Literal, TypeAlias

from roundsman.model.corrections import path_text
from roundsman.model.events import HistoryRow
from roundsman.model.instants import SECOND, format_duration
from roundsman.model.json import Json, canonical_json
from roundsman.model.masked_values import MASK, leaves
from roundsman.model.states import TaskState
from roundsman.model.task import UNDO
from roundsman_console.aws.versions import Published
from roundsman_console.base.constraints import Count
from roundsman_console.base.counted import counted
from roundsman_console.base.result import HIDDEN, Shown
from roundsman_console.facts.order.closing import end_words
from roundsman_console.facts.order.failure import failed_attempts, failures, rows_by_step
from roundsman_console.facts.order.not_needed import why_not_needed
from roundsman_console.facts.order.order_facts import OrderFacts, StepFacts
from roundsman_console.facts.order.step_text import error_words

MOST_TEXT = 200
"""The number of characters of a value that are shown."""
BEFORE = 40
"""The number of equal characters that are shown before the first one that differs."""
MOST_NAMED = 5
"""The number of agents that the sentence names."""
LONGER = 2
"""Times differ if the longer is so many times the shorter, and a second longer."""

PartOfOrder: TypeAlias = Literal["order", "step", "version", "input", "result", "time"]
PARTS: Mapping[PartOfOrder, str] = {
    "order": "The orders",
    "step": "Steps",
    "version": "Versions of the agents' functions",
    "input": "Input",
    "result": "Results of steps",
    "time": "Times",
}
"""What is compared, with its heading, in the order in which it is shown."""
NOT_KNOWN = "not known"

_STATE = "state"
_Key: TypeAlias = tuple[PartOfOrder, str, str]
"""A part, the step or agent (or empty), and what is said of it."""
_Values: TypeAlias = Mapping[_Key, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A value that is not the same in both orders."""

    part: PartOfOrder
    name: str
    """What it is: the path of a field of the input, a step and what is said of it."""
    order: Annotated[str | None, Shown(missing="none")]
    """The value of the order, cut if it is long; null if it has none."""
    other: Annotated[str | None, Shown(missing="none")]
    """That of the other order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderDifference:
    """What differs between an order and another one."""

    order_id: str
    state: TaskState
    other_id: str
    """The order with which it is compared."""
    other_state: TaskState
    workflow: Annotated[str, HIDDEN]
    same_version: bool
    """Whether both have the same version of the workflow."""
    sentence: str
    differences: Sequence[Difference]
    equal: Count
    """The number of values that are the same in both, without times."""
    not_compared: Count
    """The number of values that are masked in both, and not compared."""
    not_known: Sequence[str]
    """Sentences about what could not be compared."""

    def of(self, part: PartOfOrder) -> list[Difference]:
        """Return the differences in one part."""
        return [one for one in self.differences if one.part == part]


@dataclass(frozen=True, slots=True)
class OrderSide:
    """One of two orders that are compared, as it is shown to a person."""

    facts: OrderFacts
    content: Json
    """Its input; None if its row is missing."""


def difference(
    order: OrderSide, other: OrderSide, published: Mapping[str, Sequence[Published]]
) -> OrderDifference:
    """Return what differs between two orders.

    `published` are the versions of the functions, by the name of the agent; an agent of which none
    is known is missing.
    """
    mine, others = _values(order, published), _values(other, published)
    both = {*order.facts.names} & {*other.facts.names}
    task, than = order.facts.task, other.facts.task
    rows, equal, hidden = list[Difference](), 0, 0
    for key in {**mine, **others}:
        part, about, what = key
        if part in ("step", "result") and about not in both and what != _STATE:
            continue  # of a step that one order does not have, only that is said
        here, there = mine.get(key), others.get(key)
        if (here, there) == (task.task_id, than.task_id):
            continue
        if part == "version" and (here is None or there is None):
            continue  # one of the orders has not come to the agent, which the states say
        if not _differ(part, here, there):
            if part == "time":
                continue
            masked = MASK in _text(here)
            equal, hidden = equal + (not masked), hidden + masked
            continue
        shown = _shown(part, here, there)
        name = ": ".join(filter(None, (about, what)))
        rows.append(Difference(part=part, name=name, order=shown[0], other=shown[1]))
    places = [*PARTS]
    rows.sort(key=lambda one: places.index(one.part))
    same = [
        name
        for (part, name, _), value in mine.items()
        if part == "version" and value != NOT_KNOWN and value == others.get((part, name, ""))
    ]
    return OrderDifference(
        order_id=task.task_id,
        state=task.state,
        other_id=than.task_id,
        other_state=than.state,
        workflow=task.workflow,
        same_version=task.plan == than.plan,
        sentence=_sentence(order, other, len(rows), equal, hidden, same),
        differences=rows,
        equal=equal,
        not_compared=hidden,
        not_known=[*_not_known((order, other), published)],
    )


def version_at(published: Sequence[Published], instant: int | None) -> int | None:
    """Return the newest version of a function that was published by `instant` (epoch ms).

    None if none was, or if the instant is not known.
    """
    if instant is None:
        return None
    return max((one.version for one in published if one.at <= instant), default=None)


# --- The values of an order ----------------------------------------------------------------------


def _values(side: OrderSide, published: Mapping[str, Sequence[Published]]) -> _Values:
    task, last = side.facts.task, dict[str, int]()
    found: dict[_Key, Json] = {
        ("order", "", _STATE): task.state.value,
        ("order", "", "workflow"): task.workflow,
        ("order", "", "version of the workflow"): task.plan[:12],
        ("order", "", "priority"): task.priority,
    }
    if why := end_words(task):
        found["order", "", "why it ended"] = why
    if task.tenant is not None:
        found["order", "", "tenant"] = task.tenant
    if task.ended_at is not None:
        found["time", "", "the order"] = task.ended_at - task.created_at
    rows = rows_by_step(side.facts.history)
    errors = {
        name: error_words(one.error.type, one.error.message)
        for one in reversed(failures(side.facts))  # the worst one of a step is the last one set
        for name in one.steps
    }
    for one in side.facts.steps:
        found.update(_of_step(one, rows.get(one.name, ()), errors.get(one.name)))
        at = one.record.started_at or one.record.finished_at
        if one.agent is not None and at is not None:
            last[one.agent] = max(at, last.get(one.agent, at))
    for agent, at in last.items():
        if agent in published:
            found["version", agent, ""] = version_at(published[agent], at) or NOT_KNOWN
    if side.content is not None:
        found.update((("input", "", name), value) for name, value in _named(side.content))
    return found


def _of_step(
    one: StepFacts, rows: Sequence[HistoryRow], failed_with: str | None
) -> Iterator[tuple[_Key, Json]]:
    record = one.record
    needed = "" if why_not_needed(one) is None else ", not needed"
    yield ("step", one.name, _STATE), f"{record.process_state}{needed}"
    if record.error is not None:
        failed_with = error_words(record.error.type, record.error.message)
    if failed_with is not None:
        yield ("step", one.name, "error"), failed_with
    failed = failed_attempts(record, rows)
    if failed:
        yield ("step", one.name, "failed attempts"), failed
    if one.agent is not None:
        yield ("step", one.name, "agent"), one.agent
    if record.result is not None:
        for name, value in _named(record.result):
            yield ("result", one.name, name), value
    is_of_undo = record.operation == UNDO  # then the record has the times of the undo
    if not is_of_undo and record.started_at is not None and record.finished_at is not None:
        yield ("time", one.name, ""), max(0, record.finished_at - record.started_at)


def _named(value: Json) -> Iterator[tuple[str, Json]]:
    """Yield each value in it with the text of its path; an empty object or list as it is."""
    if not value:
        yield "", value
        return
    for path, inner in leaves(value):
        yield path_text(path), inner


# --- Comparing -----------------------------------------------------------------------------------


def _differ(part: PartOfOrder, here: Json, there: Json) -> bool:
    if part == "time" and isinstance(here, int) and isinstance(there, int):
        shorter, longer = sorted((here, there))
        return longer >= LONGER * shorter and longer - shorter >= SECOND
    if part == "time":
        return False  # the other one has not done it, which its state says
    return _text(here) != _text(there) or (here is None) != (there is None)


def _shown(part: PartOfOrder, here: Json, there: Json) -> tuple[str | None, str | None]:
    if part == "time" and isinstance(here, int) and isinstance(there, int):
        return format_duration(here), format_duration(there)
    texts = _text(here), _text(there)
    start = 0
    if max(map(len, texts)) > MOST_TEXT:
        pairs = zip(*texts, strict=False)
        start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    first, second = (
        None if value is None else _cut(text, max(0, start - BEFORE))
        for value, text in zip((here, there), texts, strict=True)
    )
    return first, second


def _cut(text: str, start: int) -> str:
    """Return MOST_TEXT characters of a text from `start` on, and how many it has if it is cut."""
    end = start + MOST_TEXT
    if start == 0 and len(text) <= end:
        return text
    dots = ("…" if start else "", "…" if len(text) > end else "")
    return f"{dots[0]}{text[start:end]}{dots[1]} ({len(text):,} characters)"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else canonical_json(value)


# --- In words ------------------------------------------------------------------------------------


def _sentence(
    order: OrderSide,
    other: OrderSide,
    differ: int,
    equal: int,
    hidden: int,
    same: Sequence[str],
) -> str:
    said = f"{differ} of {counted(differ + equal, 'value')} differ"
    if order.facts.task.plan != other.facts.task.plan:
        said += "; they have different versions of the workflow"
    if hidden:
        masked = "is masked in both, and not compared"
        if hidden > 1:
            masked = "are masked in both, and not compared"
        said += f"; {counted(hidden, 'value')} {masked}"
    if not same:
        return f"{said}."
    agents = ", ".join(same) if len(same) <= MOST_NAMED else f"{len(same)} agents"
    return f"{said}. Both met the same versions of the functions of {agents}."


def _not_known(
    sides: Sequence[OrderSide], published: Mapping[str, Sequence[Published]]
) -> Iterator[str]:
    for side in sides:
        task = side.facts.task
        if side.content is None:
            yield f"The input of {task.task_id} is not stored."
        if task.erased_at is not None:
            yield f"The contents of {task.task_id} were erased."
        if not task.ended:
            yield f"{task.task_id} has not ended yet."
    if published:
        yield (
            "An order does not store the version of a function. It is taken to be the newest one "
            "that was published before the agent's last attempt, so a rollback is not seen."
        )
    else:
        yield "It is not known which versions of the agents' functions the orders met."
