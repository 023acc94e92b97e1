"""Checks a correction of a task's input by the input type of its workflow.

The sender of a correction checks it: the type is code of the application, which the scheduler does
not import. Fields that the workflow's `input` function computes, such as a total, are computed
anew.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from roundsman.definition.expressions import ANYTHING, NotThere, Shape
from roundsman.definition.input_types import (
    field_names,
    given_shape,
    given_type,
    is_input_type,
    valid_input,
)
from roundsman.definition.workflow import Workflow
from roundsman.errors import InvalidInput, Problem
from roundsman.model.checks import ENGINE_FIELDS
from roundsman.model.corrections import Correction, Path, corrected, differences, value_at
from roundsman.model.json import Json, copied
from roundsman.submission.masked_problems import masked_problems


def as_meant(changes: Correction, before: Json, shape: Shape) -> Correction:
    """Return the changes with what a person typed as text where a text is meant.

    A number, `true` or `false` is text where the type has text or, if the type does not define it,
    where the value `before` has text. All else, such as `null`, `"7"` or `[7]`, stays as it is.
    """
    return tuple(
        replace(change, value=change.typed)
        if change.typed is not None
        and isinstance(change.value, int | float)
        and _is_text(change.path, before, shape)
        else change
        for change in changes
    )


def _is_text(path: Path, before: Json, shape: Shape) -> bool:
    try:
        for key in path:
            shape = shape.item() if isinstance(key, int) else shape.field(key)
    except NotThere:  # a problem of the corrected input, which names its path
        shape = ANYTHING
    is_text = shape.is_text()
    return isinstance(value_at(before, path)[1], str) if is_text is None else is_text


def checked_changes(workflow: Workflow, before: Json, changes: Correction) -> Correction:
    """Return the changes with those of the computed fields.

    `before` is the task's input, and what a person typed is read by `as_meant`. Raises
    InvalidInput with all problems of the corrected input.
    """
    changes = as_meant(changes, before, given_shape(workflow.input))
    try:
        wanted = corrected(before, [changes])
    except ValueError as problem:
        raise InvalidInput([Problem("", str(problem))]) from problem
    return changes_to(workflow, before, wanted)


def changes_to(workflow: Workflow, before: Json, wanted: Json) -> Correction:
    """Return the changes that lead from the task's input to `wanted` as a valid input.

    `wanted` may lack computed fields and the fields of the engine. Raises InvalidInput with all
    problems.
    """
    if not isinstance(before, Mapping) or not isinstance(wanted, Mapping):
        raise InvalidInput([Problem("", "must be an object")])
    engine = {name: before[name] for name in ENGINE_FIELDS if name in before}
    problems = [
        Problem(name, "is not a part of the input, and cannot be corrected")
        for name in sorted(ENGINE_FIELDS & wanted.keys())
        if name not in engine or engine[name] != wanted[name]
    ]
    if problems:
        raise InvalidInput(problems)
    kind = given_type(workflow.input)
    known = None if kind is None else field_names(kind)
    kept = {
        name
        for name, value in wanted.items()
        # The type does not have it, and nobody changes it: it is computed, or of an older release.
        if known is not None and name not in known and name in before and before[name] == value
    }
    given = {
        name: value
        for name, value in wanted.items()
        if name not in ENGINE_FIELDS and name not in kept
    }
    # The application's code may change what it gets, and `before` is compared afterwards.
    own = cast("Mapping[str, Json]", copied(given))
    try:
        valid = valid_input(workflow.input, own)
    except InvalidInput as error:
        raise InvalidInput(masked_problems(workflow, given, error.problems)) from error
    computes = workflow.input is not None and not is_input_type(workflow.input)
    rest = {} if computes else {name: wanted[name] for name in kept}
    return tuple(differences(before, {**valid, **rest, **engine}))
