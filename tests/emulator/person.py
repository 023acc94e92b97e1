"""A person who uses the console in Chromium by what is visible: links, buttons and fields.

What the person does is recorded by blocks, and compared with a page of docs/, so that the page
says where to click or its test fails. A block stands behind a comment:

    <!-- clicks: hold -->
    In the browser: **Agents** → **Hold** → *Reason*: it declines every card → **Hold now**.
"""

import os
import re
import textwrap
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser.test_reading import faults
from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import PATIENCE
from tests.emulator.recording import steady
from tools.engines.chromium import axe_script

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

LEAD = "In the browser: "
COLUMNS = 120

_BLOCK = re.compile(r"<!-- clicks: ([a-z-]+) -->\n(In the browser: .*?)\n(?:\n|\Z)", re.DOTALL)
_VARIES = (
    (r"\bord-\d{4}\b", "ord-<number>"),
    (r"\b([fb])-[0-9a-f]{8}\b", r"\1-<id>"),
    (r"\b\d+ orders\b", "<number> orders"),
    (r"\s+", " "),
)


@dataclass
class Clicks:
    """What a person did, block by block."""

    blocks: dict[str, list[str]] = field(default_factory=dict)

    def compare(self, page: Path) -> None:
        """The page's blocks are these. With REWRITE_PAGES=1 they are made so."""
        text = page.read_text(encoding="utf-8")
        found = dict(_BLOCK.findall(text))
        recorded = {name: f"{LEAD}{' → '.join(done)}." for name, done in self.blocks.items()}
        assert list(found) == list(recorded), "the page has other blocks, or another order"
        if os.environ.get("REWRITE_PAGES"):
            for name, block in recorded.items():
                before = f"<!-- clicks: {name} -->\n"
                wrapped = textwrap.fill(
                    block, COLUMNS, break_long_words=False, break_on_hyphens=False
                )
                text = text.replace(f"{before}{found[name]}", f"{before}{wrapped}")
            page.write_text(text, encoding="utf-8")
            return
        for name, block in recorded.items():
            assert steady(found[name], _VARIES) == steady(block, _VARIES), name


@dataclass
class Person:
    """Somebody before a tab of the console."""

    page: "Page"
    stack: DeployedStack
    clicks: Clicks
    block: str = ""
    """The block that is recorded now; nothing is recorded while it is empty."""

    def link(self, name: str, *, beside: str | None = None) -> None:
        """Follow the link whose name begins so, if need be in the row of something."""
        where = self._row(beside) if beside else self.page
        found = where.get_by_role("link", name=re.compile(rf"^{re.escape(name)}")).first
        # Of an alert, the reason is left out.
        shown = f"**{found.inner_text().partition(':')[0]}**"
        with self.page.expect_navigation():
            found.click()
        self._done(f"{shown} beside {beside}" if beside else shown)

    def button(self, name: str) -> None:
        """Press a button that sends a form."""
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=name, exact=True).click()
        self._done(f"**{name}**")

    def fill(self, label: str, text: str, *, above: str | None = None) -> None:
        """Fill in the field whose label begins so, if need be in the form with this button."""
        where = self._form(above) if above else self.page
        where.get_by_label(re.compile(rf"^\s*{re.escape(label)}")).first.fill(text)
        self._done(f"*{label}*: {text}")

    def replace(self, label: str, old: str, new: str) -> None:
        """Correct a text in a field."""
        found = self._field(label)
        found.fill(found.input_value().replace(old, new))
        self._done(f"in *{label}*, `{old}` to `{new}`")

    def check(self, label: str) -> None:
        """Check the box whose label begins so."""
        self._field(label).check()
        self._done(f"*{label}*")

    def choose(self, label: str, option: str) -> None:
        """Choose an option."""
        self._field(label).select_option(option)
        self._done(f"*{label}*: {option}")

    def find(self, name: str) -> None:
        """Look for an order, a group or a run by the search of every page."""
        self.page.get_by_role("searchbox").fill(name)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")
        self._done(f"{name} in the search field")

    def sends(self, title: str, *, show: str = "Show what it would do") -> str:
        """Look at what a form would do, and carry it out. Returns the sentence that was shown.

        `show` is the button that shows it.
        """
        self.button(show)
        shown = self.text
        assert self.page.get_by_role("button", name=f"{title} now", exact=True).count(), shown
        self.button(f"{title} now")
        return shown

    def in_another_tab(self, link: str) -> "Person":
        """Open a link in another tab, as with Ctrl and a click."""
        found = self.page.get_by_role("link", name=link, exact=True)
        with self.page.context.expect_page() as opened:
            found.click(modifiers=["Control"])
        opened.value.set_default_timeout(PATIENCE * 1000)
        self._done(f"**{link}** in another tab")
        return replace(self, page=opened.value)

    @property
    def text(self) -> str:
        """What the page says now, on one line."""
        return " ".join(self.page.locator("main").inner_text().split())

    def reads(self, *sentences: str) -> None:
        """Wait until the page says all of this: a live page follows the stack by itself."""
        for sentence in sentences:
            what = f"{self.page.url} to say {sentence!r}"
            self.stack.wait_for(what, partial(self._says, sentence), PATIENCE)

    def _says(self, sentence: str) -> bool:
        return sentence in self.text

    def finds_it_accessible(self) -> None:
        """No fault of accessibility is on the page."""
        self.page.evaluate(axe_script().read_text(encoding="utf-8"))
        assert faults(self.page) == [], self.page.url

    def _row(self, name: str) -> "Locator":
        return self.page.get_by_role("row", name=re.compile(rf"^{re.escape(name)}\b")).first

    def _form(self, button: str) -> "Locator":
        inside = self.page.get_by_role("button", name=button, exact=True)
        return self.page.locator("form").filter(has=inside)

    def _field(self, label: str) -> "Locator":
        return self.page.get_by_label(re.compile(rf"^\s*{re.escape(label)}")).first

    def _done(self, what: str) -> None:
        if self.block:
            self.clicks.blocks.setdefault(self.block, []).append(what)
