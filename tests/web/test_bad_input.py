"""Bad input on pages: long texts, ids that look like paths, and ten thousand failure groups."""

import json
from dataclasses import replace

import pytest

from roundsman_console.faces.web.pages.group import MOST_LISTED
from roundsman_console.faces.web.pages.overview import MOST_STANDING
from roundsman_console.facts.finding.report import Finding, StandingAlerts
from roundsman_console.facts.finding.table import StandingKind
from roundsman_console.facts.group.reading import GroupNow
from roundsman_console.facts.orders.counts import Count
from tests.console.test_rejected import rejected
from tests.moto.orders import order
from tests.web.browsers import Browser, text_of

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
    assert answer.status_code in (400, 404)
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
