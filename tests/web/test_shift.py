"""The page of the shift: a form without a script, a table for each part, and what is not known."""

import re
from urllib.parse import quote

import pytest

from roundsman.errors import UnreadableRecord
from roundsman.model.instants import second
from roundsman_console.facts.shift import reading
from tests.console.bulk_stories import NO_MAIL
from tests.moto.orders import order
from tests.web.browsers import Browser, text_of
from tests.web.test_pages import HOSTILE


@pytest.fixture
def touched(browser: Browser) -> Browser:
    """An order that failed, was resubmitted and failed again; and a hold."""
    operator = browser.operator
    operator.world.faults(NO_MAIL)
    operator.world.submit(order("ord-1"))
    operator.world.run()
    operator.asks("resubmit", "ord-1")
    operator.world.run()
    operator.asks("hold", "payment", "--for", "10m")
    return browser


def test_the_page_has_what_happened_and_leads_to_each_of_it(touched: Browser) -> None:
    html = touched.html("/shift?since=1h")
    page, group = text_of(html), touched.operator.world.task("ord-1").failure
    for words in (
        "Needs attention now 3",
        "Failures 1",
        "Commands on single orders 1",
        "held payment",
    ):
        assert words in page
    assert "payment is held by ops" in page
    assert f'<a href="/groups/{group}">{group}</a>' in html
    assert '<a href="/orders/ord-1">ord-1</a>' in html
    assert '<a href="/agents">Open the agents</a>' in html
    assert '<a href="/doctor">Open the doctor</a>' in html
    assert f'<a href="/groups/{group}">Open the group</a>' in html
    assert "What is not known The stack keeps no list of what happened, so" in page


def test_a_release_here_has_its_reason_and_the_hold_that_it_ended(browser: Browser) -> None:
    browser.carries_out("hold", agent="mail", reason="maintenance", seconds="30m")
    browser.work("release", agent="mail", reason="it is done")
    page = browser.page("/shift?since=1h")
    assert "held mail for 30 min: maintenance" in page
    assert "released mail: it is done" in page
    assert "not kept" not in page.partition("Holds and releases")[2].partition("Commands on")[0]


def test_times_are_instants_that_paper_can_keep(touched: Browser) -> None:
    world = touched.operator.world
    page = touched.page("/shift?since=1h")
    now = second(world.clock()).replace("T", " ").replace("Z", " UTC")
    assert f"to {now} ." in page
    assert not re.search(r"\d (s|min) ago", page)


def test_the_time_is_chosen_by_a_form_and_is_12_hours_if_nobody_chooses(touched: Browser) -> None:
    assert 'name="since" value="12h"' in touched.html("/shift")
    html = touched.html("/shift?since=1s")
    assert 'name="since" value="1s"' in html
    assert "No bulk run was started." in text_of(html)


def test_a_time_that_cannot_be_meant_is_said_beside_the_field_and_kept(touched: Browser) -> None:
    html = touched.html(f"/shift?since={quote(HOSTILE)}")
    assert "<script>alert" not in html
    assert "is not a duration" in text_of(html) or "is not an instant" in text_of(html)
    assert 'aria-describedby="wrong-since"' in html
    assert "Needs attention now" not in html


def test_a_reason_cannot_become_markup(browser: Browser) -> None:
    browser.operator.types("hold", "payment", "--for", "10m", "--yes", "--reason", HOSTILE[:60])
    html = browser.html("/shift")
    assert "<script>alert" not in html
    assert "alert(1)" in text_of(html)


def test_a_part_that_is_not_read_is_said_and_nothing_is_said_to_be_well(
    touched: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise UnreadableRecord("bulk", "At", "is no number")

    monkeypatch.setattr(reading, "_runs", fails)
    page = touched.page("/shift")
    assert "Not read: Bulk runs: " in page
    assert "No bulk run was started." not in page
    assert "Failures 1" in page
