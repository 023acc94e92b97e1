"""The page about cost computes the price of SnapStart from the prices and the templates."""

from pathlib import Path

import pytest

from roundsman_console.check.reading import parameters
from roundsman_console.cost.prices import load_prices
from tests.project import AGENTS
from tests.template.conftest import nested_template

PAGE = (Path(__file__).parents[2] / "docs/explanation/cost.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### SnapStart\n")[2].partition("\n## ")[0]
FUNCTIONS = 2 + len(AGENTS)
"""Those with SnapStart: submission, the scheduler and the agents."""


@pytest.fixture
def gigabytes() -> float:
    engine, agent = (parameters(nested_template(name)) for name in ("engine.yaml", "agent.yaml"))
    found = {
        int(str(one["Default"]))
        for one in (engine["SubmissionMemory"], engine["SchedulerMemory"], agent["Memory"])
    }
    [megabytes] = found
    assert f"with {megabytes} MB, the default" in SECTION
    return megabytes / 1024


def test_the_price_of_snapstart_is_that_of_the_default_memory(gigabytes: float) -> None:
    prices = load_prices()
    month = prices.usd("lambda.snapshot", gigabytes * prices.assumed.month_seconds)
    assert (
        f"{prices.prices['lambda.snapshot'].usd:.10f} USD a GB-second | {month:.2f} USD a month"
        in (SECTION)
    )
    starts = prices.usd("lambda.restore", gigabytes * 1_000_000)
    assert f"{prices.prices['lambda.restore'].usd:.10f} USD a GB | {starts:.2f} USD a million" in (
        SECTION
    )
    assert f"one version of each is {FUNCTIONS * month:.2f} USD a month" in SECTION
    assert f"it is {11 * FUNCTIONS * month:.2f}; after one a week" in SECTION
    assert f"for a year {53 * FUNCTIONS * month:.2f}." in SECTION
    assert f"{prices.assumed.month_seconds:,.0f} seconds" in SECTION
