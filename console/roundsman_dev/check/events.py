"""Events: what an application sends for a test is an order that its workflows accept."""

from collections.abc import Container, Iterator

from roundsman.errors import RejectedOrder
from roundsman.model.json import Json, parse_json
from roundsman.submission.events import EventReader
from roundsman.submission.submission import CancelAsked, SignalSent
from roundsman_console.acts.smoke.events import ORDER_ID
from roundsman_console.base.clock import now
from roundsman_dev.check.application import Application, Rule

MOST_PROBLEMS = 10


def events(application: Application) -> list[str]:
    """Each file of events/smoke, and the one in events that has the name of a workflow, is an order
    that submission accepts. Otherwise tests and the smoke test fail, the latter after the
    deployment, when the input of a workflow has changed and its event has not."""
    reader = EventReader({workflow.name: workflow for workflow in application.workflows})
    return [
        problem
        for path, text in application.events.items()
        for problem in event_problems(path, text.replace(ORDER_ID, "smoke-1"), reader, now())
    ]


def event_problems(
    where: str, text: str, reader: EventReader, at: int, *, known: Container[str] = ()
) -> Iterator[str]:
    """Yield why submission would reject an order event that is read at `at` (epoch ms).

    Problems of the paths `known` are left out.
    """
    try:
        found = reader.read(text, at, lambda _: None)
    except RejectedOrder as error:
        for problem in error.problems[:MOST_PROBLEMS]:
            if problem.path not in known:
                yield f"{where} would be rejected: {problem}"
    except Exception as error:  # noqa: BLE001  # the input function is the application's own
        yield f"{where} fails in the workflow's input: {type(error).__name__}: {error}"
    else:
        if isinstance(found, CancelAsked):
            yield f"{where} is a cancellation: write an order event, without the field cancel"
        if isinstance(found, SignalSent):
            yield f"{where} is a signal: write an order event, without the field signal"


def read_json(text: str) -> Json:
    """Return the JSON of an event; None for what is no JSON."""
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return None


RULES: tuple[Rule, ...] = (events,)
