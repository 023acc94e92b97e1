"""What live.js says of a page and asks for, whatever the console answers: the clocks are passed.

The console is made of answers here, and AWS does not exist: `test_outages.py` has both.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from roundsman.model.instants import iso
from roundsman_console.faces.web.application import STATIC
from tests.browser.desk import PATIENCE
from tests.browser.test_live import HIDE
from tests.console.step_samples import AT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.browser

HOST = "http://console.example"
STEP = 100  # ms; the clocks move by so much
STALE_AFTER, ASK_WITHIN, PAGE_WITHIN, EVERY = 4_800, 3_000, 11_000, 10_000
STRIP = f"""<aside id="strip" data-state="read" data-ask-every="3000" data-ask-within="{ASK_WITHIN}"
  data-stale-after="{STALE_AFTER}" data-page-within="{PAGE_WITHIN}">
  <strong id="live-state" role="status"></strong><span id="stale-for" hidden>
  <time id="stale-since" datetime="{iso(AT)}" data-relative="since"></time></span>
  <span id="live-why"></span> AGAIN
  <time id="read-at" datetime="READ" data-relative="ago">just now</time>
  <div id="strip-notes" role="status"></div></aside>"""
AGAIN = '<a id="again" href="ADDRESS">Read again</a>'
SECTION = '<section aria-labelledby="part"><h2 id="part">Part</h2><p id="told">{}</p></section>'
LIVE = f' data-live data-every="{EVERY // 1000}"'
SILENT = "AWS was not reached for 5 s."
OLD = "The page could not be read again in time."
DEAD = "The console does not answer."
SIGNED_OUT = "Your session has ended."
SLEEPS = "ms => { const now = Date.now; Date.now = () => now() + ms; }"
SCRIPTS = ("morph.js", "times.js", "live.js")


def document(main: str, attributes: str = LIVE, *, read: int = AT, address: str = "/orders") -> str:
    """A page of the console, of which only what the script uses is there."""
    strip = STRIP.replace("READ", iso(read)).replace("AGAIN", AGAIN.replace("ADDRESS", address))
    scripts = "".join(f'<script src="/static/{name}" defer></script>' for name in SCRIPTS)
    head = f"<!doctype html><title>Orders</title>{scripts}"
    return f'{head}<body>{strip}<main id="main"{attributes}>{main}</main></body>'


def reached(after: int | None = 0, why: str = "", ends: int = 3_000, **more: object) -> str:
    """What the console says to `/alive`."""
    said = {"answeredAfter": after, "why": why, "nextAfter": ends, "notes": [], **more}
    return json.dumps(said)


def note(sentence: str, last_pass: int | None = None) -> dict[str, object]:
    return {"sentence": sentence, "lastPassAt": None if last_pass is None else iso(last_pass)}


@dataclass(frozen=True)
class Answer:
    """An answer of the console; None of everything if it never comes."""

    body: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    fails: bool = False


HANGS, FAILS = Answer(hangs=True), Answer(fails=True)
ELSEWHERE = Answer(status=302, headers={"Location": "https://login.example.com/"})


def refused(sentence: str, status: int) -> Answer:
    problem = f'<p class="problem">{sentence}</p>' if sentence else ""
    return Answer(document(f"<h1>No</h1>{problem}"), status)


@dataclass
class Tab:
    """A page in a browser, the answers that it gets, and what it has asked."""

    page: "Page"
    html: str = field(default_factory=lambda: document(SECTION.format("as loaded")))
    alive: Answer = field(default_factory=lambda: Answer(reached()))
    live: Answer = field(default_factory=lambda: Answer(document(SECTION.format("read again"))))
    asked: int = 0
    loaded: int = 0
    read: list[tuple[str, str]] = field(default_factory=list)
    """The page of each reading, and what the browser said that it shows."""

    def answers(self, route: "Route") -> None:
        """Answer a request of the page."""
        address = urlsplit(route.request.url)
        if address.path.startswith("/static/"):
            file: Path = STATIC / address.path.rpartition("/")[2]
            route.fulfill(body=file.read_text("utf-8"), content_type="text/javascript")
        elif address.path == "/alive":
            self.asked += 1
            self._give(route, self.alive, "application/json")
        elif address.path == "/live":
            page = parse_qs(address.query)["page"][0]
            self.read.append((page, route.request.headers.get("if-none-match", "")))
            self._give(route, self.live, "text/html")
        else:
            self.loaded += 1
            route.fulfill(body=self.html, content_type="text/html")

    def _give(self, route: "Route", answer: Answer, kind: str) -> None:
        if answer.fails:
            route.abort("connectionrefused")
        elif not answer.hangs:
            headers = {"Content-Type": kind, **answer.headers}
            route.fulfill(status=answer.status, headers=headers, body=answer.body)

    def opens(self, html: str | None = None, address: str = "/orders") -> None:
        """Load the page, at AT."""
        self.html = html or self.html
        self.page.goto(HOST + address)
        self.settle()

    def passes(self, ms: int) -> None:
        """Let the time pass, step by step, and let everything be answered that is."""
        for _ in range(ms // STEP):
            self.page.clock.run_for(STEP)
            self.settle()

    def settle(self) -> None:
        """Wait until the page has taken every answer that comes."""
        end = monotonic() + PATIENCE
        while True:
            asks, reads = self.page.evaluate("[question !== null, reading !== null]")
            if (not asks or self.alive.hangs) and (not reads or self.live.hangs):
                return
            assert monotonic() < end, "the page takes no answer"
            sleep(0.005)

    def says(self, script: str) -> object:
        return self.page.evaluate(script)

    @property
    def state(self) -> str:
        return str(self.says("strip.dataset.state"))

    def text(self, name: str) -> str:
        return str(self.says(f"document.getElementById('{name}')?.textContent ?? ''"))


@pytest.fixture
def tab(chromium: "Browser") -> Iterator[Tab]:
    """A tab whose clocks stand at AT."""
    context = chromium.new_context()
    page = context.new_page()
    page.clock.pause_at(AT / 1000)  # in seconds
    found = Tab(page)
    page.route("**/*", found.answers)
    page.add_init_script(
        "window.waits = []; const later = window.setTimeout;"
        "window.setTimeout = (what, ms) => { waits.push(ms); return later(what, ms); };"
    )
    yield found
    context.close()


# ---- what the strip says -------------------------------------------------------------------------


def test_before_aws_has_answered_a_page_says_nothing_and_then_that_aws_is_silent(tab: Tab) -> None:
    tab.alive = HANGS
    tab.opens()
    tab.passes(2_900)
    assert (tab.state, tab.text("live-state"), tab.text("live-why")) == ("read", "", "")
    tab.alive = Answer(reached(None))  # the console answers, and AWS has not yet
    tab.passes(STALE_AFTER - 3_000)
    assert tab.state == "read"
    tab.passes(STEP)
    assert (tab.state, tab.text("live-why")) == ("stale", SILENT)
    assert tab.text("live-state") == "STALE"
    assert tab.text("again") == "Try again"


def test_an_answer_of_aws_makes_a_page_live_for_so_long_and_no_longer(tab: Tab) -> None:
    tab.opens()
    assert (tab.state, tab.text("live-state"), tab.text("again")) == ("live", "Live", "Read again")
    tab.alive = Answer(reached(None))
    tab.passes(STALE_AFTER - STEP)
    assert tab.state == "live"
    tab.passes(STEP)
    assert (tab.state, tab.text("live-why")) == ("stale", SILENT)


@pytest.mark.parametrize("after", [-1_000, 500])
def test_the_answer_of_aws_counts_from_its_own_time(tab: Tab, after: int) -> None:
    tab.alive = Answer(reached(after))
    tab.opens()
    tab.alive = Answer(reached(None))
    tab.passes(STALE_AFTER + after - STEP)
    assert tab.state == "live"
    tab.passes(STEP)
    assert tab.state != "live"


def test_a_clock_that_is_set_back_makes_nothing_younger(tab: Tab) -> None:
    tab.opens()
    tab.alive = Answer(reached(None))
    tab.page.evaluate(SLEEPS, -3_600_000)
    tab.passes(STALE_AFTER)
    assert tab.state == "stale"


def test_what_the_console_says_of_aws_comes_before_what_the_clock_says(tab: Tab) -> None:
    tab.opens()
    tab.alive = Answer(reached(None, "The credentials have expired."))
    tab.passes(3_000)
    assert (tab.state, tab.text("live-why")) == ("stale", "The credentials have expired.")
    since = tab.says("document.getElementById('stale-since').dateTime")
    assert since == iso(AT), "AWS answered last when the page was loaded"
    assert tab.says("document.getElementById('stale-for').hidden") is False
    tab.alive = Answer(reached())
    tab.passes(3_000)
    assert (tab.state, tab.text("live-why")) == ("live", "")
    assert tab.says("document.body.classList.contains('stale')") is False


def test_how_long_a_page_is_stale_is_said_from_the_first_second_on(tab: Tab) -> None:
    tab.alive = Answer(reached(None, "AWS refuses."))
    tab.opens()
    assert tab.state == "stale"
    assert tab.says("document.getElementById('stale-for').hidden") is True
    tab.passes(1_000)
    assert tab.says("document.getElementById('stale-for').hidden") is False
    assert tab.text("stale-since") == "for 1 s"


def test_a_console_that_does_not_answer_is_said_before_all_else(tab: Tab) -> None:
    tab.opens()
    tab.alive = Answer(reached(None, "AWS refuses."))
    tab.passes(3_000)
    tab.alive = FAILS
    tab.passes(3_000)
    assert tab.text("live-why").startswith(DEAD)
    tab.page.context.set_offline(True)
    tab.settle()
    assert tab.text("live-why") == "This browser is offline."
    asked = tab.asked
    tab.alive = Answer(reached())
    tab.page.context.set_offline(False)
    tab.settle()
    assert (tab.state, tab.asked) == ("live", asked + 1), "it is asked at once"


def test_the_words_are_set_only_when_they_change_since_they_are_read_aloud(tab: Tab) -> None:
    tab.opens()
    tab.page.evaluate(
        """() => { window.changes = 0;
        const seen = new MutationObserver((list) => { window.changes += list.length; });
        for (const id of ["live-state", "live-why"])
          seen.observe(document.getElementById(id), {childList: true, subtree: true}); }"""
    )
    tab.passes(2_000)
    assert tab.says("window.changes") == 0


def test_a_page_that_is_not_whole_says_so_and_a_page_that_is_read_once_says_that(tab: Tab) -> None:
    tab.opens(document('<section class="causes">AWS refuses.</section>'))
    assert (tab.state, tab.text("live-state")) == ("partly", "NOT WHOLE")
    tab.opens(document("", ' data-once="Not read again"'))
    assert (tab.state, tab.text("live-state")) == ("live", "Not read again,")
    tab.opens(document("", ""))
    assert (tab.state, tab.text("live-state")) == ("live", "")


def test_a_page_that_is_not_live_does_not_grow_old(tab: Tab) -> None:
    tab.opens(document("", ""))
    tab.passes(30_000)
    assert (tab.state, tab.read) == ("live", [])


def test_no_time_is_waited_for_that_never_comes(tab: Tab) -> None:
    """A timer without an end rings at once, and again and again."""
    tab.alive = Answer(reached(None))
    tab.opens(document("", ""))
    tab.passes(STALE_AFTER + 1_000)
    assert tab.state == "stale"
    assert tab.says("waits.filter((ms) => !(ms < 1e9)).length") == 0


# ---- asking the console --------------------------------------------------------------------------


def test_the_console_is_asked_when_it_says_and_never_sooner_than_in_a_quarter_second(
    tab: Tab,
) -> None:
    tab.alive = Answer(reached(ends=1_000))
    tab.opens()
    assert tab.asked == 1
    tab.passes(900)
    assert tab.asked == 1
    tab.passes(STEP)
    assert tab.asked == 2
    tab.alive = Answer(reached(ends=-5_000))
    tab.passes(1_000)
    assert tab.asked == 3
    tab.passes(200)
    assert tab.asked == 3
    tab.passes(STEP)
    assert tab.asked == 4


def test_a_console_that_hangs_is_given_up_and_asked_again(tab: Tab) -> None:
    tab.opens(document("", ""))
    tab.alive = HANGS
    tab.passes(3_000 + ASK_WITHIN - STEP)
    assert not tab.text("live-why").startswith(DEAD)
    tab.passes(STEP)
    assert tab.text("live-why").startswith(DEAD)
    asked = tab.asked
    tab.alive = Answer(reached())
    tab.passes(300)
    assert (tab.asked, tab.state) == (asked + 1, "live")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ELSEWHERE, SIGNED_OUT),
        (refused("It was started again.", 401), "It was started again."),
        (refused("", 502), DEAD),
    ],
)
def test_what_the_console_refuses_to_a_question_is_said(
    tab: Tab, answer: Answer, says: str
) -> None:
    tab.opens(document("", ""))
    tab.alive = answer
    tab.passes(3_000)
    assert tab.state == "stale"
    assert tab.text("live-why").startswith(says)
    asked = tab.asked
    tab.passes(2_900)
    assert tab.asked == asked
    tab.passes(STEP)
    assert tab.asked == asked + 1


def test_a_later_question_takes_the_place_of_one_without_an_answer(tab: Tab) -> None:
    tab.alive = HANGS
    tab.opens(document("", ""))
    tab.alive = Answer(reached())
    tab.page.evaluate("void ask()")
    tab.settle()
    assert (tab.state, tab.asked) == ("live", 2)
    tab.passes(2_900)
    assert (tab.asked, tab.text("live-why")) == (2, ""), "and the first one is forgotten"


LATE = """() => { window.given = [];
  window.fetch = () => Promise.resolve({ok: true, status: 200, type: "basic",
    headers: new Headers(), text: () => new Promise((give) => given.push(give))}); }"""
"""Answers that come although they were given up."""


def test_an_answer_to_a_question_that_was_given_up_is_not_taken(tab: Tab) -> None:
    tab.opens(document("", ""))
    tab.page.evaluate(LATE)
    tab.page.evaluate("void ask()")
    tab.page.evaluate("void ask()")
    tab.page.evaluate(f"given[0]({json.dumps(reached(None, 'It is an old answer.'))})")
    assert tab.text("live-why") == ""
    tab.page.evaluate(f"given[1]({json.dumps(reached(None, 'It is new.'))})")
    tab.settle()
    assert tab.text("live-why") == "It is new."


# ---- reading the page ----------------------------------------------------------------------------


def test_a_live_page_is_read_again_in_its_interval_under_its_own_address(tab: Tab) -> None:
    tab.opens(address="/orders?a=1&b=2")
    tab.passes(EVERY - STEP)
    assert tab.read == []
    tab.live = Answer(
        document(SECTION.format("new"), read=AT + EVERY).replace("Orders", "(1) Orders")
    )
    tab.passes(STEP)
    assert tab.read == [("/orders?a=1&b=2", "")]
    assert (tab.text("told"), tab.page.title()) == ("new", "(1) Orders")
    assert tab.says("document.getElementById('read-at').dateTime") == iso(AT + EVERY)
    tab.passes(EVERY)
    assert len(tab.read) == 2


def test_a_page_that_is_not_live_any_more_is_not_read_again(tab: Tab) -> None:
    tab.opens()
    tab.live = Answer(document("It has ended.", ' data-once="Not read again"'))
    tab.passes(EVERY)
    assert tab.text("live-state") == "Not read again,"
    tab.passes(2 * EVERY)
    assert len(tab.read) == 1


def test_the_browser_says_what_it_shows_and_of_the_same_page_only_the_time_is_new(
    tab: Tab,
) -> None:
    tab.opens()
    tab.live = Answer(document(SECTION.format("one")), headers={"ETag": '"part=1"'})
    tab.passes(EVERY)
    tab.live = refused("AWS refuses.", 502)
    tab.passes(EVERY)
    assert (tab.state, tab.text("live-why")) == ("stale", "AWS refuses.")
    read = iso(AT + 3 * EVERY)
    tab.live = Answer("", 304, {"ETag": '"part=1"', "Read-At": read})
    tab.passes(EVERY)
    assert [known for _, known in tab.read] == ["", '"part=1"', '"part=1"']
    assert (tab.state, tab.text("told")) == ("live", "one")
    assert tab.says("document.getElementById('read-at').dateTime") == read
    tab.live = Answer(document(SECTION.format("two")))
    tab.passes(2 * EVERY)
    assert [known for _, known in tab.read][3:] == ['"part=1"', ""]


def test_a_part_that_is_the_same_stays_and_one_that_is_not_there_is_asked_for(tab: Tab) -> None:
    same = '<section aria-labelledby="{}" data-same></section>'
    tab.opens()
    tab.live = Answer(document(same.format("part")), headers={"ETag": '"part=1"'})
    tab.passes(EVERY)
    assert tab.text("told") == "as loaded"
    tab.live = Answer(document(same.format("other")), headers={"ETag": '"other=1"'})
    tab.passes(EVERY)
    tab.passes(EVERY)
    assert [known for _, known in tab.read] == ["", '"part=1"', ""]


def test_a_part_that_cannot_be_read_keeps_what_it_had_if_it_had_something(tab: Tab) -> None:
    def hole(name: str, why: str) -> str:
        return f'<section aria-labelledby="{name}" data-hole><p>{why}</p></section>'

    tab.opens(document(SECTION.format("as loaded") + hole("never", "at first")))
    again = hole("part", "refused") + hole("never", "again") + hole("new", "as well")
    tab.live = Answer(document(again))
    tab.passes(EVERY)
    assert tab.text("told") == "as loaded"
    assert tab.says("document.querySelectorAll('section.old').length") == 1
    text = tab.text("main")
    assert "refused" not in text
    assert "at first" not in text
    assert "again" in text
    assert "as well" in text


@pytest.mark.parametrize(
    ("answer", "says", "of_console"),
    [
        (ELSEWHERE, SIGNED_OUT, True),
        (refused("It was started again.", 401), "It was started again.", True),
        (refused("Another site asks.", 403), "Another site asks.", True),
        (refused("AWS refuses.", 502), "AWS refuses.", False),
        (FAILS, DEAD, True),
    ],
)
def test_a_page_that_cannot_be_read_stays_and_says_why(
    tab: Tab, answer: Answer, says: str, of_console: bool
) -> None:
    """What is wrong with the console is over with its next answer; the page must be read for it."""
    tab.opens()
    tab.live = answer
    tab.passes(EVERY)
    assert tab.state == "stale"
    assert tab.text("live-why").startswith(says)
    assert tab.text("told") == "as loaded"
    tab.live = HANGS
    tab.passes(3_000)
    assert (tab.state, len(tab.read)) == (("live", 2) if of_console else ("stale", 1))
    tab.passes(EVERY - 3_000)
    assert len(tab.read) == 2, "it is tried again"


def test_a_reading_that_hangs_is_given_up_and_the_next_one_begins(tab: Tab) -> None:
    tab.opens()
    tab.page.evaluate("heal = () => {}")
    tab.live = HANGS
    tab.passes(EVERY + PAGE_WITHIN)
    assert (tab.state, tab.text("live-why")) == ("stale", OLD)
    tab.live = Answer(document(SECTION.format("new")))
    tab.passes(EVERY)
    assert (tab.state, tab.text("told")) == ("live", "new")


def test_a_reading_that_another_one_replaces_says_nothing(tab: Tab) -> None:
    tab.opens()
    tab.live = HANGS
    tab.passes(EVERY)
    tab.live = Answer(document(SECTION.format("new")))
    tab.page.locator("#again").click()
    tab.settle()
    assert (tab.state, tab.text("told"), len(tab.read)) == ("live", "new", 2)


def test_a_reading_that_was_given_up_is_not_shown_if_it_comes(tab: Tab) -> None:
    tab.opens()
    tab.page.evaluate("clearTimeout(nextQuestion)")
    tab.page.evaluate(LATE)
    tab.page.evaluate("void readAgain()")
    tab.page.evaluate("void readAgain()")
    old, new = (json.dumps(document(SECTION.format(words))) for words in ("old", "new"))
    tab.page.evaluate(f"given[0]({old})")
    assert tab.text("told") == "as loaded"
    tab.page.evaluate(f"given[1]({new})")
    tab.settle()
    assert tab.text("told") == "new"


def test_the_age_of_a_reading_counts_from_its_beginning(tab: Tab) -> None:
    tab.opens()
    tab.live = HANGS
    tab.passes(EVERY)
    tab.page.evaluate("heal = () => {}")
    tab.passes(EVERY + PAGE_WITHIN - EVERY - STEP)
    assert tab.state == "live"
    tab.passes(STEP)
    assert (tab.state, tab.text("live-why")) == ("stale", OLD)


def test_a_click_reads_a_live_page_in_place_and_loads_another_one(tab: Tab) -> None:
    tab.opens()
    tab.page.locator("#again").click()
    tab.settle()
    assert (tab.loaded, len(tab.read)) == (1, 1)
    tab.opens(document("", ""))
    with tab.page.expect_navigation():
        tab.page.locator("#again").click()
    assert (tab.loaded, len(tab.read)) == (3, 1)


# ---- healing -------------------------------------------------------------------------------------


def test_a_live_page_is_read_at_once_when_aws_answers_again_and_not_before(tab: Tab) -> None:
    tab.opens()
    tab.passes(3_000)
    assert tab.read == [], "it was well"
    tab.alive = Answer(reached(None, "AWS refuses."))
    tab.passes(3_000)
    tab.alive = Answer(reached(None, "AWS still refuses."))
    tab.passes(3_000 - STEP)
    assert tab.read == []
    tab.alive = Answer(reached())
    tab.passes(STEP)
    assert len(tab.read) == 1


def test_a_reading_that_is_under_way_when_aws_answers_again_goes_on(tab: Tab) -> None:
    tab.opens()
    tab.live = HANGS
    tab.passes(EVERY - STEP)
    tab.alive = Answer(reached(None, "AWS refuses."))
    tab.passes(2_100)
    assert tab.state == "stale"
    tab.alive = Answer(reached())
    tab.passes(3_000)
    assert (tab.state, len(tab.read)) == ("live", 1)


def test_a_page_that_only_says_an_error_is_loaded_again_when_aws_answers(tab: Tab) -> None:
    error = document('<p class="problem"> AWS refuses. </p>', " data-unread")
    tab.alive = Answer(reached(None, "AWS refuses, too."))
    tab.opens(error)
    assert (tab.state, tab.text("live-why")) == ("stale", "AWS refuses, too.")
    tab.html, tab.alive = document("It is well.", ""), Answer(reached())
    with tab.page.expect_navigation():
        tab.page.clock.run_for(3_000)
    tab.settle()
    assert (tab.loaded, tab.state) == (2, "live")


def test_a_page_that_only_says_an_error_says_it_on_its_strip(tab: Tab) -> None:
    tab.opens(document('<p class="problem"> AWS refuses. </p>', " data-unread"))
    assert (tab.state, tab.text("live-why")) == ("stale", "AWS refuses.")
    tab.passes(6_000)
    assert tab.loaded == 1, "AWS has always answered"


def test_a_page_without_an_error_is_not_loaded_again(tab: Tab) -> None:
    tab.alive = Answer(reached(None, "AWS refuses."))
    tab.opens(document("a form", ""))
    tab.alive = Answer(reached())
    tab.passes(3_000)
    assert (tab.state, tab.loaded) == ("live", 1)


# ---- who does not look, and machines that sleep --------------------------------------------------


def test_a_hidden_tab_asks_and_counts_nothing_and_a_shown_one_asks_and_reads_at_once(
    tab: Tab,
) -> None:
    tab.opens()
    tab.passes(1_000)
    tab.page.evaluate(HIDE, True)
    before = tab.text("read-at")
    tab.passes(2_000)
    assert tab.text("read-at") == before
    tab.passes(30_000)
    assert (tab.asked, tab.read) == (1, [])
    tab.alive = HANGS
    tab.page.evaluate(HIDE, False)
    tab.settle()
    assert (tab.asked, len(tab.read)) == (2, 1)
    assert tab.state == "read", "what was known before is not believed"


def test_a_question_that_is_under_way_as_the_tab_is_hidden_plans_no_reading(tab: Tab) -> None:
    tab.opens()
    tab.page.evaluate(HIDE, True)
    tab.page.evaluate("void ask(); planReading()")
    tab.passes(20_000)
    assert (tab.asked, tab.read) == (1, [])


@pytest.mark.parametrize(("persisted", "asked"), [("true", 2), ("false", 1)])
def test_a_page_that_the_browser_had_kept_is_asked_for_again(
    tab: Tab, persisted: str, asked: int
) -> None:
    tab.opens()
    tab.passes(STEP)
    event = f"new PageTransitionEvent('pageshow', {{persisted: {persisted}}})"
    tab.page.evaluate(f"void dispatchEvent({event})")
    tab.settle()
    assert (tab.asked, len(tab.read)) == (asked, asked - 1)


@pytest.mark.parametrize(("ms", "asked"), [(2_000, 1), (2_001, 2)])
def test_a_clock_that_ran_ahead_says_that_the_machine_slept(tab: Tab, ms: int, asked: int) -> None:
    tab.opens()
    tab.page.evaluate(SLEEPS, ms)
    tab.passes(1_000)
    assert tab.asked == asked


def test_an_answer_of_aws_from_before_the_machine_slept_is_not_believed(tab: Tab) -> None:
    """The console slept, too, and does not know."""
    tab.opens()
    tab.alive = Answer(reached(-STEP))
    tab.page.evaluate(SLEEPS, 3_600_000)
    tab.passes(1_000)
    assert (tab.asked, tab.state) == (2, "read")
    tab.passes(STALE_AFTER - STEP)
    assert tab.state == "live", "the next answer was given since"


# ---- notes ---------------------------------------------------------------------------------------


def test_notes_come_with_the_time_of_the_last_pass_and_stay_while_they_are_the_same(
    tab: Tab,
) -> None:
    notes = [note("The clock is wrong."), note("The supervisor is silent.", AT)]
    tab.alive = Answer(reached(notes=notes))
    tab.opens()
    first = tab.says("[...document.querySelectorAll('#strip-notes p')].map((p) => p.textContent)")
    assert first == ["The clock is wrong.", "The supervisor is silent. Last pass: just now."]
    assert tab.says("document.querySelectorAll('#strip-notes time').length") == 1
    tab.page.evaluate("window.first = document.querySelector('#strip-notes p')")
    tab.passes(3_000)
    assert tab.says("window.first.isConnected"), "a screen reader does not read it again"
    tab.alive = Answer(reached())
    tab.passes(3_000)
    assert tab.text("strip-notes") == ""


def test_the_page_of_this_test_has_what_the_script_asks_for() -> None:
    """What it looks for by an id is in the real page, too."""
    script = (STATIC / "live.js").read_text("utf-8")
    template = (STATIC.parent / "templates" / "strip.html").read_text("utf-8")
    wanted = {*re.findall(r'getElementById\("([\w-]+)"\)', script)} - {"main"}
    assert wanted
    for name in wanted:
        assert f'id="{name}"' in template, name
        assert f'id="{name}"' in STRIP + AGAIN, name
