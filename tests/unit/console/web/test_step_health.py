"""How steps did, as a page shows it: which steps, which shares, and how often it is read."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from roundsman.errors import CallRefused
from roundsman.model.instants import MINUTE
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.faces.web.readings import cache, step_health
from roundsman_console.faces.web.readings.step_health import (
    MOST_IN_TABLE,
    ON_A_PAGE,
    ShownHealth,
    period_of,
    read_step_health,
)
from roundsman_console.facts.workflow.health import Health
from roundsman_console.facts.workflow.reading import StepsToRead
from roundsman_console.inspector import Inspector
from tests.console.step_samples import AT
from tests.web.test_step_health import made_health


@dataclass
class Metrics:
    """The steps of a plan, those of them that fail, and what CloudWatch was asked."""

    steps: int = 3
    bad: Sequence[str] = ()
    at: int = AT
    asked: list[str] = field(default_factory=list)
    refused: bool = False
    inspector: Inspector = field(default_factory=lambda: Inspector(DeployedStack("shop", {}, {})))

    def read(self, _stack: DeployedStack, steps: StepsToRead, period: str, at: int) -> Health:
        self.asked.append(period)
        if self.refused:
            raise CallRefused("reading metrics: AccessDenied")
        return made_health(steps, period, at, bad=self.bad)

    def shown(self, about: str = "a plan", **given: str) -> ShownHealth:
        steps = {("story", f"step_{place:03}"): (("agent",), 1_000) for place in range(self.steps)}
        found = read_step_health(self.inspector, about, steps, given)
        assert found.value is not None, found.problem
        return found.value


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Metrics:
    found = Metrics()
    for module in (step_health, cache):
        monkeypatch.setattr(module, "now", lambda: found.at)
    monkeypatch.setattr(step_health, "read_health", found.read)
    return found


def test_a_period_that_there_is_not_is_the_first_one() -> None:
    assert [period_of(one) for one in ({}, {"period": "2h"}, {"period": "7d"})] == [
        "24h",
        "24h",
        "7d",
    ]


def test_figures_are_read_once_in_five_minutes_for_each_period_and_plan(metrics: Metrics) -> None:
    for _ in range(2):
        metrics.shown()
        metrics.shown(period="7d")
        metrics.shown("another plan")
        metrics.at += 5 * MINUTE - 1
    assert metrics.asked == ["24h", "7d", "24h"]
    metrics.at += 1
    metrics.shown()
    assert metrics.asked == ["24h", "7d", "24h", "24h"]


def test_figures_that_cannot_be_read_are_the_problem_of_the_part_and_are_asked_again(
    metrics: Metrics,
) -> None:
    metrics.refused = True
    found = read_step_health(metrics.inspector, "a plan", {("story", "pay"): ((), 1)}, {})
    assert found.value is None
    assert "AccessDenied" in (found.problem or "")
    metrics.refused = False
    assert metrics.shown().rows


def test_a_page_has_so_many_steps_and_the_last_one_is_never_empty(metrics: Metrics) -> None:
    metrics.steps = ON_A_PAGE + 2

    def place(**given: str) -> tuple[int, int]:
        shown = metrics.shown(**given)
        return shown.start, len(shown.rows)

    assert place() == (0, ON_A_PAGE)
    assert place(**{"from": ""}) == (0, ON_A_PAGE)
    assert place(**{"from": "50"}) == (50, 2)
    assert place(**{"from": "999999"}) == (ON_A_PAGE + 1, 1)
    metrics.steps = 0
    assert metrics.shown("no step", **{"from": "50"}).start == 0
    assert metrics.shown().per_page == ON_A_PAGE


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "1234567", "\u0663", "\u00b2", "1 0"])
def test_a_number_of_steps_that_cannot_be_meant_is_refused(metrics: Metrics, text: str) -> None:
    with pytest.raises(InvalidArgument, match="is the number of steps before: 0, 50, 100"):
        metrics.shown(**{"from": text})


def test_the_table_has_the_worst_steps_of_which_an_attempt_failed(metrics: Metrics) -> None:
    metrics.steps, metrics.bad = 20, [f"step_{place:03}" for place in range(3, 18)]
    shares = metrics.shown().shares
    assert [one.step for one in shares] == [f"step_{place:03}" for place in range(3, 15)]
    assert len(shares) == MOST_IN_TABLE
    assert {len(one.shares) for one in shares} == {len(metrics.shown().slices)}
    assert {"unknown", "50.0 %"} <= {*shares[0].shares}
    metrics.bad = []
    assert metrics.shown("another plan").shares == []


def test_slices_are_named_by_their_day_and_minute(metrics: Metrics) -> None:
    assert metrics.shown().slices[-1] == "15 07:00"


def test_the_price_of_logs_is_in_dollars_without_zeros(metrics: Metrics) -> None:
    assert metrics.shown().price == "0.005 USD"
