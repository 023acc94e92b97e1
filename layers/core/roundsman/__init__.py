"""Roundsman runs multi-step tasks on AWS. Each task completes or is undone as a whole.

This package exports the names that authors of workflows and agents use. Each name is imported at
its first use, so that the scheduler's cold start does not load modules that only agents need.
"""

from typing import TYPE_CHECKING

from roundsman.lazy_imports import names_from

if TYPE_CHECKING:
    from roundsman.agents.agent import Agent
    from roundsman.agents.callbacks import Callback
    from roundsman.agents.not_yet import NotYet
    from roundsman.agents.outcomes import DidNotHappen, Done, Happened
    from roundsman.agents.request import StepRequest
    from roundsman.definition.input_types import (
        Items,
        Masked,
        Pattern,
        Payload,
        Range,
        Text,
        read_input,
    )
    from roundsman.definition.service_events import From
    from roundsman.definition.workflow import (
        ANY,
        AnyOf,
        Archive,
        Compensation,
        Limit,
        NamedStep,
        NextAgent,
        Retry,
        Signal,
        Skip,
        Sleep,
        SleepUntil,
        Step,
        Undo,
        Wait,
        Workflow,
    )
    from roundsman.errors import (
        Busy,
        CredentialRefused,
        DefinitionError,
        InvalidInput,
        PayloadError,
        PermanentError,
        Problem,
        RoundsmanError,
        TransientError,
        WrongAddress,
    )
    from roundsman.model.json import Json
    from roundsman.model.priority import Priority

_HOMES = {
    "ANY": "roundsman.definition.workflow",
    "Agent": "roundsman.agents.agent",
    "AnyOf": "roundsman.definition.workflow",
    "Archive": "roundsman.definition.workflow",
    "Busy": "roundsman.errors",
    "Callback": "roundsman.agents.callbacks",
    "Compensation": "roundsman.definition.workflow",
    "CredentialRefused": "roundsman.errors",
    "DefinitionError": "roundsman.errors",
    "DidNotHappen": "roundsman.agents.outcomes",
    "Done": "roundsman.agents.outcomes",
    "From": "roundsman.definition.service_events",
    "Happened": "roundsman.agents.outcomes",
    "InvalidInput": "roundsman.errors",
    "Items": "roundsman.definition.input_types",
    "Json": "roundsman.model.json",
    "Limit": "roundsman.definition.workflow",
    "Masked": "roundsman.definition.input_types",
    "NamedStep": "roundsman.definition.workflow",
    "NextAgent": "roundsman.definition.workflow",
    "NotYet": "roundsman.agents.not_yet",
    "Pattern": "roundsman.definition.input_types",
    "Payload": "roundsman.definition.input_types",
    "PayloadError": "roundsman.errors",
    "PermanentError": "roundsman.errors",
    "Priority": "roundsman.model.priority",
    "Problem": "roundsman.errors",
    "Range": "roundsman.definition.input_types",
    "Retry": "roundsman.definition.workflow",
    "RoundsmanError": "roundsman.errors",
    "Signal": "roundsman.definition.workflow",
    "Skip": "roundsman.definition.workflow",
    "Sleep": "roundsman.definition.workflow",
    "SleepUntil": "roundsman.definition.workflow",
    "Step": "roundsman.definition.workflow",
    "StepRequest": "roundsman.agents.request",
    "Text": "roundsman.definition.input_types",
    "TransientError": "roundsman.errors",
    "Undo": "roundsman.definition.workflow",
    "Wait": "roundsman.definition.workflow",
    "Workflow": "roundsman.definition.workflow",
    "WrongAddress": "roundsman.errors",
    "read_input": "roundsman.definition.input_types",
}

__all__ = [
    "ANY",
    "Agent",
    "AnyOf",
    "Archive",
    "Busy",
    "Callback",
    "Compensation",
    "CredentialRefused",
    "DefinitionError",
    "DidNotHappen",
    "Done",
    "From",
    "Happened",
    "InvalidInput",
    "Items",
    "Json",
    "Limit",
    "Masked",
    "NamedStep",
    "NextAgent",
    "NotYet",
    "Pattern",
    "Payload",
    "PayloadError",
    "PermanentError",
    "Priority",
    "Problem",
    "Range",
    "Retry",
    "RoundsmanError",
    "Signal",
    "Skip",
    "Sleep",
    "SleepUntil",
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
