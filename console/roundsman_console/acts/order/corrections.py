"""Corrections of inputs: checked by the application's input types, and shown without secrets."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from roundsman.definition.workflow import Workflow
from roundsman.errors import InvalidInput, Refused
from roundsman.model.corrections import Change, Correction, corrected, path_text, value_at
from roundsman.model.events import OperatorEvent, Resubmit
from roundsman.model.json import Json, canonical_json
from roundsman.model.masked_values import MASK, MaskedPaths
from roundsman.model.task import Task
from roundsman.submission.corrections import changes_to, checked_changes
from roundsman_console.acts.changes import InputChange
from roundsman_console.acts.order.newest_plan import problem_words
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InspectorError

LONGEST_VALUE = 200
"""Characters of a value that is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCorrection:
    """A correction of the input of a failed task, as an operator gives it."""

    sets: Mapping[str, Json] = field(default_factory=dict)
    """New values by path, such as `lines[0].sku`."""
    removes: Sequence[str] = ()
    """The paths of fields to remove."""
    whole: Mapping[str, Json] | None = None
    """The whole corrected input, instead of `sets` and `removes`."""
    used: bool = False
    """Also correct what a finished step has used."""
    not_done: Sequence[str] = ()
    """Failed steps of which you know that they did not happen."""


@dataclass(frozen=True, slots=True)
class CorrectedCommand:
    """A command with a correction that was checked for one task."""

    event: OperatorEvent
    """The command with all changes, those of computed fields included."""
    order: Json
    """The content of the order row."""
    changes: tuple[InputChange, ...]


def corrects(event: OperatorEvent) -> bool:
    """Whether the command corrects the input of its task."""
    return isinstance(event, Resubmit) and bool(event.changes)


def check_correction(
    stack: DeployedStack, task: Task, event: OperatorEvent, whole: Mapping[str, Json] | None = None
) -> CorrectedCommand:
    """Check a command that corrects the input of a task, by the input type of its workflow.

    `whole` is the whole corrected input; None: the command has the changes. Raises Refused with
    all problems, and InspectorError if the application's workflows are not known.
    """
    workflow = _workflow(stack, task)
    row = stack.tasks.order(task.task_id)
    if row is None:
        raise Refused("its order row is missing")
    if row.erased_at is not None:
        raise Refused("the contents of the order were erased")
    before = task.input(row.content)
    try:
        if whole is not None:
            changes = changes_to(workflow, before, whole)
        else:
            asked = event.changes if isinstance(event, Resubmit) else ()
            changes = checked_changes(workflow, before, asked)
    except InvalidInput as error:
        raise Refused(
            f"the corrected input is not valid: {problem_words(error.problems, 10)}"
        ) from error
    if not changes:
        raise Refused("the correction changes nothing: the input has these values")
    if isinstance(event, Resubmit):
        event = replace(event, changes=changes)
    return CorrectedCommand(event, row.content, shown_changes(workflow, before, changes))


def known_workflows(stack: DeployedStack) -> Collection[Workflow]:
    """Return the application's workflows. Raises InspectorError if they are not known."""
    if stack.events is None:
        raise InspectorError(
            "A corrected input is checked by the type of its workflow, and there is no application "
            "in this folder or a parent. Run the command in the folder of the application, or give "
            "its workflows to Inspector.of_stack."
        )
    return stack.events.workflows.values()


def _workflow(stack: DeployedStack, task: Task) -> Workflow:
    for workflow in known_workflows(stack):
        if workflow.name == task.workflow:
            return workflow
    raise Refused(
        f"the application in this folder has no workflow {task.workflow}, so the corrected input "
        "cannot be checked"
    )


def shown_changes(workflow: Workflow, before: Json, changes: Correction) -> tuple[InputChange, ...]:
    """Return the changes of the input `before` for people; masked fields are not shown."""
    masks = MaskedPaths.of(workflow.masked_paths())
    after = corrected(before, [changes])
    return tuple(_shown(masks, before, after, change) for change in changes)


def _shown(masks: MaskedPaths, before: Json, after: Json, change: Change) -> InputChange:
    texts = []
    for whole in (before, after):
        there, value = value_at(whole, change.path)
        texts.append(_text(masks.masked(value, change.path)) if there else None)
    return InputChange(path_text(change.path), *texts)


def _text(value: Json) -> str:
    found = MASK if value == MASK else canonical_json(value)
    return found if len(found) <= LONGEST_VALUE else f"{found[:LONGEST_VALUE]}..."
