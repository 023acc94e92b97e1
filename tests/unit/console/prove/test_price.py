"""What a proof costs."""

from typing import Never

import pytest
from botocore.exceptions import ClientError

from roundsman.model.instants import MINUTE
from roundsman_console.prove import price
from roundsman_console.prove.application.workflows import WORKFLOWS
from roundsman_console.prove.price import STEPS, estimated_usd, spent_usd
from roundsman_console.prove.project import project_files
from roundsman_console.stack.stack import DeployedStack


def test_a_proof_of_a_thousand_orders_costs_less_than_a_dollar() -> None:
    assert 0.01 < estimated_usd(1_000) < 1


def test_more_orders_cost_more() -> None:
    assert estimated_usd(40) < estimated_usd(1_000) < estimated_usd(20_000)


def test_the_calculation_is_for_what_is_deployed() -> None:
    [template] = [text for path, text in project_files().items() if path.name == "template.yaml"]
    assert f"SupervisorIntervalSeconds: {price.INTERVAL}\n" in template
    assert f"Profile: {price.PROFILE}\n" in template
    assert sorted(len(one.steps) for one in WORKFLOWS.values())[len(WORKFLOWS) // 2] == STEPS


def test_a_proof_goes_on_if_cloudwatch_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> Never:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetMetricData")

    monkeypatch.setattr(price, "read_usage", refused)
    assert spent_usd(DeployedStack("prove-1a2b3c", {}, {}), 0) is None


def test_what_was_spent_is_read_from_the_beginning_of_the_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    class Read:
        class spent:  # stands for an attribute
            @staticmethod
            def usd() -> float:
                return 0.25

    def read(_: DeployedStack, seconds: int, __: object) -> Read:
        asked.append(seconds)
        return Read()

    monkeypatch.setattr(price, "read_usage", read)
    monkeypatch.setattr(price, "now", lambda: 90 * MINUTE)
    assert spent_usd(DeployedStack("prove-1a2b3c", {}, {}), 60 * MINUTE) == 0.25
    assert asked == [1_800]
