"""Every page in a real browser: readable at each width, without scripts, by keyboard and by axe."""

import json
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import pytest

from roundsman_console.faces.web.live import LIVE_SECONDS
from roundsman_console.faces.web.templates import NAVIGATION
from tests.browser.desk import HEIGHT, MIDDLE, NARROW, WIDE, Desk
from tests.browser.pages import addresses
from tools.engines.chromium import axe_script

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

OUTSIDE = """() => {
  const width = document.documentElement.clientWidth;
  // What only a screen reader reads is clipped where it stands: it covers and widens nothing.
  const clipped = (one) => one && (getComputedStyle(one).clipPath !== "none"
    || clipped(one.parentElement));
  const found = [...document.body.querySelectorAll("*")].filter((one) => {
    const box = one.getBoundingClientRect();
    // What is scrolled by itself, and can be reached by keyboard, may be wider than the window.
    const region = one.closest(".scroll[tabindex='0']");
    return box.width && (box.right > width + 1 || box.left < -1) && !clipped(one)
      && !(region && region !== one);
  });
  return found.map((one) => `${one.tagName} ${one.className}: ${one.textContent.slice(0, 40)}`);
}"""
CUT_OFF = """() => [...document.querySelectorAll("td, dd, p, li, h1, h2, .button, button")]
  .filter((one) => one.getClientRects().length && one.clientWidth > 1
    && one.scrollWidth > one.clientWidth + 1
    && getComputedStyle(one).display !== "inline")
  .map((one) => `${one.tagName}: ${one.textContent.trim().slice(0, 40)}`)"""
REACHABLE = """() => [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
  .filter((one) => !one.closest("details:not([open]) > :not(summary)"))
  .filter((one) => one.checkVisibility())
  .map((one, place) => { one.dataset.place = place; return `${one.tagName} ${place}`; })"""
FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  if (one === document.body) return null;
  const seen = one.getBoundingClientRect();
  return {
    name: `${one.tagName} ${one.dataset.place}`,
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    shown: seen.width > 0 && seen.right > 0 && seen.left < innerWidth,
  };
}"""


THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
"""A page is loaded once for both: only colours differ, and they come from its style sheet."""

CELL_HEADINGS = """() => [...document.querySelectorAll("table")].flatMap((table) =>
  [...table.querySelectorAll("tbody tr")].map((row) => [
    [...table.querySelectorAll("thead th")].map((one) => one.textContent),
    [...row.cells].map((one) => one.dataset.label)]))"""
"""The headings of each table, and those that each of its cells has beside it on a narrow window."""

WIDTHS = (NARROW, MIDDLE, WIDE)
"""A page is loaded once for all: how it is laid out comes from its style sheet."""

STATES = """() => {
  const found = [...document.querySelectorAll(".state")].map((one) => [
    one.textContent.trim(), getComputedStyle(one).color, one.querySelector("svg").innerHTML]);
  for (const node of document.querySelectorAll(".graph .node[class*=state-]")) {
    const name = node.querySelector(".note").dataset.state;
    found.push([name, getComputedStyle(node).color, node.querySelector(".shape").innerHTML]);
  }
  for (const line of document.querySelectorAll(".gantt .line")) {
    found.push([line.dataset.state, getComputedStyle(line).color, null]);
  }
  for (const bar of document.querySelectorAll(".chart [class^=end-]")) {
    const name = bar.querySelector("title").textContent.split(" ")[1];
    found.push([name, getComputedStyle(bar).fill, null]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def live_seconds() -> Mapping[str, float]:
    """Nothing happens in this stack, so no page need be read again."""
    return dict.fromkeys(LIVE_SECONDS, 3600.0)


@pytest.mark.parametrize("style", ["relative", "utc"])
def test_no_page_is_wider_than_its_window(busy_desk: Desk, style: str) -> None:
    page = busy_desk.tab()
    page.goto(f"/times?as={style}&back=/")
    for name, address in addresses(busy_desk).items():
        page.goto(address)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": HEIGHT})
            assert page.evaluate("document.documentElement.scrollWidth") == width, (name, width)
            assert page.evaluate(OUTSIDE) == [], (name, width)
            assert page.evaluate(CUT_OFF) == [], (name, width)


def test_every_page_can_be_read_without_scripts(busy_desk: Desk) -> None:
    with_scripts, without = busy_desk.tab(), busy_desk.tab(scripts=False)
    for name, address in addresses(busy_desk).items():
        with_scripts.goto(address)
        without.goto(address)
        headings = without.evaluate(CELL_HEADINGS)
        assert all(wanted == labels for wanted, labels in headings), name
        heading = without.locator("h1").inner_text()
        assert heading.strip(), name
        assert heading == with_scripts.locator("h1").inner_text()
        assert len(without.locator("main").inner_text()) > 40, name
    without.goto("/orders/ord-6001")
    text = without.locator("main").inner_text()
    assert "waits for mail, which is held by amy: new templates are being tried" in text
    assert "create_shipment" in text
    assert without.locator("main time").first.inner_text(), "times are rendered by the server"


@pytest.mark.parametrize(
    "name",
    [
        *("overview", "orders", "archived", "agents", "rejected", "resubmit"),
        *("resubmit-filter", "smoke"),
    ],
)
def test_the_tab_key_reaches_everything_in_its_order_and_shows_where_it_is(
    busy_desk: Desk, name: str
) -> None:
    page = busy_desk.tab()
    page.goto(addresses(busy_desk)[name])
    wanted = page.evaluate(REACHABLE)
    assert len(wanted) > 10
    reached: list[str] = []
    for _ in wanted:
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        assert focused is not None, f"after {reached[-1:]}"
        assert focused["outlined"], f"{focused['name']} does not show that it has the focus"
        assert focused["shown"], focused["name"]
        reached.append(focused["name"])
    assert reached == wanted


@pytest.mark.parametrize("scripts", [True, False])
def test_on_a_narrow_window_the_pages_are_one_row_until_it_is_opened(
    busy_desk: Desk, scripts: bool
) -> None:
    page = busy_desk.tab(width=NARROW, scripts=scripts)
    page.goto("/doctor")
    menu = page.get_by_role("navigation", name="Pages")
    closed = menu.bounding_box()
    assert closed is not None
    assert closed["height"] <= 48
    assert not menu.get_by_role("link").count()
    menu.get_by_text("Pages", exact=True).click()
    assert menu.get_by_role("link").all_inner_texts() == [name for _, name in NAVIGATION]
    heights = [link.bounding_box() for link in menu.get_by_role("link").all()]
    assert all(one is not None and one["height"] >= 24 for one in heights)
    assert menu.locator("[aria-current=page]").inner_text() == "Doctor"
    menu.get_by_role("link", name="Agents").click()
    page.wait_for_url("**/agents")


def test_on_a_wide_window_the_pages_are_a_row_of_links(busy_desk: Desk) -> None:
    page = busy_desk.tab(width=WIDE)
    page.goto("/doctor")
    menu = page.get_by_role("navigation", name="Pages")
    assert menu.get_by_role("link").all_inner_texts() == [name for _, name in NAVIGATION]
    boxes = [link.bounding_box() for link in menu.get_by_role("link").all()]
    assert len({box["y"] for box in boxes if box is not None}) == 1


def test_the_first_tab_skips_to_the_page_and_slash_finds_an_order(busy_desk: Desk) -> None:
    page = busy_desk.tab()
    page.goto("/agents")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    page.keyboard.type("ord-2000")
    page.keyboard.press("Enter")
    page.wait_for_url("**/orders/ord-2000")
    assert "Undone" in page.locator("h1").inner_text()


def test_axe_finds_no_fault_of_accessibility_in_either_theme(busy_desk: Desk) -> None:
    page = busy_desk.tab()
    script = axe_script().read_text(encoding="utf-8")
    for name, address in addresses(busy_desk).items():
        page.goto(address)
        page.evaluate(script)
        page.emulate_media(color_scheme="light")
        assert faults(page) == [], name
        page.emulate_media(color_scheme="dark")
        assert faults(page, "color-contrast") == [], (name, "dark")


def read_aloud(page: "Page") -> list[tuple[str, str, str]]:
    """What a screen reader is told of a page: the role, the name and the level of each part."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return [
        (
            node["role"]["value"],
            str(node.get("name", {}).get("value", "")).strip(),
            "".join(
                str(one["value"]["value"])
                for one in node.get("properties", ())
                if one["name"] == "level"
            ),
        )
        for node in nodes
        if not node["ignored"]
    ]


CONTROLS = {
    *("button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox"),
    *("DisclosureTriangle", "region", "complementary", "navigation", "table", "image"),
}
"""The roles of what must have a name."""


def test_a_screen_reader_is_told_what_everything_is(busy_desk: Desk) -> None:
    page = busy_desk.tab()
    for address in addresses(busy_desk).values():
        page.goto(address)
        for width in (NARROW, WIDE):
            page.set_viewport_size({"width": width, "height": HEIGHT})
            check_what_is_told(page, f"{address} at {width}")


def check_what_is_told(page: "Page", name: str) -> None:
    """Check the roles, the names and the headings of a page."""
    told = read_aloud(page)
    roles = Counter(role for role, _, _ in told)
    headings = [int(level) for role, _, level in told if role == "heading"]
    assert headings.count(1) == 1, name
    assert all(after <= before + 1 for before, after in pairwise(headings)), (name, headings)
    for one in ("main", "banner", "search", "complementary"):
        assert roles[one] == 1, (name, one)
    places = [label for role, label, _ in told if role == "navigation"]
    assert "Pages" in places, name
    assert len(places) == len({*places}), (name, places)
    unnamed = [role for role, label, _ in told if role in CONTROLS and not label]
    assert unnamed == [], (name, unnamed)
    tables = page.locator("main table:visible").count()
    assert roles["table"] == tables, (name, "a table is told as a table, also if it is narrow")
    assert (roles["columnheader"] > 0) == (tables > 0), name
    if roles["image"]:
        assert page.locator("main table").count(), (name, "a drawing has a table beside it")


def test_a_state_has_one_colour_in_each_theme_and_one_shape_on_every_page(busy_desk: Desk) -> None:
    page = busy_desk.tab()
    colours: dict[tuple[str, str], dict[str, str]] = {}
    shapes: dict[str, dict[str, str]] = {}
    for place, address in addresses(busy_desk).items():
        page.goto(address)
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            for name, colour, shape in page.evaluate(STATES):
                colours.setdefault((theme, name), {}).setdefault(colour, place)
                if shape is not None:
                    shapes.setdefault(name, {}).setdefault(shape, place)
    assert {"Completed", "Undone", "Archived", "Retry", "UndoError", "held"} <= {*shapes}
    assert {one: found for one, found in colours.items() if len(found) > 1} == {}
    assert {name: found for name, found in shapes.items() if len(found) > 1} == {}
    assert colours["light", "Completed"].keys() != colours["dark", "Completed"].keys()


def faults(page: "Page", *rules: str) -> list[str]:
    """What axe finds by these rules, or by all, each with the first place where it is."""
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{one['impact']} {one['id']}: {json.dumps(one['nodes'][0]['html'])[:200]}"
        for one in found["violations"]
    ]
