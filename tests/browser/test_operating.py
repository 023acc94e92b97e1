"""What operators do in the browser: an incident from its alert to its last order, and repairs."""

import json
from typing import TYPE_CHECKING

import pytest

from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from tests.browser.desk import NARROW, Desk
from tests.browser.stories import DECLINES
from tests.browser.test_reading import faults
from tests.moto.orders import ALL_EFFECTS, order
from tools.engines.chromium import axe_script

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

DECLINED_BY_MISTAKE = ["ord-2001", "ord-2002", "ord-2003"]
LATER: dict[str, object] = {"operation": "POST /charges", "status": 503, "retryAfter": 600}


def show_it(page: "Page") -> str:
    """Ask what the form would do; the sentence that says so."""
    with page.expect_navigation():
        page.get_by_role("button", name="Show what it would do").click()
    sentence: str = page.locator(".lead").inner_text()
    return sentence


def do_it(page: "Page", button: str) -> str:
    """Carry out what was shown; the sentence that says what was done."""
    with page.expect_navigation():
        page.get_by_role("button", name=button).click()
    page.get_by_role("link", name="Back to").wait_for()
    sentence: str = page.locator(".lead").inner_text()
    return sentence


def find_no_fault(page: "Page") -> None:
    """No fault of accessibility is on the page."""
    page.evaluate(axe_script().read_text(encoding="utf-8"))
    assert faults(page) == [], page.url


def test_a_night_from_the_alert_to_the_last_order(desk: Desk) -> None:
    """docs/runbook/night.md in the browser: payment declines every card by mistake."""
    world = desk.operator.world
    with desk.still():
        world.faults(DECLINES)
        world.submit(*map(order, DECLINED_BY_MISTAKE))
        world.pass_time(180)  # the supervisor counts, and alerts
    page = desk.tab()
    look(page)
    hold(page)
    late = send_an_order(desk, page)
    with desk.still():
        world.faults()
    release(desk, page, late)
    for name in DECLINED_BY_MISTAKE:
        resubmit(desk, page, name)
    page.get_by_role("link", name="Overview").click()
    page.get_by_text("Nothing needs attention: no failure group is open").wait_for()
    assert world.effects(late) == ALL_EFFECTS
    for name in DECLINED_BY_MISTAKE:
        again = {**ALL_EFFECTS, "inventory perform": 2, "inventory undo": 1}
        assert world.effects(name) == again


def look(page: "Page") -> None:
    """From the alert to the group, and to one of its orders."""
    page.goto("/")
    page.get_by_role("link", name="3 orders undone (order_fulfilment, charge_card)").click()
    page.wait_for_url("**/groups/f-*")
    assert "CardDeclined: POST answered 402" in page.locator("main").inner_text()
    page.get_by_role("link", name="ord-2001").first.click()
    page.wait_for_url("**/orders/ord-2001")
    text = page.locator("main").inner_text()
    assert "charge_card: failed for good: CardDeclined: POST answered 402" in text
    assert "undone: reserve_stock, charge_card" in text


def hold(page: "Page") -> None:
    page.get_by_role("link", name="Agents").click()
    page.get_by_role("row", name="payment").get_by_role("link", name="Hold").click()
    page.get_by_label("Reason").fill("it declines every card")
    page.get_by_label("For how long").fill("30m")
    assert show_it(page).startswith("payment would make no new call for 30 min:")
    assert do_it(page, "Hold now") == "Done: payment is held for 30 min."
    page.get_by_role("link", name="Back to payment").click()
    assert "it declines every card" in page.locator("table").first.inner_text()


def send_an_order(desk: Desk, page: "Page") -> str:
    """Another order comes, and waits for the held agent."""
    late = "ord-2004"
    page.get_by_role("link", name="Orders", exact=True).click()
    page.get_by_role("link", name="Send an order").click()
    page.get_by_label("The event, as JSON").fill(json.dumps(order(late)))
    assert show_it(page) == "order ord-2004: it would take effect, it would be accepted."
    do_it(page, "Send an order now")
    with desk.still() as operator:
        operator.world.run()
    page.get_by_role("link", name="Back to ord-2004").click()
    text = page.locator("main").inner_text()
    assert "ord-2004 waits for payment, which is held by" in text
    assert "no attempt is counted" in text
    return late


def release(desk: Desk, page: "Page", late: str) -> None:
    """The agent takes work again, and the page of the order that waited follows it."""
    follower = desk.tab()
    follower.goto(f"/orders/{late}")
    page.get_by_role("link", name="Agents").click()
    page.get_by_role("link", name="Release").click()
    page.get_by_label("Reason").fill("the acquirer put its rule right")
    show_it(page)
    page.get_by_role("button", name="Release now").click()
    page.get_by_text("1 task that waits: woken from").wait_for()
    assert page.locator(".lead").inner_text() == "Done: payment is released, and takes work again."
    with desk.still() as operator:
        operator.world.pass_time(360)
    follower.locator("h1 .state-completed").wait_for()


def resubmit(desk: Desk, page: "Page", name: str) -> None:
    page.get_by_label("Order id").fill(name)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/orders/{name}")
    page.get_by_role("link", name="Resubmit").click()
    page.get_by_label("Reason").fill("declined by mistake")
    page.get_by_label("Begin again from the start").uncheck()
    assert "refused, nothing was sent" in show_it(page)
    page.get_by_label("Begin again from the start").check()
    assert show_it(page).startswith(f"resubmit of {name} is possible; nothing was sent.")
    assert "a new key" in page.locator("table").inner_text()
    do_it(page, "Resubmit now")
    with desk.still() as operator:
        operator.world.run()
    page.get_by_role("link", name=f"Back to {name}").click()
    page.locator("h1 .state-completed").wait_for()
    assert "declined by mistake" in page.locator("main").inner_text()


def test_a_form_that_is_wrong_keeps_what_was_typed_also_with_back(desk: Desk) -> None:
    page = desk.tab()
    page.goto("/commands/hold?agent=payment")
    page.get_by_label("Reason").fill("it declines every card")
    page.get_by_label("For how long").fill("soon")
    with page.expect_navigation():
        page.get_by_role("button", name="Show what it would do").click()
    assert page.evaluate("document.activeElement.name") == "seconds"
    assert page.get_by_label("Reason").input_value() == "it declines every card"
    find_no_fault(page)
    page.get_by_label("For how long").fill("20m")
    show_it(page)
    do_it(page, "Hold now")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "status"
    page.go_back()
    said = page.locator(".lead").inner_text()
    assert said.startswith("payment would make no new call for 20 min:")
    page.go_back()
    page.go_back()
    assert page.url.endswith("/commands/hold?agent=payment")
    assert page.get_by_label("Reason").input_value() == "it declines every card"
    page.go_forward()
    page.go_forward()
    page.go_forward()
    page.get_by_role("button", name="Undo: release payment").click()
    page.get_by_text("No task waits for it.").wait_for()
    assert desk.operator.reads("agents")["agents"]


def test_what_is_typed_on_the_page_of_an_incident_stays_while_the_page_is_live(
    desk: Desk,
) -> None:
    with desk.still() as operator:
        operator.world.faults(DECLINES)
        operator.world.submit(*map(order, DECLINED_BY_MISTAKE))
        operator.world.run()
        group = operator.world.task(DECLINED_BY_MISTAKE[0]).failure
    page = desk.tab(width=NARROW)
    page.goto(f"/groups/{group}")
    stop = page.get_by_role("region", name="1. Stop")
    stop.get_by_label("Reason").fill("it declines every card")
    notes = page.get_by_role("region", name="Notes")
    notes.get_by_label("Note").fill("The bank is told.")
    with desk.still() as operator:
        operator.world.submit(order("ord-2009"))
        operator.world.run()
    page.get_by_role("heading", name="4 orders undone").wait_for()
    find_no_fault(page)
    assert stop.get_by_label("Reason").input_value() == "it declines every card"
    assert notes.get_by_label("Note").input_value() == "The bank is told."
    go_on = page.get_by_role("region", name="3. Let go on")
    go_on.get_by_role("button", name="Resubmit 4 orders\u2026").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW
    drawing = page.get_by_role("region", name="Drawing of the orders over time")
    assert drawing.evaluate(
        "one => Math.abs(one.querySelector('svg').getBoundingClientRect().right"
        " - one.getBoundingClientRect().right) < 4"
    ), "its newest part is seen"
    assert drawing.locator("text.narrow").first.evaluate(
        "one => one.getBoundingClientRect().height >= 11"
    )
    notes.get_by_role("button", name="Write the note").click()
    page.get_by_text(f"Done: the note on {group} is stored for 90 days.").wait_for()
    notes.get_by_role("listitem").filter(has_text="The bank is told.").wait_for()
    page.wait_for_function(  # its script puts it back
        "() => [...document.querySelectorAll('input, textarea')]"
        ".some((one) => one.value === 'it declines every card')"
    )
    assert stop.get_by_label("Reason").input_value() == "it declines every card"
    find_no_fault(page)
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW


def test_a_command_is_refused_with_the_sentence_of_the_command_line(desk: Desk) -> None:
    with desk.still() as operator:
        operator.world.submit(order("ord-1"))
        operator.world.run()
        typed = operator.asks("cancel", "ord-1").stderr
    page = desk.tab()
    page.goto("/commands/cancel?order=ord-1")
    page.get_by_label("Reason").fill("routine")
    text = show_it(page)
    assert "refused" in text
    assert text in " ".join(typed.split())
    assert page.get_by_role("button", name="Cancel now").count() == 0
    assert desk.operator.world.task("ord-1").state is TaskState.COMPLETED


def test_a_rejected_event_is_corrected_on_a_narrow_window(desk: Desk) -> None:
    wrong = {**order("ord-1"), "currency": "euro"}
    with desk.still() as operator:
        operator.world.submit(wrong)
        operator.world.run()
    page = desk.tab(width=NARROW)
    page.goto("/")
    page.get_by_role("link", name="1 message was rejected").click()
    page.get_by_role("link", name="Correct and send").click()
    field = page.get_by_label("The message")
    text = field.input_value()
    assert "tok_visa" not in text, "the browser never has a masked value"
    field.fill(text.replace('"euro"', '"EUR"'))
    assert show_it(page) == "It would take effect: it would be accepted. Nothing was sent."
    assert page.locator(".diff .removed").inner_text().strip() == '-   "currency": "euro",'
    assert page.locator(".diff .added").inner_text().strip() == '+   "currency": "EUR",'
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW
    do_it(page, "Correct and send now")
    with desk.still() as operator:
        operator.world.run()
    page.get_by_role("link", name="Back to ord-1").click()
    page.locator("h1 .state-completed").wait_for()
    assert desk.operator.world.effects("ord-1") == ALL_EFFECTS


def test_what_another_tab_has_changed_since_is_shown_again(desk: Desk) -> None:
    with desk.still() as operator:
        operator.world.faults({**LATER, "times": 1})
        operator.world.submit(order("ord-1"))
        operator.world.run()
    one, other = desk.tab(), desk.tab()
    for page in (one, other):
        page.goto("/commands/extend?order=ord-1")
        page.get_by_label("Reason").fill("the carrier is slow")
        page.get_by_label("Additional time").fill("10m")
        show_it(page)
    before = desk.operator.world.task("ord-1").complete_by
    do_it(one, "Extend now")
    other.get_by_role("button", name="Extend now").click()
    other.get_by_text("Nothing was sent: the form, or what it is about, has changed").wait_for()
    assert desk.operator.world.task("ord-1").complete_by == before + 10 * MINUTE
    do_it(other, "Extend now")
    assert desk.operator.world.task("ord-1").complete_by == before + 20 * MINUTE


def test_a_second_browser_and_a_link_that_was_used_are_refused_in_words(desk: Desk) -> None:
    link = desk.server.session.link_to()
    page = desk.tab()
    page.goto("/")
    stranger = desk.browser.new_context(base_url=desk.server.session.address)
    desk.contexts.append(stranger)
    other = stranger.new_page()
    other.goto("/orders")
    assert "was opened in another browser" in other.locator("main").inner_text()
    other.goto(link)
    assert "This link was used before" in other.locator("main").inner_text()
    assert "Overview" in page.locator("h1").inner_text()


def test_a_bulk_run_is_stopped_in_the_middle_from_another_tab(desk: Desk) -> None:
    names = [f"ord-{number}" for number in range(3001, 3009)]
    with desk.still() as operator:
        operator.world.faults(DECLINES)
        operator.world.submit(*map(order, names))
        operator.world.run()
        operator.world.faults()
        group = operator.world.task(names[0]).failure
    page = desk.tab()
    page.goto(f"/commands/resubmit-all?group={group}")
    page.get_by_label("Reason").fill("declined by mistake")
    assert page.get_by_label("Begin again from the start").is_checked()
    page.get_by_label("Orders that are sent first").fill("1")
    page.get_by_label("Orders a second").fill("0.1")
    assert show_it(page).startswith("8 of 8 orders are eligible; nothing was sent.")
    assert "is stored: the supervisor begins within a minute." in do_it(page, "Resubmit all now")
    page.get_by_role("link", name="Back to b-").click()
    page.wait_for_url("**/bulk/b-*")
    other = desk.tab()
    other.goto("/bulk")
    with desk.still() as operator:
        operator.world.pass_time(75)
    other.get_by_role("row", name="declined by mistake").get_by_role("link").click()
    other.get_by_role("link", name="Stop").click()
    other.get_by_label("Reason").fill("the acquirer asked us to")
    show_it(other)
    assert "is stopped within a minute" in do_it(other, "Stop now")
    with desk.still() as operator:
        operator.world.pass_time(90)
    page.locator("h1 .state-stopped").wait_for()  # the first tab follows the run
    assert "the acquirer asked us to" in page.locator("main").inner_text()
    states = {desk.operator.world.task(name).state for name in names}
    assert states == {TaskState.COMPLETED, TaskState.UNDONE}, "it was stopped in the middle"
