"""What a change set does, as `roundsman changes` reports it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from roundsman_console.base.result import Shown, Unit
from roundsman_dev.changes.compare import Changes, ResourceChange, compare
from roundsman_dev.changes.live import LiveStack
from roundsman_dev.changes.rights import Right
from roundsman_dev.changes.values import mapping_of
from roundsman_dev.changes.whole import StackTemplate, whole_resources


def _names(changes: Sequence[ResourceChange]) -> list[str]:
    return [one.name for one in changes]


NAMES = Unit(Sequence[str], _names, lambda changes: ", ".join(_names(changes)))
"""Changes by the names of their resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What a deployment would change, or has changed."""

    stack: str
    change_set: str | None = None
    """The ARN of the change set, for --execute; null if nothing changes."""
    nested: bool = False
    """Whether AWS looked into the nested stacks; what is listed is complete in any case."""
    refused: str = ""
    """Why AWS did not look into them; empty if it did, or if it is not known."""
    changes: Sequence[ResourceChange]
    passed_on: Sequence[ResourceChange]
    """Resources that are written as before, and only name what changes."""
    rights: Sequence[Right]
    """The rights that grow: each an Allow that is new, or a Deny that is gone."""
    stopped: Annotated[Sequence[ResourceChange], Shown(unit=NAMES)]
    """The tables and queues that would be lost and are not allowed; the exit code is then 1."""
    many_indexes: Sequence[str] = ()
    """The tables of which more than one index is made or removed; CloudFormation refuses that."""
    engine_first: Sequence[str] = ()
    """Why the engine should be deployed before the agents; a warning, which stops nothing."""
    executed: bool = False
    """Whether the change set was carried out."""


def reviewed(stack: str, changes: Changes, allowed: Collection[str]) -> Review:
    """Return the review of what changes, if these tables and queues may be lost."""
    return Review(
        stack=stack,
        changes=changes.own,
        passed_on=changes.passed_on,
        rights=changes.rights,
        stopped=changes.stopped(allowed),
        many_indexes=changes.many_indexes,
    )


def compare_with_live(
    live: LiveStack, templates: StackTemplate, parameters: Mapping[str, str]
) -> Changes:
    """Return what differs between a stack and what is to be deployed.

    `parameters` are those that are given; the others stay as they are, or have their default.
    Raises InspectorError if the templates do not fit together.
    """
    after = parameter_values(templates, live, parameters)
    return compare(
        whole_resources(live.templates, live.parameters), whole_resources(templates, after)
    )


def parameter_values(
    templates: StackTemplate, live: LiveStack, given: Mapping[str, str]
) -> dict[str, str]:
    """Return the values of the parameters of a template that are known."""
    values = {}
    for name, one in templates.parameters.items():
        default = mapping_of(one).get("Default")
        value = given.get(name, live.parameters.get(name, default))
        if isinstance(value, bool):
            values[name] = str(value).lower()
        elif value is not None:
            values[name] = str(value)
    return values
