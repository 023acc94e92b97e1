"""Roundsman: multi-step tasks on AWS that complete, or are undone, as a whole.

These are the names that authors of workflows and agents use. Each is imported when it is first
asked for: a scheduler never pays at its cold start for what only agents need.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roundsman.agent import Agent
    from roundsman.callbacks import Callback
    from roundsman.errors import (
        Busy,
        DefinitionError,
        PermanentError,
        RoundsmanError,
        TransientError,
    )
    from roundsman.probes import DidNotHappen, Happened
    from roundsman.step_request import StepRequest
    from roundsman.values import Json
    from roundsman.workflow import (
        Archive,
        Compensation,
        Priority,
        Retry,
        Step,
        Undo,
        Wait,
        Workflow,
    )

_HOMES = {
    "Agent": "roundsman.agent",
    "Archive": "roundsman.workflow",
    "Busy": "roundsman.errors",
    "Callback": "roundsman.callbacks",
    "Compensation": "roundsman.workflow",
    "DefinitionError": "roundsman.errors",
    "DidNotHappen": "roundsman.probes",
    "Happened": "roundsman.probes",
    "Json": "roundsman.values",
    "PermanentError": "roundsman.errors",
    "Priority": "roundsman.workflow",
    "Retry": "roundsman.workflow",
    "RoundsmanError": "roundsman.errors",
    "Step": "roundsman.workflow",
    "StepRequest": "roundsman.step_request",
    "TransientError": "roundsman.errors",
    "Undo": "roundsman.workflow",
    "Wait": "roundsman.workflow",
    "Workflow": "roundsman.workflow",
}

__all__ = [
    "Agent",
    "Archive",
    "Busy",
    "Callback",
    "Compensation",
    "DefinitionError",
    "DidNotHappen",
    "Happened",
    "Json",
    "PermanentError",
    "Priority",
    "Retry",
    "RoundsmanError",
    "Step",
    "StepRequest",
    "TransientError",
    "Undo",
    "Wait",
    "Workflow",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'roundsman' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
