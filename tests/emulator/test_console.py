"""`roundsman ui` as it is typed, on the deployed stack, used from a real Chromium.

A whole night in the browser is in `test_night_in_browser`, which CI runs; the incident here differs
from it in that a person releases at the command line, and that only one order is begun again.
"""

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.test_operating import do_it, show_it
from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import PATIENCE, faults, is_in, types
from tests.emulator.served_console import ServedConsole, served_console
from tests.moto.orders import ALL_EFFECTS, effects_of, order

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.stack, pytest.mark.browser]

DECLINED = "seen-declined"


@pytest.fixture
def console(stack: DeployedStack) -> Iterator[ServedConsole]:
    """The console as an operator starts it."""
    with served_console(stack) as found:
        yield found


@pytest.mark.verify
def test_an_incident_on_the_deployed_stack_is_ended_in_the_browser(
    stack: DeployedStack, console: ServedConsole
) -> None:
    page = console.page
    decline = {"operation": "POST /charges", "status": 402, "orderId": DECLINED}
    with faults(stack, {**decline, "body": {"error": "CardDeclined"}}):
        stack.submit(order(DECLINED))
        stack.wait_for("its undo", is_in(stack, "Undone", DECLINED), PATIENCE)
    hold(page)
    late = order_that_waits(stack)
    page.get_by_label("Order id").fill(late)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/orders/{late}")
    assert f"{late} waits for payment, which is held by" in page.locator("main").inner_text()
    released = types(stack, "release", "payment", "--as", "ops", "--reason", "mended")
    assert released.exit_code == 0, released.output
    page.locator("h1 .state-completed").wait_for()  # live: this page was not loaded again
    assert effects_of(stack.services, late) == ALL_EFFECTS
    resubmit(page)
    page.locator("h1 .state-completed").wait_for()
    again = {**ALL_EFFECTS, "inventory perform": 2, "inventory undo": 1}
    assert effects_of(stack.services, DECLINED) == again
    correct(stack, page)


def test_ctrl_c_ends_the_console_although_a_browser_follows_a_page(console: ServedConsole) -> None:
    with console.page.expect_request("**/live?**"):
        console.page.get_by_role("link", name="Overview").click()
    console.process.send_signal(signal.SIGINT)
    console.process.wait(PATIENCE)
    console.page.get_by_text("The console does not answer").wait_for()


def hold(page: "Page") -> None:
    page.get_by_role("link", name="Agents").click()
    page.locator("tr", has_text="payment").first.get_by_role("link", name="Hold").click()
    page.get_by_label("Reason").fill("it declines a good card")
    page.get_by_label("For how long").fill("30m")
    show_it(page)
    assert do_it(page, "Hold now") == "Done: payment is held for 30 min."


def order_that_waits(stack: DeployedStack) -> str:
    """An order that the held agent does not take; functions remember for seconds who is held."""
    for number in range(20):
        name = f"seen-held-{number}"
        stack.submit(order(name))

        def is_settled(name: str = name) -> bool:
            return stack.task(name).get("State") in ("Retry", "Completed")

        stack.wait_for("the order to wait", is_settled, PATIENCE)
        if stack.task(name)["State"] == "Retry":
            return name
    pytest.fail("no order waits for the held agent")


def resubmit(page: "Page") -> None:
    page.goto(f"{page.url.partition('/orders/')[0]}/commands/resubmit?order={DECLINED}")
    page.get_by_label("Reason").fill("declined by mistake")
    page.get_by_label("Begin again from the start").check()
    show_it(page)
    do_it(page, "Resubmit now")
    page.get_by_role("link", name=f"Back to {DECLINED}").click()


def correct(stack: DeployedStack, page: "Page") -> None:
    """A rejected event is corrected, with its difference shown, and the order completes."""
    stack.submit({**order("seen-corrected"), "currency": "euro"})

    def is_listed() -> bool:
        page.get_by_role("link", name="Rejected").click()
        page.wait_for_load_state()
        listed: int = page.get_by_text("Order seen-corrected").count()
        return listed == 1

    stack.wait_for("the rejection", is_listed, PATIENCE, every=1)
    letter = page.locator("article", has_text="Order seen-corrected")
    letter.get_by_role("link", name="Correct and send").click()
    field = page.get_by_label("The message")
    field.fill(field.input_value().replace('"euro"', '"EUR"'))
    show_it(page)
    assert '"EUR"' in page.locator(".diff .added").inner_text()
    do_it(page, "Correct and send now")
    stack.wait_for("its end", is_in(stack, "Completed", "seen-corrected"), PATIENCE)
