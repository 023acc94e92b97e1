"""The application whose stack is operated: its workflows, which say what an order must be."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from traceback import extract_tb

from roundsman.definition.workflow import Step, Workflow
from roundsman.errors import RejectedOrder
from roundsman.submission.events import EventReader, given_order_id
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


class _AnyWorkflow(Mapping[str, Workflow]):
    """The workflows of an application that is not known: each name is one, with any input."""

    def __init__(self) -> None:
        second = timedelta(seconds=1)
        step = Step(name="any", agent="any", complete_within=second)
        self._any = Workflow(name="any", steps=(step,), complete_within=second)

    def __getitem__(self, name: str) -> Workflow:
        return self._any

    def __iter__(self) -> Iterator[str]:
        return iter((self._any.name,))

    def __len__(self) -> int:
        return 1


def check_event(
    name: str,
    body: str,
    hint: str = "",
    reply_queue_problem: Callable[[str], str | None] = lambda _: None,
) -> bool:
    """Return whether the workflows of the application in this folder accept an order event.

    Raises ConsoleError with the problems of one that would be rejected, and if the workflows cannot
    be imported, so that no event is sent unchecked. Without an application here, only what holds
    for each application is checked, and the answer is False; of the envelope of a service of AWS
    that is nothing. The source of an envelope is not compared with the list of a stack.

    `name` is the file's, and `hint` ends the message. `reply_queue_problem` is that of
    `EventReader.read`.
    """
    try:
        events = application_events()
    except InspectorError as error:
        raise ConsoleError(f"{name} was not checked. {error} Nothing was sent.{hint}") from error
    if events is None and is_envelope(body):
        return False
    reader = events or EventReader(_AnyWorkflow())
    try:
        found = reader.read_message(body, now(), reply_queue_problem, _AnySource)
    except RejectedOrder as error:
        found = [error]
    rejected = [one for one in found if isinstance(one, RejectedOrder)]
    if problems := [each for one in rejected for each in one.problems]:
        listed = "; ".join(map(str, problems[:MOST_PROBLEMS]))
        raise ConsoleError(f"{name} would be rejected: {listed}. Nothing was sent.{hint}")
    return events is not None


def order_id_of(body: str) -> str | None:
    """Return the id that the order of an event gets; None if it is not an object that has one."""
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return given_order_id(event) if isinstance(event, dict) else None


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
