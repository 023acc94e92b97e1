"""Adds a workflow to an application: its module, and its lines in the registry and the agents."""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

from roundsman_console.base.errors import ConsoleError
from roundsman_console.facts.application import SMOKE_EVENTS
from roundsman_dev.project.agents import code_of
from roundsman_dev.project.files import fill, part
from roundsman_dev.project.names import check_workflow, step_name

FOLDER = Path("layers") / "workflows" / "workflows"
REGISTRY = FOLDER / "registry.py"
LINE_LENGTH = 100
IMPORTS_OF_BINDING = ("from roundsman import Json", "from roundsman import StepRequest")
IMPORTS = (
    "from functools import cache",
    *IMPORTS_OF_BINDING,
    "from roundsman.agents.http import RemoteService",
)
"""What the functions of a step need that call the service themselves; in annotations only, the
imports of the binding, so that any object of their names will do."""


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

    It gets a step for each agent, one after the other; all can be undone. Agents with commas
    between them are alternatives: they get one step, at the first of them that takes work.
    `existing` has the texts of the registry and of the agents' code. Raises InvalidArgument for an
    invalid name, and ConsoleError if a file lacks the line at which something is added.
    """
    check_workflow(workflow)
    module = FOLDER / f"{workflow}.py"
    if module in existing:
        return {}
    steps = [step_name(workflow, alternatives(agent)[0]) for agent in agents]
    found = {module: _module(workflow, agents, steps)}
    found[REGISTRY] = with_workflow(existing[REGISTRY], workflow)
    for named, step in zip(agents, steps, strict=True):
        for agent in alternatives(named):
            code = found.get(code_of(agent), existing[code_of(agent)])
            found[code_of(agent)] = with_step(code, agent, workflow, step)
    return found


def alternatives(agents: str) -> list[str]:
    """Return the agents that can perform one step, the preferred one first: `payment,backup`."""
    return list(dict.fromkeys(agents.split(",")))


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
    for each in _parsed(registry, REGISTRY).body:
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
    """Return the agent's code with functions that perform and undo the step.

    They call `_create` and `_delete`, which a new agent has. In code without them, or where they
    need more than the request, the functions call the service themselves. Raises ConsoleError if
    the code is not Python, has no line of the handler, or has another object of a name that the
    functions need.
    """
    where = code_of(agent)
    body = _parsed(code, where).body
    end = f"\n\nhandler = {agent}.lambda_handler\n"
    at = code.rfind(end)
    if at < 0:
        raise ConsoleError(
            f"{where} has no line 'handler = {agent}.lambda_handler', above which the "
            f"functions of {step} belong. Add them by hand."
        )
    has_helpers = {"_create", "_delete"} <= {each.name for each in body if _takes_a_request(each)}
    needed = [line for line in IMPORTS if not has_helpers or line in IMPORTS_OF_BINDING]
    needed.append(f"from workflows.{workflow} import {step}")
    names = _names_of(body)
    for taken in (f"perform_{step}", f"undo_{step}", f"_service_of_{step}"):
        if taken in names:
            raise ConsoleError(
                f"{where} has {taken} already. Rename it, and run the command again."
            )
    head = code[:at].rstrip("\n") + "\n"
    for line in needed:
        _, module, _, name = line.split()
        if name not in names:
            head = _with_import(head, line + "\n")
        elif names[name] != module and line not in IMPORTS_OF_BINDING:
            raise ConsoleError(
                f"{where} has another {name} than that of {module}, which the functions of {step} "
                "need. Rename yours, and run the command again."
            )
    binding = part("binding.py" if has_helpers else "binding_alone.py")
    functions = fill(binding, {"agent": agent, "step": step})
    return head + functions.rstrip("\n") + "\n" + code[at:]


def _parsed(code: str, where: Path) -> ast.Module:
    """Return the module. Raises ConsoleError if it is not Python."""
    try:
        return ast.parse(code)
    except SyntaxError as error:
        raise ConsoleError(f"{where}, line {error.lineno}: {error.msg}.") from error


def _takes_a_request(statement: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Return whether a statement defines a function that may be called with one argument."""
    if not isinstance(statement, ast.FunctionDef) or statement.decorator_list:
        return False
    given = statement.args
    positional = len(given.posonlyargs) + len(given.args)
    required = positional - len(given.defaults)
    return (
        required <= 1
        and (positional >= 1 or given.vararg is not None)
        and all(default is not None for default in given.kw_defaults)
    )


def _names_of(body: Sequence[ast.stmt]) -> dict[str, str]:
    """Return the names that a module defines at its top, each with the module it is from, or ""."""
    found: dict[str, str] = {}
    for each in body:
        if isinstance(each, ast.ImportFrom):
            found |= {alias.asname or alias.name: each.module or "" for alias in each.names}
        elif isinstance(each, ast.Import):
            found |= {alias.asname or alias.name.partition(".")[0]: "" for alias in each.names}
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[each.name] = ""
        else:
            bound = (node for node in ast.walk(each) if isinstance(node, ast.Name))
            found |= {node.id: "" for node in bound if isinstance(node.ctx, ast.Store)}
    return found


def _with_import(text: str, line: str) -> str:
    """The module with an import among those of its beginning, in the order of their names."""
    lines = text.splitlines(keepends=True)
    body = ast.parse(text).body
    imports = [each for each in body if isinstance(each, ast.Import | ast.ImportFrom)]
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
    for place, (named, step) in enumerate(zip(agents, steps, strict=True)):
        after = f"\n    after=({steps[place - 1]},)," if place else ""
        several = [f'"{agent}"' for agent in alternatives(named)]
        performed = f"agents={_tuple(several)}" if len(several) > 1 else f"agent={several[0]}"
        texts.append(fill(part("step.py"), {"step": step, "agent": performed, "after": after}))
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
