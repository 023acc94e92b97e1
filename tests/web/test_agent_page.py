"""The page of one agent: what stops it, its steps, versions, queues and failure groups."""

from datetime import timedelta
from urllib.parse import quote

import pytest

from roundsman import Compensation, Step, Workflow
from roundsman.definition.plan import plan_of
from roundsman.model.instants import DAY
from roundsman_console.aws.versions import FunctionVersions, Published
from roundsman_console.faces.web.pages import agent as pages
from roundsman_console.faces.web.pages.agent import StepAt, steps_at
from roundsman_console.facts.overview.queues import is_of_agent
from tests.console.operators import DECLINED
from tests.moto.orders import order
from tests.support.tenant_rates import at_its_rate
from tests.web.browsers import Browser
from tests.web.test_pages import HOSTILE


@pytest.fixture
def declined(browser: Browser) -> Browser:
    """An order whose card was declined; and a hold on the agent of payments."""
    world = browser.operator.world
    world.submit({**order("ord-1"), **DECLINED})
    world.run()
    browser.operator.asks("hold", "payment", "--for", "10m")
    world.clock.now += 60_000
    return browser


def test_the_page_has_all_that_is_known_of_an_agent(declined: Browser) -> None:
    html = declined.html("/agents/payment")
    page = declined.page("/agents/payment")
    group = declined.operator.world.task("ord-1").failure
    assert "payment held for another 9 min by ops: routine" in page
    assert f'<a href="/groups/{group}">' in html
    assert "order_fulfilment charge_card CardDeclined" in page
    assert "1 step that it performs" in page
    assert "charge_card order_fulfilment yes none" in page
    assert "hold by ops: held payment for 10 min: routine" in page
    assert "PaymentRequestQueue" in page
    assert "InventoryRequestQueue" not in page
    assert 'href="/orders?agent=payment"' in html
    assert 'href="/commands/release?agent=payment"' in html


def test_an_agent_without_trouble_says_so(declined: Browser) -> None:
    page = declined.page("/agents/mail")
    assert "takes work" in page
    assert "No failure group is open at this agent." in page
    assert "held payment" not in page
    assert "CloudWatch has no figure of this stack in this period." in page


def test_the_versions_of_its_function_are_its_deployments(
    declined: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = declined.operator.world.clock()
    published = [
        Published("Payment", 40, now - 8 * DAY),
        Published("Payment", 41, now - 2 * 3_600_000),
    ]
    found = FunctionVersions("Payment", "shop-payment", 41, [40, 41], published=published)
    monkeypatch.setattr(pages, "read_versions", lambda *_: found)
    page = declined.page("/agents/payment")
    assert "Version that runs 41" in page
    assert "UTC : deployment: published Payment version 41" in page
    assert "version 40" not in page, "it is older than a week"


@pytest.mark.parametrize("name", ["nobody", HOSTILE[:60], "payment%2F..%2Fmail", "x" * 300])
def test_a_name_that_no_agent_has_is_said_and_inert(declined: Browser, name: str) -> None:
    address = name if "%" in name else quote(name, safe="")
    answer = declined.client.get(f"/agents/{address}")
    assert answer.status_code == 404
    assert "<script>alert" not in answer.text
    assert "\x1b" not in answer.text


def test_the_list_of_agents_leads_to_each(declined: Browser) -> None:
    assert '<a href="/agents/payment">payment</a>' in declined.html("/agents")


SOON = timedelta(seconds=30)


def test_the_steps_at_an_agent_are_those_of_all_workflows_with_what_may_be_added() -> None:
    undo = Compensation(fences_late_performs=True)
    pay = Step(name="pay", agents=("payment", "bank"), complete_within=SOON, compensation=undo)
    mail = Step(name="send", agent="mail", complete_within=SOON)
    leg = Step(name="leg", agent="bank", complete_within=SOON)
    plans = [
        plan_of(Workflow(name=name, steps=(pay, mail), complete_within=SOON * 9, may_add=(leg,)))
        for name in ("gift", "purchase")
    ]
    assert steps_at("bank", plans[:1]) == [
        StepAt("gift", "pay", True, ["payment"]),
        StepAt("gift", "leg", False, []),
    ]
    assert [(one.workflow, one.step) for one in steps_at("mail", plans)] == [
        ("gift", "send"),
        ("purchase", "send"),
    ]
    assert steps_at("nobody", plans) == []


@pytest.mark.parametrize(
    ("queue", "agent", "is_its"),
    [
        ("PaymentRequestQueue", "payment", True),
        ("PaymentUrgentRequestQueue", "payment", True),
        ("PaymentReplyDeadLetterQueue", "payment", True),
        ("PaymentBackupRequestQueue", "payment", False),
        ("PaymentBackupRequestQueue", "payment_backup", True),
        ("SchedulerQueue", "payment", False),
        ("Mail2ReplyQueue", "mail_2", True),
        ("XaRequestQueue", ".a", False),
    ],
)
def test_the_queues_of_an_agent_are_found_by_their_names(
    queue: str, agent: str, is_its: bool
) -> None:
    assert is_of_agent(queue, agent) is is_its


def test_a_tenant_at_its_rate_is_shown_and_its_rate_can_be_lifted(declined: Browser) -> None:
    world = declined.operator.world
    world.submit(order("ord-2", tenant="shop-1"))
    world.run()
    assert "is at its rate" not in declined.page("/agents")
    at_its_rate(world, "payment", "shop-1", "ord-2")
    at_its_rate(world, "payment", "shop-2", "ord-3")
    for path in ("/agents", "/agents/payment"):
        assert "payment: tenant shop-1 is at its rate" in declined.page(path)
        assert "payment: a tenant is at its rate" in declined.page(path)
        assert "/commands/lift?agent=payment&amp;tenant=shop-1" in declined.html(path)
    assert "is at its rate" not in declined.page("/agents/mail")
    form = declined.html("/commands/lift?agent=payment&tenant=shop-1")
    assert 'value="shop-1"' in form
    fields = {"agent": "payment", "tenant": "shop-1", "seconds": "1h", "reason": "routine"}
    assert "0 orders would go on now" in declined.sends("lift", **fields)
    done = declined.carries_out("lift", **fields)
    assert "Done: the rate of tenant shop-1 at payment is lifted until" in done
    assert "payment: the rate of tenant shop-1 is lifted until" in declined.page("/agents/payment")
