"""`roundsman preflight` and `roundsman smoke` at the deployed stack."""

import json
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner, Result

from roundsman_console.main import app
from tests.console.schemas import assert_schema
from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import faults, types
from tests.moto.orders import ALL_EFFECTS, effects_of

pytestmark = pytest.mark.stack

SMOKE = Path(__file__).parents[2] / "events" / "smoke" / "order_fulfilment.json"
HANGS = {"operation": "POST /charges", "status": 503, "retryAfter": 3600}


def preflight(stack: DeployedStack) -> Result:
    """Check the project of the stack, whose name is in its samconfig.toml."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in stack.aws.environment.items():
            patch.setenv(name, value)
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        return CliRunner().invoke(app, ["preflight", "--json"])


def test_an_account_is_checked_and_an_order_sent_and_another_undone(stack: DeployedStack) -> None:
    checked = preflight(stack)
    found = json.loads(checked.stdout)
    assert_schema("preflight", found)
    status = {one["check"]: one["status"] for one in found["checks"]}
    assert checked.exit_code == 0, checked.output
    assert status["name"] == status["parameters"] == status["stack"] == "ok"

    completed = types(stack, "smoke", "--event", str(SMOKE))
    output = json.loads(completed.stdout)
    assert_schema("smoke", output)
    assert (completed.exit_code, output["outcome"]) == (0, "asExpected"), completed.output
    assert effects_of(stack.services, output["orderId"]) == ALL_EFFECTS

    with faults(stack, HANGS):  # so that it is still on its way when it is cancelled
        undone = types(stack, "smoke", "--event", str(SMOKE), "--undo")
    output = json.loads(undone.stdout)
    assert (undone.exit_code, output["state"], output["left"]) == (0, "Cancelled", []), (
        undone.output
    )
    assert effects_of(stack.services, output["orderId"]) == {
        "inventory perform": 1,
        "inventory undo": 1,
    }
