"""The tenants that are at their rates at agents, as pages show them."""

from collections.abc import Sequence

from roundsman_console.aws.stack import DeployedStack
from roundsman_console.faces.web.readings.unreadable_parts import Part, part
from roundsman_console.facts.agent.tenants import TenantNow, tenants_at_rate


def tenants_part(
    stack: DeployedStack, agents: Sequence[str], at: int
) -> Part[list[tuple[TenantNow, str]]]:
    """Read each tenant with what is said of it, in a sentence."""
    return part(
        lambda: [(one, one.words(at)) for one in tenants_at_rate(stack, agents, at)],
        "which tenants are at their rate",
    )
