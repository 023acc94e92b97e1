"""Roundsman runs multi-step tasks on AWS. Each task completes or is undone as a whole.

This package exports the names that authors of workflows and agents use. Each name is imported at
its first use, so that the scheduler's cold start does not load modules that only agents need.
"""

from typing import TYPE_CHECKING

from roundsman.lazy_imports import names_from

if TYPE_CHECKING:
    from roundsman.agents.agent import Agent
    from roundsman.agents.callbacks import Callback
    from roundsman.agents.outcomes import DidNotHappen, Happened
    from roundsman.agents.request import StepRequest
    from roundsman.errors import (
        Busy,
        CredentialRefused,
        DefinitionError,
        InvalidInput,
        PermanentError,
        Problem,
        RoundsmanError,
        TransientError,
        WrongAddress,
    )
    from roundsman.model.input_types import Items, Masked, Pattern, Range, Text, read_input
    from roundsman.model.json import Json
    from roundsman.model.workflow import (
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
    "Agent": "roundsman.agents.agent",
    "Archive": "roundsman.model.workflow",
    "Busy": "roundsman.errors",
    "Callback": "roundsman.agents.callbacks",
    "Compensation": "roundsman.model.workflow",
    "CredentialRefused": "roundsman.errors",
    "DefinitionError": "roundsman.errors",
    "DidNotHappen": "roundsman.agents.outcomes",
    "Happened": "roundsman.agents.outcomes",
    "InvalidInput": "roundsman.errors",
    "Items": "roundsman.model.input_types",
    "Json": "roundsman.model.json",
    "Masked": "roundsman.model.input_types",
    "Pattern": "roundsman.model.input_types",
    "PermanentError": "roundsman.errors",
    "Priority": "roundsman.model.workflow",
    "Problem": "roundsman.errors",
    "Range": "roundsman.model.input_types",
    "Retry": "roundsman.model.workflow",
    "RoundsmanError": "roundsman.errors",
    "Step": "roundsman.model.workflow",
    "StepRequest": "roundsman.agents.request",
    "Text": "roundsman.model.input_types",
    "TransientError": "roundsman.errors",
    "Undo": "roundsman.model.workflow",
    "Wait": "roundsman.model.workflow",
    "Workflow": "roundsman.model.workflow",
    "WrongAddress": "roundsman.errors",
    "read_input": "roundsman.model.input_types",
}

__all__ = [
    "Agent",
    "Archive",
    "Busy",
    "Callback",
    "Compensation",
    "CredentialRefused",
    "DefinitionError",
    "DidNotHappen",
    "Happened",
    "InvalidInput",
    "Items",
    "Json",
    "Masked",
    "Pattern",
    "PermanentError",
    "Priority",
    "Problem",
    "Range",
    "Retry",
    "RoundsmanError",
    "Step",
    "StepRequest",
    "Text",
    "TransientError",
    "Undo",
    "Wait",
    "Workflow",
    "WrongAddress",
    "read_input",
]

__getattr__ = names_from(__name__, _HOMES)
