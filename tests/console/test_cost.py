"""`roundsman cost`: what it reckons, as people and scripts read it, and what it refuses."""

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from typer.testing import CliRunner, Result

from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.cost.live import StackParts, metrics_of
from roundsman_console.facts.cost.usage import PAYLOADS_LEFT_OUT
from roundsman_console.main import app
from tests.console.operators import Operator, document
from tests.console.schemas import assert_schema

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient


def types(*arguments: str, columns: int = 80) -> Result:
    runner = CliRunner(env={"COLUMNS": str(columns)})
    return runner.invoke(app, ["cost", *arguments])


def reads(*arguments: str) -> dict[str, object]:
    result = types(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert_schema("cost", found)
    assert found["spent"] is None
    estimate = found["estimate"]
    assert isinstance(estimate, dict)
    return estimate


def test_a_month_is_shown_part_by_part_with_its_sum_and_what_it_costs_elsewhere() -> None:
    result = types("--orders-per-month", "3e6")
    assert result.exit_code == 0
    output = " ".join(result.stdout.split())
    for part in ("3,000,000 orders a month", "DynamoDB: writes", "SQS: requests", "Lambda: time"):
        assert part in output
    for part in ("per million orders", "Step Functions Standard: 100.80 USD per million"):
        assert part in output
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_scripts_read_the_same_as_one_object() -> None:
    found = reads("--orders-per-month", "1e9", "--steps", "4", "--batch", "5")
    order = found["order"]
    assert isinstance(order, dict)
    assert order["sqsRequests"] == 6
    assert order["invocations"] == 2
    lines = found["lines"]
    assert isinstance(lines, list)
    assert sum(line["usd"] for line in lines) == pytest.approx(found["usdPerMonth"], abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nan"], "--orders-per-month must be from 0 to 1,000,000,000,000, not nan."),
        (["inf"], "--orders-per-month must be from 0 to 1,000,000,000,000, not inf."),
        (["-1"], "--orders-per-month must be from 0 to 1,000,000,000,000, not -1."),
        (["1", "--profile", "thin"], "--profile must be lean, standard or full."),
        (["1", "--steps", "101"], "--steps must be from 1 to 100, not 101."),
        (["1", "--batch", "0.5"], "--batch must be from 1 to 10 messages per invocation, not 0.5."),
        (["1", "--memory", "64"], "--memory must be from 128 to 10,240 MB, not 64."),
        (["1", "--architecture", "mips"], "--architecture must be x86_64 or arm64."),
        (["1", "--log-days", "-1"], "--log-days must be from 0 to 3,660 days, not -1."),
        (["1", "--result-bytes", "40000"], "--result-bytes must be from 0 to 32,768 bytes, "),
        (
            ["1", "--steps", "10", "--result-bytes", "30000"],
            "10 results of 30,000 bytes exceed the 204,800 bytes that a task may hold. ",
        ),
    ],
)
def test_a_number_that_means_nothing_is_refused_in_a_sentence(
    arguments: list[str], sentence: str
) -> None:
    result = types("--orders-per-month", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("profile", ["lean", "standard", "full"])
def test_a_month_without_orders_is_what_stands_there(profile: str) -> None:
    found = reads("--orders-per-month", "0", "--profile", profile)
    assert found["usdPerMonth"] == found["usdStanding"] == found["usdIdle"]
    assert found["usdPerMillionOrders"] == 0
    shown = types("--orders-per-month", "0", "--profile", profile)
    assert shown.exit_code == 0
    words = " ".join(shown.stdout.split())
    assert f"{found['usdIdle']:.2f} USD a month without orders" in words
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_each_number_of_orders_is_shown_in_each_profile_and_elsewhere() -> None:
    found = reads("--orders-per-month", "10000", "--profile", "lean")
    volumes = found["volumes"]
    assert isinstance(volumes, list)
    assert [one["ordersPerMonth"] for one in volumes] == [0, 10**4, 10**5, 10**6, 10**7]
    assert volumes[0]["profiles"]["lean"] == found["usdIdle"]
    assert volumes[1]["profiles"]["lean"] == found["usdPerMonth"]
    assert volumes[3]["elsewhere"]["Step Functions Standard"] == 100.8
    cheaper = found["cheaperFrom"]
    assert isinstance(cheaper, list)
    assert len(cheaper) == 6
    shown = " ".join(types("--orders-per-month", "10000").stdout.split())
    for one in cheaper:
        assert f"{one['ordersPerMonth']:,}" in shown


def test_the_write_units_of_search_are_named() -> None:
    shown = " ".join(types("--orders-per-month", "1e6", "--search-fields", "2").stdout.split())
    plain = " ".join(types("--orders-per-month", "1e6").stdout.split())
    assert "write units (2 of them for search)," in shown
    assert "for search" not in plain
    one, none = (reads("--orders-per-month", "1e6", "--search-fields", n) for n in ("1", "0"))
    units = [cast("dict[str, float]", found["order"])["writeUnits"] for found in (one, none)]
    assert units[0] - units[1] == pytest.approx(1)
    refused = types("--orders-per-month", "1", "--search-fields", "4")
    assert "--search-fields must be from 0 to 3, not 4." in refused.stderr


def test_orders_of_tenants_pay_for_fair_queues() -> None:
    without, of_tenants = (
        reads("--orders-per-month", "1e6", *more) for more in ((), ("--tenants",))
    )
    lines = of_tenants["lines"]
    assert isinstance(lines, list)
    [fair] = [line for line in lines if line["what"] == "fair queues, at most"]
    assert (fair["amount"], fair["usd"]) == (30e6, 3.0)
    assert [line for line in lines if line != fair] == without["lines"]


def noted(
    operator: Operator, name: str, value: float, *, stack: str = "roundsman", **dimensions: str
) -> None:
    """Put a metric of the functions where CloudWatch would have taken it from their logs."""
    client: CloudWatchClient = boto3.client("cloudwatch")
    an_hour_ago = datetime.fromtimestamp(operator.world.clock() / 1000, tz=UTC) - timedelta(hours=1)
    client.put_metric_data(
        Namespace=f"Roundsman/{stack}",
        MetricData=[
            {
                "MetricName": name,
                "Timestamp": an_hour_ago,
                "Value": value,
                "Dimensions": [{"Name": k, "Value": v} for k, v in dimensions.items()],
            }
        ],
    )


def test_a_live_stack_shows_what_its_orders_took_by_workflow(operator: Operator) -> None:
    noted(operator, "OrdersAccepted", 3, service="submission")
    for workflow, decisions in (("order_fulfilment", 6), ("order_fulfilment", 8), ("gift", 6)):
        noted(operator, "TaskDecisions", decisions, service="scheduler", workflow=workflow)
    noted(operator, "TaskDecisions", 9, stack="another", service="scheduler", workflow="theirs")
    found = document(operator.types("cost", "--since", "2h", "--json"))
    assert_schema("cost", found)
    assert found["estimate"] is None
    spent = found["spent"]
    assert isinstance(spent, dict)
    assert spent["orders"] == 3
    assert [(w["workflow"], w["orders"], w["decisions"]) for w in spent["workflows"]] == [
        ("order_fulfilment", 2, 14),
        ("gift", 1, 6),
    ]


def test_a_stack_with_a_bucket_says_that_payloads_are_not_counted(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = operator.world.stack.outputs["SupervisorFunctionName"]
    noted(operator, "Invocations", 5e7, FunctionName=supervisor)
    for bucket, said in ((None, False), ("shop-payloads", True)):
        monkeypatch.setattr(DeployedStack, "payload_bucket", bucket)
        shown = " ".join(operator.types("cost", "--since", "2h").stdout.split())
        assert (PAYLOADS_LEFT_OUT in shown) is said
        found = document(operator.types("cost", "--since", "2h", "--json"))
        assert_schema("cost", found)
        assert cast("dict[str, object]", found["spent"])["payloadBucket"] == bucket


def test_an_estimate_says_that_payloads_are_not_counted() -> None:
    shown = " ".join(types("--orders-per-month", "1e6").stdout.split())
    assert PAYLOADS_LEFT_OUT in shown


def test_the_metrics_of_a_bill_are_those_of_the_stack(operator: Operator) -> None:
    """moto finds a metric with dimensions in any namespace, so the queries themselves are read."""
    noted(operator, "TaskDecisions", 9, stack="shop", service="scheduler", workflow="gift")
    own = metrics_of(StackParts("shop"))
    assert {metric.namespace for metric in own.values()} == {"Roundsman/shop"}
    assert [*own] == ["orders", "decisions gift", "ended gift"]


def test_a_stack_of_which_nothing_is_known_yet_says_so(operator: Operator) -> None:
    result = operator.types("cost")
    assert result.exit_code == 0
    assert "CloudWatch has no figures for these" in result.stdout


@pytest.mark.parametrize("since", ["5m", "91d", "yesterday"])
def test_a_time_that_cannot_be_looked_back_at_is_refused(since: str) -> None:
    result = types("--since", since)
    assert result.exit_code == 2
    assert since in result.stderr
