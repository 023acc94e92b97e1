"""Masks the problems of an input: the application's own code writes some of them, and may quote."""

from collections.abc import Sequence
from dataclasses import replace

from roundsman.definition.workflow import Workflow
from roundsman.errors import Problem
from roundsman.model.json import Json
from roundsman.model.masked_values import MaskedPaths, MaskedTexts


def masked_problems(
    workflow: Workflow, given: Json, problems: Sequence[Problem]
) -> tuple[Problem, ...]:
    """Return the problems of an input with MASK for each of its masked values in a message."""
    paths = workflow.masked_paths()
    if not paths:
        return tuple(problems)
    texts = MaskedTexts.of(value for _, value in MaskedPaths.of(paths).values(given))
    return tuple(replace(one, message=texts.text(one.message)) for one in problems)
