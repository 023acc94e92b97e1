"""Reads an application from its folder: its template, its workflows and its agents."""

import ast
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from roundsman import Agent, Workflow
from roundsman.errors import RoundsmanError
from roundsman_console.facts.application import SMOKE_EVENTS
from roundsman_dev.check.application import Application

WORKFLOWS = Path("layers") / "workflows"
AGENTS = Path("functions") / "agents"


class ProjectProblem(RoundsmanError):
    """The code of an application cannot be read. The message has a sentence for each module."""


def read_project(folder: Path) -> Application:
    """Return the application in a folder that `roundsman init` made.

    Its modules are imported. Raises ProjectProblem if one of them cannot be, and TemplateProblem if
    the template cannot be read.
    """
    layer = str(folder / WORKFLOWS)
    if layer not in sys.path:
        sys.path.insert(0, layer)
    by_key = _workflows()
    workflows = list(by_key.values())
    agents = read_agents(folder)
    application = Application.read(folder / "template.yaml", workflows, agents.values())
    return replace(
        application,
        sources=_texts(folder, AGENTS),
        definitions=_texts(folder, WORKFLOWS),
        folders={path: agent.name for path, agent in agents.items()},
        libraries=_libraries(folder),
        events=_events(folder, by_key),
        names_by_key={key: workflow.name for key, workflow in by_key.items()},
    )


def read_agents(folder: Path) -> dict[str, Agent]:
    """Return the agent that the app.py of each folder of an application defines.

    The keys are the folders' paths in the application, whose workflows can be imported already.
    Raises ProjectProblem if a module cannot be imported.
    """
    agents: dict[str, Agent] = {}
    problems: list[str] = []
    for path in sorted((folder / AGENTS).glob("*/app.py")):
        try:
            agents[path.parent.relative_to(folder).as_posix()] = _agent(path)
        except ProjectProblem as problem:
            problems.append(str(problem))
    if problems:
        raise ProjectProblem(" ".join(problems))
    return agents


def _texts(folder: Path, part: Path) -> dict[str, str]:
    """The text of each module in a part of the project, by its path in the project.

    Raises ProjectProblem for one that is not Python; perhaps none of the others imports it.
    """
    texts: dict[str, str] = {}
    for path in sorted((folder / part).rglob("*.py")):
        where = path.relative_to(folder).as_posix()
        try:
            texts[where] = path.read_text(encoding="utf-8")
            ast.parse(texts[where])
        except (SyntaxError, ValueError) as error:
            raise ProjectProblem(f"{where} is not Python: {error}.") from error
    return texts


def _libraries(folder: Path) -> dict[str, str]:
    return {
        path.parent.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((folder / "functions").rglob("requirements.txt"))
    }


def _events(folder: Path, workflows: Iterable[str]) -> dict[str, str]:
    own = [folder / "events" / f"{name}.json" for name in workflows]
    paths = [*(folder / SMOKE_EVENTS).glob("*.json"), *filter(Path.is_file, own)]
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(paths)
    }


def _workflows() -> dict[str, Workflow]:
    try:
        found = getattr(import_module("workflows.registry"), "WORKFLOWS", None)
    except (Exception, SystemExit) as error:  # the application's module: anything may fail
        raise ProjectProblem(
            f"layers/workflows/workflows/registry.py: {type(error).__name__}: {error}."
        ) from error
    if not isinstance(found, dict) or not all(isinstance(w, Workflow) for w in found.values()):
        raise ProjectProblem(
            "layers/workflows/workflows/registry.py must assign a dict of workflows to WORKFLOWS, "
            "by name: WORKFLOWS = {purchase.name: purchase}."
        )
    return found


def _agent(path: Path) -> Agent:
    name = path.parent.name
    where = f"functions/agents/{name}/app.py"
    spec = spec_from_file_location(f"roundsman_check.{name}", path)
    if spec is None or spec.loader is None:
        raise ProjectProblem(f"{where} cannot be imported.")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except RoundsmanError as error:
        raise ProjectProblem(f"{where}: {error}.") from error
    except (Exception, SystemExit) as error:  # the application's module: anything may fail
        raise ProjectProblem(f"{where}: {type(error).__name__}: {error}.") from error
    agents = [value for value in vars(module).values() if isinstance(value, Agent)]
    if len(agents) != 1:
        raise ProjectProblem(f"{where} must define one Agent; it defines {len(agents)}.")
    return agents[0]
