"""What operators do in the browser with many orders and with the whole stack."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from roundsman.model.states import TaskState
from tests.browser.desk import NARROW, Desk
from tests.browser.stories import DECLINES
from tests.browser.test_operating import do_it, show_it
from tests.moto.orders import ALL_EFFECTS, order

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

NAMES = [f"ord-200{n}" for n in range(4)]


def declined(desk: Desk) -> None:
    """Orders that were undone, because payment declined every card by mistake."""
    with desk.still() as operator:
        operator.world.faults(DECLINES)
        operator.world.submit(*map(order, NAMES))
        operator.world.run()
        operator.world.faults()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_all_orders_of_a_filter_are_corrected_and_begun_again(desk: Desk, scripts: bool) -> None:
    declined(desk)
    page = desk.tab(width=NARROW, scripts=scripts)
    page.goto("/orders")
    page.get_by_label("State").select_option("Undone")
    page.get_by_label("Error type").select_option("CardDeclined")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="Resubmit all").click()
    assert page.locator("h1").inner_text() == "Resubmit all Undone, CardDeclined"
    page.get_by_label("Reason").fill("a new contract")
    assert page.get_by_label("Begin again from the start").is_checked()
    page.get_by_text("More options").click()
    page.get_by_label("Correct the input").fill("customerId=c-77")
    page.get_by_label("The run stops if more fail again").fill("0%")
    text = show_it(page)
    assert page.get_by_label("Correct the input").input_value() == "customerId=c-77"
    assert page.get_by_label("Correct the input").is_visible(), "what was filled in is seen"
    assert text.startswith("4 of 4 orders are eligible; nothing was sent.")
    assert text.endswith("The run stops if more than 0% fail again.")
    assert "Correction of the input of ord-2000" in page.locator("main").inner_text()
    assert "is stored" in do_it(page, "Resubmit all now")
    page.get_by_role("link", name="Back to b-").click()
    page.wait_for_url("**/bulk/b-*")
    with desk.still() as operator:
        operator.world.pass_time(300)
    if not scripts:
        page.reload()
    page.get_by_text("4 of 4 orders with a result").wait_for()
    for name in NAMES:
        assert desk.operator.world.task(name).state is TaskState.COMPLETED


def smoke_test(page: "Page") -> str:
    """Run a smoke test from the page of the doctor; the sentence that says how it ended."""
    page.goto("/doctor")
    page.get_by_role("link", name="Smoke test").click()
    assert "Nothing was sent." in show_it(page)
    assert '"orderId": "$ORDER_ID"' in page.locator("pre").inner_text()
    page.get_by_role("button", name="Smoke test now").click()
    page.wait_for_url("**/progress/*")
    page.get_by_text("as expected").wait_for()
    sentence: str = page.locator(".lead").inner_text()
    return sentence


def test_a_smoke_test_is_followed_on_its_page_to_its_end(desk: Desk) -> None:
    page = desk.tab()
    sentence = smoke_test(page)
    sent = sentence.partition(" ")[0]
    log = page.get_by_role("log")
    assert "the order is Completed" in log.inner_text()
    page.get_by_role("link", name="Show the order").click()
    page.wait_for_url(f"**/orders/{sent}")
    assert desk.operator.world.effects(sent) == ALL_EFFECTS


def test_the_orders_of_a_filter_are_downloaded(desk: Desk, tmp_path: Path) -> None:
    declined(desk)
    page = desk.tab()
    page.goto("/orders?state=Undone")
    page.get_by_role("link", name="Download these orders").click()
    page.get_by_label("With the contents of orders").check()
    with page.expect_download() as started:
        page.get_by_role("button", name="Download").click()
    file = tmp_path / started.value.suggested_filename
    started.value.save_as(file)
    assert file.name.startswith("roundsman-orders-")
    assert file.suffix == ".jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["orderId"] for line in lines] == NAMES
    typed = desk.operator.types("export", "--state", "Undone", "--with-orders").stdout
    assert lines == typed.splitlines()


def test_the_cost_is_read_when_the_button_is_pressed(desk: Desk) -> None:
    page = desk.tab(width=NARROW)
    page.goto("/")
    page.locator("header summary").locator("visible=true").click()
    page.get_by_role("link", name="Cost", exact=True).click()
    assert "metrics," not in page.locator("main").inner_text().partition("AWS nothing.")[2]
    page.get_by_label("The last").fill("1d")
    page.get_by_role("button", name="Read the figures").click()
    page.wait_for_url("**/cost?since=1d")
    assert "CloudWatch has no figures" in page.locator("main").inner_text()
