"""Without scripts every page can be read, and every command carried out: what the markup has."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from roundsman_console.faces.web.form_registry import commands
from tests.moto.orders import order
from tests.support.tenant_rates import at_its_rate
from tests.web.browsers import Browser
from tests.web.hand import Hand
from tests.web.reader import Reader, reader_of

TIME = re.compile(
    r"<noscript> at \d\d:\d\d:\d\d UTC\. "
    r"This page does not update by itself, because scripts are off</noscript>"
)
WITH_METRICS = {"workflows-agent-versions"}
"""The commands that are offered only where the steps have metrics, which this stack has not."""
OF_SCHEDULES = {f"schedules-{verb}" for verb in ("backfill", "pause", "resume", "run")}
"""Those that are offered only of a schedule, and moto makes none from a template."""
VOID = frozenset({"input", "link", "meta", "br", "img"})
SCRIPTED = {"data-copy", "data-copies"}
"""Attributes of buttons that a style sheet shows only where scripts run."""


@pytest.fixture
def reader(browser: Browser) -> Reader:
    return reader_of(browser)


class Markup(HTMLParser):
    """What is wrong with the markup of a page for somebody without scripts or without sight."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.commands: set[str] = set()
        self._open: list[tuple[str, dict[str, str]]] = []
        self._captions: list[str] = []
        self._in_caption = False
        self._submits = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self._open.append((tag, given))
        in_form = "form" in given or any(name == "form" for name, _ in self._open)
        self.wrong += _faults(tag, given, in_form=in_form)
        address = given.get("href", "") or given.get("action", "")
        if address.startswith("/commands/"):
            self.commands.add(re.split(r"[?#/]", address.removeprefix("/commands/"))[0])
        if tag == "form":
            self._submits = 0
        elif tag == "table":
            self._captions.append("")
        elif tag == "caption":
            self._in_caption = True
        elif tag == "button":
            self._submits += 1

    def handle_data(self, data: str) -> None:
        if self._in_caption:
            self._captions[-1] += data.strip()

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass
        if tag == "form" and not self._submits:
            self.wrong.append("a form without a button")
        elif tag == "caption":
            self._in_caption = False
        elif tag == "table" and not self._captions.pop():
            self.wrong.append("a table without a caption")


def _faults(tag: str, given: dict[str, str], *, in_form: bool) -> Iterator[str]:
    """What is wrong with one element."""
    for name in given:
        if name.startswith("on") or name == "style":
            yield f"<{tag}> has {name}, which the policy forbids"
    if tag == "a" and given.get("href", "#") in ("", "#"):
        yield f"a link without an address: {given}"
    if tag == "th" and given.get("scope") not in ("col", "row"):
        yield "a heading of a table without a scope"
    if in_form or given.keys() & SCRIPTED or "scripted" in given.get("class", ""):
        return
    if tag in ("button", "input", "select", "textarea"):
        yield f"a control without a form: {given}"


@pytest.mark.exhaustive
def test_no_page_needs_a_script_and_every_command_is_reached(reader: Reader) -> None:
    reached: set[str] = set()
    for name, html in reader.pages():
        page = Markup(html)
        assert page.wrong == [], name
        assert TIME.search(html), f"{name} does not say when it was read, and that it stays so"
        reached |= page.commands
    # The group of which no run goes on, and the run once it is paused.
    undone = str(reader.operator.world.task("ord-2000").failure)
    reached |= Markup(reader.browser.html(f"/groups/{undone}")).commands
    runs = reader.operator.reads("bulk", "ls")["runs"]
    assert isinstance(runs, list)
    run = str(runs[0]["runId"])
    reader.browser.carries_out("bulk-pause", run=run, reason="x")
    reader.operator.world.pass_time(60)
    reached |= Markup(reader.browser.html(f"/bulk/{run}")).commands
    world = reader.operator.world
    world.submit(order("ord-of-a-tenant", tenant="shop-1"))
    world.run()
    at_its_rate(world, "payment", "shop-1", "ord-of-a-tenant")
    reached |= Markup(reader.browser.html("/agents/payment")).commands
    assert {*commands()} - reached <= WITH_METRICS | OF_SCHEDULES


@pytest.mark.parametrize(
    "html",
    [
        "<button>Go</button>",
        '<button type="button" data-other="x">Go</button>',
        '<form><input name="x"></form>',
        '<input name="x">',
        '<a href="#">Go</a>',
        "<a>Go</a>",
        '<p onclick="go()">Go</p>',
        '<p style="color: red">Go</p>',
        "<table><tr><td>x</td></tr></table>",
        "<table><caption> </caption></table>",
        "<table><caption>x</caption><tr><th>x</th></tr></table>",
    ],
)
def test_what_needs_a_script_or_has_no_name_is_noticed(html: str) -> None:
    assert len(Markup(html).wrong) == 1


@pytest.mark.exhaustive
def test_a_list_of_several_pages_is_read_by_links(reader: Reader) -> None:
    person = Hand(reader.browser).opens("/orders?state=Completed&many=5")
    seen: set[str] = set()
    for _ in range(10):
        seen |= {to for to, _ in person.links if to.startswith("/orders/ord-10")}
        if not any(words.startswith("Next") for _, words in person.links):
            break
        person.follows("Next")
    assert len(seen) == 12
