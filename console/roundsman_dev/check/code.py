"""Code: each agent has its functions, and its errors have types."""

import ast
import builtins
import posixpath
import re
import symtable
from collections.abc import Iterator

from roundsman_dev.check.application import Application, Rule
from roundsman_dev.check.reading import at
from roundsman_dev.template import part


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
        for step in workflow.all_steps
        for agent in step.agent_names()
        if agent not in application.agents
    }
    return [
        f"{workflow}: there is no code of the agent {agent}" for agent, workflow in missing.items()
    ]


def agent_folders(application: Application) -> list[str]:
    """The folder that a block names as the code of its agent defines that agent, and has its name.

    Otherwise the build fails, or the function answers for another agent. The commands and the tests
    of a new application find an agent by its folder.
    """
    folders, problems = application.folders, list[str]()
    for folder, agent in folders.items():
        name = posixpath.basename(folder)
        if name != agent:
            problems.append(
                f"{folder}/app.py defines the agent {agent}: rename the folder to {agent}, or "
                f"the agent to {name}, and name it alike in Agent and Code of its block"
            )
    for name, block in part(application.root, "Resources").items() if folders else ():
        own, code, location = (
            at(block, "Properties", *path)
            for path in (("Parameters", "Agent"), ("Parameters", "Code"), ("Location",))
        )
        if not (isinstance(own, str) and isinstance(code, str) and isinstance(location, str)):
            continue
        named = posixpath.normpath(posixpath.join(posixpath.dirname(location), code))
        if "://" in code or folders.get(named) == own:
            continue
        found = f"defines the agent {folders[named]}" if named in folders else "has no app.py"
        problems.append(
            f"{name}: Code of the agent {own} names {named}, which {found}; name the folder "
            f"whose app.py defines {own}"
        )
    return problems


def registry_keys(application: Application) -> list[str]:
    """Each key of WORKFLOWS is the name of its workflow.

    Submission finds a workflow by the key, and everything else by the name.
    """
    return [
        f"WORKFLOWS of registry.py has {name} under the key {key!r}: write {name}.name as its key"
        for key, name in application.names_by_key.items()
        if key != name
    ]


def defined_names(application: Application) -> list[str]:
    """Each name that the code of agents and workflows uses is defined or imported.

    Otherwise an attempt at the step fails when the function gets there, such as at a call of a
    function that was renamed.
    """
    modules = {**application.sources, **application.definitions}
    return [
        f"{where}:{line}: there is no {name}; define or import it, or remove what uses it"
        for where, source in modules.items()
        for name, line in undefined_names(source)
    ]


def undefined_names(source: str) -> list[tuple[str, int]]:
    """Return each name that a module uses and nobody defines, and the first line that uses it.

    Empty for a module that imports `*`, which may define any. Raises SyntaxError.
    """
    tree = ast.parse(source)
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    if any(alias.name == "*" for node in imports for alias in node.names):
        return []
    scopes = list(_scopes(symtable.symtable(source, "module", "exec")))
    defined = {
        symbol.get_name()
        for scope in scopes
        for symbol in scope.get_symbols()
        if symbol.is_assigned() or symbol.is_imported()
        if scope is scopes[0] or symbol.is_declared_global()
    }
    used = {
        symbol.get_name()
        for scope in scopes
        for symbol in scope.get_symbols()
        if symbol.is_referenced() and symbol.is_global()
    }
    missing = {n for n in used - defined - set(dir(builtins)) if not n.startswith("__")}
    lines: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in missing:
            lines[node.id] = min(node.lineno, lines.get(node.id, node.lineno))
    return sorted(lines.items(), key=lambda found: found[1])


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """The module's own scope, and then each one in it."""
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def typed_errors(application: Application) -> list[str]:
    """Each `PermanentError` in the agents' code has a type before its sentence.

    Without one, its type is `PermanentError`: no plan can name it in `not_on`, and failures of all
    causes are one group. Found are sentences that the code contains as text.
    """
    return [
        f"{where}:{call.lineno}: PermanentError has a sentence in place of its type; write "
        f'PermanentError("CardDeclined", "the sentence") with a type of yours'
        for where, source in application.sources.items()
        for call in calls_of(source, "PermanentError")
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
        for call in calls_of(source, "Workflow")
        for keyword in call.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
        if isinstance(name := keyword.value.value, str) and name not in known
    ]


def shipped_models(application: Application) -> list[str]:
    """Each function that imports the workflows has pydantic, if they import it.

    It is not pure Python, so no layer has it, and without it the function cannot start.
    """
    if not any(_imports(source, "pydantic") for source in application.definitions.values()):
        return []
    folders = [
        folder
        for folder in application.folders
        for where, source in application.sources.items()
        if where.startswith(f"{folder}/") and _imports(source, "workflows")
    ]
    return [
        f"{folder}/requirements.txt must name pydantic, which the workflows import: no layer has it"
        for folder in dict.fromkeys(["functions/submission", *folders])
        if not _PYDANTIC.search(application.libraries.get(folder, ""))
    ]


_PYDANTIC = re.compile(r"^\s*pydantic(?![\w.-])", re.IGNORECASE | re.MULTILINE)
"""A line of a requirements.txt that names it."""


def _imports(source: str, package: str) -> bool:
    return any(
        name.partition(".")[0] == package
        for node in ast.walk(ast.parse(source))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    )


def calls_of(source: str, name: str) -> Iterator[ast.Call]:
    """Yield each call of a name, or of an attribute with it. Raises SyntaxError."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = node.func
            if name in (getattr(called, "id", ""), getattr(called, "attr", "")):
                yield node


def _is_sentence(argument: ast.expr) -> bool:
    parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
    texts = [part.value for part in parts if isinstance(part, ast.Constant)]
    return any(isinstance(text, str) and " " in text for text in texts)


RULES: tuple[Rule, ...] = (
    bound_steps,
    known_agents,
    agent_folders,
    registry_keys,
    defined_names,
    typed_errors,
    registered_workflows,
    shipped_models,
)
