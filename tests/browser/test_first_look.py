"""`roundsman demo` in the browser: its three sentences, each done by the visitor."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import pytest
import uvicorn

from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.application import application
from roundsman_console.faces.web.server import listening
from roundsman_testing.first_look.serving import WHERE, FirstLook, open_shop
from tests.browser.desk import NARROW, PATIENCE, WIDE
from tests.browser.test_operating import find_no_fault

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@dataclass(frozen=True)
class Visit:
    """A visitor before the console of the first look."""

    look: FirstLook
    page: "Page"

    def guide(self) -> str:
        """The sentences on top of the page."""
        text: str = self.page.get_by_role("region", name="What to do").inner_text()
        return text

    def waits_for(self, step: int, *, done: bool) -> None:
        """Wait until the page says so of a step, from the first."""
        class_ = "done" if done else "now"
        self.page.locator(f".guide li:nth-child({step}).{class_}").wait_for()


@pytest.fixture
def visit(chromium: "Browser", session_without_real_aws: None) -> Iterator[Visit]:
    """A visitor who has opened the link."""
    with open_shop(lambda _: None) as look, listening(0) as listener:
        session = BrowserSession(listener.getsockname()[1])
        config = uvicorn.Config(
            application(look.inspector, session, WHERE, look.guide),
            log_config=None,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        context = chromium.new_context(viewport={"width": WIDE, "height": 800})
        context.set_default_timeout(PATIENCE * 1000)
        try:
            page = context.new_page()
            page.goto(session.link_to())
            page.wait_for_url(f"{session.address}/")
            yield Visit(look, page)
        finally:
            context.close()
            server.should_exit = True
            thread.join()


def test_three_sentences_lead_through_hold_repair_and_resubmit(visit: Visit) -> None:
    page = visit.page
    visit.waits_for(1, done=False)
    find_no_fault(page)
    failed = visit.look.shop.failed()
    assert len(failed) > 5

    page.get_by_role("link", name="Show the incident").click()
    page.wait_for_url("**/groups/f-*")
    stop = page.get_by_role("region", name="1. Stop")
    stop.get_by_label("Reason").fill("it refuses every card")
    stop.get_by_role("button", name="Hold payment").click()
    page.get_by_role("button", name="Hold now").click()
    page.wait_for_url("**/groups/f-*")
    visit.waits_for(1, done=True)

    page.get_by_role("button", name="Repair the service").click()
    page.wait_for_url("**/groups/f-*#go-on")
    visit.waits_for(2, done=True)

    go_on = page.get_by_role("region", name="3. Let go on")
    go_on.get_by_label("Reason for the release").fill("the service is repaired")
    go_on.get_by_role("button", name="Release payment…", exact=True).click()
    page.get_by_role("button", name="Release now").click()
    page.wait_for_url("**/groups/f-*")
    go_on.get_by_label("Reason for the resubmission").fill("the service is repaired")
    go_on.get_by_role("button", name="Resubmit").click()
    page.get_by_role("button", name="Resubmit all now").click()
    page.wait_for_url("**/groups/f-*")
    visit.waits_for(3, done=True)
    assert not visit.look.shop.failed()
    assert sorted(visit.look.shop.completed(failed)) == sorted(failed)
    assert "are Completed, with each effect once" in visit.guide()
    page.get_by_text(re.compile("No order is in the group now|Empty since")).wait_for()
    find_no_fault(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_sentences_fit_a_narrow_window(visit: Visit, scheme: Literal["light", "dark"]) -> None:
    visit.page.set_viewport_size({"width": NARROW, "height": 640})
    visit.page.emulate_media(color_scheme=scheme)
    visit.page.get_by_role("link", name="Show the incident").wait_for()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= NARROW
    find_no_fault(visit.page)


def test_the_first_step_is_done_when_payment_is_held_and_not_before(visit: Visit) -> None:
    """The sentences follow the data, whoever changes them."""
    visit.waits_for(1, done=False)
    with visit.look.shop.aws.lock:
        visit.look.shop.world.hold("mail", timedelta(minutes=5))
    visit.page.get_by_role("link", name="Agents").click()
    visit.page.get_by_role("row", name="mail").get_by_text("held").first.wait_for()
    visit.waits_for(1, done=False)
    with visit.look.shop.aws.lock:
        visit.look.shop.world.hold("payment", timedelta(minutes=5))
    visit.waits_for(1, done=True)
    visit.waits_for(2, done=False)
