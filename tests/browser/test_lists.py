"""Live lists do not move under the hand, and instants are shown as somebody chose."""

from typing import TYPE_CHECKING

import pytest

from roundsman.model.instants import SECOND
from roundsman_console.faces.web.time_style import STYLES
from tests.browser.desk import NARROW, Desk
from tests.console.operators import DECLINED
from tests.moto.orders import order

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

FOCUSED = "document.activeElement.getAttribute('href')"


def undone(desk: Desk, *names: str) -> None:
    """These orders were undone, each a second after the one before."""
    with desk.still() as operator:
        for name in names:
            operator.world.clock.now += SECOND
            operator.world.submit({**order(name), **DECLINED})
            operator.world.run()


def rows(page: "Page") -> list[str | None]:
    keys = page.locator("tbody tr[data-key]")
    return [keys.nth(place).get_attribute("data-key") for place in range(keys.count())]


def test_new_rows_wait_and_the_focus_and_the_pointer_stay_on_their_row(desk: Desk) -> None:
    undone(desk, "ord-1", "ord-2", "ord-3")
    page = desk.tab()
    page.goto("/orders?state=Undone")
    page.get_by_role("link", name="ord-2").focus()
    row = page.locator('tr[data-key="ord-2"]')
    row.hover()
    before = row.bounding_box()
    undone(desk, "ord-4", "ord-5")
    show = page.get_by_role("button", name="2 new: show")
    show.wait_for()
    assert rows(page) == ["ord-3", "ord-2", "ord-1"]
    assert row.bounding_box() == before
    assert page.evaluate(FOCUSED) == "/orders/ord-2"
    show.click()
    assert rows(page) == ["ord-5", "ord-4", "ord-3", "ord-2", "ord-1"]
    assert show.count() == 0


def test_a_row_whose_order_left_the_list_stays_in_its_place_until_somebody_asks(desk: Desk) -> None:
    undone(desk, "ord-1", "ord-2", "ord-3")
    page = desk.tab()
    page.goto("/orders?state=Undone")
    with desk.still() as operator:
        assert operator.asks("resubmit", "ord-2", "--again", "--no-wait").exit_code == 0
        operator.world.run_one_batch("SchedulerQueue")
        assert operator.world.task("ord-2").state != "Undone"
    show = page.get_by_role("button", name="1 no longer here: show")
    show.wait_for()
    assert rows(page) == ["ord-3", "ord-2", "ord-1"]
    assert "gone" in str(page.locator('tr[data-key="ord-2"]').get_attribute("class"))
    show.click()
    assert rows(page) == ["ord-3", "ord-1"]


def test_a_list_of_which_no_row_is_left_stays_until_somebody_asks(desk: Desk) -> None:
    undone(desk, "ord-1")
    page = desk.tab()
    page.goto("/orders?state=Undone")
    with desk.still() as operator:
        assert operator.asks("resubmit", "ord-1", "--again", "--no-wait").exit_code == 0
        operator.world.run_one_batch("SchedulerQueue")
    show = page.get_by_role("button", name="1 no longer here: show")
    show.wait_for()
    assert rows(page) == ["ord-1"]
    show.click()
    page.get_by_text("No order matches these filters.").wait_for()
    assert rows(page) == []


def test_an_element_with_a_key_is_the_same_after_another_came_before_it(desk: Desk) -> None:
    page = desk.tab()
    page.goto("/agents")
    found = page.evaluate(
        """() => {
          const made = (text) => new DOMParser().parseFromString(text, "text/html").body;
          const old = document.body.appendChild(document.createElement("div"));
          const item = (key) => `<p data-key="${key}"><a href="/${key}">${key}</a></p>`;
          old.innerHTML = item("a") + "<hr>" + item("b");
          const b = old.querySelector('[data-key="b"]');
          b.querySelector("a").focus();
          const fresh = made(`<div>${item("c")}${item("b")}<hr>${item("a")}</div>`).firstChild;
          morph(old, fresh);
          return [
            old.innerHTML === fresh.innerHTML,
            old.querySelector('[data-key="b"]') === b,
            document.activeElement.textContent,
          ];
        }"""
    )
    assert found == [True, True, "b"]


def test_instants_are_relative_or_in_utc_or_local_and_that_is_kept(desk: Desk) -> None:
    undone(desk, "ord-1")
    page = desk.tab()
    page.goto("/orders")
    when = page.locator("td.when time").first
    assert when.inner_text() == "just now"
    shown = str(when.get_attribute("datetime"))
    utc = f"{shown[:10]} {shown[11:19]} UTC"
    page.evaluate("window.kept = true")
    page.get_by_role("link", name="UTC", exact=True).click()
    assert when.inner_text() == utc
    assert page.evaluate("window.kept"), "the page was not loaded again"
    page.goto("/orders/ord-1")
    assert utc[:16] in page.locator("main").inner_text()
    page.get_by_role("link", name="local", exact=True).click()
    page.goto("/orders")
    local = page.evaluate("(at) => instantWords(Date.parse(at), 'local')", shown)
    assert when.inner_text() == local
    page.get_by_role("link", name="relative", exact=True).click()
    assert when.inner_text() == "just now"
    assert [*STYLES] == ["relative", "utc", "local"]


def test_a_local_instant_has_the_offset_of_its_zone(desk: Desk) -> None:
    page = desk.tab()
    page.goto("/agents")
    found = page.evaluate(
        """() => {
          const zones = {};
          for (const minutes of [0, -330, 210]) {
            Date.prototype.getTimezoneOffset = () => minutes;
            zones[minutes] = instantWords(Date.UTC(2026, 11, 1, 23, 42, 5), "local");
          }
          return zones;
        }"""
    )
    assert found == {
        "0": "2026-12-01 23:42:05 +00:00",
        "-330": "2026-12-02 05:12:05 +05:30",
        "210": "2026-12-01 20:12:05 -03:30",
    }


def test_without_scripts_the_switch_is_a_link_and_local_is_not_offered(desk: Desk) -> None:
    undone(desk, "ord-1")
    page = desk.tab(scripts=False)
    page.goto("/orders?state=Undone")
    assert not page.get_by_role("link", name="local", exact=True).is_visible()
    page.get_by_role("link", name="UTC", exact=True).click()
    assert page.url.endswith("/orders?state=Undone")
    assert page.locator("td.when time").first.inner_text().endswith(" UTC")
    page.goto("/orders/ord-1")
    assert "ago" not in page.locator("dl").first.inner_text()


def test_what_is_copied_has_its_instants_as_iso(desk: Desk) -> None:
    undone(desk, "ord-1")
    page = desk.tab()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/orders")
    shown = str(page.locator("td.when time").first.get_attribute("datetime"))
    for what in ("td.when time", "tbody tr"):
        page.evaluate(
            "(what) => getSelection().selectAllChildren(document.querySelector(what))", what
        )
        page.keyboard.press("Control+c")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert shown in copied
        assert "just now" not in copied
    assert "ord-1" in copied


def test_all_orders_of_a_page_are_chosen_by_one_box_for_a_bulk_run(desk: Desk) -> None:
    undone(desk, "ord-1", "ord-2")
    page = desk.tab(width=NARROW)
    page.goto("/orders?state=Undone")
    page.get_by_role("checkbox", name="Choose ord-1").check()
    page.get_by_role("button", name="Resubmit").click()
    assert page.locator("h1").inner_text() == "Resubmit all 1 order"
    page.set_viewport_size({"width": 1440, "height": 800})
    page.goto("/orders?state=Undone")
    page.get_by_role("checkbox", name="Choose every order of this page").check()
    page.get_by_role("button", name="Resubmit").click()
    assert page.locator("h1").inner_text() == "Resubmit all 2 orders"


def test_a_search_with_a_name_is_kept_in_this_browser_and_stays_when_the_page_is_read_again(
    desk: Desk,
) -> None:
    undone(desk, "ord-1")
    page = desk.tab()
    page.goto("/orders")
    page.get_by_label("Name of this search").fill("nothing")
    page.get_by_role("button", name="Save").click()
    assert "Choose a filter first" in page.locator("#saved-says").inner_text()
    page.goto("/orders?state=Undone&sort=oldest&count=yes")
    hostile = '<img src=x onerror="document.title=1">'
    page.get_by_label("Name of this search").fill("Undone, oldest first")
    page.get_by_role("button", name="Save").click()
    page.goto("/orders?state=Undone&sort=oldest")
    page.get_by_label("Name of this search").fill(hostile)
    page.get_by_label("Name of this search").press("Enter")
    undone(desk, "ord-2")
    page.get_by_role("button", name="1 new: show").wait_for()
    saved = page.locator("#saved li a")
    assert saved.all_inner_texts() == ["Undone, oldest first", hostile]
    assert saved.first.get_attribute("href") == "/orders?state=Undone&sort=oldest"
    assert saved.first.get_attribute("aria-current") == "page"
    assert page.title() != "1"
    page.goto("/orders")
    page.get_by_role("link", name="Undone, oldest first").click()
    page.wait_for_url("**/orders?state=Undone&sort=oldest")
    page.get_by_role("button", name=f"Forget the search {hostile}").click()
    assert saved.all_inner_texts() == ["Undone, oldest first"]


def test_twenty_searches_are_kept_each_name_once_and_in_every_tab(desk: Desk) -> None:
    page = desk.tab()
    page.goto("/orders?state=Undone")
    name, save = page.get_by_label("Name of this search"), page.get_by_role("button", name="Save")
    says, saved = page.locator("#saved-says"), page.locator("#saved li a")
    page.evaluate(
        "keep(Array.from({length: 21}, (_, n) => ({name: `s${n}`, query: 'state=Retry'})))"
    )
    assert saved.all_inner_texts() == [f"s{place}" for place in range(1, 21)]
    save.click()
    assert "Give the search a name." in says.inner_text()
    name.fill("s7")
    save.click()
    assert saved.all_inner_texts().count("s7") == 1
    assert saved.last.get_attribute("href") == "/orders?state=Undone"
    other = page.context.new_page()
    other.goto("/orders")
    other.get_by_role("button", name="Forget the search s9").click()
    page.wait_for_function("document.querySelectorAll('#saved li').length === 19")
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    name.fill("s21")
    save.click()
    assert "This browser keeps nothing." in says.inner_text()


@pytest.mark.parametrize(
    "kept", ["{", '{"a": 1}', '[{"name": 1, "query": "a"}, {"name": "x"}, null, 7]', "null"]
)
def test_what_is_kept_by_something_else_is_not_shown(desk: Desk, kept: str) -> None:
    page = desk.tab()
    page.goto("/orders")
    page.evaluate("kept => localStorage.setItem(store, kept)", kept)
    page.reload()
    assert page.locator("#saved li").count() == 0
    page.goto("/orders?state=Undone")
    page.get_by_label("Name of this search").fill("Undone")
    page.get_by_role("button", name="Save").click()
    assert page.locator("#saved li a").all_inner_texts() == ["Undone"]


def test_without_a_script_no_form_for_searches_is_seen(desk: Desk) -> None:
    page = desk.tab(scripts=False)
    page.goto("/orders")
    assert not page.get_by_label("Name of this search").is_visible()
