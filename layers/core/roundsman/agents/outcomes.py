"""The outcome of an attempt, in a form that fits in a reply.

An author's function may return or raise anything, and the reply must still be one that can be sent.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from math import isfinite

from roundsman.definition.input_types import as_json, read_input
from roundsman.definition.workflow import NamedStep, Step
from roundsman.errors import UNTYPED, InvalidInput, kind_of
from roundsman.model.events import Outcome
from roundsman.model.instants import milliseconds
from roundsman.model.json import Json, canonical_json, levels, parse_json, size_in_bytes
from roundsman.model.record_limits import (
    LARGEST_KEPT_RESULT,
    LARGEST_STEP_INPUT,
    LONGEST_MESSAGE,
    LOOKED_AT,
)
from roundsman.model.task import EarlyEnd, StepError, StepToAdd
from roundsman.wire.messages import AttemptResult

LONGEST_WAIT = timedelta(days=365)  # keeps instants representable as dates
LONGEST_TYPE = 100  # characters; a record has 400 KB
LONGEST_TEXT = LONGEST_MESSAGE * LOOKED_AT
"""Characters of a text before its masked values are replaced, and it is cut to LONGEST_MESSAGE."""

DEEPEST_RESULT = 20  # levels; replies and requests contain a result some levels deep

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

RESULT_NOT_JSON = "ResultNotJson"
WRONG_THEN = "WrongThen"
WRONG_END = "WrongEnd"
LARGEST_THEN = 256 * 1024  # bytes of all inputs; a reply has 1 MiB


@dataclass(frozen=True, slots=True)
class Done:
    """Returned by a perform function: the step is done, and steps are added to its order, or the
    order ends early.

    Raises TypeError if `then` is not a tuple of what `Step.named` returns or `end` is no text, and
    ValueError if the arguments contradict each other.
    """

    result: Json = None
    """The result of the step."""
    then: tuple[NamedStep, ...] = ()
    """The steps to add: `(book_leg.named("leg-3", input={"to": "BRU"}),)`."""
    end: str | None = None
    """Why the order ends early, as Completed: `"not wanted"`. What has not begun is Skipped, and
    what is under way goes on to its end. The text is shown to operators, and sent in the status.
    None: the order goes on."""
    undo: bool = False
    """With `end`: all that the order has done is undone, this step included, and it is Completed
    once every undo has succeeded."""

    def __post_init__(self) -> None:
        check_steps_to_add(self.then)
        check_early_end(self.end, undo=self.undo, adds=bool(self.then))


def check_early_end(end: object, *, undo: bool, adds: bool) -> None:
    """Raise TypeError or ValueError unless an order can end early for this reason."""
    if end is None:
        if undo:
            raise ValueError('undo=True needs end, the reason why the order ends: end="not wanted"')
        return
    if not isinstance(end, str):
        raise TypeError(f"end must be a text, such as 'not wanted', not {kind_of(end)}")
    if not end:
        raise ValueError("end is empty; say why the order ends")
    if adds:
        raise ValueError("an order that ends early adds no steps: give then or end, but not both")


def check_steps_to_add(then: object) -> None:
    """Raise TypeError unless this is a tuple of what `Step.named` returns."""
    if not isinstance(then, tuple) or not all(isinstance(one, NamedStep) for one in then):
        raise TypeError('then must be a tuple of steps, such as (book_leg.named("leg-3"),)')


def succeeded(result: object) -> AttemptResult:
    """The attempt succeeded with this result, which may be Done.

    A result that is too large to be kept is not sent: `left_out` says why. One that is not JSON, or
    that adds steps which cannot be added, is a defect of the function, so it is a transient
    failure.
    """
    if isinstance(result, Done):
        ended = succeeded(result.result)
        if ended.error is not None:
            return ended
        if result.end is not None:
            why = sanitize(result.end)[:LONGEST_TEXT]
            return replace(ended, end=EarlyEnd(why, result.undo))
        return _with_steps(ended, result.then)
    try:
        text = canonical_json(result)  # type: ignore[arg-type]  # raises if it is not JSON
        value = parse_json(text)  # as readers will see it: keys as strings, tuples as lists
        size = len(text.encode())  # raises for a lone surrogate, which cannot be sent
        if levels(value) > DEEPEST_RESULT:
            raise ValueError
    except (TypeError, ValueError, RecursionError):
        return unexpected(RESULT_NOT_JSON, why_not_json(result, "result"))
    if size > LARGEST_KEPT_RESULT:
        why = f"the result has {size} bytes; at most {LARGEST_KEPT_RESULT} are kept"
        return AttemptResult(outcome=Outcome.SUCCEEDED, left_out=why)
    return AttemptResult(outcome=Outcome.SUCCEEDED, result=value)


def _with_steps(ended: AttemptResult, then: Sequence[NamedStep]) -> AttemptResult:
    """The success with the steps that it adds; a failure if one of them cannot be added."""
    steps = []
    for one in then:
        found = succeeded(as_json(one.input))
        if found.left_out or size_in_bytes(found.result) > LARGEST_STEP_INPUT:
            why = f"its input has more than {LARGEST_STEP_INPUT} bytes"
        elif found.error is not None:
            why = f"its input: {found.error.message}"
        else:
            why = _why_not_of_type(one.kind, found.result)
        if why:
            return unexpected(WRONG_THEN, f"adds {one.name}: {why}")
        steps.append(StepToAdd(one.name, one.after_names(), found.result))
    size = sum(size_in_bytes(one.input) for one in steps)
    if size > LARGEST_THEN:
        message = f"adds {len(steps)} steps with {size} bytes of input; {LARGEST_THEN} fit"
        return unexpected(WRONG_THEN, message)
    return replace(ended, then=tuple(steps))


def _why_not_of_type(kind: Step, value: Json) -> str:
    """Why this is not the input of a step of this kind; empty if it is. It quotes no value."""
    if kind.input is None:
        return ""
    if not isinstance(value, Mapping):
        return "its input must be an object"
    try:
        read_input(kind.input, value)
    except InvalidInput as error:
        return f"its input: {error}"
    return ""


def why_not_json(value: object, name: str) -> str:
    """A sentence that says which value in `value`, named `name`, cannot be in JSON, and its type.

    It quotes no value. Of the keys, which may come from an order, it quotes only plain names.
    """
    found = _first_not_json(value, name, 0) or f"{name} is {kind_of(value)}"
    return (
        f"{found}, which is not JSON; return text, finite numbers, true, false, None, lists, dicts"
    )


def _first_not_json(value: object, path: str, depth: int) -> str | None:
    if isinstance(value, dict | list | tuple):
        return _first_within(value, path, depth)
    if isinstance(value, str):
        return None if _is_text(value) else f"{path} is text with half of a surrogate pair"
    if isinstance(value, float):
        return None if isfinite(value) else f"{path} is {value}"
    return None if value is None or isinstance(value, int) else f"{path} is {kind_of(value)}"


def _first_within(
    value: dict[object, object] | list[object] | tuple[object, ...], path: str, depth: int
) -> str | None:
    if depth >= DEEPEST_RESULT:
        whole = re.split(r"[.\[]", path)[0]
        return f"{whole} is nested deeper than {DEEPEST_RESULT} levels"
    if isinstance(value, dict):
        for place, (key, item) in enumerate(value.items(), 1):
            if key is not None and not isinstance(key, str | int | float):
                return f"{path} has a key that is {kind_of(key)}"
            if not _is_text(str(key)):
                return f"{path} has a key with half of a surrogate pair"
            here = f"{path}.{key}" if _PLAIN_KEY.fullmatch(str(key)) else f"{path}[key {place}]"
            if found := _first_not_json(item, here, depth + 1):
                return found
        return f"{path} has keys of several types" if len(set(map(type, value))) > 1 else None
    found_in = (
        _first_not_json(item, f"{path}[{place}]", depth + 1) for place, item in enumerate(value)
    )
    return next(filter(None, found_in), None)


def _is_text(value: str) -> bool:
    return sanitize(value) == value


def transient(error_type: object, message: object, retry_after: int | None = None) -> AttemptResult:
    """The attempt failed; another may succeed, after `retry_after` ms or the step's backoff."""
    error = _step_error(error_type, message)
    return AttemptResult(outcome=Outcome.TRANSIENT, error=error, retry_after=retry_after)


def unexpected(
    error_type: object, message: object, retry_after: int | None = None
) -> AttemptResult:
    """The attempt failed transiently because of a defect of the agent's code or its deployment."""
    ended = transient(error_type, message, retry_after)
    error = None if ended.error is None else replace(ended.error, unexpected=True)
    return replace(ended, error=error)


def permanent(error_type: object, message: object) -> AttemptResult:
    """The attempt failed, and no other attempt can succeed."""
    return AttemptResult(outcome=Outcome.PERMANENT, error=_step_error(error_type, message))


def held(
    why: str, retry_after: int, *, outcome_unknown: bool, error_type: str = "Held"
) -> AttemptResult:
    """The service may not be called for `retry_after` ms; the attempt is not counted.

    `outcome_unknown`: the service was called before, and the step may have had its effect.
    """
    return AttemptResult(
        outcome=Outcome.HELD,
        error=_step_error(error_type, why),
        retry_after=min(max(retry_after, 0), milliseconds(LONGEST_WAIT)),
        outcome_unknown=outcome_unknown,
    )


def wait_of(asked: object) -> int | None:
    """The `retry_after` of an error in ms, at most 365 days; None if it is not a timedelta."""
    if not isinstance(asked, timedelta):
        return None
    return milliseconds(min(max(asked, timedelta(0)), LONGEST_WAIT))


def waiting(until: int, remind_every: int | None = None) -> AttemptResult:
    """The attempt waits for a callback until `until` (epoch ms).

    A reminder is sent each `remind_every` ms, or never.
    """
    return AttemptResult(outcome=Outcome.WAITING, until=until, remind_every=remind_every)


def polling(again_in: int, within: int) -> AttemptResult:
    """The outside job is not done; the step is polled again after `again_in` ms.

    It is polled for `within` ms, counted from the first such result under the idempotency key.
    """
    return AttemptResult(outcome=Outcome.POLLING, again_in=again_in, within=within)


def progress(note: object) -> AttemptResult:
    """The attempt continues. `result` is the note for the agent's log; it is not sent."""
    return AttemptResult(outcome=Outcome.PROGRESS, result=sanitize(note)[:LONGEST_TEXT])


def _step_error(error_type: object, message: object) -> StepError:
    name = sanitize(error_type)[:LONGEST_TYPE] or UNTYPED
    return StepError(name, sanitize(message)[:LONGEST_TEXT])


def sanitize(value: object) -> str:
    """The value as text, with lone surrogates replaced: a message cannot contain them."""
    return str(value).encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class Happened:
    """Returned by a probe: the effect of the key took place.

    Raises TypeError and ValueError as Done does.
    """

    result: Json = None
    """The result of the step."""
    then: tuple[NamedStep, ...] = ()
    """The steps that it adds to its order, as in Done."""
    end: str | None = None
    """Why it ends its order early, as in Done."""
    undo: bool = False
    """Whether the order is undone then, as in Done."""

    def __post_init__(self) -> None:
        self.as_done()

    def as_done(self) -> Done:
        """Return what the perform function would have returned."""
        return Done(self.result, self.then, self.end, self.undo)


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """Returned by a probe: the effect of the key did not take place."""
