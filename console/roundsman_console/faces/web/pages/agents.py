"""The agents: their holds, circuits and queues."""

from collections.abc import Mapping

from roundsman.model.holds import OPERATOR
from roundsman.model.instants import MINUTE
from roundsman_console.aws.links import aws_console_of
from roundsman_console.aws.metrics import AttemptTimes, read_attempt_times
from roundsman_console.base.clock import now
from roundsman_console.faces.web.readings.cache import Cached
from roundsman_console.faces.web.readings.tenants import tenants_part
from roundsman_console.faces.web.readings.unreadable_parts import part
from roundsman_console.facts.agent.reading import find_agents_and_order_holds
from roundsman_console.facts.hold.view import order_hold_sentence
from roundsman_console.inspector import Inspector

TIMES: Cached[Mapping[str, AttemptTimes]] = Cached(
    keep=5 * MINUTE  # reading a metric costs money
)
"""How long the attempts of each agent took in the last day."""
LOGS_OF = 60 * MINUTE
"""The time before now of which the log of an agent is shown, in ms."""


def read(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the agents, how long their attempts took, and all queues."""
    agents, holds = find_agents_and_order_holds(inspector.stack)
    names, at, aws = [agent.name for agent in agents], now(), aws_console_of(inspector.stack)
    times = (
        part(
            lambda: TIMES.get(inspector, lambda: read_attempt_times(inspector.stack, names, at)),
            "how long attempts take",
        )
        if inspector.stack.has_cloudwatch
        else None
    )
    return {
        "agents": agents,
        "order_holds": [(hold.workflow, order_hold_sentence(hold)) for hold in holds],
        "tenants": tenants_part(inspector.stack, names, at),
        "times": times,
        "queues": part(inspector.queues, "the queues"),
        "OPERATOR": OPERATOR,
        "aws": aws,
        "logs": {name: aws.logs([name], at - LOGS_OF, at) for name in names} if aws else {},
    }
