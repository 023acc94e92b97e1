"""The strip on top of each page: it never says that a page is live when it is not."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from roundsman_console.faces.web import application
from roundsman_console.facts.finding.glance import Glance
from roundsman_console.inspector import Inspector
from tests.browser.conftest import FAST
from tests.browser.desk import NARROW, Desk, served
from tests.moto.orders import order

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

EXPIRED = "The AWS credentials have expired. Sign in again."
FILTER = "getComputedStyle(document.querySelector('main h1')).filter"
WITHIN = 4_900  # ms; a console that has ended shows within 5 s


def expired(*_: object, **__: object) -> None:
    raise ClientError({"Error": {"Code": "ExpiredToken"}}, "GetItem")


def an_order(desk: Desk, name: str) -> None:
    with desk.still() as operator:
        operator.world.submit(order(name))
        operator.world.run()


def state(page: "Page") -> str:
    return page.locator("#strip").get_attribute("data-state") or ""


def wait_for_state(desk: Desk, page: "Page", wanted: str) -> None:
    desk.wait_for(f"{wanted}", lambda: state(page) == wanted)


@contextmanager
def credentials_expire(desk: Desk, *reads: str, of: type = Inspector) -> Iterator[None]:
    """Some methods of the inspector, or of another class, cannot be asked now."""
    with pytest.MonkeyPatch.context() as patch:
        with desk.still():
            for name in reads:
                patch.setattr(of, name, expired)
        yield
        with desk.still():
            patch.undo()


def test_a_reading_that_fails_keeps_the_page_and_goes_on_by_itself(desk: Desk) -> None:
    an_order(desk, "ord-1")
    page = desk.tab()
    page.goto("/orders")
    wait_for_state(desk, page, "live")
    page.evaluate("window.kept = true")
    with credentials_expire(desk, "tasks"):
        wait_for_state(desk, page, "stale")
        strip = page.locator("#strip").inner_text()
        assert "STALE" in strip
        assert EXPIRED in strip
        assert page.get_by_role("link", name="Try again", exact=True).is_visible()
        assert page.get_by_role("link", name="ord-1").is_visible(), "what was read last is kept"
        assert page.evaluate(FILTER) == "grayscale(1)"
        an_order(desk, "ord-2")
        assert page.locator("main").inner_text().count("ord-2") == 0
    page.locator("[data-news] button").click()
    page.get_by_role("link", name="ord-2").wait_for()
    wait_for_state(desk, page, "live")
    assert page.evaluate(FILTER) == "none"
    assert page.evaluate("window.kept"), "the page was not loaded again"


def test_a_page_that_cannot_be_read_when_it_is_opened_heals_by_itself(desk: Desk) -> None:
    an_order(desk, "ord-1")
    page = desk.tab()
    with credentials_expire(desk, "tasks"):
        page.goto("/orders")
        assert "Cannot be read" in page.locator("h1").inner_text()
        wait_for_state(desk, page, "stale")
        assert EXPIRED in page.locator("#strip").inner_text()
        page.evaluate("window.kept = true")
    page.get_by_role("link", name="ord-1").wait_for()
    assert page.evaluate("window.kept")
    assert page.title().startswith("Orders")


def test_a_part_that_cannot_be_read_keeps_what_it_had_and_the_rest_goes_on(desk: Desk) -> None:
    with desk.still() as operator:
        operator.world.supervise()
    an_order(desk, "ord-1")
    page = desk.tab()
    page.goto("/")
    wait_for_state(desk, page, "live")
    completed = page.locator(".tiles li", has_text="Completed").locator("strong")
    assert completed.inner_text() == "1"
    with credentials_expire(desk, "look_at_orders", of=Glance):
        wait_for_state(desk, page, "partly")
        assert "NOT WHOLE" in page.locator("#strip").inner_text()
        assert page.locator(".causes").inner_text().count(EXPIRED) == 1
        assert completed.inner_text() == "1", "the tiles stay"
        assert "old" in (
            page.locator("section[aria-labelledby=states]").get_attribute("class") or ""
        )
        page.get_by_text("More may need attention: not everything was read.").wait_for()
        assert not page.get_by_text("Nothing needs attention").count()
        with desk.still() as operator:
            assert operator.asks("hold", "mail", "--for", "30m").exit_code == 0
        page.get_by_text("mail is held by ops").wait_for()
        an_order(desk, "ord-2")
    desk.wait_for("the tiles", lambda: completed.inner_text() != "1")
    wait_for_state(desk, page, "live")
    assert not page.locator("section.old").count()


@pytest.mark.parametrize("address", ["/orders", "/export"])
def test_a_console_that_ended_shows_within_five_seconds_on_every_page(
    desk: Desk, patch: pytest.MonkeyPatch, address: str
) -> None:
    page = desk.browser.new_context().new_page()
    desk.contexts.append(page.context)
    with pytest.MonkeyPatch.context() as own, served(desk.server.inspector, own) as server:
        page.clock.install()
        page.goto(server.session.link_to())
        page.wait_for_url(f"{server.session.address}/")
        page.goto(f"{server.session.address}{address}")
        page.clock.run_for(WITHIN)
        desk.wait_for("the page", lambda: state(page) == "live")
    page.clock.run_for(WITHIN)
    wait_for_state(desk, page, "stale")
    assert "The console does not answer." in page.locator("#strip").inner_text()


def test_a_page_that_is_not_live_is_true_again_when_the_console_answers(desk: Desk) -> None:
    page = desk.tab()
    page.goto("/export")
    page.route("**/alive", lambda route: route.abort())
    wait_for_state(desk, page, "stale")
    page.unroute("**/alive")
    wait_for_state(desk, page, "live")


def test_a_page_of_a_console_that_was_started_again_says_so(desk: Desk) -> None:
    page = desk.tab()
    page.goto("/orders")
    wait_for_state(desk, page, "live")
    page.context.clear_cookies()
    wait_for_state(desk, page, "stale")
    assert "it was started again" in page.locator("#strip").inner_text()


def test_nine_visible_tabs_are_live_at_the_same_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The pages are read one at a time here: nine that are always read again leave no turn to a tab.
    monkeypatch.setattr(application, "LIVE_SECONDS", {**FAST, "/orders": 2.0})
    first = desk.tab()
    pages = [first, *(first.context.new_page() for _ in range(8))]
    for page in pages:
        page.goto("/orders")
    an_order(desk, "ord-9")
    for page in pages:
        page.get_by_role("link", name="ord-9").wait_for()


def test_a_click_tries_again_at_once(desk: Desk) -> None:
    page = desk.tab()
    page.goto("/orders")
    page.evaluate("document.querySelector('main').dataset.every = '3600'")
    page.evaluate("planReading()")
    readings = desk.server.readings
    before = readings.count
    page.get_by_role("link", name="Read again").click()
    desk.wait_for("the reading", lambda: readings.count > before)
    assert page.url.endswith("/orders")


@dataclass
class OtherSite:
    """Another server on this machine, with a link."""

    link: str = ""
    port: int = 0
    cookies: list[str] = field(default_factory=list)


@contextmanager
def other_site() -> Iterator[OtherSite]:
    site = OtherSite()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.cookies.append(self.headers.get("Cookie", ""))
            body = f'<!doctype html><title>mail</title><a href="{site.link}">look</a>'.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_link_on_another_site_leads_to_its_page(desk: Desk, scripts: bool) -> None:
    an_order(desk, "ord-1")
    desk.tab()  # it opens the console
    page = desk.tab(scripts=scripts)
    with other_site() as site:
        site.link = f"{desk.server.session.address}/orders/ord-1"
        page.goto(f"http://127.0.0.1:{site.port}/")
        page.get_by_role("link", name="look").click()
        if not scripts:
            page.get_by_role("button", name="Continue").click()
        page.locator("h1 .state-completed").wait_for()
        assert page.url == site.link


def test_no_other_program_of_the_machine_gets_the_cookie(desk: Desk) -> None:
    page = desk.tab()
    page.goto("/orders")
    assert page.context.cookies(), "the console's"
    with other_site() as site:
        for host in ("127.0.0.1", "localhost", "other.localhost"):
            page.goto(f"http://{host}:{site.port}/")
        assert {*site.cookies} == {""}


def test_the_strip_says_where_the_person_is_on_a_narrow_window_too(desk: Desk) -> None:
    page = desk.tab(width=NARROW)
    page.goto("/orders")
    where = page.locator("#strip .where").inner_text()
    for words in ("roundsman", "1234-5678-9012", "us-east-1", "user/moto"):
        assert words in where
