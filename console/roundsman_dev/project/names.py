"""Checks the names of applications, agents and workflows."""

import keyword
import re
from collections.abc import Iterable

from roundsman.aws.queue_urls import agent_title
from roundsman_console.base.errors import InvalidArgument

LONGEST_STACK = 26  # what the templates accept: CloudFormation cuts the names of roles at 64
PRODUCTION = "-prod"
"""The end of the stack's name for production, in the `samconfig.toml` of a new application."""
LONGEST_NAME = 40  # of agents, workflows and steps: what the engine accepts
LONGEST_TITLE = 27  # with the stack's name and the kind of a queue, SQS's 80 characters
URGENT = "_urgent"
WORDS = frozenset({"cache", "handler"})
"""The names without an underscore that the code of a new agent gives to something else."""
TAKEN_TITLES = frozenset({"Engine", "CoreLayer", "WorkflowsLayer"})
ENGINE_FUNCTIONS = frozenset({"submission", "scheduler", "supervisor"})
ENGINE_RESOURCES = frozenset(
    {
        *("alert_heartbeat", "handler", "recurring_order", "supervisor_schedule"),
        *("control_read", "control_write", "history_read", "history_write"),
        *("orders_read", "orders_write", "tasks_read", "tasks_write"),
        *("due_index_read", "due_index_write", "failures_index_read", "failures_index_write"),
        *("parked_index_read", "parked_index_write"),
    }
)
"""Agents of these names would have resources or alarms with the names of the engine's own."""
EVENTS = ("first", "refused")
"""The files of `events` that are orders of the first workflow."""

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_APPLICATION = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def stack_name(application: str) -> str:
    """Return the name of an application's stack: `my-shop` for `my_shop`.

    Raises InvalidArgument.
    """
    refused = f"{application!r} cannot be the name of an application"
    longest = LONGEST_STACK - len(PRODUCTION)
    if len(application) > longest:
        raise InvalidArgument(
            f"{refused}: it has {len(application)} characters, and the limit is {longest}, so that "
            f"its stack for production, whose name ends with {PRODUCTION}, has at most "
            f"{LONGEST_STACK}."
        )
    if not _APPLICATION.fullmatch(application):
        raise InvalidArgument(
            f"{refused}: it must be letters, digits, - and _, and begin with a letter."
        )
    return application.replace("_", "-")


def workflow_name(application: str) -> str:
    """Return the name of the workflow that an application gets if none is asked for."""
    return re.sub("[-_]+", "_", application.lower()).strip("_")


def check_agent(name: str, others: Iterable[str] = ()) -> None:
    """Check the name of an agent in an application that has the others. Raises InvalidArgument."""
    _check("an agent", name)
    title = agent_title(name)
    refused = f"An agent cannot be named {name}"
    if title in TAKEN_TITLES:
        raise InvalidArgument(f"{refused}: the template has a block {title}.")
    if name in ENGINE_FUNCTIONS:
        raise InvalidArgument(f"{refused}: a function of the engine has this name and its logs.")
    if name in WORDS:
        raise InvalidArgument(f"{refused}: the agent's code has another object of this name.")
    if name in ENGINE_RESOURCES:
        raise InvalidArgument(f"{refused}: resources of the engine have this name.")
    if len(title) > LONGEST_TITLE:
        raise InvalidArgument(
            f"The agent's name {name} is too long: it has {len(title)} characters without "
            f"underscores, and the limit is {LONGEST_TITLE}."
        )
    for other in others:
        if other != name and agent_title(other) == title:
            raise InvalidArgument(
                f"{refused} beside {other}: both would have the block {title} in template.yaml."
            )
        if name == other + URGENT or other == name + URGENT:
            stem = min(name, other, key=len)
            raise InvalidArgument(
                f"{refused} beside {other}: {agent_title(stem)}UrgentRequestQueue is already the "
                f"queue of {stem} for urgent requests."
            )


def check_workflow(name: str) -> None:
    """Check the name of a workflow. Raises InvalidArgument."""
    _check("a workflow", name)
    if name == "registry":
        raise InvalidArgument("A workflow cannot be named registry: registry.py lists them all.")
    if name in EVENTS:
        raise InvalidArgument(
            f"A workflow cannot be named {name}: events/{name}.json is an order of the first one."
        )


def step_name(workflow: str, agent: str) -> str:
    """Return the name of the step that an agent gets in a new workflow.

    Raises InvalidArgument if the engine would refuse it.
    """
    name = f"{workflow}_{agent}"
    if len(name) > LONGEST_NAME:
        raise InvalidArgument(
            f"The workflow {workflow} would have the step {name}, which has {len(name)} "
            f"characters; the limit is {LONGEST_NAME}. Choose a shorter name for the workflow "
            "(--workflow of `roundsman init`) or for the agent."
        )
    return name


def _check(what: str, name: str) -> None:
    refused = f"{name!r} cannot be the name of {what}"
    if len(name) > LONGEST_NAME:
        raise InvalidArgument(
            f"{refused}: it has {len(name)} characters, and the limit is {LONGEST_NAME}."
        )
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"{refused}: it must be a-z, 0-9 and single underscores between them, and begin with "
            "a letter."
        )
    if keyword.iskeyword(name):
        raise InvalidArgument(f"{name} cannot be the name of {what}: it is a word of Python.")
