"""Checks the names of applications, agents and workflows."""

import keyword
import re

from roundsman.aws.queue_urls import agent_title
from roundsman.inspector.errors import InvalidArgument

LONGEST_STACK = 32
LONGEST_TITLE = 27  # with the stack's name and the kind of a queue, SQS's 80 characters
TAKEN_TITLES = frozenset({"Engine", "CoreLayer", "WorkflowsLayer"})

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_APPLICATION = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def stack_name(application: str) -> str:
    """Return the name of an application's stack: `my-shop` for `my_shop`.

    Raises InvalidArgument.
    """
    if not _APPLICATION.fullmatch(application) or len(application) > LONGEST_STACK:
        raise InvalidArgument(
            f"{application!r} cannot be the name of an application. A name is 1 to {LONGEST_STACK} "
            "letters, digits, - and _, and begins with a letter."
        )
    return application.replace("_", "-")


def check_agent(name: str) -> None:
    """Check the name of an agent. Raises InvalidArgument."""
    _check("an agent", name)
    title = agent_title(name)
    if title in TAKEN_TITLES:
        raise InvalidArgument(f"An agent cannot be named {name}: the template has a block {title}.")
    if len(title) > LONGEST_TITLE:
        raise InvalidArgument(
            f"The agent's name {name} is too long: without underscores it may have "
            f"{LONGEST_TITLE} characters."
        )


def check_workflow(name: str) -> None:
    """Check the name of a workflow. Raises InvalidArgument."""
    _check("a workflow", name)
    if name == "registry":
        raise InvalidArgument("A workflow cannot be named registry: registry.py lists them all.")


def _check(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"{name!r} cannot be the name of {what}. A name is 1 to 40 of a-z, 0-9 and _, and "
            "begins with a letter."
        )
    if keyword.iskeyword(name):
        raise InvalidArgument(f"{name} cannot be the name of {what}: it is a word of Python.")
