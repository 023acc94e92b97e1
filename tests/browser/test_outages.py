"""How long an open page says that it is live after something is lost, by clocks that are passed.

The script of the page runs in a real browser whose clock only this test moves. What it is answered
to `/alive` comes from the console's own `AwsReachable`, whose clock moves along. So the seconds are
counted, and not measured: they are the same on every machine.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from roundsman.model.instants import MINUTE
from roundsman_console.aws.ping import Ping
from roundsman_console.base.errors import InspectorError
from roundsman_console.faces.web.aws_reachable import AwsReachable, answer_of
from roundsman_console.faces.web.live import PING_EVERY
from roundsman_console.faces.web.whereabouts import Whereabouts
from roundsman_console.facts.finding.glance import Glance
from roundsman_console.inspector import Inspector
from tests.browser.desk import Desk
from tests.browser.stories import NO_REFUND
from tests.browser.test_reading import THEMES, faults
from tests.console.operators import DECLINED
from tests.moto.orders import order
from tests.web.passed_time import PassedTime
from tools.engines.chromium import axe_script

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.browser

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "open-the-console.md"
ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| ([0-9.]+) s \|$", re.MULTILINE)
STEP = 200  # ms; the clocks move by so much, and so exact are the seconds
PHASES = (0, 2_800)
"""Something is lost so many ms after AWS has answered."""
READ_IN_TIME = "times.pageWithin = 11000; show()"
"""What a page has from its console, where no test is more patient."""
SILENCE = "AWS was not reached for 5 s."
DEAD = "The console does not answer."
EXPIRED = "The AWS credentials have expired. Sign in again."
NO_TABLE = "AWS has no table shop-Control in this account and region"


def answered(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "GetItem")


@dataclass(frozen=True)
class Outage:
    """What is lost, and what an open page must say."""

    what: str
    """As the console's page in the docs has it."""
    words: tuple[str, ...]
    """The reasons that the page gives, one after the other."""
    does: Callable[[], Exception | None] | None = None
    """What AWS does; None if it is not AWS that is lost."""
    hangs: bool = False
    """Whether no answer comes: of AWS, or of the console."""
    offline: bool = False


OUTAGES = {
    "killed": Outage("the console has ended", (DEAD,)),
    "stopped": Outage("the console hangs", (SILENCE, DEAD), hangs=True),
    "hung": Outage(
        "AWS does not answer",
        (SILENCE, "DynamoDB did not answer within 2 s."),
        does=lambda: None,
        hangs=True,
    ),
    "throttled": Outage(
        "AWS throttles",
        ("AWS is throttling GetItem. Try again in a moment.",),
        does=lambda: answered("ThrottlingException"),
    ),
    "expired": Outage(
        "the credentials have expired",
        (EXPIRED,),
        does=lambda: answered("ExpiredTokenException"),
    ),
    "elsewhere": Outage(
        "the region or the account is another one",
        (NO_TABLE,),
        does=lambda: InspectorError(f"{NO_TABLE}: the stack was deleted."),
    ),
    "offline": Outage("the browser is offline", ("This browser is offline.",), offline=True),
}


@dataclass
class Night:
    """A page of which something is lost, and the two clocks."""

    desk: Desk
    page: "Page"
    loop: PassedTime
    at: int = 0
    """The time that has passed since the clocks were stopped, in ms."""
    outage: Outage | None = None
    ping: Ping = field(default_factory=lambda: Ping(visited_at=1_700_000_000_000))
    asked: int = 0
    """How often the console was asked."""
    waiting: list[tuple[int, "Route", str]] = field(default_factory=list)
    """The questions that are answered later: when, and what."""
    unanswered: int = 0
    """The questions that are never answered."""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        where = Whereabouts("shop")
        self.aws = AwsReachable(self._read, where, 10**12 * MINUTE, clock=self.loop.time)

    async def _read(self) -> Ping:
        outage = self.outage
        if outage is not None and outage.does is not None:
            if outage.hangs:
                await self.over.wait()
            error = outage.does()
            if error is not None:
                raise error
        return self.ping

    def answer(self, route: "Route") -> None:
        """Answer `/alive`, or do not."""
        self.asked += 1
        outage = self.outage
        if outage is not None and outage.does is None:
            if outage.hangs:
                self.unanswered += 1
            else:
                route.abort("internetdisconnected" if outage.offline else "connectionrefused")
            return
        self.loop.now = max(self.loop.now, self.at / 1000)
        reached = self.loop.run(self.aws.ask())
        body = json.dumps(answer_of(reached, self.aws.notes()))
        self.waiting.append((round(self.loop.now * 1000), route, body))

    def passes(self, ms: int) -> None:
        """Let the time pass, step by step, and let everything be answered that is due."""
        for _ in range(ms // STEP):
            self.at += STEP  # first, because what the page asks meanwhile is asked at that time
            self.page.clock.run_for(STEP)
            self.settle()

    def settle(self) -> None:
        """Let the page do all that it does at this moment."""
        self.desk.wait_for("the page to settle", self._has_settled)

    def _has_settled(self) -> bool:
        due = [one for one in self.waiting if one[0] <= self.at]
        self.waiting = [one for one in self.waiting if one[0] > self.at]
        for _, route, body in due:
            route.fulfill(status=200, content_type="application/json", body=body)
        done = self._done_by_page()
        if done is None:
            return False
        asks, reads = done
        waits = self.unanswered > 0 or any(one[0] > self.at for one in self.waiting)
        return not reads and (not asks or waits) and all(one[0] > self.at for one in self.waiting)

    def _done_by_page(self) -> tuple[bool, bool] | None:
        """Whether the page asks, and whether it is read; None while it is loaded again."""
        from playwright.sync_api import Error  # it is not installed where no browser test runs

        done = "document.readyState === 'complete' ? [question !== null, reading !== null] : null"
        try:
            found: tuple[bool, bool] | None = self.page.evaluate(done)
        except Error as error:
            if "because of a navigation" not in error.message:
                raise
            return None
        return found

    def state(self) -> str:
        return self.page.locator("#strip").get_attribute("data-state") or ""

    def passes_until(self, state: str) -> int:
        """Return after how many ms the page is in this state; at most 20 s."""
        begun = self.at
        while self.state() != state:
            assert self.at < begun + 20_000, f"{self.state()} for 20 s"
            self.passes(STEP)
        return self.at - begun

    def loses(self, outage: Outage) -> None:
        self.outage = outage
        self.over.clear()
        if outage.offline:
            self.page.context.set_offline(True)
            self.settle()

    def heals(self) -> None:
        if self.outage is not None and self.outage.offline:
            self.page.context.set_offline(False)
        self.outage, self.unanswered = None, 0
        self.over.set()
        self.settle()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No page is too slow on a busy machine; all other times are the real ones."""
    monkeypatch.setattr("roundsman_console.faces.web.deadlines.PAGE_SECONDS", 600)


@pytest.fixture(scope="module")
def live_seconds() -> None:
    """Pages are read again as often as those of a stack."""
    return


def archived(desk: Desk) -> None:
    """One order waits for a person, and one is completed."""
    with desk.still() as operator:
        operator.world.supervise()
        operator.world.faults(NO_REFUND)
        operator.world.submit({**order("ord-1"), **DECLINED}, order("ord-2"))
        operator.world.run()


@pytest.fixture
def night(desk: Desk) -> Iterator[Night]:
    """A page that is not open yet; both clocks stand."""
    archived(desk)
    page = desk.tab()
    page.clock.pause_at(desk.operator.world.clock.now / 1000)
    loop = PassedTime()
    found = Night(desk, page, loop)
    page.route("**/alive", found.answer)
    yield found
    found.over.set()
    loop.run(asyncio.sleep(0))
    loop.close()


def opened(night: Night, address: str) -> None:
    """The page is open and live."""
    night.page.goto(address)
    night.settle()
    assert night.state() == "live"
    night.page.evaluate("window.kept = true")


def reason(night: Night) -> str:
    return night.page.locator("#live-why").inner_text()


@pytest.mark.parametrize("name", OUTAGES)
def test_a_page_says_that_it_is_stale_within_five_seconds_and_why_and_heals(
    night: Night, name: str
) -> None:
    outage = OUTAGES[name]
    opened(night, "/groups")
    longest = 0
    for phase in PHASES:
        night.passes(phase)
        assert night.state() == "live"
        night.loses(outage)
        longest = max(longest, night.passes_until("stale"))
        for words in outage.words:
            while words not in reason(night):
                assert night.at < 60_000, (words, reason(night))
                night.passes(STEP)
        assert "for 0 s" not in night.page.locator("#strip").inner_text()
        night.heals()
        assert night.passes_until("live") <= PING_EVERY * 1000 + 3_000
        # The next phase counts from an answer of AWS.
        asked = night.asked
        while night.asked == asked:
            night.passes(STEP)
    assert night.page.evaluate("window.kept"), "the page was not loaded again"
    documented = {what: float(seconds) for what, seconds in ROW.findall(PAGE.read_text("utf-8"))}
    assert longest / 1000 == documented[outage.what]
    assert longest < 5_000


def test_the_page_in_the_docs_has_each_outage() -> None:
    documented = [what for what, _ in ROW.findall(PAGE.read_text("utf-8"))]
    assert sorted(documented) == sorted(outage.what for outage in OUTAGES.values())


def test_a_page_that_is_well_never_says_anything_else(night: Night) -> None:
    opened(night, "/orders/ord-1")
    for _ in range(12_000 // STEP):
        night.passes(STEP)
        assert night.state() == "live"
    assert night.asked == 1 + 4, "one question every 3 s"


def test_a_page_of_an_archived_order_is_marked_in_an_outage(night: Night) -> None:
    opened(night, "/orders/ord-1")
    night.loses(OUTAGES["expired"])
    assert night.passes_until("stale") <= 3_000
    assert "expired" in reason(night)


@pytest.mark.parametrize("address", ["/export", "/orders/ord-2", "/commands/hold?agent=mail"])
def test_a_page_that_is_read_once_is_marked_in_an_outage_too(night: Night, address: str) -> None:
    opened(night, address)
    night.loses(OUTAGES["hung"])
    assert night.passes_until("stale") <= 4_800
    night.heals()
    night.passes_until("live")
    assert night.page.evaluate("window.kept")


def test_a_page_whose_own_reading_is_too_old_is_not_live(night: Night) -> None:
    opened(night, "/agents")
    night.page.evaluate(READ_IN_TIME)
    night.page.evaluate("void readAgain()")
    night.settle()
    night.page.evaluate("stopReading(); heal = () => {}")  # and never again
    night.passes(20_800)
    assert night.state() == "live", "10 s of its interval, 10 s for AWS, 1 s on the way"
    night.passes(STEP)
    assert night.state() == "stale"
    assert reason(night) == "The page could not be read again in time."


def test_a_reading_that_hangs_is_given_up_and_said(night: Night) -> None:
    opened(night, "/agents")
    night.page.evaluate(READ_IN_TIME)
    hung: list[object] = []

    def hangs(route: "Route") -> None:
        hung.append(route)

    night.page.route("**/live?*", hangs)
    night.page.clock.run_for(10_000)
    night.desk.wait_for("the reading", lambda: night.page.evaluate("true") and bool(hung))
    night.page.clock.run_for(11_000)
    night.desk.wait_for("the end", lambda: night.page.evaluate("reading === null"))
    assert "The page could not be read again in time." in night.page.evaluate("readingWhy")


def test_a_page_of_an_error_that_is_not_live_is_loaded_again_when_aws_answers(
    night: Night,
) -> None:
    expired = OUTAGES["expired"]

    def refused(*_: object, **__: object) -> None:
        raise answered("ExpiredTokenException")

    night.outage = expired
    with pytest.MonkeyPatch.context() as patch:
        with night.desk.still():
            patch.setattr(Inspector, "dead_letters", refused)
        night.page.goto("/dead-letters")
        night.settle()
        assert "Cannot be read" in night.page.locator("h1").inner_text()
        assert night.state() == "stale"
        with night.desk.still():
            patch.undo()
    night.outage = None
    night.passes(3_000)
    night.page.get_by_role("heading", name="Dead letters").wait_for()


def test_what_was_known_before_a_tab_was_hidden_or_the_machine_asleep_is_not_believed(
    night: Night,
) -> None:
    opened(night, "/orders")
    night.outage = OUTAGES["hung"]
    night.page.evaluate("const now = Date.now; Date.now = () => now() + 3_600_000")  # it slept
    night.at += 1_000
    night.page.clock.run_for(1_000)
    night.settle()
    assert night.state() == "read", "it is asked, and not live"
    night.passes(5_000)
    assert night.state() == "stale"


def test_the_notes_of_the_console_come_and_go_without_a_reload(night: Night) -> None:
    opened(night, "/orders")
    night.ping = Ping(visited_at=1_700_000_000_000, clock_ahead=3_600_000)
    night.passes(3_000)
    note = "The clock of this machine is 1 h ahead of that of AWS, so times here are wrong. Set it."
    assert note in night.page.locator("#strip").inner_text()
    night.ping = Ping(visited_at=1_700_000_000_000, clock_ahead=0)
    night.passes(3_000)
    assert note not in night.page.locator("#strip").inner_text()


def lost(route: "Route") -> None:
    """What the console says when the credentials have expired."""
    said: dict[str, object] = {
        "answeredAfter": None,
        "why": EXPIRED,
        "nextAfter": 3000,
        "notes": [],
    }
    route.fulfill(status=200, content_type="application/json", body=json.dumps(said))


@pytest.mark.parametrize("address", ["/", "/orders/ord-1", "/commands/hold?agent=mail"])
def test_what_is_old_is_grey_and_the_reason_is_not_and_all_can_be_read(
    desk: Desk, address: str
) -> None:
    archived(desk)

    def refused(*_: object, **__: object) -> None:
        raise answered("ExpiredTokenException")

    page = desk.tab()
    page.route("**/alive", lost)
    with pytest.MonkeyPatch.context() as patch:
        with desk.still():
            patch.setattr(Glance, "look_at_orders", refused)
        page.goto(address)
        with desk.still():
            patch.undo()
    page.evaluate("stopReading()")
    desk.wait_for("the reason", lambda: page.locator("#live-why").inner_text() == EXPIRED)
    heading = "document.querySelector('main > h1, main > .title')"
    assert page.evaluate(f"getComputedStyle({heading}).filter") == "grayscale(1)"
    reasons = "[...document.querySelectorAll('#live-why, main > .causes')]"
    filters = page.evaluate(f"{reasons}.map((one) => getComputedStyle(one).filter)")
    assert filters == ["none"] * (2 if address == "/" else 1), "the overview has a cause of its own"
    page.evaluate(axe_script().read_text(encoding="utf-8"))
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        assert faults(page) == [], theme


def test_a_page_without_scripts_has_its_time_and_says_that_it_does_not_update(desk: Desk) -> None:
    desk.tab()  # it opens the console
    page = desk.tab(scripts=False)
    page.goto("/orders")
    strip = page.locator("#strip").inner_text()
    assert "This page does not update by itself, because scripts are off" in strip
    assert re.search(r"at \d\d:\d\d:\d\d UTC", strip)
    assert "Live" not in strip
