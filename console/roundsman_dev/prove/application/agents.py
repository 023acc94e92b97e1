"""The agents of a proof: each passes the requests of its steps to its services."""

from roundsman import Agent, DidNotHappen, Happened, Json, Step, StepRequest
from roundsman_dev.prove.application.services import services
from roundsman_dev.prove.application.workflows import (
    WORKFLOWS,
    charge,
    debit,
    pack,
    pick,
    reserve,
    send,
    ship,
    wrap,
)

AGENTS = {
    "stock": (reserve, pack, pick, wrap),
    "payment": (charge, debit, send),
    "courier": (ship, send),
}
"""The steps of each agent, by its name."""


def agent(name: str) -> Agent:
    """Return the agent with this name. Raises KeyError if there is none."""
    made = Agent(name, WORKFLOWS)
    for step in AGENTS[name]:
        _bind(made, step)
    return made


def _bind(made: Agent, step: Step) -> None:
    @made.performs(step)
    def perform(request: StepRequest) -> Json:
        return services(made.name).perform(request)

    @made.compensates(step)
    def undo(request: StepRequest) -> None:
        services(made.name).undo(request)

    if step.compensation is not None and step.compensation.verify:

        @made.probes(step)
        def probe(request: StepRequest) -> Happened | DidNotHappen:
            return services(made.name).probe(request)
