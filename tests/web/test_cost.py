"""The cost of what the stack has used: the figures of `roundsman cost --since`, when asked for."""

import pytest

from tests.console.test_cost import noted
from tests.web.browsers import Browser
from tests.web.test_requests_to_aws import requests_counted


@pytest.fixture
def used(browser: Browser) -> Browser:
    """A stack in whose orders two workflows have had decisions."""
    noted(browser.operator, "OrdersAccepted", 3_000, service="submission")
    for workflow, decisions in (("order_fulfilment", 60_000), ("gift<b>", 8)):
        noted(browser.operator, "TaskDecisions", decisions, service="scheduler", workflow=workflow)
    supervisor = browser.operator.world.stack.outputs["SupervisorFunctionName"]
    noted(browser.operator, "Invocations", 5e7, FunctionName=supervisor)
    noted(browser.operator, "Duration", 1e10, FunctionName=supervisor)
    return browser


def test_the_page_asks_aws_nothing_until_a_period_is_asked_for(browser: Browser) -> None:
    with requests_counted() as found:
        page = browser.page("/cost")
    assert found.total() == 0
    assert "this page asks AWS nothing" in page
    assert "0.01 USD for each thousand metrics" in page


@pytest.mark.exhaustive
def test_the_figures_are_those_of_the_command_line(used: Browser) -> None:
    page = used.page("/cost?since=2h")
    spent = used.operator.reads("cost", "--since", "2h")["spent"]
    assert isinstance(spent, dict)
    printed = " ".join(used.operator.types("cost", "--since", "2h").stdout.split())
    for line in spent["lines"]:
        assert f"{line['service']}: {line['what']}" in page
    for words in ("3,000 orders in", "per million orders", "List prices of"):
        assert words in printed
    sentence = next(one for one in page.split(". ") if "per million orders" in one)
    assert sentence.partition(": ")[2] in printed
    assert "gift<b> 1 8.0" in page
    assert "<b>" not in used.html("/cost?since=2h")
    assert "metrics, 0.00" in page


def test_page_and_command_line_show_what_other_memory_would_cost(used: Browser) -> None:
    spent = used.operator.reads("cost", "--since", "2h")["spent"]
    assert isinstance(spent, dict)
    [found] = spent["functions"]
    now, others = found["now"], found["others"]
    assert (now["ms"], now["memory"]) == (200, 256)
    shown = [
        f"SupervisorFunction 256 {' '.join(cells)}"
        for cells in (
            [f"{cost['ms']:,.0f}" for cost in (now, *others)],
            [f"{cost['usd']:,.2f}" for cost in (now, *others)],
        )
    ]
    printed = " ".join(used.operator.types("cost", "--since", "2h").stdout.split())
    page = used.page("/cost?since=2h")
    for where in (page, printed):
        assert all(row in where for row in shown)
        assert "not what they wait for" in where
    for of in ("ms", "USD"):
        assert f"Function MB now {of} now at 128 MB at 256 MB" in page


def test_a_stack_of_which_nothing_is_known_says_so(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundsman_console.facts.cost.live.read_metrics", lambda *_: {})
    assert "CloudWatch has no figures for these" in browser.page("/cost?since=7d")


@pytest.mark.parametrize("since", ["5m", "91d", "yesterday"])
def test_a_period_that_is_not_possible_is_refused_in_the_same_words(
    browser: Browser, since: str
) -> None:
    page = browser.page(f"/cost?since={since}", 400)
    typed = " ".join(browser.operator.types("cost", "--since", since).stderr.split())
    assert typed in page
