"""The page of an order of a thousand steps: as large as one of fifty, and with all of them."""

import re
from collections.abc import Callable

import pytest

from roundsman_console.faces.web.pages.order import MOST_TEXT, ON_A_PAGE
from tests.support.large_orders import MadeOrder, fan_of, loop_of, side_by_side, store
from tests.web.browsers import Browser

MOST_BYTES = 100_000
STEP = re.compile(r'<tr data-key="([^"]+)" id="step-')


def noted(many: int) -> MadeOrder:
    return loop_of(many, undone=True)


@pytest.mark.parametrize(
    ("make", "many"),
    [(loop_of, 900), (noted, 1_000)],
    ids=["900 steps, of which one failed", "1,000 steps, all undone"],
)
def test_the_page_of_a_thousand_steps_has_at_most_100_kb(
    browser: Browser, make: Callable[[int], MadeOrder], many: int
) -> None:
    browser.operator.world.clock.now += 3 * 3_600_000  # after what its history says
    store(make(many), browser.inspector.stack, "ord-1")
    every = f"{many + 2:,}".replace(",", " ")
    for address in ("", "?from=0", f"?from={many // 2}", f"?from={many}", f"?history={many // 2}"):
        assert len(browser.html(f"/orders/ord-1{address}").encode()) <= MOST_BYTES, address
    assert f"Steps 1 to {ON_A_PAGE} of {every}, in" in browser.page("/orders/ord-1?from=0")


@pytest.mark.parametrize(
    ("make", "many"),
    [(loop_of, 160), (noted, 160)],
    ids=["one of its steps failed", "all of its steps undone"],
)
def test_the_page_of_many_steps_leads_to_each_step_and_to_its_whole_history(
    browser: Browser, make: Callable[[int], MadeOrder], many: int
) -> None:
    made = make(many)
    browser.operator.world.clock.now += 3 * 3_600_000  # after what its history says
    store(made, browser.inspector.stack, "ord-1")
    html = browser.html("/orders/ord-1")
    assert len(html.encode()) <= MOST_BYTES
    every = f"{many + 2:,}".replace(",", " ")
    assert f"Steps 1 to {ON_A_PAGE} of {every}, in" in browser.page("/orders/ord-1?from=0")
    seen = list[str]()
    address: str | None = "?from=0"
    while address is not None:
        html = browser.html(f"/orders/ord-1{address}")
        assert len(html.encode()) <= MOST_BYTES
        seen += STEP.findall(html)
        found = re.search(r'href="(\?from=\d+)#steps">Next', html)
        address = found[1] if found else None
    assert len(seen) == len({*seen}) == many + 2
    entries = re.compile(r'href="(\?history=\d+)#history">Earlier')
    address, readings = "", 0
    while (found := entries.search(browser.html(f"/orders/ord-1{address}"))) is not None:
        address, readings = found[1], readings + 1
    assert readings >= many // ON_A_PAGE
    last = browser.page(f"/orders/ord-1{address}")
    assert re.search(r" to ([\d ]+) of \1 entries", last), "the whole history"


@pytest.mark.parametrize("make", [lambda: side_by_side(98, 60, 3), lambda: fan_of(100, 71, 7)])
def test_the_page_of_a_hundred_steps_has_at_most_100_kb(
    browser: Browser, make: Callable[[], MadeOrder]
) -> None:
    store(make(), browser.inspector.stack, "ord-1")
    assert len(browser.html("/orders/ord-1").encode()) <= MOST_BYTES


def test_a_drawing_leads_to_a_place_on_the_page(browser: Browser) -> None:
    store(loop_of(900), browser.inspector.stack, "ord-1")
    html = browser.html("/orders/ord-1")
    wanted = {*re.findall(r'<a href="#(step-[^"]+)"', html)}
    assert wanted
    assert all(f'id="{one.replace("%5B", "[").replace("%5D", "]")}"' in html for one in wanted)


@pytest.mark.parametrize("text", ["x", "-1", "1e3", "9" * 7, "\u0663"])
def test_a_place_that_is_no_number_is_refused_in_words(browser: Browser, text: str) -> None:
    store(fan_of(3, 2, 1), browser.inspector.stack, "ord-1")
    for name in ("from", "history"):
        said = browser.page(f"/orders/ord-1?{name}={text}", status=400)
        assert f"The parameter {name} is the number of rows before: 0, 50, 100." in said


def test_a_place_after_the_last_row_shows_the_last_row(browser: Browser) -> None:
    store(fan_of(3, 2, 1), browser.inspector.stack, "ord-1")
    assert re.search(r"Steps (\d+) to \1 of \1,", browser.page("/orders/ord-1?from=999"))


def test_a_long_result_is_cut_and_the_whole_of_it_is_in_the_record(browser: Browser) -> None:
    made = fan_of(3, 2, 1)
    [name, *_] = [one for one, record in made.task.steps.items() if record.result is not None]
    record = made.task.steps[name]
    object.__setattr__(record, "result", {"text": "y" * 30_000})
    store(made, browser.inspector.stack, "ord-1")
    html = browser.html("/orders/ord-1")
    assert "y" * (MOST_TEXT - 100) in html
    assert "y" * (MOST_TEXT + 1) not in html
    assert "The first 4 000 of 30 0" in browser.page("/orders/ord-1")
    assert "y" * 30_000 in browser.client.get("/orders/ord-1/record").text
