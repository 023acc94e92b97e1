"""Asks CloudWatch Logs Insights a question, and waits for the answer. AWS charges what it scans.

It needs `logs:StartQuery` on the log groups, `logs:GetQueryResults`, and `logs:StopQuery` to end a
question that takes too long. No policy of the stack gives them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.aws.errors import aws_errors
from roundsman.errors import RoundsmanError
from roundsman.model.instants import SECOND
from roundsman_console.base.clock import wait_for
from roundsman_console.base.errors import InspectorError

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_logs.type_defs import GetQueryResultsResponseTypeDef

MOST_GROUPS = 50
"""The largest number of log groups that one question may name."""
MOST_ROWS = 10_000
"""The largest number of rows that an answer has."""
_ENDED = ("Complete", "Failed", "Cancelled", "Timeout", "Unknown")


@dataclass(frozen=True, slots=True)
class LogAnswer:
    """The answer to a question."""

    rows: Sequence[Mapping[str, str]]
    """Each with its values by the names of the fields; a field without a value is missing."""
    scanned: int
    """How much was scanned, in bytes."""


def log_group(stack: str, function: str) -> str:
    """Return the name of the log group of an agent, or of `submission`, `scheduler` and so on."""
    return f"/aws/lambda/{stack}/{function}"


def ask_logs(
    client: "CloudWatchLogsClient",
    groups: Sequence[str],
    question: str,
    start: int,
    end: int,
    within: float,
) -> LogAnswer:
    """Ask about the lines of the log groups from `start` to `end` (epoch ms).

    Raises TryAgain or CallRefused, and InspectorError if there is no answer within `within`
    seconds, or if it failed. What was scanned until then is charged.
    """
    if len(groups) > MOST_GROUPS:
        raise InspectorError(
            f"{len(groups)} log groups are too many: one question may be about {MOST_GROUPS}."
        )
    with aws_errors("asking the logs"):
        query = client.start_query(
            logGroupNames=list(groups),
            startTime=start // SECOND,
            endTime=end // SECOND,
            queryString=question,
            limit=MOST_ROWS,
        )["queryId"]

    def look() -> "GetQueryResultsResponseTypeDef | None":
        with aws_errors("reading the answer of the logs"):
            found = client.get_query_results(queryId=query)
        return found if found["status"] in _ENDED else None

    found = wait_for(look, within)
    if found is None:
        with suppress(RoundsmanError), aws_errors("ending the question"):
            client.stop_query(queryId=query)
        raise InspectorError(f"The logs did not answer within {within:g} s. Ask of a shorter time.")
    if found["status"] != "Complete":
        raise InspectorError(f"The question to the logs ended as {found['status']}.")
    rows = [
        {cell["field"]: cell["value"] for cell in row if "field" in cell and "value" in cell}
        for row in found["results"]
    ]
    return LogAnswer(rows, round(found.get("statistics", {}).get("bytesScanned", 0)))
