"""A night in a browser that runs no scripts, and what a browser with scripts reads aloud."""

import re
from typing import TYPE_CHECKING

import pytest

from roundsman.model.instants import SECOND, iso
from roundsman.model.states import TaskState
from roundsman_console.faces.web.readings import tried
from tests.browser.desk import Desk
from tests.browser.stories import DECLINES
from tests.browser.test_large_orders import GROUND
from tests.browser.test_live import goes_by
from tests.moto.orders import order

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

NAMES = [f"ord-{place}" for place in range(2001, 2005)]
WATCH_WHAT_IS_READ_ALOUD = """() => {
  window.aloud = [];
  new MutationObserver((changes) => {
    for (const {target, addedNodes} of changes) {
      const element = target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement;
      const live = element?.closest("[role=status], [role=alert], [role=log], [aria-live]");
      if (live && live.ariaLive !== "off") window.aloud.push(live.textContent);
      for (const one of addedNodes) {
        if (one.matches?.("[role=alert]") || one.querySelector?.("[role=alert]")) {
          window.aloud.push(one.textContent);
        }
      }
    }
  }).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


def declined(desk: Desk) -> str:
    """Orders that payment has declined by mistake; the id of their failure group."""
    tried._TRIED.clear()  # the group of another test has the same id
    with desk.still() as operator:
        operator.world.faults(DECLINES)
        operator.world.submit(*map(order, NAMES))
        operator.world.pass_time(180)
        return str(operator.world.task(NAMES[0]).failure)


def presses(page: "Page", *buttons: str, reason: str = "") -> None:
    """Press buttons one after the other, the first one of a form with this reason.

    A button may say after its name how many orders it is about.
    """
    for place, button in enumerate(buttons):
        found = page.get_by_role("button", name=re.compile(rf"^{button}( \d+ orders?)?…?$"))
        if reason and place == 0:
            page.locator("form", has=found).get_by_label("Reason").fill(reason)
        found.click()


def test_a_night_from_the_alert_to_the_last_order_without_scripts(desk: Desk) -> None:
    group = declined(desk)
    desk.tab()  # it opens the console
    page = desk.tab(scripts=False)
    page.goto("/")
    begun = iso(desk.operator.world.clock.now)[11:19]
    line = page.locator("#strip .alive").inner_text()
    assert f"at {begun} UTC. This page does not update by itself" in line
    assert "Live" not in line
    page.get_by_role("link", name="4 orders undone (order_fulfilment, charge_card)").click()
    page.wait_for_url(f"**/groups/{group}")
    page.get_by_text("The numbers as a table").click()
    assert page.get_by_role("table", name="Orders of the last").is_visible()
    presses(page, "Hold payment", "Hold now", reason="declines every card")
    page.get_by_text("Done: payment is held for 30 min.").wait_for()
    with desk.still() as operator:
        operator.world.faults()
        operator.world.pass_time(60)
    presses(page, "Release payment", "Release now", reason="the rule is right")
    page.get_by_text("Done: payment is released, and takes work again.").wait_for()
    presses(page, r"Try ord-\S+", reason="the rule is right")
    page.get_by_text("is tried: this page follows it.").wait_for()
    with desk.still() as operator:
        operator.world.run()
    page.get_by_role("link", name="Read again", exact=True).click()
    assert f"{NAMES[0]} passed, and is Completed." in page.locator("main").inner_text()
    presses(page, "Resubmit 3 orders", "Resubmit all now", reason="declined by mistake")
    with desk.still() as operator:
        operator.world.pass_time(600)
    page.get_by_role("link", name="Follow b-").click()
    assert "3 of 3 orders with a result" in page.locator("main").inner_text()
    states = {desk.operator.world.task(name).state for name in NAMES}
    assert states == {TaskState.COMPLETED}
    page.get_by_role("link", name="Shift").click()
    assert page.get_by_role("table").count()


def test_what_is_read_aloud_changes_only_when_something_happens(desk: Desk) -> None:
    """A page that is read again and again, and whose times are counted on, is silent."""
    group = declined(desk)
    with desk.still() as operator:
        operator.world.faults()
        passed_at = operator.world.clock.now
    page = desk.tab()
    silent = {"sentence": "The supervisor does not run.", "lastPassAt": iso(passed_at)}
    said = {"answeredAfter": 0, "why": "", "nextAfter": 1000, "notes": [silent]}
    page.route("**/alive", lambda route: route.fulfill(json=said))
    page.goto(f"/groups/{group}")
    with page.expect_navigation():
        presses(page, r"Try ord-\S+", reason="the rule is right")
    page.get_by_text("is tried: this page follows it.").wait_for()
    page.get_by_text("Last pass:").wait_for()
    page.get_by_text("Live", exact=True).wait_for()
    reason = page.get_by_label("Reason for the hold")
    reason.fill("half a sen")
    page.evaluate(WATCH_WHAT_IS_READ_ALOUD)
    text, begun = page.locator("main").inner_text(), desk.operator.world.clock.now
    for later in (3, 6, 9, 70):
        goes_by(desk, page, begun + later * SECOND)
    assert page.locator("main").inner_text() != text, "times were counted on"
    assert page.evaluate("window.aloud") == []
    assert reason.evaluate("one => one === document.activeElement"), "the focus stays"
    assert reason.input_value() == "half a sen"
    with desk.still() as operator:
        operator.world.faults(DECLINES)
        operator.world.submit(order("ord-2009"))
        operator.world.run()
    page.get_by_role("heading", name="4 orders undone").wait_for()
    assert reason.evaluate("one => one === document.activeElement"), "also when rows have come"


def test_the_shift_on_paper_has_nothing_to_press(desk: Desk) -> None:
    declined(desk)
    page = desk.tab(dark=True)
    page.goto("/shift")
    pressed = [page.locator(one) for one in ("header nav", "form.filters", ".times", "#again")]
    assert all(one.first.is_visible() for one in pressed)
    page.emulate_media(media="print")
    for one in (*pressed, page.locator("button"), page.locator("input")):
        assert not any(found.is_visible() for found in one.all()), one
    assert page.get_by_role("table").first.is_visible()
    assert page.evaluate(GROUND) == "rgb(255, 255, 255)"
    assert "roundsman" in page.locator("#strip").inner_text(), "paper says of which stack it is"
