"""What a proof costs."""

from typing import Never

import pytest
from botocore.exceptions import ClientError

from roundsman.model.instants import MINUTE
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InspectorError
from roundsman_console.facts.cost.figures import load_figures
from roundsman_console.facts.cost.live import UsageRead
from roundsman_console.facts.cost.prices import Prices, load_prices
from roundsman_console.facts.cost.usage import sizes_of, spent_of
from roundsman_dev.prove import price
from roundsman_dev.prove.application.workflows import WORKFLOWS
from roundsman_dev.prove.command import MOST_ORDERS
from roundsman_dev.prove.price import STEPS, estimated_usd, read_spent
from roundsman_dev.prove.project import project_files


def test_a_proof_of_a_thousand_orders_costs_less_than_a_dollar() -> None:
    assert 0.01 < estimated_usd(1_000) < 1


def test_more_orders_cost_more() -> None:
    assert estimated_usd(40) < estimated_usd(1_000) < estimated_usd(MOST_ORDERS) < 1


def test_the_calculation_is_for_what_is_deployed() -> None:
    [template] = [text for path, text in project_files().items() if path.name == "template.yaml"]
    assert f"SupervisorIntervalSeconds: {price.INTERVAL}\n" in template
    assert f"Profile: {price.PROFILE}\n" in template
    assert sorted(len(one.steps) for one in WORKFLOWS.values())[len(WORKFLOWS) // 2] == STEPS


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetMetricData"),
        InspectorError("The stack has no such output."),
    ],
)
def test_a_proof_goes_on_if_cloudwatch_cannot_be_read(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> Never:
        raise error

    monkeypatch.setattr(price, "read_usage", refused)
    spent, why = read_spent(DeployedStack("prove-1a2b3c", {}, {}), 0)
    assert spent == []
    assert why


def test_what_was_spent_is_read_from_the_beginning_of_the_proof_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What has no count yet has no price, either."""
    asked: list[int] = []
    used = {"write TasksTable 0": 1_000_000.0, "invocations SchedulerFunction": 10.0}

    def read(_: DeployedStack, seconds: int, prices: Prices) -> UsageRead:
        asked.append(seconds)
        return UsageRead(spent_of(used, 1.0, sizes_of({}), load_figures(), prices), metrics=2)

    monkeypatch.setattr(price, "read_usage", read)
    monkeypatch.setattr(price, "now", lambda: 90 * MINUTE)
    spent, why = read_spent(DeployedStack("prove-1a2b3c", {}, {}), 60 * MINUTE)
    usd = {(one.service, one.what): one.usd for one in spent}
    assert (asked, why) == ([1_800], "")
    assert usd["DynamoDB", "writes"] == load_prices().usd("dynamodb.write", 1_000_000)
    assert usd["DynamoDB", "reads"] is None
    assert usd["Lambda", "time"] is None
