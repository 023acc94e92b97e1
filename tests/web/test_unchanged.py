"""A live page sends again only what has changed since the browser was told."""

import re

import pytest
from starlette.responses import HTMLResponse

from roundsman_console.faces.web.unchanged import READ_AT, only_changed
from tests.console.operators import DECLINED, in_retry
from tests.moto.orders import order
from tests.support.large_orders import loop_of, store
from tests.web.browsers import Browser

EMPTY = re.compile(r'<section aria-labelledby="([\w-]+)" data-same></section>')


def live(browser: Browser, page: str, known: str = "") -> tuple[int, str, str]:
    """The status, the text and the tag of a reading by somebody who knows this."""
    answer = browser.client.get(
        "/live", params={"page": page}, headers={"If-None-Match": known} if known else {}
    )
    return answer.status_code, answer.text, answer.headers.get("ETag", "")


def test_a_page_on_which_nothing_is_new_sends_the_time_of_the_reading_alone(
    browser: Browser,
) -> None:
    browser.operator.world.submit({**order("ord-1"), **DECLINED})
    browser.operator.world.run()
    _, whole, tag = live(browser, "/orders/ord-1")
    assert "data-same" not in whole
    browser.operator.world.clock.now += 5_000
    answer = browser.client.get(
        "/live", params={"page": "/orders/ord-1"}, headers={"If-None-Match": tag}
    )
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["ETag"] == tag
    assert answer.headers[READ_AT] == "2027-01-15T08:00:05.000Z"
    assert answer.headers["Cache-Control"] == "no-store"


def section(name: str, text: str, more: str = "") -> str:
    return f'<section class="x" aria-labelledby="{name}"{more}>{text}</section>'


def again(before: str, after: str) -> str:
    """What is sent of a page to somebody who knows how it was before."""
    tag = only_changed(HTMLResponse(before), "").headers["ETag"]
    return bytes(only_changed(HTMLResponse(after), tag).body).decode()


def test_two_sections_of_one_name_are_sent_whole_and_so_is_one_that_could_not_be_read() -> None:
    two = section("a", "one") + section("a", "two") + section("b", "three")
    assert again(f"{two}x", f"{two}y") == (
        section("a", "one")
        + section("a", "two")
        + '<section aria-labelledby="b" data-same></section>y'
    )
    hole = section("a", "not read", " data-hole")
    assert again(f"{hole}x", f"{hole}y") == f"{hole}y"
    said = section("a", "what says data-hole in its text")
    assert again(f"{said}x", f"{said}y") == '<section aria-labelledby="a" data-same></section>y'


def test_what_changes_in_a_section_without_a_fingerprint_is_a_change() -> None:
    before, after = (section("a", one) + section("a", one) for one in ("x", "y"))
    assert again(before, after) == after


def test_a_tag_fits_in_a_header() -> None:
    tag = only_changed(HTMLResponse("".join(section(f"s{n}", "x") for n in range(40))), "")
    assert len(tag.headers["ETag"]) < 1_000


def test_of_a_page_that_has_changed_the_parts_that_are_the_same_are_empty(browser: Browser) -> None:
    in_retry(browser.operator)
    _, whole, tag = live(browser, "/orders/ord-1")
    browser.operator.asks("run", "ord-1")
    browser.operator.world.run()
    status, changed, next_tag = live(browser, "/orders/ord-1", tag)
    assert status == 200
    same = {*EMPTY.findall(changed)}
    assert "input" in same
    assert "history" not in same
    assert "steps" not in same
    assert next_tag != tag
    _, again, _ = live(browser, "/orders/ord-1")
    assert len(changed) < len(again)
    for name in same:
        part = re.compile(f'<section aria-labelledby="{name}".*?</section>', re.DOTALL)
        assert part.findall(again) == part.findall(whole), name


def test_an_order_of_900_steps_is_not_sent_again(browser: Browser) -> None:
    store(loop_of(900), browser.inspector.stack, "ord-1")
    browser.operator.world.clock.now += 3 * 3_600_000  # after what its history says
    _, whole, tag = live(browser, "/orders/ord-1")
    browser.operator.world.clock.now += 3_000
    status, text, _ = live(browser, "/orders/ord-1", tag)
    assert len(text.encode()) * 3 < len(whole.encode())
    assert status in (200, 304)


@pytest.mark.parametrize("known", ["x", '"=0"', "=" * 5_000, '"steps=00,=11"', "\x00"])
def test_a_tag_that_is_none_gets_the_whole_page(browser: Browser, known: str) -> None:
    browser.operator.world.submit(order("ord-1"))
    browser.operator.world.run()
    status, text, _ = live(browser, "/orders/ord-1", known)
    assert (status, EMPTY.findall(text)) == (200, [])


def test_an_error_is_told_as_a_whole(browser: Browser) -> None:
    status, text, tag = live(browser, "/orders/none", "x")
    assert status == 404
    assert "There is no order none" in text
    assert not tag
