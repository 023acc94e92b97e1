"""What failed by the logs of the functions, and by which fault."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import boto3
import pytest
from moto import mock_aws

from roundsman.model.instants import MINUTE
from roundsman_console.facts.audit.stored_order import BrokenPromise
from roundsman_dev.prove import function_logs
from roundsman_dev.prove.application.orders import MARKER
from roundsman_dev.prove.document import (
    PROCESS_ENDED,
    THROTTLED,
    TIMED_OUT,
    FaultOutcome,
    FunctionLog,
    LoggedFailure,
    MadeFault,
    ProofDocument,
)
from roundsman_dev.prove.function_logs import CUT, FUNCTIONS, function_log, read_logs
from roundsman_dev.prove.log_checks import failure_counts, no_other_failure
from roundsman_dev.prove.promises import RunPromise as R
from roundsman_dev.prove.report import report_of
from tests.unit.console.prove.sound import sound

RUN = "prove-1a2b3c"


def failures(*lines: str) -> list[str]:
    return [one.what for one in function_log("stock", [(1, line) for line in lines]).failures]


def platform(kind: str, request: str = "r-1", **record: str) -> str:
    return json.dumps({"type": f"platform.{kind}", "record": {"requestId": request, **record}})


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (platform("report", status="timeout"), TIMED_OUT),
        (platform("report", status="failure"), PROCESS_ENDED),
        (platform("report", status="error", errorType="Runtime.ExitError"), PROCESS_ENDED),
        (
            platform("report", status="error", errorType="Runtime.OutOfMemory"),
            "Runtime.OutOfMemory of an invocation",
        ),
        ("Task timed out after 45.00 seconds", TIMED_OUT),
        ("Worker process died", PROCESS_ENDED),
        (
            '{"level": "ERROR", "errorMessage": "t", "errorType": "KeyError", "requestId": "r"}',
            "KeyError was not handled",
        ),
        (
            "botocore.exceptions.ClientError: text",
            "botocore.exceptions.ClientError was not handled",
        ),
        (
            '{"level": "ERROR", "message": "it failed", "error_type": "TypeError", "service": "s"}',
            "it failed: TypeError",
        ),
        (
            '{"level": "CRITICAL", "message": "odd", "service": "s"}',
            "odd: no exception",
        ),
        (
            '{"level": "ERROR", "message": "any text", "logger": "botocore"}',
            "an error that botocore logged",
        ),
        ('{"level": "WARNING", "why": "ThrottlingException"}', THROTTLED),
        (f'{{"level": "ERROR", "message": "{MARKER}"}}', "a line with contents"),
    ],
)
def test_a_line_about_a_failure_is_one(line: str, what: str) -> None:
    assert failures(line) == [what]


@pytest.mark.parametrize(
    "line",
    [
        platform("report", status="success"),
        platform("runtimeDone", status="timeout"),  # its report says so too
        platform("start"),
        '{"message": "decided", "reason": "an Error: of nobody"}',
        '{"level": "WARNING", "message": "silent"}',
        "START RequestId: 0 Version: 1",
        "[]",
        "",
    ],
)
def test_another_line_is_no_failure(line: str) -> None:
    assert failures(line) == []


def test_an_invocation_fails_once_however_many_lines_say_so() -> None:
    request = "01234567-89ab-cdef-0123-456789abcdef"
    assert failures(
        json.dumps({"level": "ERROR", "errorType": "KeyError", "requestId": request}),
        platform("report", request, status="error"),
        f"RequestId: {request} Error: Runtime exited with error: exit status 1",
        platform("report", "another", status="timeout"),
    ) == ["KeyError was not handled", TIMED_OUT]


def test_failures_without_the_id_of_an_invocation_are_each_counted() -> None:
    line = json.dumps({"level": "ERROR", "errorType": "ImportError", "requestId": ""})
    assert failures(line, line) == ["ImportError was not handled"] * 2


@pytest.mark.parametrize(
    "text", ["AKIA" + 16 * "7", "authorization: Bearer abcdefgh", "X-Amz-Security-Token"]
)
def test_a_credential_is_found(text: str) -> None:
    assert function_log("stock", [(1, text)]).with_credentials == 1
    assert function_log("stock", [(1, "a bearer of AKIA news")]).with_credentials == 0


def test_more_failures_than_are_kept_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_logs, "MOST_FAILURES", 2)
    found = function_log("stock", [(1, "Worker process died")] * 3)
    assert (len(found.failures), found.unread) == (2, "it has more than 2 failures")


# --- Reading ------------------------------------------------------------------------------------

NOW = round(time.time() * 1_000)
"""CloudWatch Logs takes no line of another time."""


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The logs of a proof and of a stack whose name begins alike. The courier has none."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("logs")
        for function in FUNCTIONS[:-1]:
            for run, text in ((RUN, "Worker process died"), (f"{RUN}-shop", MARKER)):
                group = f"/aws/lambda/{run}/{function}"
                client.create_log_group(logGroupName=group)
                client.create_log_stream(logGroupName=group, logStreamName="s")
                client.put_log_events(
                    logGroupName=group,
                    logStreamName="s",
                    logEvents=[
                        {"timestamp": NOW - MINUTE, "message": "before"},
                        {"timestamp": NOW, "message": text},
                    ],
                )
        yield


@pytest.mark.usefixtures("logs")
def test_only_the_logs_of_the_proof_are_read_and_only_from_its_beginning_on() -> None:
    *found, courier = read_logs(RUN, NOW - 1)
    assert [one.function for one in found] == list(FUNCTIONS[:-1])
    assert {(one.lines, one.with_contents, len(one.failures)) for one in found} == {(1, 0, 1)}
    assert (courier.function, courier.lines) == ("courier", 0)
    assert "courier" in courier.unread


class Pages:
    """CloudWatch Logs, which has these pages of lines of every log."""

    def __init__(self, *pages: object) -> None:
        self.pages = pages

    def get_paginator(self, _: str) -> "Pages":
        return self

    def paginate(self, **_: object) -> tuple[object, ...]:
        return self.pages


LINE = {"timestamp": 1, "message": "x"}


@pytest.mark.parametrize(
    ("pages", "lines", "unread"),
    [
        ([{"events": [LINE], "nextToken": "2"}, {"events": [LINE]}], 2, ""),
        ([{"events": [LINE], "nextToken": "2"}, {"events": [], "nextToken": "3"}], 1, CUT),
        ([{"events": [LINE] * 3}], 3, CUT),  # a local AWS has no next page
    ],
)
def test_no_more_pages_are_read_than_allowed(
    pages: list[object], lines: int, unread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_logs, "MOST_PAGES", 2)
    monkeypatch.setattr(function_logs, "PAGE", 3)
    monkeypatch.setattr(boto3, "client", lambda _: Pages(*pages))
    found = read_logs(RUN, 0)[0]
    assert (found.lines, found.unread) == (lines, unread)


# --- Judging ------------------------------------------------------------------------------------

AT = 1_000 * MINUTE
TOO_SHORT = MadeFault(
    "time-out too short",
    FaultOutcome.MADE,
    began_at=AT,
    ended_at=AT + MINUTE,
    makes=(("scheduler", TIMED_OUT),),
)


def with_log(function: str, *found: LoggedFailure, local: bool = False) -> ProofDocument:
    """The sound proof, with one log and one fault."""
    return replace(
        sound(),
        circumstances=replace(sound().circumstances, local=local),
        logs=[FunctionLog(function=function, lines=1, failures=found)],
        faults=[TOO_SHORT],
    )


@pytest.mark.parametrize("at", [AT, AT + 2 * MINUTE])
def test_a_fault_explains_the_time_outs_that_it_makes(at: int) -> None:
    document = with_log("scheduler", LoggedFailure(TIMED_OUT, at))
    assert [one.because for one in failure_counts(document)] == ["time-out too short"]
    assert list(no_other_failure(document)) == []


@pytest.mark.parametrize(
    ("function", "failure"),
    [
        ("scheduler", LoggedFailure(TIMED_OUT, AT - 1)),
        ("scheduler", LoggedFailure(TIMED_OUT, AT + 2 * MINUTE + 1)),
        ("scheduler", LoggedFailure(PROCESS_ENDED, AT)),
        ("supervisor", LoggedFailure(TIMED_OUT, AT)),
    ],
)
def test_a_fault_explains_nothing_else(function: str, failure: LoggedFailure) -> None:
    [found] = no_other_failure(with_log(function, failure))
    assert isinstance(found, BrokenPromise)


def test_a_fault_that_was_not_made_explains_nothing() -> None:
    document = with_log("scheduler", LoggedFailure(TIMED_OUT, AT))
    refused = replace(TOO_SHORT, outcome=FaultOutcome.REFUSED)
    assert list(no_other_failure(replace(document, faults=[refused])))


def test_a_call_that_was_throttled_is_counted_and_is_no_failure() -> None:
    document = with_log("scheduler", LoggedFailure(THROTTLED, AT))
    table = replace(TOO_SHORT, name="table", makes=(("scheduler", THROTTLED),))
    for faults, because in (([], None), ([table], "table")):
        found = replace(document, faults=faults)
        assert [one.because for one in failure_counts(found)] == [because]
        assert list(no_other_failure(found)) == []


def test_services_explain_as_many_failures_as_they_made() -> None:
    """The services of the sound proof let the stock agent run out of time once."""
    document = with_log("stock", *[LoggedFailure(TIMED_OUT, 1)] * 3)
    counts = {one.because: one.times for one in failure_counts(document)}
    assert counts == {
        "the services give no answer until the function runs out of time": 1,
        None: 2,
    }


def test_a_time_out_on_a_busy_machine_is_no_violation() -> None:
    [found] = no_other_failure(with_log("supervisor", LoggedFailure(TIMED_OUT, AT), local=True))
    assert not isinstance(found, BrokenPromise)


def test_what_was_not_read_is_not_judged() -> None:
    unread = [FunctionLog(function="stock", unread="no right")]
    for logs in ([], unread, [FunctionLog(function="stock")]):
        report = report_of(replace(sound(), logs=logs))
        verdicts = {one.promise: one.verdict for one in report.promises}
        for promise in (R.NOT_LOGGED, R.NO_OTHER_FAILURE, R.FAILURES_LOGGED):
            assert verdicts[promise.name] == "unknown", logs
        assert report.verdict == "kept"
