"""Reads the logs of a proof's functions. No line of them is kept: only what was found in it."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import boto3

from roundsman.aws.errors import THROTTLE_WORDS, aws_errors
from roundsman.errors import CallRefused, TryAgain
from roundsman_dev.prove.application.orders import MARKER
from roundsman_dev.prove.document import (
    PROCESS_ENDED,
    THROTTLED,
    TIMED_OUT,
    FunctionLog,
    LoggedFailure,
)
from roundsman_dev.prove.faults import ENGINE
from roundsman_dev.prove.project import AGENTS

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

FUNCTIONS: Final = (*ENGINE, *AGENTS)

MOST_PAGES = 200
"""The most answers that are read of one log. Each has at most PAGE lines, or 1 MB."""

PAGE = 10_000
MOST_FAILURES = 10_000
"""The most failures of one function that are kept."""

MOST_CHARACTERS = 160
"""The longest text of a failure."""

CUT = "it has more lines than are read"

_CREDENTIAL = re.compile(
    r"(?:AKIA|ASIA)[0-9A-Z]{16}|AWS4-HMAC-SHA256|(?i:x-amz-security-token|aws_secret_access_key)"
    r"|(?i:\bbearer )[\w.~+/-]{8,}"
)
_REQUEST = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_RAISED = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit))(?::|$)")
_REPORTS = ("platform.report", "platform.initReport")
_EXITS = ("Runtime exited", "Worker process died", "Worker returned no response")
"""How Lambda and a local AWS say that the process has ended."""


def read_logs(run: str, since: int) -> list[FunctionLog]:
    """Read the logs of the functions of the stack `run` from an instant on (epoch ms).

    A log that cannot be read is one that says why.
    """
    client: CloudWatchLogsClient = boto3.client("logs")
    found = []
    for function in FUNCTIONS:
        try:
            found.append(function_log(function, _lines(client, run, function, since)))
        except (TryAgain, CallRefused) as error:
            found.append(FunctionLog(function=function, unread=str(error)))
    return found


def _lines(
    client: "CloudWatchLogsClient", run: str, function: str, since: int
) -> Iterator[tuple[int, str] | None]:
    """Yield the lines with their times, the oldest first; None at the end if there are more."""
    with aws_errors(f"reading the log of {function}"):
        pages = client.get_paginator("filter_log_events").paginate(
            logGroupName=f"/aws/lambda/{run}/{function}", startTime=since
        )
        for number, page in enumerate(pages, start=1):
            events = page["events"]
            for event in events:
                yield event["timestamp"], event["message"]
            more = "nextToken" in page
            if (more and number == MOST_PAGES) or (not more and len(events) >= PAGE):
                yield None
                return


def function_log(function: str, lines: Iterable[tuple[int, str] | None]) -> FunctionLog:
    """Return what the lines of a function's log say; a last one that is None stands for more.

    An invocation that failed is one failure, however many lines say so.
    """
    count = contents = credentials = 0
    failures: list[LoggedFailure] = []
    failed: set[str] = set()
    unread = ""
    for line in lines:
        if line is None:
            unread = CUT
            break
        at, text = line
        count += 1
        tells = MARKER in text
        contents += tells
        credentials += _CREDENTIAL.search(text) is not None
        what, request = _failure(text)
        if what is None or request in failed:
            continue
        if request is not None:
            failed.add(request)
        if len(failures) == MOST_FAILURES:
            unread = f"it has more than {MOST_FAILURES:,} failures"
            break
        failures.append(LoggedFailure("a line with contents" if tells else what, at))
    return FunctionLog(
        function=function,
        lines=count,
        with_contents=contents,
        with_credentials=credentials,
        failures=tuple(failures),
        unread=unread,
    )


def _failure(text: str) -> tuple[str | None, str | None]:
    """What has failed by a line, or None, and the id of its invocation, as far as it is known."""
    try:
        fields = json.loads(text)
    except ValueError:
        return _of_text(text), _request_in(text)
    if not isinstance(fields, dict):
        return None, None
    if str(fields.get("type", "")).startswith("platform."):
        return _of_platform(fields)
    if fields.get("level") not in ("ERROR", "CRITICAL"):
        return THROTTLED if any(words in text for words in THROTTLE_WORDS) else None, None
    if "errorType" in fields:  # Lambda's own line, which has the text of the exception too
        what = f"{fields['errorType']} was not handled"
    elif "service" not in fields:  # a library's own line: its message may be any text
        what = f"an error that {fields.get('logger', 'a library')} logged"
    else:  # a constant message of Roundsman
        what = f"{fields.get('message')}: {fields.get('error_type', 'no exception')}"
    return what[:MOST_CHARACTERS], _id_of(fields)


# Any: JSON that was not checked yet.
def _of_platform(fields: dict[str, Any]) -> tuple[str | None, str | None]:
    record = fields.get("record")
    if fields["type"] not in _REPORTS or not isinstance(record, dict):
        return None, None
    status, kind = record.get("status"), str(record.get("errorType", ""))
    if status in (None, "success"):
        return None, None
    if status == "timeout":
        what = TIMED_OUT
    elif kind in ("", "Runtime.ExitError"):
        what = PROCESS_ENDED
    else:
        what = f"{kind} of an invocation"[:MOST_CHARACTERS]
    return what, _id_of(record)


def _id_of(found: dict[str, Any]) -> str | None:
    return str(found["requestId"]) if found.get("requestId") else None


def _of_text(text: str) -> str | None:
    if "Task timed out after" in text:
        return TIMED_OUT
    if any(words in text for words in _EXITS):
        return PROCESS_ENDED
    raised = _RAISED.match(text)
    return None if raised is None else f"{raised[1]} was not handled"[:MOST_CHARACTERS]


def _request_in(text: str) -> str | None:
    found = _REQUEST.search(text)
    return None if found is None else found[0]
