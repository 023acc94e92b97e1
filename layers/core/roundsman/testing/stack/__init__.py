"""Deploys a SAM template on moto in this process and runs its functions. See docs/testing.md."""

from typing import TYPE_CHECKING

from roundsman._lazy import names_from

if TYPE_CHECKING:
    from roundsman.testing.stack.calls import AwsFault, Call, Killed, Strike
    from roundsman.testing.stack.deployment import Message, Stack, deployed
    from roundsman.testing.stack.environment import MORNING, Clock
    from roundsman.testing.stack.functions import Context
    from roundsman.testing.stack.services import Services
    from roundsman.testing.stack.template import Template, TemplateProblem

_HOMES = {
    "AwsFault": "roundsman.testing.stack.calls",
    "Call": "roundsman.testing.stack.calls",
    "Clock": "roundsman.testing.stack.environment",
    "Context": "roundsman.testing.stack.functions",
    "Killed": "roundsman.testing.stack.calls",
    "MORNING": "roundsman.testing.stack.environment",
    "Message": "roundsman.testing.stack.deployment",
    "Services": "roundsman.testing.stack.services",
    "Stack": "roundsman.testing.stack.deployment",
    "Strike": "roundsman.testing.stack.calls",
    "Template": "roundsman.testing.stack.template",
    "TemplateProblem": "roundsman.testing.stack.template",
    "deployed": "roundsman.testing.stack.deployment",
}

__all__ = [
    "MORNING",
    "AwsFault",
    "Call",
    "Clock",
    "Context",
    "Killed",
    "Message",
    "Services",
    "Stack",
    "Strike",
    "Template",
    "TemplateProblem",
    "deployed",
]

__getattr__ = names_from(__name__, _HOMES)
