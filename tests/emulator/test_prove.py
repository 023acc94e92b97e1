"""`roundsman prove` beside a stack that is there: everything is kept, and nothing of it is left."""

import json
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner

from roundsman_console.main import app
from tests.console.schemas import assert_schema
from tests.emulator.conftest import PROJECT, DeployedStack
from tests.moto.orders import order

pytestmark = [pytest.mark.stack, pytest.mark.verify]

ORDERS = 26
"""Every treatment is among them, and the machine is small."""


def test_a_proof_is_kept_and_leaves_only_its_report(
    stack: DeployedStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in stack.aws.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    # A project of somebody, with the environment of the local AWS in its cache.
    (tmp_path / "template.yaml").touch()
    (tmp_path / ".cache").symlink_to(PROJECT / ".cache")
    monkeypatch.chdir(tmp_path)
    tables, functions = tables_of(stack), functions_of(stack)

    proved = CliRunner().invoke(app, ["prove", "--orders", str(ORDERS), "--yes", "--json"])

    report = json.loads(proved.stdout)
    assert_schema("prove", report)
    assert proved.exit_code == 0, report["violations"]
    assert (report["verdict"], report["sent"], report["stored"]) == ("kept", ORDERS, ORDERS)
    assert {one["fault"]: one["outcome"] for one in report["faults"]} == {
        "no concurrency": "made",
        "changed code": "made",
        "paused mapping": "made",
        "time-out too short": "made",
        "table at its maximum": "notHere",
    }
    verdicts = {one["promise"]: one["verdict"] for one in report["promises"]}
    assert verdicts["NOT_LOGGED"] == verdicts["FAILURES_LOGGED"] == "followed"
    assert tables_of(stack) == tables
    assert functions_of(stack) == functions
    stack.submit(order("after-a-proof"))
    stack.wait_for(
        "the order of the stack beside it",
        lambda: stack.task("after-a-proof").get("State") == "Completed",
    )


def tables_of(stack: DeployedStack) -> set[str]:
    return set(stack.dynamodb.list_tables()["TableNames"])


def functions_of(stack: DeployedStack) -> set[str]:
    pages = stack.functions.get_paginator("list_functions").paginate()
    return {one["FunctionName"] for page in pages for one in page["Functions"]}
