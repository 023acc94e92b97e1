"""The orders of smoke tests: the files in events/smoke, and an id of its own for each run.

An invalid event raises ConsoleError with one sentence for the user.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

from roundsman.model.json import Json, parse_json
from roundsman.model.states import TaskState
from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.facts.application import (
    SMOKE_EVENTS,
    application_folder,
    application_workflows,
)

ORDER_ID = "$ORDER_ID"
"""Is replaced by the order id of the run in every text of the event."""

ENDS = (TaskState.COMPLETED, TaskState.UNDONE, TaskState.CANCELLED, TaskState.ARCHIVED)
WITHIN, SHORTEST, LONGEST = 120.0, 1.0, 3_600.0
"""The default of the seconds to wait for the end, and its bounds."""
BY = "smoke test"
"""Who asks, in the history of the order."""


def declared_workflows() -> list[str]:
    """Return the workflows that have a file in events/smoke; empty without an application here."""
    folder = application_folder()
    return [] if folder is None else _names(folder)


def event_file(workflow: str | None, event: Path | None) -> Path:
    """Return the file of the order event. Raises ConsoleError if there is none."""
    if event is not None:
        if workflow is not None:
            raise ConsoleError("Give --workflow or --event, not both.", USAGE)
        return event
    folder = application_folder()
    if folder is None:
        raise ConsoleError(
            "There is no application in this folder: name the order event with --event.", USAGE
        )
    names = _names(folder)
    if not names:
        raise ConsoleError(
            f"There is no file in {SMOKE_EVENTS}: write an order event to "
            f"{SMOKE_EVENTS}/WORKFLOW.json, or name one with --event.",
            USAGE,
        )
    if workflow is None:
        workflow = names[0] if len(names) == 1 else _first(names)
    if workflow not in names:
        raise ConsoleError(
            f"There is no {SMOKE_EVENTS}/{workflow}.json; there are: {', '.join(names)}.", USAGE
        )
    return (folder / SMOKE_EVENTS / f"{workflow}.json").relative_to(folder)


def _names(folder: Path) -> list[str]:
    return [path.stem for path in sorted((folder / SMOKE_EVENTS).glob("*.json"))]


def _first(names: list[str]) -> str:
    """Return the first workflow of the registry that has an event."""
    for name in application_workflows() or {}:
        if name in names:
            return name
    raise ConsoleError(f"Name one of {', '.join(names)} with --workflow.", USAGE)


def read_event(file: Path, workflow: str | None) -> Mapping[str, Json]:
    """Return the event in a file. Raises ConsoleError if it is not one, or of another workflow."""
    folder = application_folder()
    path = file if folder is None or file.is_absolute() or file.exists() else folder / file
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConsoleError(f"{file} cannot be read: {error.strerror}.", USAGE) from error
    except ValueError as error:
        raise ConsoleError(f"{file} is not JSON: {str(error).rstrip('.')}.", USAGE) from error
    return parse_event(str(file), text, workflow)


def parse_event(name: str, text: str, workflow: str | None = None) -> Mapping[str, Json]:
    """Return the event in a text; `name` says where it is from.

    Raises ConsoleError if it is not an order event, or not one of the workflow.
    """
    try:
        read = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise ConsoleError(f"{name} is not JSON: {str(error).rstrip('.')}.", USAGE) from error
    if not isinstance(read, dict) or "cancel" in read:
        raise ConsoleError(f"{name} is not an order event.", USAGE)
    processing = read.get("processing")
    named = processing.get("workflow") if isinstance(processing, dict) else None
    if workflow is not None and named not in (None, workflow):
        raise ConsoleError(f"{name} is an order of the workflow {named}, not {workflow}.", USAGE)
    return read


def with_new_id(event: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the event with an order id that no other order has, also in its texts."""
    order_id = f"smoke-{datetime.now(UTC):%Y%m%d-%H%M%S}-{token_hex(3)}"
    filled = {name: _filled(value, order_id) for name, value in event.items()}
    return {**filled, "orderId": order_id}


def _filled(value: Json, order_id: str) -> Json:
    match value:
        case str():
            return value.replace(ORDER_ID, order_id)
        case dict():
            return {name: _filled(inner, order_id) for name, inner in value.items()}
        case list():
            return [_filled(inner, order_id) for inner in value]
        case _:
            return value


def expected_end(expect: str | None, *, undo: bool) -> TaskState:
    """Return the state in which the order must end. Raises ConsoleError for any other text."""
    if expect is None:
        return TaskState.CANCELLED if undo else TaskState.COMPLETED
    for state in ENDS:
        if expect.lower() == state.lower():
            return state
    raise ConsoleError(f"--expect takes {', '.join(ENDS)}; {expect!r} is none of them.", USAGE)
