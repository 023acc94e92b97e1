"""Makes a new application, and adds agents and workflows to one."""

from collections.abc import Sequence
from pathlib import Path

from roundsman_console.base.errors import InvalidArgument
from roundsman_dev.project.agents import TEMPLATE, agent_files, code_of, with_agent
from roundsman_dev.project.files import (
    fill,
    part,
    read_text,
    replace_files,
    skeleton,
    stacks,
    write_new_folder,
)
from roundsman_dev.project.names import check_agent, stack_name, step_name, workflow_name
from roundsman_dev.project.upgrade import FIND_VENDORED, RECORD, VENDOR, record_of
from roundsman_dev.project.workflows import (
    FOLDER,
    REGISTRY,
    alternatives,
    event_of,
    smoke_event_of,
    workflow_files,
)

DEFAULT_AGENTS = ("booking", "notice")


def create(
    folder: Path,
    *,
    agents: Sequence[str] = (),
    workflows: Sequence[str] = (),
    version: str,
    wheel: Path | None = None,
) -> list[Path]:
    """Make an application in a new folder, and return its files.

    The folder's name is that of the application. `agents` are those of each step of a workflow:
    one, or alternatives with commas between them. `wheel` is the file that this release was
    installed from, if it is on no index; the application gets a copy. Raises InvalidArgument for an
    invalid name, and ConsoleError if the folder is not empty or cannot be written.
    """
    name = folder.name
    stack = stack_name(name)
    steps = list(dict.fromkeys(agents)) or list(DEFAULT_AGENTS)
    agents = _each_agent(steps)
    workflows = list(dict.fromkeys(workflows)) or [workflow_name(name)]
    for agent in agents:
        check_agent(agent, agents)
    values = {
        "name": name,
        "stack": stack,
        "version": version,
        "wheel": "" if wheel is None else FIND_VENDORED,
        "last": alternatives(steps[-1])[0],
        "workflow": workflows[0],
        "last_step": step_name(workflows[0], alternatives(steps[-1])[0]),
    }
    vendored = dict(stacks())
    made = {path: fill(text, values) for path, text in skeleton()} | vendored
    made[RECORD] = record_of(version, vendored)
    for agent in agents:
        made[TEMPLATE] = with_agent(made[TEMPLATE], agent)
        made[code_of(agent)] = fill(part("agent_app.py"), {"agent": agent})
    for workflow in workflows:
        made |= workflow_files(workflow, steps, made)
    for workflow in workflows:
        made[smoke_event_of(workflow)] = fill(part("smoke.json"), {"workflow": workflow})
    for workflow in workflows[1:]:  # of the first are the events that every application has
        made[event_of(workflow)] = _event(workflow)
    contents: dict[Path, str | bytes] = {**made}
    if wheel is not None:
        contents[VENDOR / wheel.name] = wheel.read_bytes()
    write_new_folder(folder, contents)
    return sorted(contents)


def _each_agent(steps: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(agent for step in steps for agent in alternatives(step)))


def agents_of(project: Path) -> list[str]:
    """Return the names of the agents whose code the application has."""
    return sorted(path.parent.name for path in (project / "functions/agents").glob("*/app.py"))


def _event(workflow: str) -> str:
    return fill(part("event.json"), {"workflow": workflow})


def add_agent(project: Path, agent: str) -> list[Path]:
    """Add an agent, and return the files that were written; empty if it was there.

    Raises InvalidArgument for an invalid name, and ConsoleError if a file cannot be read, changed
    or written; then nothing is changed.
    """
    check_agent(agent, agents_of(project))
    existing = {code_of(agent): ""} if (project / code_of(agent)).exists() else {}
    written = agent_files(read_text(project, TEMPLATE), agent, existing)
    replace_files(project, written)
    return sorted(written)


def plan_workflow(project: Path, workflow: str, agents: Sequence[str] = ()) -> dict[Path, str]:
    """Return the files that adding a workflow with a step for each of the agents would write.

    `agents` are as in `create`; without them, it has a step for each agent of the application.
    Empty if the workflow is there. Raises InvalidArgument for an invalid name or an agent that the
    application does not have, and ConsoleError if a file cannot be read or changed.
    """
    known = agents_of(project)
    for agent in _each_agent(agents):
        if agent not in known:
            raise InvalidArgument(
                f"There is no agent {agent}; the agents are {', '.join(known) or 'none'}. Add it "
                f"first: roundsman add agent {agent}"
            )
    chosen = list(dict.fromkeys(agents)) or known
    if not chosen:
        raise InvalidArgument("There is no agent yet. Add one first: roundsman add agent NAME")
    paths = [REGISTRY, *(code_of(agent) for agent in _each_agent(chosen))]
    existing = {path: read_text(project, path) for path in paths}
    module = FOLDER / f"{workflow}.py"
    if (project / module).exists():
        existing[module] = ""
    written = workflow_files(workflow, chosen, existing)
    if written and not (project / event_of(workflow)).exists():
        written[event_of(workflow)] = _event(workflow)
    if written and not (project / smoke_event_of(workflow)).exists():
        written[smoke_event_of(workflow)] = fill(part("smoke.json"), {"workflow": workflow})
    return written
