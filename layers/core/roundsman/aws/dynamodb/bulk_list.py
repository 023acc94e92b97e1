"""Whether there is an open bulk run: all that most instances of the supervisor need to know."""

from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import text
from roundsman.aws.errors import aws_errors
from roundsman.errors import CallRefused, TryAgain

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

INDEX = "bulk"


def has_open_runs(client: "DynamoDBClient", control_table: str) -> bool:
    """Whether a supervisor has to look at a bulk run.

    True also if that cannot be read now: who visits the runs reads the list too, and reports why.
    The read is eventually consistent, at half the price: a run that it does not see yet is seen by
    the next pass.
    """
    try:
        with aws_errors("looking for bulk runs"):
            found = client.get_item(TableName=control_table, Key={"ControlId": text(INDEX)})
    except (TryAgain, CallRefused):
        return True
    runs = (value.get("M", {}) for value in found.get("Item", {}).values())
    return any(run.get("Open", {}).get("BOOL", False) for run in runs)
