"""How an attempt ended: what an author's function returned or raised, fit for a reply.

An author may return or raise anything; a reply that cannot be sent would be worse.
"""

from dataclasses import dataclass
from datetime import timedelta

from roundsman.model.events import Outcome
from roundsman.model.instants import milliseconds
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.model.task import Effect, StepError
from roundsman.model.workflow import LARGEST_RESULT

LONGEST_WAIT = timedelta(days=365)  # an instant must stay one that can be said
LONGEST_TYPE, LONGEST_MESSAGE = 100, 1_000  # the reason goes into the record, which is 400 KB

RESULT_NOT_JSON = "ResultNotJson"
RESULT_TOO_LARGE = "ResultTooLarge"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """The part of a reply that an attempt decides; the fields are those of `messages.Reply`."""

    outcome: Outcome
    result: Json = None
    error: StepError | None = None
    retry_after: int | None = None
    until: int | None = None
    outcome_unknown: bool = False
    effect: Effect | None = None


def succeeded(result: object) -> AttemptResult:
    """With this result, or a permanent failure where it is none that can be kept."""
    try:
        text = canonical_json(result)  # type: ignore[arg-type]  # whether it is JSON is seen here
        value = parse_json(text)  # as every reader will see it: keys as strings, tuples as lists
        size = len(text.encode())  # half a surrogate pair is no text that can be sent
    except (TypeError, ValueError, RecursionError):
        found = type(result).__name__
        return permanent(RESULT_NOT_JSON, f"the function returned a {found} that is not JSON")
    if size > LARGEST_RESULT:
        message = f"the result is {size} bytes of JSON; at most {LARGEST_RESULT} fit"
        return permanent(RESULT_TOO_LARGE, message)
    return AttemptResult(outcome=Outcome.SUCCEEDED, result=value)


def transient(error_type: object, message: object, retry_after: int | None = None) -> AttemptResult:
    """It failed, and another attempt may succeed, `retry_after` ms from now or by its backoff."""
    error = _step_error(error_type, message)
    return AttemptResult(outcome=Outcome.TRANSIENT, error=error, retry_after=retry_after)


def permanent(error_type: object, message: object) -> AttemptResult:
    """It failed, and no other attempt can succeed."""
    return AttemptResult(outcome=Outcome.PERMANENT, error=_step_error(error_type, message))


def held(why: str, retry_after: int, *, outcome_unknown: bool) -> AttemptResult:
    """The service could not be called, and is not to be for `retry_after` ms."""
    return AttemptResult(
        outcome=Outcome.HELD,
        error=_step_error("Held", why),
        retry_after=min(max(retry_after, 0), milliseconds(LONGEST_WAIT)),
        outcome_unknown=outcome_unknown,
    )


def wait_of(asked: object) -> int | None:
    """The wait in ms that an error asks for; None where it asks for none."""
    if not isinstance(asked, timedelta):
        return None
    return milliseconds(min(max(asked, timedelta(0)), LONGEST_WAIT))


def waiting(until: int) -> AttemptResult:
    """It goes on outside; an answer is awaited until then (epoch ms)."""
    return AttemptResult(outcome=Outcome.WAITING, until=until)


def progress(note: object) -> AttemptResult:
    """It goes on. The note is not sent; it is in the reply for the log of who sends it."""
    return AttemptResult(outcome=Outcome.PROGRESS, result=sanitize(note)[:LONGEST_MESSAGE])


def _step_error(error_type: object, message: object) -> StepError:
    name = sanitize(error_type)[:LONGEST_TYPE] or "PermanentError"
    return StepError(name, sanitize(message)[:LONGEST_MESSAGE])


def sanitize(value: object) -> str:
    """Its text, without halves of surrogate pairs, which no message can carry."""
    return str(value).encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class Happened:
    """The effect of that key happened; `result` is what the step answers with."""

    result: Json = None


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """There is no effect of that key."""
