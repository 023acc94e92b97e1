"""The application whose stack is operated: its workflows, which say what an order must be."""

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from traceback import extract_tb

from roundsman.definition.workflow import Workflow
from roundsman.errors import RejectedOrder
from roundsman.model.json import parse_json
from roundsman.model.task import TASK_ID
from roundsman.submission.events import ORDER_ID, EventReader, given_order_id
from roundsman.submission.service_events import is_envelope
from roundsman_console.base.clock import now
from roundsman_console.base.errors import ConsoleError, InspectorError

REGISTRY = Path("layers") / "workflows" / "workflows" / "registry.py"
SMOKE_EVENTS = Path("events") / "smoke"
"""The folder of the orders that `roundsman smoke` sends, one file a workflow."""

MOST_PROBLEMS = 10


def application_folder() -> Path | None:
    """Return this folder or the nearest parent that is an application; None if there is none."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / REGISTRY).is_file()), None)


def application_workflows() -> Mapping[str, Workflow] | None:
    """Return the workflows of the application in this folder or a parent of it, by name.

    None if there is no application here. Raises InspectorError if they cannot be imported.
    """
    folder = application_folder()
    return None if folder is None else _workflows(folder)


def application_events() -> EventReader | None:
    """Return the reader of the events of the application in this folder or a parent of it.

    None if there is no application here. Raises InspectorError if its workflows cannot be imported.
    """
    found = application_workflows()
    return None if found is None else EventReader(found)


class _AnySource:
    def lists(self, service: str, arn: str | None) -> bool:  # noqa: ARG002  # as `EventSources`
        return True


def check_event(name: str, body: str, hint: str = "") -> None:
    """Raise ConsoleError with the problems of an order event that would be rejected.

    Also raises it if the workflows of the application in this folder cannot be imported, so that
    no event is sent unchecked. Without an application here, only checks that the event is an object
    with an order id, or the envelope of a service of AWS, whose source is not compared with the
    list of a stack. `name` is the file's, and `hint` ends the message.
    """
    problem = "" if is_envelope(body) else _order_id_problem(body)
    try:
        events = application_events()
    except InspectorError as error:
        raise ConsoleError(f"{name} was not checked. {error} Nothing was sent.{hint}") from error
    if events is not None:
        try:
            found = events.read_message(body, now(), lambda _: None, _AnySource)
        except RejectedOrder as error:
            found = [error]
        rejected = [one for one in found if isinstance(one, RejectedOrder)]
        if problems := [each for one in rejected for each in one.problems]:
            problem = "; ".join(map(str, problems[:MOST_PROBLEMS]))
    if problem:
        raise ConsoleError(f"{name} would be rejected: {problem}. Nothing was sent.{hint}")


def order_id_of(body: str) -> str | None:
    """Return the id that the order of an event gets; None if it is not an object that has one."""
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return given_order_id(event) if isinstance(event, dict) else None


def _order_id_problem(body: str) -> str:
    """Return why an event has no order id; empty if it has one."""
    try:
        event = parse_json(body)
    except ValueError as error:
        return f"it is not JSON: {error}"
    if not isinstance(event, Mapping) or ORDER_ID not in event:
        return "it is not a JSON object with an orderId"
    order_id = event[ORDER_ID]
    if not isinstance(order_id, str):
        return "orderId: must be text; write it in quotes"
    return (
        ""
        if TASK_ID.fullmatch(order_id)
        else "orderId: must be 1 to 128 of A-Z, a-z, 0-9 and . _ ~ -"
    )


def _workflows(folder: Path) -> Mapping[str, Workflow]:
    layer = str((folder / REGISTRY).parents[1])
    if layer not in sys.path:
        sys.path.insert(0, layer)
    try:
        found = import_module("workflows.registry").WORKFLOWS
    except (Exception, SystemExit) as error:  # the module is the application's: anything may fail
        raise InspectorError(
            f"The workflows cannot be imported: {_place(error, folder.resolve())}."
        ) from error
    if not isinstance(found, dict) or not all(isinstance(w, Workflow) for w in found.values()):
        raise InspectorError(f"WORKFLOWS in {REGISTRY} must be a dict of workflows, by name.")
    return found


def _place(error: BaseException, folder: Path) -> str:
    """Return the file and line of the application at which an import failed, and the reason."""
    frames = [(frame.filename, frame.lineno) for frame in extract_tb(error.__traceback__)]
    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        frames.append((error.filename or "", error.lineno))
        reason = f"it is not Python: {error.msg}"
    for file, line in reversed(frames):
        path = Path(file)
        if path.is_absolute() and path.resolve().is_relative_to(folder):
            return f"{path.resolve().relative_to(folder)}, line {line}: {reason.rstrip('.')}"
    return f"{REGISTRY}: {reason.rstrip('.')}"
