"""`roundsman cost`: what it reckons, as people and scripts read it, and what it refuses."""

import json

import pytest
from typer.testing import CliRunner, Result

from roundsman_console.main import app
from tests.console.schemas import assert_schema


def types(*arguments: str, columns: int = 80) -> Result:
    runner = CliRunner(env={"COLUMNS": str(columns)})
    return runner.invoke(app, ["cost", *arguments])


def reads(*arguments: str) -> dict[str, object]:
    result = types(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    assert_schema("cost", found)
    return found


def test_a_month_is_shown_part_by_part_with_its_sum_and_what_it_costs_elsewhere() -> None:
    result = types("--orders-per-month", "3e6")
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    for part in ("3,000,000 orders a month", "DynamoDB: writes", "SQS: requests", "Lambda: time"):
        assert part in said
    for part in ("for each million orders", "Step Functions Standard: 100.80 USD a million"):
        assert part in said
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_scripts_read_the_same_as_one_object() -> None:
    found = reads("--orders-per-month", "1e9", "--steps", "4", "--batch", "5")
    order = found["order"]
    assert isinstance(order, dict)
    assert order["sqsRequests"] == 14
    assert order["invocations"] == 2
    lines = found["lines"]
    assert isinstance(lines, list)
    assert sum(line["usd"] for line in lines) == pytest.approx(found["usdPerMonth"], abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nan"], "--orders-per-month must be from 1 to 1,000,000,000,000, not nan."),
        (["inf"], "--orders-per-month must be from 1 to 1,000,000,000,000, not inf."),
        (["0"], "--orders-per-month must be from 1 to 1,000,000,000,000, not 0."),
        (["1", "--steps", "101"], "--steps must be from 1 to 100, not 101."),
        (["1", "--batch", "0.5"], "--batch must be from 1 to 10 messages an invocation, not 0.5."),
        (["1", "--memory", "64"], "--memory must be from 128 to 10,240 MB, not 64."),
        (["1", "--architecture", "mips"], "--architecture must be x86_64 or arm64."),
        (["1", "--log-days", "-1"], "--log-days must be from 0 to 3,660 days, not -1."),
        (["1", "--result-bytes", "40000"], "--result-bytes must be from 0 to 32,768 bytes, "),
    ],
)
def test_a_number_that_means_nothing_is_refused_in_a_sentence(
    arguments: list[str], sentence: str
) -> None:
    result = types("--orders-per-month", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not result.stdout
