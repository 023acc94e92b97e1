"""The page about cost computes the price of SnapStart from the prices and the templates."""

from pathlib import Path

import pytest
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman_console.facts.cost.model import DEFAULT_MEMORY, SUPERVISOR_MEMORY
from roundsman_console.facts.cost.prices import load_prices
from roundsman_dev.check.reading import parameters
from tests.project import AGENTS
from tests.template.conftest import nested_template

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/cost.md").read_text(encoding="utf-8")
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
    assert megabytes == DEFAULT_MEMORY
    assert engine["SupervisorMemory"]["Default"] == SUPERVISOR_MEMORY
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


def test_the_table_of_the_teams_console_adds_up_and_has_the_size_of_its_task() -> None:
    section = PAGE.partition("### The console of a team\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:2] == "| "]
    usd = {row[0].partition(",")[0]: float(row[-1].strip("| ")) for row in rows[2:]}
    task = yaml_parse((ROOT / "examples/team_console/template.yaml").read_text())["Resources"]
    size = task["Task"]["Properties"]
    processors, gigabytes = int(size["Cpu"]) / 1024, int(size["Memory"]) / 1024
    assert f"{processors} vCPU and {gigabytes:.0f} GB" in section
    of_task = 730 * (processors * 0.04048 + gigabytes * 0.004445)
    assert usd["one task of Fargate"] == pytest.approx(of_task, abs=0.005)
    assert usd["the load balancer"] == pytest.approx(730 * 0.0225, abs=0.006)
    assert usd["its public addresses"] == pytest.approx(730 * 2 * 0.005)
    assert usd["a NAT gateway and its address"] == pytest.approx(730 * 0.05)
    parts = [amount for name, amount in usd.items() if name not in ("together", list(usd)[-1])]
    assert usd["together"] == pytest.approx(sum(parts), abs=0.005)
    team = (ROOT / "docs/how-to/open-the-console-for-a-team.md").read_text()
    assert f"costs some {usd['together']:.0f} USD a month" in team
    assert f"some {usd['together'] + list(usd.values())[-1]:.0f} with a NAT gateway" in team
