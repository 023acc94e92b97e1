"""Adds a workflow to an application: its module, and its lines in the registry and the agents."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from roundsman_console.cli_errors import ConsoleError
from roundsman_console.project.agents import code_of
from roundsman_console.project.files import fill, part
from roundsman_console.project.names import check_workflow

FOLDER = Path("layers") / "workflows" / "workflows"
REGISTRY = FOLDER / "registry.py"
REGISTRY_END = "}\n"


def workflow_files(
    workflow: str, agents: Sequence[str], existing: Mapping[Path, str]
) -> dict[Path, str]:
    """Return the files that adding the workflow writes; empty if it is there.

    It gets a step for each agent, one after the other; all but the last can be undone. `existing`
    has the texts of the registry and of the agents' code. Raises InvalidArgument for an invalid
    name, and ConsoleError if a file lacks the line at which something is added.
    """
    check_workflow(workflow)
    module = FOLDER / f"{workflow}.py"
    if module in existing:
        return {}
    steps = [f"{workflow}_{agent}" for agent in agents]
    found = {module: _module(workflow, agents, steps)}
    found[REGISTRY] = with_workflow(existing[REGISTRY], workflow)
    for place, (agent, step) in enumerate(zip(agents, steps, strict=True)):
        last = place == len(agents) - 1
        found[code_of(agent)] = with_step(
            existing[code_of(agent)], agent, workflow, step, undone=not last
        )
    return found


def with_workflow(registry: str, workflow: str) -> str:
    """Return the registry with the workflow as its last."""
    line = f"from workflows.{workflow} import {workflow}\n"
    if line in registry:
        return registry
    start, end = registry.find("WORKFLOWS"), registry.rfind(REGISTRY_END)
    if start < 0 or end < start:
        raise ConsoleError(
            f"{REGISTRY} has no dict WORKFLOWS that ends in a line {REGISTRY_END.strip()!r}. "
            f"Import {workflow} there and add it by hand."
        )
    entry = f"    {workflow}.name: {workflow},\n"
    before = registry[:end].removesuffix("\n")
    return _with_import(f"{before}\n{entry}{registry[end:]}", line)


def with_step(code: str, agent: str, workflow: str, step: str, *, undone: bool) -> str:
    """Return the agent's code with functions for the step."""
    end = f"\n\nhandler = {agent}.lambda_handler\n"
    at = code.rfind(end)
    if at < 0:
        raise ConsoleError(
            f"{code_of(agent)} has no line 'handler = {agent}.lambda_handler', above which the "
            f"functions of {step} belong. Add them by hand."
        )
    values = {"agent": agent, "step": step}
    functions = fill(part("binding.py"), values)
    if undone:
        functions += fill(part("compensated.py"), values)
    text = code[:at].rstrip("\n") + "\n" + functions.rstrip("\n") + "\n" + code[at:]
    return _with_import(text, f"from workflows.{workflow} import {step}\n")


def _with_import(text: str, line: str) -> str:
    """The module with an import after its last one."""
    lines = text.splitlines(keepends=True)
    imports = [n for n, each in enumerate(lines) if each.startswith(("import ", "from "))]
    at = imports[-1] + 1 if imports else 0
    if imports and lines[imports[-1]].rstrip().endswith("("):
        at = next(n for n in range(at, len(lines)) if lines[n].startswith(")")) + 1
    return "".join([*lines[:at], line, *lines[at:]])


def _module(workflow: str, agents: Sequence[str], steps: Sequence[str]) -> str:
    texts = []
    for place, (agent, step) in enumerate(zip(agents, steps, strict=True)):
        last = place == len(agents) - 1
        after = f"\n    after=({steps[place - 1]},)," if place else ""
        undo = "" if last else "\n    compensation=Compensation(fences_late_performs=True),"
        values = {"step": step, "agent": agent, "after": after, "compensation": undo}
        texts.append(fill(part("step.py"), values))
    title = "".join(word.capitalize() for word in workflow.split("_"))
    values = {
        "workflow": workflow,
        "input": f"{title}Order",
        "steps": "".join(texts),
        "names": ", ".join(steps) if len(steps) > 1 else f"{steps[0]},",
    }
    return fill(part("workflow.py"), values)
