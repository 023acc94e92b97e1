"""The operator commands on an order as forms: their fields, and the command that a form means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from roundsman.model.events import Cancel, Erase, Extend, Resolve, Resubmit, RunNow, UndoAsked
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_console.arguments import check_resubmit, read_changes, read_duration, read_result
from roundsman_console.cli_errors import USAGE, ConsoleError
from roundsman_console.inspector.operate.commands import CommandSpec
from roundsman_console.inspector.views.task_view import may_stand

Form = Mapping[str, str]

WHOLE_INPUT = "whole_input"
"""The field that the console adds to a form that replaces the whole input of an order."""


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form."""

    name: str
    label: str
    kind: str = "text"
    """`text`, `check`, `steps` (one of the order's steps, or of `options`), `choice` (whether it
    happened), `lines` (one value a line) or `body` (a whole message)."""
    hint: str = ""
    folded: str = ""
    """The heading under which the field is folded away; empty if it is not."""
    options: Sequence[str] = ()
    """What may be chosen in a field of the kind `steps`; empty for the order's steps."""


@dataclass(frozen=True, slots=True)
class OrderCommand:
    """A command on one order."""

    title: str
    does: str
    """What the command does, in one sentence."""
    spec: Callable[[str, Form], CommandSpec]
    """Returns the command for an order id and a form. Raises ConsoleError for a wrong field."""
    fits: Callable[[Task], bool]
    """Whether the command is offered for the task. The engine decides whether it is allowed."""
    fields: Sequence[FormField] = ()


def _resubmit(order: str, form: Form) -> CommandSpec:
    steps = tuple(form.get("step", "").split())
    stated = tuple(form.get("not_done", "").split())
    changes = read_changes(_lines(form, "sets"), _lines(form, "removes"))
    newest = _checked(form, "newest_plan")
    check_resubmit(
        steps=steps,
        corrected=bool(changes) or _checked(form, WHOLE_INPUT),
        used=_checked(form, "used"),
        not_done=stated,
        fresh_key=_checked(form, "fresh_key"),
        newest_plan=newest,
    )
    return CommandSpec(
        order,
        lambda asked: Resubmit(
            asked,
            steps,
            _checked(form, "fresh_key"),
            _checked(form, "again"),
            changes=changes,
            used=_checked(form, "used"),
            not_done=stated,
        ),
        (*steps, *stated),
        newest_plan=newest,
    )


def _resolve(order: str, form: Form) -> CommandSpec:
    step, did = form.get("step", "").strip(), form.get("did")
    if not step:
        raise ConsoleError("Choose the step whose outcome you know.", USAGE)
    if did not in ("yes", "no"):
        raise ConsoleError("Choose whether the step happened.", USAGE)
    if did == "no" and form.get("result", "").strip():
        raise ConsoleError("A step that did not happen has no result.", USAGE)
    if did == "yes" and _checked(form, "fresh_key"):
        raise ConsoleError("A step that happened needs no new key.", USAGE)
    result = read_json(form, "result")
    fresh = _checked(form, "fresh_key")
    return CommandSpec(
        order, lambda asked: Resolve(asked, step, did == "yes", result, fresh), (step,)
    )


def _extend(order: str, form: Form) -> CommandSpec:
    seconds, step = read_duration(form.get("by_time", "")), form.get("step", "").strip() or None
    steps = (step,) if step else ()
    return CommandSpec(order, lambda asked: Extend(asked, seconds, step), steps)


def read_json(form: Form, name: str) -> Json:
    """Return the JSON of a field; None if it is empty.

    Raises ConsoleError if it is not JSON. A file is not read, as on the command line: its name
    would be that of a file of the console's machine.
    """
    text = form.get(name, "").strip()
    if text.startswith("@"):
        raise ConsoleError("The console in the browser reads no files: give the JSON.", USAGE)
    return read_result(text or None)


def _lines(form: Form, name: str) -> list[str]:
    return [line for line in form.get(name, "").splitlines() if line.strip()]


def _checked(form: Form, name: str) -> bool:
    return form.get(name) == "yes"


def _has_failed(task: Task) -> bool:
    return task.state in (TaskState.ARCHIVED, TaskState.UNDONE, TaskState.CANCELLED)


ORDER_COMMANDS: Mapping[str, OrderCommand] = {
    "resubmit": OrderCommand(
        "Resubmit",
        "Continues a failed order: its failed steps, or its failed undo, are tried again under the "
        "same keys.",
        _resubmit,
        _has_failed,
        (
            FormField("step", "Only these failed steps", hint="Names with spaces between them."),
            FormField("sets", "Correct the input", "lines", "One change a line: lines[0].sku=KB-1"),
            FormField("removes", "Remove fields of the input", "lines", "One path a line."),
            FormField("used", "Also correct what a finished step has used", "check"),
            FormField("fresh_key", "New key, after an undo under the old one", "check"),
            FormField("again", "Begin again from the start, repeating every effect", "check"),
            FormField("newest_plan", "Under the newest plan of its workflow", "check"),
            FormField("not_done", "Failed steps that did not happen, as you know"),
        ),
    ),
    "undo": OrderCommand(
        "Undo",
        "Undoes everything that may have happened, newest first; the order ends Undone.",
        lambda order, _form: CommandSpec(order, UndoAsked),
        lambda task: task.state not in (TaskState.COMPLETED, TaskState.UNDONE),
    ),
    "cancel": OrderCommand(
        "Cancel",
        "Stops the order, after what may have happened was undone; it ends Cancelled.",
        lambda order, form: CommandSpec(
            order, lambda asked: Cancel(asked, undo=not _checked(form, "keep"))
        ),
        lambda task: not task.ended,
        (FormField("keep", "Keep what has happened instead of undoing it", "check"),),
    ),
    "resolve": OrderCommand(
        "Resolve",
        "Records the outcome of a step, as you found it at the remote service.",
        _resolve,
        lambda task: any(
            task.step(name).process_state is not ProcessState.PROCESSED for name in may_stand(task)
        ),
        (
            FormField("step", "Step", "steps"),
            FormField("did", "Did it happen?", "choice"),
            FormField("result", "Its result, as JSON", hint="Only if it happened."),
            FormField("fresh_key", "Try it again under a new key", "check"),
        ),
    ),
    "extend": OrderCommand(
        "Extend",
        "Gives the order, or one step that is at its agent, more time.",
        _extend,
        lambda task: not task.ended,
        (
            FormField("by_time", "Additional time", hint="90s, 10m, 1h30m or 2d"),
            FormField("step", "Only this step", "steps"),
        ),
    ),
    "run": OrderCommand(
        "Run now",
        "Starts a scheduled order, or the next attempt of one in Retry, now.",
        lambda order, _form: CommandSpec(order, RunNow),
        lambda task: task.state in (TaskState.SCHEDULED, TaskState.RETRY),
    ),
}
"""The commands on an order, by their name on the command line."""


ERASE = OrderCommand(
    "Erase",
    "Removes the contents of an order that has ended, and keeps the record that it was. Its input, "
    "results, messages of errors and reasons are removed for ever. Backups, logs, exports and dead "
    "letters are not changed. The reason is kept: do not write personal data in it.",
    lambda order, _form: CommandSpec(order, Erase),
    lambda task: task.ended,
    (FormField("confirm", "The order's id, to confirm", hint="It cannot be brought back."),),
)
"""The command that removes the contents of one order. No other command brings them back."""


def links_of(task: Task) -> list[tuple[str, OrderCommand]]:
    """Return the commands that are offered for the task; none for one that is erased."""
    if task.erased_at is not None:
        return []
    offered = {**ORDER_COMMANDS, "erase": ERASE}
    return [(name, command) for name, command in offered.items() if command.fits(task)]
