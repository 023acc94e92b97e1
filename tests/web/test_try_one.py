"""One order of a failure group is tried, followed, and then the others go on."""

import re
from collections.abc import Iterator

import pytest

from roundsman.aws.dynamodb.control import KEEP_MARKS_FOR
from roundsman.model.instants import SECOND
from roundsman.model.states import TaskState
from roundsman_console.acts.order.passes import SEEN_WITHIN
from roundsman_console.faces.web.pages.group import TRIAL_SECONDS
from roundsman_testing.stack import Clock, Services, Stack
from tests.console.bulk.conftest import PARAMETERS
from tests.moto.orders import order
from tests.project import deployed_project
from tests.support.kept_stack import KeptStack
from tests.web.browsers import Browser, text_of
from tests.web.declined import DECLINES, kept_with_declined
from tests.web.hand import Hand

NAMES = [f"ord-{n}" for n in range(2001, 2005)]
FIRST, *REST = NAMES


@pytest.fixture(scope="module")
def one_world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One deployment for all tests of a module, with few shards."""
    with deployed_project(roundsman_services, roundsman_clock, PARAMETERS) as world:
        yield world


@pytest.fixture(scope="module")
def with_declined(one_world: Stack, session_without_real_aws: None) -> KeptStack:
    """The deployment with four orders that were declined by mistake."""
    return kept_with_declined(one_world, NAMES)


@pytest.fixture
def declined(browser: Browser, with_declined: KeptStack) -> str:
    """The group of the orders that were declined by mistake."""
    with_declined.go_back()
    world = browser.operator.world
    world.faults(DECLINES)
    return str(world.task(FIRST).failure)


def states(browser: Browser, names: list[str] = NAMES) -> list[str]:
    return [browser.operator.world.task(name).state.value for name in names]


def test_one_order_is_sent_by_one_click_and_then_all_others_go_on(
    browser: Browser, declined: str
) -> None:
    world = browser.operator.world
    world.faults()  # the cause is gone
    person = Hand(browser).opens(f"/groups/{declined}")
    assert "Try one first: the others stay as they are" in person.text
    person.sends(f"Try {FIRST}", Reason="the rule is right")
    assert person.clicks == 1
    assert f"{FIRST} is tried: this page follows it." in person.text
    assert states(browser) == ["Completed", "Undone", "Undone", "Undone"]
    assert f"{FIRST} passed, and is Completed." in person.text
    assert "The cause is gone, so the others can go on." in person.text
    assert "3 orders undone" in person.text
    person.sends("Resubmit 3 orders", Reason="the rule is right")
    person.sends("Resubmit all now")
    world.pass_time(600)
    assert states(browser) == ["Completed"] * 4
    assert f"{FIRST} passed, and is Completed." in browser.page(f"/groups/{declined}")
    history = [row for row in browser.inspector.task(FIRST)[2] if row.kind == "resubmit"]
    assert [row.reason.endswith("the rule is right") for row in history] == [True]


def test_after_a_trial_that_passed_one_form_with_one_reason_releases_and_resubmits(
    browser: Browser, declined: str
) -> None:
    world = browser.operator.world
    world.faults()
    person = Hand(browser).opens(f"/groups/{declined}")
    person.sends(f"Try {FIRST}", Reason="the rule is right")
    browser.operator.asks("hold", "payment", "--for", "30m")
    person.opens(f"/groups/{declined}")
    assert f"{FIRST} passed, and is Completed." in person.text
    [reason] = [
        one
        for one in person.form("Release and resubmit 3 orders").fields
        if one.kind not in ("hidden", "checkbox")
    ]
    assert reason.label == "Reason for both (required)"
    person.sends("Release and resubmit 3 orders", Reason="the rule is right")
    person.sends("Resubmit all now")
    assert "payment is released" in person.text
    world.pass_time(900)
    assert states(browser) == ["Completed"] * 4


def test_a_cause_that_is_not_gone_is_said_with_its_reason_and_another_can_be_tried(
    browser: Browser, declined: str
) -> None:
    person = Hand(browser).opens(f"/groups/{declined}")
    person.sends(f"Try {FIRST}", Reason="is it right?")
    assert states(browser) == ["Undone"] * 4
    assert f"{FIRST} failed again: charge_card: failed for good: CardDeclined" in person.text
    assert "The cause is gone" not in person.text
    [button] = re.findall("<button>Try (ord-[0-9]+)</button>", person.html)
    assert button in REST, "not the same once more"


def test_a_page_follows_an_order_that_is_tried_and_offers_no_second_one(
    browser: Browser, declined: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundsman_console.faces.web.forms.trial.WAIT", 0)
    Hand(browser).opens(f"/groups/{declined}").sends(f"Try {FIRST}", Reason="x")
    html = browser.html(f"/groups/{declined}")
    assert f'data-every="{TRIAL_SECONDS}"' in html
    assert "the scheduler has not carried out the command yet" in text_of(html)
    assert "/commands/try-one" not in html
    browser.operator.world.run()
    html = browser.html(f"/groups/{declined}")
    assert "failed again" in text_of(html)
    assert f'data-every="{TRIAL_SECONDS}"' not in html


def form_of(html: str) -> dict[str, str]:
    """The hidden fields of the form that tries one."""
    [form] = re.findall(r'action="/commands/try-one">(.*?)</form>', html, re.DOTALL)
    return dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form))


def sent(browser: Browser, fields: dict[str, str], **more: str) -> str:
    given = {name: text for name, text in fields.items() if name != "form_token"}
    return browser.sends("try-one", 200, **{**given, "reason": "x", **more})


def test_the_form_counts_once_for_its_order_and_for_the_order_as_it_was(
    browser: Browser, declined: str
) -> None:
    fields = form_of(browser.html(f"/groups/{declined}"))
    other = sent(browser, fields, order=REST[1])
    assert "would be sent alone" in other, "another order is shown first"
    assert "Nothing was sent" in other
    assert states(browser) == ["Undone"] * 4
    assert "is tried: this page follows it" in sent(browser, fields)
    versions = browser.operator.world.task(FIRST).version
    assert "Nothing was sent" in sent(browser, fields), "it failed again, so it has changed"
    assert browser.operator.world.task(FIRST).version == versions
    wrong = sent(browser, {**fields, "shown": "x.y"})
    assert "Nothing was sent" in wrong


def test_a_reason_is_needed_and_what_is_wrong_stands_beside_it(
    browser: Browser, declined: str
) -> None:
    fields = form_of(browser.html(f"/groups/{declined}"))
    assert "is empty" in sent(browser, fields, reason=" ")
    assert "at most 500" in sent(browser, fields, reason="x" * 501)
    assert states(browser) == ["Undone"] * 4


def test_an_order_that_is_not_in_the_group_is_not_tried(browser: Browser, declined: str) -> None:
    browser.operator.world.faults()
    fields = form_of(browser.html(f"/groups/{declined}"))
    browser.operator.asks("resubmit", FIRST, "--again")
    assert "is not in this failure group now" in sent(browser, fields)
    browser.page(f"/commands/try-one?order={FIRST}&incident={declined}", 404)
    browser.page("/commands/try-one?order=../etc&incident=f-00000000", 404)


def test_while_the_agent_is_held_one_order_passes_the_hold_and_then_one_form_releases_the_rest(
    browser: Browser, declined: str
) -> None:
    world = browser.operator.world
    person = Hand(browser).opens(f"/groups/{declined}")
    person.sends("Hold payment", Reason="declines every card")
    person.sends("Hold now")
    world.pass_time(KEEP_MARKS_FOR // SECOND)
    world.faults()
    assert "Try one first: it passes the hold, and the others stay as they are." in person.text
    world.submit(order("ord-waits"))
    world.run()
    world.pass_time(SEEN_WITHIN)  # for which the console waits
    person.opens(f"/groups/{declined}")
    person.sends(f"Try {FIRST}", Reason="is the rule right?")
    assert SEEN_WITHIN in browser.operator.patience.slept
    assert states(browser) == ["Completed", "Undone", "Undone", "Undone"]
    assert world.task("ord-waits").step("charge_card").situation_name == "parked"
    [hold] = [one for one in browser.inspector.stack.holds.holds() if one.agent == "payment"]
    assert hold.passes == (FIRST,)
    world.pass_time(KEEP_MARKS_FOR // SECOND)
    person.opens(f"/groups/{declined}")
    person.sends("Release and resubmit 3 orders", Reason="the rule is right")
    assert "payment is released first: what waits for it goes on. 3 of 3 orders" in person.text
    assert ">would wait<" not in person.html, "they wait for no hold once it is released"
    assert browser.inspector.agents()[2].holds, "nothing is done before it is agreed to"
    person.sends("Resubmit all now")
    assert "payment is released, and takes work again. The supervisor wakes the" in person.text
    assert "is stored: the supervisor begins within a minute." in person.text
    assert not browser.inspector.agents()[2].holds
    assert "release of payment by" in browser.page(f"/groups/{declined}")
    world.pass_time(900)
    assert states(browser) == ["Completed"] * 4


def test_nothing_is_released_if_another_hold_would_keep_the_orders(
    browser: Browser, declined: str
) -> None:
    operator = browser.operator
    operator.asks("hold", "payment", "--for", "30m")
    person = Hand(browser).opens(f"/groups/{declined}")
    person.sends("Release and resubmit 4 orders", Reason="the rule is right")
    operator.asks("hold", "--workflow", "order_fulfilment", "--for", "30m")
    person.sends("Resubmit all now")
    assert "workflow order_fulfilment" in person.text
    assert "Nothing was sent" in person.text
    assert browser.inspector.agents()[2].holds, "payment is still held"
    assert states(browser) == [TaskState.UNDONE.value] * 4
