"""Adds a workflow to an application: its module, and its lines in the registry and the agents."""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from roundsman_console.application import SMOKE_EVENTS
from roundsman_console.cli_errors import ConsoleError
from roundsman_console.project.agents import code_of
from roundsman_console.project.files import fill, part
from roundsman_console.project.names import check_workflow, step_name

FOLDER = Path("layers") / "workflows" / "workflows"
REGISTRY = FOLDER / "registry.py"
LINE_LENGTH = 100


def event_of(workflow: str) -> Path:
    """Return the path of the order that the tests send to an added workflow."""
    return Path("events") / f"{workflow}.json"


def smoke_event_of(workflow: str) -> Path:
    """Return the path of the order that `roundsman smoke` sends to a workflow."""
    return SMOKE_EVENTS / f"{workflow}.json"


def workflow_files(
    workflow: str, agents: Sequence[str], existing: Mapping[Path, str]
) -> dict[Path, str]:
    """Return the files that adding the workflow writes; empty if it is there.

    It gets a step for each agent, one after the other; all can be undone. `existing` has the texts
    of the registry and of the agents' code. Raises InvalidArgument for an invalid name, and
    ConsoleError if a file lacks the line at which something is added.
    """
    check_workflow(workflow)
    module = FOLDER / f"{workflow}.py"
    if module in existing:
        return {}
    steps = [step_name(workflow, agent) for agent in agents]
    found = {module: _module(workflow, agents, steps)}
    found[REGISTRY] = with_workflow(existing[REGISTRY], workflow)
    for agent, step in zip(agents, steps, strict=True):
        found[code_of(agent)] = with_step(existing[code_of(agent)], agent, workflow, step)
    return found


def with_workflow(registry: str, workflow: str) -> str:
    """Return the registry with the workflow as the last of its dict WORKFLOWS."""
    line = f"from workflows.{workflow} import {workflow}\n"
    if line in registry:
        return registry
    found = _workflows_of(registry)
    if found is None or found.end_lineno is None or found.end_col_offset is None:
        raise ConsoleError(
            f"{REGISTRY} has no dict WORKFLOWS = {{...}}. Import {workflow} there "
            "and add it by hand."
        )
    lines = registry.splitlines(keepends=True)
    last = lines[found.end_lineno - 1].encode()
    # The offset is in bytes; it is that of the character after the brace.
    before, brace = last[: found.end_col_offset - 1].decode(), last[found.end_col_offset - 1 :]
    text = "".join(lines[: found.end_lineno - 1]) + before.rstrip(" ")
    if found.values and not _ends_in_comma(lines, found):
        text = text.rstrip() + ","
    text = text.removesuffix("\n")
    entry = f"    {workflow}.name: {workflow},\n"
    after = "".join(lines[found.end_lineno :])
    return _with_import(f"{text}\n{entry}{brace.decode()}{after}", line)


def _workflows_of(registry: str) -> ast.Dict | None:
    """The dict that the module assigns to WORKFLOWS; None if there is none."""
    try:
        body = ast.parse(registry).body
    except SyntaxError as error:
        raise ConsoleError(f"{REGISTRY}, line {error.lineno}: {error.msg}.") from error
    for each in body:
        targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        value = each.value if isinstance(each, ast.Assign | ast.AnnAssign) else None
        if names == ["WORKFLOWS"] and isinstance(value, ast.Dict):
            return value
    return None


def _ends_in_comma(lines: Sequence[str], found: ast.Dict) -> bool:
    """Whether the dict's last entry has a comma after it."""
    last = found.values[-1]
    end = (last.end_lineno or 1) - 1
    rest = "".join(lines[end : found.end_lineno])
    return rest.encode()[last.end_col_offset or 0 :].lstrip().startswith(b",")


def with_step(code: str, agent: str, workflow: str, step: str) -> str:
    """Return the agent's code with functions that perform and undo the step."""
    end = f"\n\nhandler = {agent}.lambda_handler\n"
    at = code.rfind(end)
    if at < 0:
        raise ConsoleError(
            f"{code_of(agent)} has no line 'handler = {agent}.lambda_handler', above which the "
            f"functions of {step} belong. Add them by hand."
        )
    functions = fill(part("binding.py"), {"agent": agent, "step": step})
    text = code[:at].rstrip("\n") + "\n" + functions.rstrip("\n") + "\n" + code[at:]
    return _with_import(text, f"from workflows.{workflow} import {step}\n")


def _with_import(text: str, line: str) -> str:
    """The module with an import among those of its beginning, in the order of their names."""
    lines = text.splitlines(keepends=True)
    imports = [
        each for each in ast.parse(text).body if isinstance(each, ast.Import | ast.ImportFrom)
    ]
    module = line.split()[1]
    at = imports[-1].end_lineno or 0 if imports else 0
    for each in imports:
        if isinstance(each, ast.ImportFrom) and _is_after(each.module or "", module):
            at = each.lineno - 1
            break
    return "".join([*lines[:at], line, *lines[at:]])


def _is_after(module: str, new: str) -> bool:
    return module.startswith("workflows.") and module > new


def _module(workflow: str, agents: Sequence[str], steps: Sequence[str]) -> str:
    texts = []
    for place, (agent, step) in enumerate(zip(agents, steps, strict=True)):
        after = f"\n    after=({steps[place - 1]},)," if place else ""
        texts.append(fill(part("step.py"), {"step": step, "agent": agent, "after": after}))
    title = "".join(word.capitalize() for word in workflow.split("_"))
    values = {
        "workflow": workflow,
        "input": f"{title}Order",
        "steps": "".join(texts),
        "names": _tuple(steps),
    }
    return fill(part("workflow.py"), values)


def _tuple(names: Sequence[str]) -> str:
    """The names as a tuple: on one line if that is short enough."""
    line = f"({', '.join(names)})" if len(names) > 1 else f"({names[0]},)"
    if len(f"    steps={line},") <= LINE_LENGTH:
        return line
    return "(\n" + "".join(f"        {name},\n" for name in names) + "    )"
