"""The document about what a deployment would change."""

from typing import TypedDict

from roundsman_dev.changes.compare import Action


class ChangeDocument(TypedDict):
    """What the deployment does with one resource."""

    name: str
    """As the template names it; in an agent's stack with the block's name before it."""
    kind: str
    """The type, such as AWS::SQS::Queue."""
    action: Action
    properties: list[str]
    """The properties that differ, or that name what differs."""


class RightDocument(TypedDict):
    """A right that grows: an Allow that is new, or a Deny that is gone."""

    holder: str
    """The role or policy that has it; of a resource's policy, what it applies to."""
    principal: str
    """Whom a resource's policy or a role's trust names; empty for the rights of a role."""
    effect: str
    action: str
    resource: str
    condition: str
    """As JSON; empty for none."""


class ChangesDocument(TypedDict):
    """What a deployment would change, or has changed."""

    stack: str
    changeSet: str | None
    """The ARN of the change set, for --execute; null if nothing changes."""
    nested: bool
    """Whether AWS looked into the nested stacks; what is listed is complete in any case."""
    refused: str
    """Why AWS did not look into them; empty if it did, or if it is not known."""
    changes: list[ChangeDocument]
    passedOn: list[ChangeDocument]
    """Resources that are written as before, and only name what changes."""
    rights: list[RightDocument]
    stopped: list[str]
    """The tables and queues that would be lost and are not allowed; the exit code is then 1."""
    engineFirst: list[str]
    """Why the engine should be deployed before the agents; a warning, which stops nothing."""
    executed: bool
    """Whether the change set was carried out."""
