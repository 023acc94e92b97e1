"""Code: each agent has a function for what the steps of the workflows ask of it."""

from roundsman.testing.rules.application import Application, Rule


def bound_steps(application: Application) -> list[str]:
    """Each agent of a step has a function that performs it, and one that undoes it if it has a
    compensation.

    Without it, an attempt at the step fails, and an operator has to deploy the code.
    """
    if application.agents is None:
        return []
    return [
        sentence
        for agent in application.agents.values()
        for sentence in agent.missing_functions(application.workflows)
    ]


def known_agents(application: Application) -> list[str]:
    """The code of each agent that a step names exists."""
    if application.agents is None:
        return []
    missing = {
        agent: workflow.name
        for workflow in application.workflows
        for step in workflow.steps
        for agent in step.agent_names()
        if agent not in application.agents
    }
    return [
        f"{workflow}: there is no code of the agent {agent}" for agent, workflow in missing.items()
    ]


RULES: tuple[Rule, ...] = (bound_steps, known_agents)
