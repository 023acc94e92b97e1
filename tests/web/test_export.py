"""The download of orders: the lines of `roundsman export`, and one more if orders are missing."""

import json
from collections.abc import Iterator

import pytest

from roundsman.errors import CallRefused, TryAgain
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.faces.web.pages.export import end_line, file_name
from roundsman_console.facts.orders import export as exporting
from roundsman_console.facts.orders.listing import find
from roundsman_console.inspector import Inspector
from tests.console.operators import DECLINED
from tests.moto.orders import order
from tests.web.browsers import Browser


@pytest.fixture
def declined(browser: Browser) -> Browser:
    """An order that was undone, and two that completed."""
    world = browser.operator.world
    world.submit({**order("ord-1"), **DECLINED}, order("ord-2"), order("ord-3", tenant="shop-1"))
    world.run()
    return browser


def typed(browser: Browser, *options: str) -> str:
    return browser.operator.types("export", *options).stdout


@pytest.mark.exhaustive
def test_the_download_is_what_the_command_line_writes(declined: Browser) -> None:
    for query, options in (
        ("", ()),
        ("?orders=yes", ("--with-orders",)),
        ("?state=Undone", ("--state", "Undone")),
        ("?tenant=shop-1", ("--tag", "tenant=shop-1")),
        ("?error=CardDeclined&workflow=order_fulfilment", ("--error", "CardDeclined")),
    ):
        answer = declined.client.get(f"/export/orders{query}")
        assert answer.status_code == 200
        assert answer.text == typed(declined, *options), query
        assert answer.text
    assert "paymentToken" not in declined.client.get("/export/orders").text


@pytest.mark.exhaustive
def test_the_page_before_it_says_what_is_selected_and_asks_nothing(declined: Browser) -> None:
    assert 'href="/export?state=Undone"' in declined.html("/orders?state=Undone")
    page = declined.html("/export?state=Undone&older=2h")
    assert "Selected: Undone, older than 2 h." in page
    assert 'name="older" value="2h"' in page
    assert "There is no such state." in declined.page("/export?state=Odd", 400)


@pytest.mark.exhaustive
def test_the_file_is_an_attachment_that_no_cache_keeps(declined: Browser) -> None:
    headers = declined.client.get("/export/orders").headers
    assert headers["Cache-Control"] == "no-store"
    disposition = headers["Content-Disposition"]
    assert disposition.startswith('attachment; filename="roundsman-orders-')
    assert headers["Content-Type"].startswith("application/jsonl")
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_name_of_the_file_cannot_be_used_to_write_a_header_or_a_path() -> None:
    name = file_name(Inspector(DeployedStack('../a"b\r\nc', {}, {})))
    assert name.startswith("---a-b--c-orders-")
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789TZ.-")


@pytest.mark.exhaustive
def test_a_read_only_console_downloads_too(declined: Browser) -> None:
    declined.session.read_only = True
    assert "Download these orders" in declined.page("/orders")
    assert declined.client.get("/export/orders").text == typed(declined)


@pytest.mark.exhaustive
def test_what_is_wrong_is_a_page_and_no_file(declined: Browser) -> None:
    assert "There is no such state." in declined.page("/export/orders?state=Odd", 400)
    assert "is not a cursor" in declined.page("/export/orders?after=x", 400)


def lines_of(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.exhaustive
def test_a_download_that_is_cut_says_so_in_its_last_line_and_can_go_on(
    declined: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundsman_console.faces.web.pages.export.MOST", 2)
    *orders, last = lines_of(declined.client.get("/export/orders").text)
    assert len(orders) == 2
    end = last["export"]
    assert isinstance(end, dict)
    assert (end["whole"], end["exported"], end["stopped"]) == (False, 2, None)
    assert "2 tasks written" in end["sentence"]
    assert "More tasks may exist. Continue with: roundsman export" in end["sentence"]
    [rest] = lines_of(declined.client.get(f"/export/orders?after={end['cursor']}").text)
    [rest_typed] = lines_of(typed(declined, "--after", end["cursor"]))
    assert rest == rest_typed
    assert {one["orderId"] for one in (*orders, rest)} == {"ord-1", "ord-2", "ord-3"}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(TryAgain("throttled"), "throttled", marks=pytest.mark.exhaustive),
        pytest.param(
            CallRefused("listing done#0: AccessDenied", "AccessDenied"),
            "listing done#0",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_a_download_that_aws_stops_says_so_in_its_last_line(
    declined: Browser, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    monkeypatch.setattr(exporting, "AT_ONCE", 1)
    pages: Iterator[int] = iter(range(10))

    def stops(*arguments: object, **options: object) -> object:
        if next(pages) == 2:
            raise error
        return find(*arguments, **options)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(exporting, "find", stops)
    *orders, last = lines_of(declined.client.get("/export/orders").text)
    assert len(orders) == 2
    assert isinstance(last["export"], dict)
    assert words in str(last["export"]["stopped"])


def test_orders_that_cannot_be_read_are_in_the_last_line() -> None:
    [end] = lines_of(end_line(exporting.Exported(3, 4, 1, None, True)))
    assert end["export"] == {
        "exported": 3,
        "lookedAt": 4,
        "unreadable": 1,
        "cursor": None,
        "whole": True,
        "stopped": None,
        "sentence": "3 tasks written, 4 examined. 1 could not be read.",
    }
