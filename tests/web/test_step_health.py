"""The page of a workflow: how its steps did, since when worse, drawn and as a table."""

import re
from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import quote

import pytest

from roundsman import Step, Workflow
from roundsman.definition.plan import plan_of
from roundsman.model.instants import DAY, MINUTE
from roundsman_console.aws.metrics import StepSeries, StepTimes
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.faces.web.drawings.spark import HEIGHT, spark
from roundsman_console.faces.web.readings import step_health
from roundsman_console.faces.web.readings.step_health import ON_A_PAGE
from roundsman_console.facts.workflow.health import Health, health_of, window_of
from roundsman_console.facts.workflow.reading import StepsToRead
from tests.moto.orders import order
from tests.web.browsers import Browser, text_of
from tests.web.test_pages import HOSTILE
from tests.web.test_requests_to_aws import requests_counted

MOST_BYTES = 100_000
WORKFLOW = "order_fulfilment"


def made_health(steps: StepsToRead, period: str, at: int, *, bad: Sequence[str]) -> Health:
    """Of some steps one half of the attempts fails since two hours before now."""
    window = window_of(period, at)
    parts = [*window.earlier, *window.parts]
    good = StepSeries(dict.fromkeys(parts, 100.0), {}, dict.fromkeys(parts, 1_000.0))
    worse = StepSeries(good.succeeded, dict.fromkeys(parts[-3:], 100.0), good.nearly_all)
    series = {step: worse if step[1] in bad else good for step in steps}
    times = {step: StepTimes(2_400, 300 if step[1] in bad else 0, 1_500, 28_000) for step in steps}
    measured = frozenset([*parts[: -len(parts) // 4], *parts[-10:]])
    return health_of(steps, times, series, measured, window)


@pytest.fixture
def read() -> list[str]:
    """The periods that were read of CloudWatch."""
    return []


@pytest.fixture
def worse(browser: Browser, read: list[str], monkeypatch: pytest.MonkeyPatch) -> Browser:
    """The charges of a workflow have begun to fail."""
    world = browser.operator.world
    world.clock.now += 90 * DAY  # away from the figures of other tests
    world.submit(order("ord-1"))
    world.run()

    def health(_stack: DeployedStack, steps: StepsToRead, period: str, at: int) -> Health:
        read.append(period)
        return made_health(steps, period, at, bad=["charge_card"])

    monkeypatch.setattr(step_health, "read_health", health)
    monkeypatch.setattr(step_health, "_READ", {})
    return browser


def test_the_page_says_first_which_step_is_worse_and_since_when(worse: Browser) -> None:
    html = worse.html(f"/workflows/{WORKFLOW}")
    page = text_of(html)
    assert "charge_card: 50.0 % of the attempts have failed since 2027-04-15 06:00:00 UTC" in page
    assert "usually 0.0 %" in page
    rows = re.findall(r'<tr data-key="order_fulfilment ([a-z_]+)"( class="worse")?>', html)
    assert rows[0] == ("charge_card", ' class="worse"')
    assert [name for name, _ in rows[1:]] == [
        "reserve_stock",
        "create_shipment",
        "send_confirmation",
    ]
    assert "charge_card worse 2 700 11.1 % usually 0.0 % 1 s 28 s usually 1 s" in page
    assert "metric StepFailures" in page
    assert f'href="/orders?workflow={WORKFLOW}&amp;step=charge_card"' in html
    assert "at most 50.0 %" in page, "each drawing has a scale of its own"
    assert "Usual is the median of the hours in the 14 days before" in page


def test_the_drawing_has_the_same_as_a_table_and_unknown_is_a_frame(worse: Browser) -> None:
    html = worse.html(f"/workflows/{WORKFLOW}?period=7d")
    assert html.count('<svg class="spark"') == 4
    assert 'aria-label="at most 12.5 % failed; ' in html or "% failed; " in html
    assert '<rect class="gap"' in html
    page = text_of(html)
    assert "The shares that failed as a table" in page
    assert "unknown unknown" in page


def test_figures_are_read_once_in_five_minutes_for_each_period(
    worse: Browser, read: list[str]
) -> None:
    for address in ("", "?period=7d", "?period=7d", "?period=none", "?from=0"):
        worse.html(f"/workflows/{WORKFLOW}{address}")
    assert read == ["24h", "7d"]
    worse.operator.world.clock.now += 6 * MINUTE
    worse.html(f"/workflows/{WORKFLOW}")
    assert read == ["24h", "7d", "24h"]


def test_nothing_is_asked_of_the_logs_before_somebody_agrees_to_the_price(worse: Browser) -> None:
    with requests_counted() as asked:
        html = worse.html(f"/workflows/{WORKFLOW}")
        assert "AWS charges 0.005 USD for each GB." in text_of(html)
        link = f"/commands/workflows-agent-versions?workflow={WORKFLOW}&amp;since=24h"
        assert f'href="{link}"' in html
        form = worse.page(link.replace("&amp;", "&"))
        shown = worse.sends("workflows-agent-versions", workflow=WORKFLOW, since="24h")
    assert "Time until now" in form
    assert (
        "The logs of inventory, mail, payment, shipping of the last 24h would be scanned" in shown
    )
    assert not asked["StartQuery"]


def test_the_name_of_a_workflow_leads_to_its_newest_version(worse: Browser) -> None:
    plan = worse.operator.world.task("ord-1").plan
    assert plan[:12] in worse.page(f"/workflows/{WORKFLOW}")
    assert 'href="/workflows/order_fulfilment"' in worse.html("/workflows")
    assert "keeps no order of the workflow gift" in worse.page("/workflows/gift", 404)
    assert "There is no such plan." in worse.page(f"/workflows/{'0' * 64}", 404)


def test_a_name_that_no_workflow_has_is_refused_and_inert(worse: Browser) -> None:
    answer = worse.client.get(f"/workflows/{quote(HOSTILE, safe='')}")
    assert answer.status_code in (400, 404)
    assert "<script>alert" not in answer.text
    said = worse.page(f"/workflows/{WORKFLOW}?from=x", 400)
    assert "The parameter from is the number of steps before" in said


def test_300_steps_are_on_pages_of_at_most_100_kb_the_worst_first(
    worse: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = timedelta(seconds=30)
    kinds = [
        Step(name=f"kind_of_a_step_{place:03}", agent="payment", complete_within=soon)
        for place in range(205)
    ]
    steps = list[Step]()
    for place in range(95):
        name = f"step_with_a_long_name_{place:03}"
        after = tuple(steps[-1:])
        steps.append(Step(name=name, agent="payment", complete_within=soon, after=after))
    large = Workflow(
        name="large", steps=tuple(steps), complete_within=timedelta(hours=2), may_add=tuple(kinds)
    )
    bad = [f"step_with_a_long_name_{place:03}" for place in range(40, 95)]

    def health(_stack: DeployedStack, found: StepsToRead, period: str, at: int) -> Health:
        assert len(found) == 300
        return made_health(found, period, at, bad=bad)

    monkeypatch.setattr(step_health, "read_health", health)
    plan = plan_of(large)
    worse.inspector.stack.plans.put_plan(plan)
    html = worse.html(f"/workflows/{plan.hash}")
    assert len(html.encode()) <= MOST_BYTES
    assert f"1 to {ON_A_PAGE} of 300 steps" in text_of(html)
    assert 'href="?graph=whole#graph"' in html
    seen, address = set[str](), f"/workflows/{plan.hash}"
    for _ in range(6):
        html = worse.html(address)
        assert len(html.encode()) <= MOST_BYTES
        seen |= {*re.findall(r'<tr data-key="large ([a-z_0-9]+)"', html)}
        following = re.search(r'href="(\?period=24h&amp;from=\d+)#steps">Next', html)
        if following is None:
            break
        address = f"/workflows/{plan.hash}{following[1].replace('&amp;', '&')}"
    assert len(seen) == 300
    assert "52 other steps did worse than usual, too." in worse.page(f"/workflows/{plan.hash}")


def test_a_drawing_of_shares_is_as_high_as_the_highest_and_has_a_frame_for_unknown() -> None:
    found = spark([None, None, 0.0, 0.1, 0.4, None])
    assert found.path == (f"M75.0,{HEIGHT}v-6.0h25.0V{HEIGHT}zM100.0,{HEIGHT}v-24.0h25.0V{HEIGHT}z")
    assert found.gaps == ((0.0, 50.0), (125.0, 25.0))
    assert found.words == "at most 40.0 % failed; 3 of 6 parts unknown"
    assert spark([0.0, 0.0]).words == "none failed"
    assert spark([None]).words == "nothing is known"
    assert spark([]).path == ""
    assert "v-2.0" in spark([0.001, 0.4]).path, "what is small is seen"
