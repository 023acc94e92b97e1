"""A fault is made, lasts and ends; one that cannot be made is reported and stops nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

import pytest
from botocore.exceptions import ClientError

from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base import clock
from roundsman_console.base.errors import ConsoleError
from roundsman_dev.prove.deployment import Place, ProofProject
from roundsman_dev.prove.document import THROTTLED, FaultOutcome
from roundsman_dev.prove.faults import (
    FAULTS,
    LEAST_WRITES,
    NO_MAXIMUM,
    TRIES,
    Means,
    ProofFault,
    made,
)

NOW = 1_800_000_000_000


class Functions:
    """Lambda: what was called, in order. Calls of a refused operation raise."""

    def __init__(self, refuses: str = "", code: str = "AccessDeniedException", times: int = 99):
        self.calls: list[tuple[str, object]] = []
        self.refuses, self.code, self.times = refuses, code, times

    def _called(self, operation: str, value: object = None) -> None:
        self.calls.append((operation, value))
        if operation == self.refuses and self.times > 0:
            self.times -= 1
            raise ClientError({"Error": {"Code": self.code, "Message": "no"}}, operation)

    def put_function_concurrency(self, **given: object) -> None:
        self._called("put", given["ReservedConcurrentExecutions"])

    def delete_function_concurrency(self, **_: object) -> None:
        self._called("delete")

    def update_event_source_mapping(self, **given: object) -> None:
        self._called("update", (given["UUID"], given["Enabled"]))

    def get_paginator(self, _: str) -> "Functions":
        return self

    def paginate(self, **_: object) -> list[object]:
        return [{"EventSourceMappings": [{"UUID": "one"}, {"UUID": "two"}]}]


class Tables:
    """DynamoDB, whose table is being updated for a while after each update."""

    def __init__(self) -> None:
        self.limits: list[int] = []
        self.refused = 0
        self.updating = False

    def update_table(self, **given: object) -> None:
        if self.updating:
            self.refused += 1
            raise ClientError({"Error": {"Code": "ResourceInUseException"}}, "UpdateTable")
        assert given["TableName"] == "prove-1a2b3c-TasksTable"
        throughput = cast("dict[str, int]", given["OnDemandThroughput"])
        self.limits.append(throughput["MaxWriteRequestUnits"])
        self.updating = True

    def get_waiter(self, name: str) -> "Tables":
        assert name == "table_exists"
        return self

    def wait(self, TableName: str) -> None:
        self.updating = False


@pytest.fixture(autouse=True)
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses, which take no time but move the clock."""
    found: list[float] = []
    monkeypatch.setattr(clock, "pause", found.append)
    monkeypatch.setattr(clock, "now", lambda: NOW + round(1_000 * sum(found)))
    return found


def means(functions: Functions | None = None, *, local: bool = False) -> Means:
    outputs = {
        "SchedulerFunctionName": "scheduler-1",
        "StockFunctionName": "stock-1",
        "TasksTableName": "prove-1a2b3c-TasksTable",
    }
    stack = DeployedStack("prove-1a2b3c", outputs, {})
    stack.__dict__["lambda_client"] = functions or Functions()
    place = Place("123456789012", "eu-central-1", local)
    project = ProofProject(run="prove-1a2b3c", folder=Path(), place=place, progress=lambda _: None)
    return Means(stack, project)


def fault(name: str) -> ProofFault:
    [found] = [one for one in FAULTS if one.name == name]
    return found


def test_a_fault_lasts_for_its_time_and_ends(waited: list[float]) -> None:
    functions, wanted = Functions(), fault("no concurrency")
    found = made(wanted, means(functions))
    assert (found.outcome, found.why) == (FaultOutcome.MADE, "")
    assert found.ended_at - found.began_at == 1_000 * wanted.seconds
    assert functions.calls == [("put", 0), ("delete", None)]
    assert waited == [wanted.seconds]


def test_every_mapping_that_was_paused_reads_again() -> None:
    functions = Functions()
    made(fault("paused mapping"), means(functions))
    assert functions.calls == [
        ("update", ("one", False)),
        ("update", ("two", False)),
        ("update", ("one", True)),
        ("update", ("two", True)),
    ]


def test_a_table_has_its_maximum_only_for_the_time_of_the_fault() -> None:
    tables, wanted = Tables(), fault("table at its maximum")
    at = means()
    at.stack.__dict__["dynamodb"] = tables
    found = made(wanted, at)
    assert found.outcome is FaultOutcome.MADE
    assert (tables.limits, tables.refused) == ([LEAST_WRITES, NO_MAXIMUM], 0)
    assert ("scheduler", THROTTLED) in found.makes


def test_a_table_that_cannot_be_limited_is_left_without_a_maximum() -> None:
    """Its answer may be lost, and the maximum set."""
    tables, at = Tables(), means()
    at.stack.__dict__["dynamodb"] = tables
    tables.updating = True
    assert made(fault("table at its maximum"), at).outcome is FaultOutcome.FAILED
    assert tables.limits == [NO_MAXIMUM]


def test_a_right_that_is_missing_is_named_and_stops_nothing(waited: list[float]) -> None:
    found = made(fault("no concurrency"), means(Functions(refuses="put")))
    assert found.outcome is FaultOutcome.REFUSED
    assert found.why.startswith("lambda:PutFunctionConcurrency, lambda:DeleteFunctionConcurrency:")
    assert waited == []


def test_another_error_is_no_missing_right() -> None:
    functions = Functions(refuses="put", code="InvalidParameterValueException")
    assert made(fault("no concurrency"), means(functions)).outcome is FaultOutcome.FAILED


def test_the_end_of_a_fault_is_tried_again() -> None:
    functions = Functions(refuses="delete", code="TooManyRequestsException", times=TRIES - 1)
    assert made(fault("no concurrency"), means(functions)).outcome is FaultOutcome.MADE
    assert functions.calls.count(("delete", None)) == TRIES


def test_a_fault_that_cannot_be_ended_is_not_called_made() -> None:
    functions = Functions(refuses="delete", code="TooManyRequestsException")
    assert made(fault("no concurrency"), means(functions)).outcome is FaultOutcome.FAILED


def test_a_fault_ends_before_ctrl_c_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(clock, "pause", interrupt)
    functions = Functions()
    with pytest.raises(KeyboardInterrupt):
        made(fault("no concurrency"), means(functions))
    assert functions.calls[-1] == ("delete", None)


def test_what_a_local_aws_does_not_have_is_not_tried() -> None:
    found = made(fault("table at its maximum"), means(local=True))
    assert found.outcome is FaultOutcome.NOT_HERE


def with_deployments(
    monkeypatch: pytest.MonkeyPatch, folder: Path, deploy: Callable[[], None]
) -> ProofProject:
    place = Place("123456789012", "eu-central-1", local=False)
    project = ProofProject(run="prove-1a2b3c", folder=folder, place=place, progress=lambda _: None)
    project.write()
    monkeypatch.setattr(ProofProject, "deploy", lambda _: deploy())
    return project


def test_a_time_out_that_is_too_short_is_deployed_and_then_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "project" / "stacks" / "engine.yaml"
    deployed: list[str] = []
    project = with_deployments(
        monkeypatch, tmp_path, lambda: deployed.append(engine.read_text(encoding="utf-8"))
    )
    before = engine.read_text(encoding="utf-8")
    with project.too_short():
        assert deployed[-1].count("Timeout: 1\n") == 1
    assert deployed[-1] == engine.read_text(encoding="utf-8") == before


def test_the_code_that_is_changed_is_still_that_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = tmp_path / "project" / "functions" / "agents" / "stock" / "app.py"
    deployed: list[str] = []
    project = with_deployments(
        monkeypatch, tmp_path, lambda: deployed.append(agent.read_text(encoding="utf-8"))
    )
    before = agent.read_text(encoding="utf-8")
    with project.changed_code():
        [found] = deployed
    assert found.startswith(before)
    assert found != before
    compile(found, "app.py", "exec")


def test_a_deployment_that_is_refused_is_a_missing_right() -> None:
    def refused(_: Means) -> AbstractContextManager[None]:
        raise ConsoleError("sam deploy failed: User is not authorized to perform this")

    found = made(ProofFault("deploys", "", (), local=True, seconds=0, make=refused), means())
    assert found.outcome is FaultOutcome.REFUSED
