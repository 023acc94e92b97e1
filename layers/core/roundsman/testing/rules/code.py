"""Code: each agent has a function for what the steps of the workflows ask of it."""

from collections.abc import Iterator

from roundsman.testing.rules.application import Application, Rule


def bound_steps(application: Application) -> list[str]:
    """Each agent of a step has a function that performs it, and one that undoes it if it has a
    compensation.

    Without it, an attempt at the step fails, and an operator has to deploy the code.
    """
    if application.agents is None:
        return []
    return [
        f"{workflow}: the agent {agent} has no function for {operation} of {step}"
        for workflow, step, agent, operation in _asked(application)
        if agent in application.agents and (step, operation) not in application.agents[agent].bound
    ]


def known_agents(application: Application) -> list[str]:
    """The code of each agent that a step names exists."""
    if application.agents is None:
        return []
    missing = {
        agent: workflow
        for workflow, _, agent, _ in _asked(application)
        if agent not in application.agents
    }
    return [
        f"{workflow}: there is no code of the agent {agent}" for agent, workflow in missing.items()
    ]


def _asked(application: Application) -> Iterator[tuple[str, str, str, str]]:
    for workflow in application.workflows:
        for step in workflow.steps:
            for agent in step.agent_names():
                yield workflow.name, step.name, agent, "perform"
                if step.compensation is not None:
                    yield workflow.name, step.name, agent, "undo"


RULES: tuple[Rule, ...] = (bound_steps, known_agents)
