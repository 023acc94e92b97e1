"""What supervisors have to do between their passes: all that most of their instances need to know.

The row `bulk` of ControlTable lists the bulk runs, and marks the schedules whose orders wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import text
from roundsman.aws.errors import aws_errors
from roundsman.errors import CallRefused, TryAgain

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

INDEX = "bulk"
QUEUE = "queue#"
"""What the mark of a schedule begins with."""


@dataclass(frozen=True, slots=True)
class ListedWork:
    """What a supervisor has to look at."""

    open_runs: bool
    """Whether there is an open bulk run, or that is not known."""
    queues: Mapping[str, int] = field(default_factory=dict)
    """The schedules whose orders wait: the version of each mark, by name."""


def listed_work(client: "DynamoDBClient", control_table: str) -> ListedWork:
    """Return what a supervisor has to look at.

    If that cannot be read now, who visits the bulk runs reads the list too, and reports why. The
    read is eventually consistent, at half the price: what it does not see yet is seen by the next
    pass.
    """
    try:
        with aws_errors("looking for bulk runs"):
            found = client.get_item(TableName=control_table, Key={"ControlId": text(INDEX)})
    except (TryAgain, CallRefused):
        return ListedWork(open_runs=True)
    item = found.get("Item", {})
    runs = (value.get("M", {}) for value in item.values())
    queues = {
        name.removeprefix(QUEUE): int(value["N"])
        for name, value in item.items()
        if name.startswith(QUEUE) and "N" in value
    }
    return ListedWork(any(run.get("Open", {}).get("BOOL", False) for run in runs), queues)
