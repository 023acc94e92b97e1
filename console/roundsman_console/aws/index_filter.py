"""The part of a filter that the index of due tasks decides, so that no record is read for it.

The index has the workflow, the priority and the submission of a task, and how it ended. An entry
that lacks one of them may match: older code removes what it does not know.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import number, text
from roundsman.model.priority import Priority
from roundsman.model.states import TaskState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


MOST_BESIDES = 100
"""The number of workflows that a filter can leave out: an expression has at most 4 KB."""


@dataclass(frozen=True, slots=True)
class IndexFilter:
    """Which entries of the index may match. A field that is None matches every entry."""

    workflow: str | None = None
    priority: str | None = None
    outcome: TaskState | None = None
    """The state in which the task ended. An open task has none in the index, so it may match."""
    submitted_by: int | None = None
    """The latest submission in epoch ms, inclusive."""
    submitted_after: int | None = None
    """The earliest submission in epoch ms, exclusive."""
    starts: tuple[str, ...] = ()
    """How the id starts, in one of these ways."""
    besides: tuple[str, ...] = ()
    """Workflows whose tasks do not match; at most MOST_BESIDES."""

    def conditions(self) -> "dict[str, dict[str, AttributeValueTypeDef]]":
        """Return the conditions of a query, all of which an entry must meet, with their values."""
        found: dict[str, dict[str, AttributeValueTypeDef]] = {}
        if self.workflow is not None:
            condition = "(Workflow = :workflow OR attribute_not_exists(Workflow))"
            found[condition] = {":workflow": text(self.workflow)}
        if self.priority is not None:
            # A normal priority is not stored.
            absent = "Priority" if self.priority == Priority.NORMAL else "Workflow"
            condition = f"(Priority = :priority OR attribute_not_exists({absent}))"
            found[condition] = {":priority": text(self.priority)}
        if self.outcome is not None:
            condition = "(Outcome = :outcome OR attribute_not_exists(Outcome))"
            found[condition] = {":outcome": text(self.outcome.value)}
        if self.submitted_by is not None:
            condition = "(CreatedAt <= :by OR attribute_not_exists(CreatedAt))"
            found[condition] = {":by": number(self.submitted_by)}
        if self.submitted_after is not None:
            condition = "(CreatedAt > :after OR attribute_not_exists(CreatedAt))"
            found[condition] = {":after": number(self.submitted_after)}
        if self.starts:
            values = {f":starts{place}": text(one) for place, one in enumerate(self.starts)}
            ways = " OR ".join(f"begins_with(TaskId, {name})" for name in values)
            found[f"({ways})"] = values
        for place, workflow in enumerate(self.besides):
            found[f"Workflow <> :besides{place}"] = {f":besides{place}": text(workflow)}
        return found


EVERY_ENTRY = IndexFilter()
