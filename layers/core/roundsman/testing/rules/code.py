"""Code: each agent has its functions, and its errors have types."""

import ast
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


def typed_errors(application: Application) -> list[str]:
    """Each `PermanentError` in the agents' code has a type before its sentence.

    Without one, its type is `PermanentError`: no plan can name it in `not_on`, and failures of all
    causes are one group. Found are sentences that the code contains as text.
    """
    return [
        f"{where}:{call.lineno}: PermanentError has a sentence in place of its type; write "
        f'PermanentError("CardDeclined", "the sentence") with a type of yours'
        for where, source in application.sources.items()
        for call in _calls(source, "PermanentError")
        if len(call.args) == 1 and not call.keywords and _is_sentence(call.args[0])
    ]


def registered_workflows(application: Application) -> list[str]:
    """Each workflow that a module of the workflows defines is in WORKFLOWS of registry.py.

    Otherwise submission rejects its orders as those of an unknown workflow.
    """
    known = {workflow.name for workflow in application.workflows}
    return [
        f"{where}: the workflow {name} is not in WORKFLOWS of registry.py, so its orders are "
        "rejected; add it there, or remove it"
        for where, source in application.definitions.items()
        for call in _calls(source, "Workflow")
        for keyword in call.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
        if isinstance(name := keyword.value.value, str) and name not in known
    ]


def _calls(source: str, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = node.func
            if name in (getattr(called, "id", ""), getattr(called, "attr", "")):
                yield node


def _is_sentence(argument: ast.expr) -> bool:
    parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
    texts = [part.value for part in parts if isinstance(part, ast.Constant)]
    return any(isinstance(text, str) and " " in text for text in texts)


RULES: tuple[Rule, ...] = (bound_steps, known_agents, typed_errors, registered_workflows)
