"""Live pages: they change in place as the stack does, and a hidden tab reads nothing."""

from typing import TYPE_CHECKING

import pytest

from roundsman.model.instants import MINUTE, SECOND, iso
from roundsman_console.faces.web.times import HOUR, words
from tests.browser.desk import MIDDLE, NARROW, WIDE, Desk
from tests.browser.stories import NO_REFUND
from tests.console.operators import DECLINED
from tests.moto.orders import order

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

LATER: dict[str, object] = {"operation": "POST /charges", "status": 503, "retryAfter": 600}
HIDE = """hidden => {
  Object.defineProperty(document, "hidden", {get: () => hidden, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


WATCH_SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      // The words of a time, and of a sentence behind the time in it, give way; that is no jump.
      const gives_way = (parent) => parent?.closest("time") || parent?.querySelector("time");
      const moved = entry.sources.filter((one) => !gives_way(one.node?.parentElement));
      if (!moved.length) continue;
      const where = moved.map((one) => one.node?.parentElement?.outerHTML.slice(0, 80));
      window.shifts.push(`${entry.value}: ${where}`);
    }
  }).observe({type: "layout-shift"});
}"""
# Every box but those of times, which are as wide as their words, and of what the drawings of times
# show: their axes go on with the time. Read after the next frames, so that the browser has reported
# what moved.
BOXES = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
  const all = [...document.querySelectorAll("body *")];
  done(all.filter((one) => !one.closest("time, .gantt > *, .course > *")).map((one) => {
    const {x, y, width, height} = one.getBoundingClientRect();
    return `${one.tagName} ${one.className?.baseVal ?? one.className} ${x} ${y} ${width} ${height}`;
  }));
})))"""
LATER_ON = [  # the words of a time have another length after each of these
    9 * SECOND,
    59 * SECOND,
    100 * SECOND,
    121 * SECOND,
    6 * MINUTE,
    9 * MINUTE,
]


def goes_by(desk: Desk, page: "Page", instant: int) -> None:
    """It is this instant for the stack and the browser, and the page was read again since."""
    with desk.still() as operator:
        operator.world.clock.now = instant
    page.clock.set_fixed_time(instant / 1000)
    shown = page.locator("#read-at")
    desk.wait_for("the page", lambda: shown.get_attribute("datetime") == iso(instant))


def waiting_order(desk: Desk) -> None:
    with desk.still() as operator:
        operator.world.faults({**LATER, "times": 1})
        operator.world.submit(order("ord-1"))
        operator.world.run()


def test_a_page_follows_its_order_without_a_reload_and_nothing_jumps(desk: Desk) -> None:
    waiting_order(desk)
    page = desk.tab()
    page.set_viewport_size({"width": 1280, "height": 400})
    page.goto("/orders/ord-1")
    page.evaluate("window.kept = true")
    page.get_by_text("Show the input of the order").click()
    page.locator("summary").last.focus()
    page.evaluate("window.scrollTo(0, 300)")
    page.evaluate("window.button = document.querySelector('.buttons a')")
    before = page.evaluate("window.scrollY")
    assert "Retry" in page.locator("h1").inner_text()
    with desk.still() as operator:
        assert operator.asks("extend", "ord-1", "--by", "10m").exit_code == 0
    page.get_by_role("cell", name="extend", exact=False).first.wait_for()
    assert page.evaluate("window.scrollY") == before > 0
    assert page.evaluate("window.kept"), "the page was not loaded again"
    assert page.evaluate("window.button.isConnected"), "what did not change is the same element"
    assert page.locator("details[open]").count() >= 1, "what was opened stays open"
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    with desk.still() as operator:
        assert operator.asks("run", "ord-1").exit_code == 0
        operator.world.run()
    page.locator("h1 .state-completed").wait_for()
    assert page.evaluate("window.kept")


@pytest.mark.parametrize("width", [NARROW, MIDDLE, WIDE])
@pytest.mark.parametrize("address", ["/", "/orders", "/orders/ord-1", "/agents"])
def test_nothing_moves_while_a_page_is_read_again(desk: Desk, address: str, width: int) -> None:
    waiting_order(desk)
    with desk.still() as operator:
        assert operator.asks("hold", "mail", "--for", "30m").exit_code == 0
    page = desk.tab(width=width)
    page.goto(address)
    page.locator(".scripts .copy, .scripts main").first.wait_for()
    page.get_by_text("Live", exact=True).wait_for()  # it takes room, so it must be there before
    begun = desk.operator.world.clock.now
    before = page.evaluate(BOXES)
    page.evaluate(WATCH_SHIFTS)
    text = page.locator("main").inner_text()
    for later in LATER_ON:
        goes_by(desk, page, begun + later)
        assert page.evaluate(BOXES) == before, later
    assert page.locator("main").inner_text() != text, "the page was read again, and has changed"
    assert page.evaluate("window.shifts") == []


def test_the_script_has_the_words_of_the_server_for_every_time(desk: Desk) -> None:
    page = desk.tab()
    page.goto("/agents")
    for kind in ("ago", "until", "since", "left", "by"):
        for distance in (
            0,
            1,
            999,
            SECOND,
            119_999,
            2 * MINUTE,
            HOUR,
            HOUR + MINUTE,
            9 * HOUR + 59 * MINUTE,
            10 * HOUR + MINUTE,
            47 * HOUR,
            49 * HOUR,
            90 * 24 * HOUR,
        ):
            for away in (distance, -distance):
                printed = page.evaluate("([kind, away]) => relativeWords(kind, away)", [kind, away])
                assert printed == words(kind, away), (kind, away)


def test_times_are_those_of_the_console_though_the_clock_of_the_browser_is_wrong(
    desk: Desk,
) -> None:
    page = desk.tab()
    for wrong in (-2 * HOUR, 2 * HOUR):
        page.clock.set_fixed_time((desk.operator.world.clock.now + wrong) / 1000)  # in seconds
        page.goto("/agents")
        assert page.locator("#read-at").inner_text() == "just now"


def test_an_id_is_copied_and_its_button_stays_as_wide(desk: Desk) -> None:
    waiting_order(desk)
    page = desk.tab()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/orders/ord-1")
    button = page.get_by_role("button", name="Copy ord-1")
    before = button.bounding_box()
    button.click()
    page.get_by_text("Copied").wait_for()
    assert button.bounding_box() == before
    assert page.evaluate("navigator.clipboard.readText()") == "ord-1"


def test_the_tab_says_what_its_page_is_about_and_follows_it(desk: Desk) -> None:
    waiting_order(desk)
    with desk.still() as operator:
        operator.world.supervise()
    page, overview = desk.tab(), desk.tab()
    page.goto("/orders/ord-1")
    overview.goto("/")
    assert page.title().startswith("ord-1 Retry · ")
    assert overview.title().startswith("Overview · ")
    with desk.still() as operator:
        assert operator.asks("run", "ord-1").exit_code == 0
        operator.world.run()
        assert operator.asks("hold", "mail", "--for", "30m").exit_code == 0
    desk.wait_for("the order", lambda: page.title().startswith("ord-1 Completed · "))
    desk.wait_for("the overview", lambda: overview.title().startswith("(1) Overview · "))


def test_a_page_of_an_order_that_has_ended_is_read_once_and_says_so(desk: Desk) -> None:
    with desk.still() as operator:
        operator.world.submit(order("ord-1"))
        operator.world.run()
    page = desk.tab()
    page.goto("/orders/ord-1")
    page.get_by_text("Not read again, because the order has ended").wait_for()
    assert page.locator("main[data-live]").count() == 0


def test_a_page_of_an_archived_order_follows_what_a_person_does(desk: Desk) -> None:
    with desk.still() as operator:
        operator.world.faults(NO_REFUND)
        operator.world.submit({**order("ord-1"), **DECLINED})
        operator.world.run()
    page = desk.tab()
    page.goto("/orders/ord-1")
    page.locator("h1 .state-archived").wait_for()
    page.get_by_text("Live", exact=True).wait_for()
    with desk.still() as operator:
        operator.world.faults()
        assert operator.asks("resubmit", "ord-1", "--reason", "refunds work again").exit_code == 0
        operator.world.run()
    page.locator("h1 .state-undone").wait_for()
    page.get_by_text("Not read again, because the order has ended").wait_for()


def test_a_hidden_tab_reads_nothing_and_a_shown_one_reads_again(desk: Desk) -> None:
    page, readings = desk.tab(), desk.server.readings
    page.goto("/orders")
    begun = readings.count
    desk.wait_for("another reading", lambda: readings.count > begun)
    page.evaluate(HIDE, True)
    other = desk.tab()
    other.goto("/orders/none")  # it is read once; then what was under way has ended
    read = readings.count
    with desk.still() as operator:
        operator.world.submit(order("ord-7"))
        operator.world.run()
    other.goto("/orders/none")
    assert readings.count == read + 1, "only the other tab has read"
    assert page.locator("main").inner_text().count("ord-7") == 0
    page.evaluate(HIDE, False)
    page.get_by_role("link", name="ord-7").wait_for()


def test_what_somebody_types_stays_while_the_page_is_read_again(desk: Desk) -> None:
    page = desk.tab()
    page.goto("/orders")
    page.get_by_text("More filters").click()
    page.get_by_label("Tenant").fill("half a na")
    with desk.still() as operator:
        operator.world.submit(order("ord-8"))
        operator.world.run()
    page.get_by_role("link", name="ord-8").wait_for()
    assert page.get_by_label("Tenant").input_value() == "half a na"
