"""Deploys a SAM template on moto and runs its functions. See docs/how-to/test.md."""

from typing import TYPE_CHECKING

from roundsman.lazy_imports import names_from

if TYPE_CHECKING:
    from roundsman.testing.stack.calls import AwsCall, AwsFault, InjectedFault, Killed
    from roundsman.testing.stack.deployment import QueueMessage, Stack, deployed
    from roundsman.testing.stack.environment import MORNING, Clock
    from roundsman.testing.stack.functions import Context
    from roundsman.testing.stack.services import Services
    from roundsman.testing.stack.template import Template, TemplateProblem

_HOMES = {
    "AwsFault": "roundsman.testing.stack.calls",
    "AwsCall": "roundsman.testing.stack.calls",
    "Clock": "roundsman.testing.stack.environment",
    "Context": "roundsman.testing.stack.functions",
    "Killed": "roundsman.testing.stack.calls",
    "MORNING": "roundsman.testing.stack.environment",
    "QueueMessage": "roundsman.testing.stack.deployment",
    "Services": "roundsman.testing.stack.services",
    "Stack": "roundsman.testing.stack.deployment",
    "InjectedFault": "roundsman.testing.stack.calls",
    "Template": "roundsman.testing.stack.template",
    "TemplateProblem": "roundsman.testing.stack.template",
    "deployed": "roundsman.testing.stack.deployment",
}

__all__ = [
    "MORNING",
    "AwsCall",
    "AwsFault",
    "Clock",
    "Context",
    "InjectedFault",
    "Killed",
    "QueueMessage",
    "Services",
    "Stack",
    "Template",
    "TemplateProblem",
    "deployed",
]

__getattr__ = names_from(__name__, _HOMES)
