"""Bad input on pages: long texts, ids that look like paths, and ten thousand failure groups."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from roundsman.model.instants import MINUTE
from roundsman_console.faces.web.application import application
from roundsman_console.faces.web.form_registry import commands
from roundsman_console.faces.web.pages.group import MOST_LISTED
from roundsman_console.faces.web.pages.overview import MOST_STANDING
from roundsman_console.faces.web.whereabouts import Whereabouts
from roundsman_console.facts.finding.report import Finding, StandingAlerts
from roundsman_console.facts.finding.table import StandingKind
from roundsman_console.facts.group.reading import GroupNow
from roundsman_console.facts.orders.counts import Count
from roundsman_testing.stack import Stack
from tests.console.operators import DECLINED
from tests.console.test_rejected import rejected
from tests.moto.orders import order
from tests.web.browsers import Browser, text_of
from tests.web.test_forms import answered

HOUR = 60 * MINUTE
AGENTS_OR_ORDERS = ("order", "agent")
"""A form of a hold is about one of them."""

LONG = "x" * 100_000
IN_ADDRESS = "x" * 60_000
"""A longer address reaches no server."""
LARGEST = 60_000
"""Bytes of a page that says what is wrong with a long text, without the text."""
PATHS = ("../../etc/passwd", "..\\..\\windows", "/orders/ord-1", "%2e%2e%2fdoctor", "a/b", "~/x")
GROUP = GroupNow(
    id="f-00000000",
    workflow="order_fulfilment",
    step="charge_card",
    how="archived",
    error_type="CardDeclined",
    message="POST answered 402",
    count=Count(1),
    counted_at=0,
)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/find?text={}", "The text to search for has 60,000 characters"),
        ("/orders?workflow={}", "The filter Workflow has 60,000 characters, and may have 1,000."),
        ("/orders?starts={}", "60,000 characters, and may have 1,000."),
        ("/orders/{}", "There is no order"),
        ("/orders/ord-1?from={}", "There is no order ord-1"),
    ],
)
def test_a_long_text_in_an_address_is_refused_in_words(
    browser: Browser, address: str, words: str
) -> None:
    answer = browser.client.get(address.format(IN_ADDRESS))
    with_form = address.startswith("/orders?")  # which says it beside the field
    assert answer.status_code in ((200,) if with_form else (400, 404))
    assert words in text_of(answer.text)
    assert len(answer.text) < LARGEST + len(IN_ADDRESS), "it is on the page once at most"


def test_a_rejected_message_of_100_kb_and_a_thousand_problems_is_listed_shortly(
    browser: Browser,
) -> None:
    many = {f"field{place}": LONG[:150] for place in range(500)}
    rejected(browser.operator.world, {**order("ord-1"), **many}, json.dumps({"note": LONG}))
    html = browser.html("/rejected")
    assert len(html) < LARGEST
    assert "and 4" in browser.page("/rejected"), "of the problems not all are listed"
    assert "100,012 bytes, SHA-256 " in browser.page("/rejected")


@pytest.mark.parametrize("text", PATHS)
def test_an_id_that_looks_like_a_path_leads_nowhere_else(browser: Browser, text: str) -> None:
    found = browser.client.get("/find", params={"text": text})
    assert found.status_code == 200
    assert "nothing else starts with it" in text_of(found.text)
    for place in ("orders", "groups", "bulk", "workflows", "agents"):
        address = browser.client.base_url.join(f"/{place}/").copy_with(
            raw_path=f"/{place}/{_quoted(text)}".encode()
        )
        answer = browser.client.get(address)
        assert answer.status_code == 404, (place, text)
        assert "root:" not in answer.text


def _quoted(text: str) -> str:
    return "".join(f"%{one:02X}" for one in text.encode())


def test_of_ten_thousand_groups_the_largest_are_listed_and_the_others_counted(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [replace(GROUP, id=f"f-{place:08x}") for place in range(10_000)]
    monkeypatch.setattr(browser.inspector, "groups", lambda: groups)
    html = browser.html("/groups")
    assert html.count('href="/groups/f-') == MOST_LISTED
    assert f"{10_000 - MOST_LISTED:,} further groups".replace(",", " ") in browser.page("/groups")


def test_of_ten_thousand_alerts_the_worst_are_listed_and_the_others_counted(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    standing = [
        Finding(StandingKind.GROUP, f"f-{place:08x}", "orders failed", since=place)
        for place in range(10_000)
    ]
    monkeypatch.setattr(
        "roundsman_console.faces.web.pages.overview.standing_alerts",
        lambda *_: StandingAlerts(standing),
    )
    html = browser.html("/")
    assert html.count('<li class="severity-') == MOST_STANDING
    page = browser.page("/")
    assert "more, which are less severe or older" in page
    assert "9 95" in page


@pytest.mark.exhaustive
def test_a_text_of_100_kb_in_a_form_is_refused_in_words_and_kept(browser: Browser) -> None:
    for command in commands():
        answer = browser.posts(command, reason=LONG, order="ord-1", agent="mail", seconds="30m")
        assert answer.status_code == 200, command
        assert "Traceback" not in answer.text
        if 'name="reason"' in answer.text:
            assert 'name="go"' not in answer.text, f"{command} offers to carry it out"
            assert f'value="{LONG}"' in answer.text, "it can be shortened"


@pytest.mark.exhaustive
@pytest.mark.parametrize("text", [*PATHS, LONG[:6_000]])
def test_a_form_about_an_id_that_looks_like_a_path_is_refused_in_words(
    browser: Browser, text: str
) -> None:
    subject = dict.fromkeys(("order", "agent", "run", "message", "group", "queue"), text)
    for command in commands():
        given = {name: value for name, value in subject.items() if name not in AGENTS_OR_ORDERS}
        for fields in ({**given, "order": text}, {**given, "agent": text}):
            found = browser.client.get(f"/commands/{command}", params=fields)
            assert found.status_code in (200, 400, 404), (command, text)
            assert text_of(found.text)
            assert "Traceback" not in found.text
            assert "root:" not in found.text
            if not text.isalnum():
                assert f'href="/orders/{text}"' not in found.text, "it leads to no other page"


def test_a_clock_that_is_an_hour_off_is_said_and_finds_no_silent_supervisor(
    browser: Browser,
) -> None:
    """The overview and the shift judge by the clock of AWS, as the strip on top does."""
    world = browser.operator.world
    world.supervise()
    ping = browser.inspector.stack.ping
    for ahead, which in ((HOUR, "ahead of"), (-HOUR, "behind")):
        ping._clock_ahead = ahead
        with at_another_time(world, ahead):
            where = Whereabouts("roundsman", clock_ahead=ahead)
            app = application(browser.inspector, browser.session, where)
            with TestClient(app, base_url=browser.session.address) as client:
                client.cookies.update(browser.client.cookies)
                for path in ("/", "/shift", "/orders"):
                    page = text_of(client.get(path).text)
                    assert f"The clock of this machine is 1 h {which} that of AWS" in page, path
                    assert "The supervisor does not run" not in page, path
    ping._clock_ahead = -HOUR
    assert "The supervisor does not run" in browser.page("/"), "by AWS it has not for an hour"
    ping._clock_ahead = None


@contextmanager
def at_another_time(world: Stack, ahead: int) -> Iterator[None]:
    """The clock of this machine is so many ms ahead."""
    before = world.clock.now
    world.clock.now += ahead
    yield
    world.clock.now = before


@pytest.mark.exhaustive
@pytest.mark.parametrize("code", ["AccessDenied", "Throttling", "InternalServiceError"])
def test_metrics_that_cannot_be_read_are_not_shown_as_0(browser: Browser, code: str) -> None:
    world = browser.operator.world
    world.submit({**order("ord-1"), **DECLINED})
    world.run()
    world.clock.now += 10 * HOUR  # away from what was read before
    group = str(world.task("ord-1").failure)
    plan = world.task("ord-1").plan
    pages = ("/", f"/groups/{group}", "/agents", "/workflows", f"/workflows/{plan}", "/shift")
    with answered(code, "GetMetricData", "GetMetricStatistics", "ListMetrics"):
        found = {path: browser.page(path) for path in pages}
    for path, page in found.items():
        for figure in ("0 accepted", "0 completed", "0 failed", "Succeeded 0"):
            assert figure not in page, (path, figure)
    assert "This was not read: the reason is on top of the page." in found["/"]
    assert "orders over time" in found["/"]
    assert "orders over time" in found[f"/groups/{group}"]


def test_deployments_that_cannot_be_read_are_said_and_the_rest_is_drawn(browser: Browser) -> None:
    world = browser.operator.world
    world.submit({**order("ord-1"), **DECLINED})
    world.run()
    address = f"/groups/{world.task('ord-1').failure}"
    with answered("AccessDenied", "ListVersionsByFunction"):
        page = browser.page(address)
    assert "Deployments are not known: AWS refused ListVersionsByFunction" in page
    assert "No hold, release or bulk run is known of this time." in page
    assert "The numbers as a table" in page
    page = browser.page(address)
    assert "Deployments are not known" not in page
    assert "No deployment, hold" in page or ": deployment" in page


def test_deployments_are_not_said_to_be_none_before_they_are_read(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = "roundsman_console.faces.web.readings.background_checks.in_background"
    monkeypatch.setattr(apart, lambda _: None)
    page = browser.page("/")
    assert "Deployments are not known yet." in page
    assert "No deployment" not in page
