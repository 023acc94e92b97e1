"""What `roundsman changes` prints with --json."""

from collections.abc import Sequence
from dataclasses import dataclass

from roundsman_dev.changes.compare import ResourceChange
from roundsman_dev.changes.rights import Right


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesReport:
    """What a deployment would change, or has changed."""

    stack: str
    change_set: str | None
    """The ARN of the change set, for --execute; null if nothing changes."""
    nested: bool
    """Whether AWS looked into the nested stacks; what is listed is complete in any case."""
    refused: str
    """Why AWS did not look into them; empty if it did, or if it is not known."""
    changes: Sequence[ResourceChange]
    passed_on: Sequence[ResourceChange]
    """Resources that are written as before, and only name what changes."""
    rights: Sequence[Right]
    """The rights that grow: each an Allow that is new, or a Deny that is gone."""
    stopped: Sequence[str]
    """The tables and queues that would be lost and are not allowed; the exit code is then 1."""
    engine_first: Sequence[str]
    """Why the engine should be deployed before the agents; a warning, which stops nothing."""
    executed: bool
    """Whether the change set was carried out."""
