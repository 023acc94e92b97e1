"""The verb on the rate of a tenant at an agent: lifting it for a while."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from roundsman.model.events import CommandSource, RunNow
from roundsman.model.instants import SECOND, format_duration, second
from roundsman.model.tenant_rate import tenant_key
from roundsman.supervisor.parked import A_SECOND, FIRST
from roundsman.wire.commands import command_of
from roundsman.wire.limits import wire_text
from roundsman_console.acts.actor import signed_in
from roundsman_console.acts.order.sent import check_sender, new_command_id
from roundsman_console.acts.verb import Argument, Asked, Form, Preview, StackVerb, Subject
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.base.limits import LONGEST_LIFT, SHORTEST_HOLD
from roundsman_console.base.result import EpochMs, Noun, Result
from roundsman_console.base.typed_inputs import read_duration
from roundsman_console.facts.agent.reading import find_agent
from roundsman_console.facts.agent.tenants import waiting_for_rate


def read_tenant(text: str) -> str:
    """Return the name of a tenant. Raises InvalidArgument if it cannot be one."""
    if not 1 <= len(text) <= 128 or not all("!" <= one <= "~" for one in text):
        raise InvalidArgument(
            "A tenant is 1 to 128 ASCII letters, digits or punctuation, without spaces."
        )
    return text


@dataclass(frozen=True, slots=True)
class Lifted(Result):
    """A tenant's rate at an agent was lifted."""

    agent: str
    tenant: str
    lifted_until: EpochMs
    woken: int = 0
    """How many orders that waited go on now."""

    def words(self) -> Sequence[str]:
        until, orders = second(self.lifted_until), counted(self.woken, "order")
        return [
            f"Done: the rate of tenant {self.tenant} at {self.agent} is lifted until {until}.",
            f"{orders} that waited: run from now on, {A_SECOND} per second.",
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftVerb(StackVerb):
    """Lift the rate of one tenant at an agent for a while, and run its orders that wait for it.

    The first 500 go on at once, and the others at their own times, within an hour. The rate of the
    agent itself stays. A shorter time replaces a longer one.

    Example: roundsman lift payment shop-1 --for 1h --reason "the yearly invoices"
    """

    name = "lift"
    title = "Lift the rate of a tenant"
    reason = "Reason, kept in the history of each order that goes on."
    document = Lifted
    noun = Noun.AGENTS

    agent: Annotated[
        str,
        Argument(help="The agent's name, as in: roundsman agents", metavar="AGENT", label="Agent"),
    ]
    tenant: Annotated[
        str,
        Argument(
            help="The tenant, as the orders name it.",
            metavar="TENANT",
            label="Tenant",
            read=read_tenant,
        ),
    ]
    seconds: Annotated[
        int,
        Argument(
            "--for",
            "For how long: 90s, 30m, 2h, 1d; at most 1d.",
            label="For how long",
            hint="90s, 30m, 2h or 1d; at most 1d",
            proposed="1h",
            read=partial(read_duration, least=SHORTEST_HOLD, most=LONGEST_LIFT),
        ),
    ]

    @classmethod
    def subject(cls, stack: DeployedStack, given: Form) -> Subject:
        if not given.get("agent", ""):
            return Subject("")
        agent = find_agent(stack, given["agent"]).name
        return Subject(agent, {"agent": agent}, ("agent",))

    def preview(self, stack: DeployedStack) -> Preview:
        agent = find_agent(stack, self.agent).name
        before = stack.tenant_rates.read(agent, tenant_key(agent, self.tenant)).lifted_until
        waiting = len(waiting_for_rate(stack, agent, self.tenant, FIRST))
        many = "At least " if waiting >= FIRST else ""
        return Preview(
            f"For {format_duration(self.seconds * SECOND)}, no call for tenant {self.tenant} would "
            f"wait for its rate at {agent}. {many}{counted(waiting, 'order')} would go on now.",
            partial(self._lift, stack, agent),
            str(before),
        )

    def _lift(self, stack: DeployedStack, agent: str, asked: Asked) -> Lifted:
        check_sender(asked.by, asked.reason)
        by, reason = wire_text(asked.by), wire_text(asked.reason)
        until = now() + self.seconds * SECOND
        stack.tenant_rates.lift(agent, self.tenant, until=until, by=by, now=now())
        found = waiting_for_rate(stack, agent, self.tenant, FIRST)
        commands = []
        for place, one in enumerate(found):
            source = CommandSource(new_command_id(), by, reason, forwarded_for=signed_in())
            at = place * SECOND // A_SECOND
            commands.append((command_of(one.task_id, RunNow(source)), at))
        stack.outbox().send_commands(commands)
        return Lifted(agent, self.tenant, until, len(found))
