"""Deploys a SAM template on moto and runs its functions. See docs/how-to/test.md."""

from typing import TYPE_CHECKING

from roundsman.lazy_imports import names_from

if TYPE_CHECKING:
    from roundsman_dev.template import Template, TemplateProblem
    from roundsman_testing.stack.calls import AwsCall, AwsFault, InjectedFault, Killed
    from roundsman_testing.stack.deployment import QueueMessage, Stack, deployed
    from roundsman_testing.stack.environment import MORNING, Clock
    from roundsman_testing.stack.functions import Context
    from roundsman_testing.stack.services import Services

_HOMES = {
    "AwsFault": "roundsman_testing.stack.calls",
    "AwsCall": "roundsman_testing.stack.calls",
    "Clock": "roundsman_testing.stack.environment",
    "Context": "roundsman_testing.stack.functions",
    "Killed": "roundsman_testing.stack.calls",
    "MORNING": "roundsman_testing.stack.environment",
    "QueueMessage": "roundsman_testing.stack.deployment",
    "Services": "roundsman_testing.stack.services",
    "Stack": "roundsman_testing.stack.deployment",
    "InjectedFault": "roundsman_testing.stack.calls",
    "Template": "roundsman_dev.template",
    "TemplateProblem": "roundsman_dev.template",
    "deployed": "roundsman_testing.stack.deployment",
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
