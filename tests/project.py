"""This project's own template, with its services at fake addresses, for the tests that read it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from roundsman_dev.template import Document, Template
from roundsman_testing.stack import Clock, Services, Stack, deployed
from roundsman_testing.stack.resources import StackOnMoto, create_stack_on_moto

TEMPLATE = Path(__file__).parents[1] / "template.yaml"

# The parameters that a deployment must get; all others have a default.
SERVICE_URLS: Mapping[str, str] = {
    "InventoryUrl": "https://inventory.test",
    "PaymentUrl": "https://payment.test",
    "ShippingUrl": "https://shipping.test",
    "MailUrl": "https://mail.test",
}

AGENTS = ("Inventory", "Payment", "Shipping", "Mail")
"""The blocks of the agents in the template."""

FEW_SHARDS: Mapping[str, str] = {"Engine.DueShards": "2"}
"""More than one, and not the sixteen that each pass of a supervisor would ask DynamoDB for."""


def of_each_agent(parameter: str, value: str) -> Mapping[str, str]:
    """A parameter of the agents' stacks, with the same value for each agent."""
    return {f"{agent}.{parameter}": value for agent in AGENTS}


def load_template() -> Document:
    """template.yaml as written, its short intrinsics (`!Ref`) spelled out."""
    return Template.read(TEMPLATE).document


def translate(parameters: Mapping[str, str] | None = None) -> Document:
    """The plain CloudFormation that the template becomes."""
    return Template.read(TEMPLATE).translate({**SERVICE_URLS, **(parameters or {})})


def create_stack(parameters: Mapping[str, str] | None = None) -> StackOnMoto:
    """The template's stack, inside `mock_aws()`."""
    return create_stack_on_moto(Template.read(TEMPLATE), {**SERVICE_URLS, **(parameters or {})})


@contextmanager
def deployed_project(
    services: Services, clock: Clock, parameters: Mapping[str, str] | None = None
) -> Iterator[Stack]:
    """A deployment of its own, of few shards, whose agents call these services."""
    values = {**dict.fromkeys(SERVICE_URLS, services.url), **FEW_SHARDS, **(parameters or {})}
    with deployed(TEMPLATE, values, services=services, clock=clock) as stack:
        yield stack
