"""What a change set does, as `roundsman changes` reports it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from roundsman_dev.changes.compare import Changes, ResourceChange, compare
from roundsman_dev.changes.documents import (
    ChangeDocument,
    ChangesDocument,
    RightDocument,
)
from roundsman_dev.changes.live import LiveStack
from roundsman_dev.changes.rights import Right
from roundsman_dev.changes.values import mapping_of
from roundsman_dev.changes.whole import StackTemplate, whole_resources


@dataclass(frozen=True, slots=True)
class Review:
    """What a deployment would change."""

    stack: str
    changes: Changes
    change_set: str | None = None
    """The ARN; None if nothing changes."""
    nested: bool = False
    """Whether AWS looked into the nested stacks."""
    refused: str = ""
    """Why it did not; empty if it did, or if it is not known."""
    allowed: Collection[str] = ()
    """The tables and queues that may be lost."""
    engine_first: Sequence[str] = ()
    """Why the engine should be deployed before the agents: a sentence for each module."""
    executed: bool = False

    @property
    def stopped(self) -> list[ResourceChange]:
        """The changes that lose data and that nobody allowed."""
        return self.changes.stopped(self.allowed)

    def document(self) -> ChangesDocument:
        """Return the review as JSON for scripts."""
        return {
            "stack": self.stack,
            "changeSet": self.change_set,
            "nested": self.nested,
            "refused": self.refused,
            "changes": [_document(one) for one in self.changes.own],
            "passedOn": [_document(one) for one in self.changes.passed_on],
            "rights": [_right(one) for one in self.changes.rights],
            "stopped": [one.name for one in self.stopped],
            "engineFirst": list(self.engine_first),
            "executed": self.executed,
        }


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


def _document(change: ResourceChange) -> ChangeDocument:
    return {
        "name": change.name,
        "kind": change.kind,
        "action": change.action,
        "properties": list(change.properties),
    }


def _right(right: Right) -> RightDocument:
    return {
        "holder": right.holder,
        "principal": right.principal,
        "effect": right.effect,
        "action": right.action,
        "resource": right.resource,
        "condition": right.condition,
    }
