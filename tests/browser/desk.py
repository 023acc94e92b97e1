"""A person before the console in a real Chromium, and the console that is served to them."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import pytest
import uvicorn
from starlette.concurrency import run_in_threadpool

from roundsman.model.instants import MINUTE
from roundsman_console.aws.ping import Ping
from roundsman_console.base.clock import now
from roundsman_console.faces.web import application as web
from roundsman_console.faces.web import deadlines, work
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.aws_reachable import AwsReachable
from roundsman_console.faces.web.server import listening
from roundsman_console.faces.web.whereabouts import find_whereabouts
from roundsman_console.inspector import Inspector
from tests.console.operators import Operator
from tools.engines.chromium import find_chromium
from tools.engines.runtimes import ToolError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, StorageState, ViewportSize

T = TypeVar("T")
NEVER = 10**12 * MINUTE
"""The interval of a supervisor that is never late: the clock of the stack jumps."""
PATIENCE = 60  # seconds; only ever used up when something is broken
WIDE, MIDDLE, NARROW = 1280, 768, 360
HEIGHT = 800
"""The widths of a window, in px."""


@contextmanager
def started_chromium() -> "Iterator[Browser]":
    """A Chromium without a window. Where there is none, the test fails, and says what to do."""
    try:
        from playwright.sync_api import sync_playwright  # every other test does without it

        found = find_chromium()
    except (ImportError, ToolError) as error:
        pytest.fail(f"{error}. `make engines` installs what is missing.", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.program,
            args=list(found.arguments),
            env={**os.environ, **found.environment},
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Readings:
    """The pages that were read."""

    count: int = 0


@dataclass(frozen=True)
class Server:
    """A console that is served on a port of 127.0.0.1."""

    session: BrowserSession
    readings: Readings
    still: "threading.RLock"
    """Held while a page is read: who holds it too can change the stack meanwhile."""
    inspector: Inspector


@contextmanager
def served(
    inspector: Inspector, patch: pytest.MonkeyPatch, *, every: Mapping[str, float] | None = None
) -> Iterator[Server]:
    """Serve the console in a thread. `every` are the seconds of live pages, by their paths."""
    readings, still = Readings(), threading.RLock()

    async def one_at_a_time(read: Callable[[], T]) -> T:
        def alone() -> T:
            with still:
                readings.count += 1
                return read()

        return await run_in_threadpool(alone)

    run_work = work._run

    def work_alone(one: work.Work, do: work.Do) -> None:
        if one.title.endswith("dry run"):
            run_work(one, do)  # the request that waits for it holds the lock
            return
        with still:
            run_work(one, do)

    patch.setattr(web, "run_in_threadpool", one_at_a_time)
    patch.setattr(work, "_run", work_alone)
    patch.setattr(deadlines, "run_in_threadpool", one_at_a_time)
    if every is not None:
        patch.setattr(web, "LIVE_SECONDS", every)
    # The stack's clock stands, and moto dates its answers by that of the machine: every page would
    # say that the clock here is wrong.
    whereabouts = replace(find_whereabouts(inspector.stack), clock_ahead=0)
    aws = AwsReachable(_answers, whereabouts, NEVER)
    with listening(0) as listener:
        session = BrowserSession(listener.getsockname()[1])
        config = uvicorn.Config(
            web.application(inspector, session, whereabouts, aws=aws),
            log_config=None,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Server(session, readings, still, inspector)
        finally:
            server.should_exit = True
            thread.join()


async def _answers() -> Ping:
    """AWS answers at once; `test_outages.py` has the rest."""
    return Ping(visited_at=now())


@dataclass
class Desk:
    """A person with the command line, and with the console in a browser."""

    browser: "Browser"
    server: Server
    operator: Operator
    contexts: list["BrowserContext"] = field(default_factory=list)
    opened: "StorageState | None" = None
    """The cookie of the console, once a tab has opened its link."""

    def tab(self, *, width: int = WIDE, dark: bool = False, scripts: bool = True) -> "Page":
        """A tab of its own that may use the console. The first one opens the link."""
        size: ViewportSize = {"width": width, "height": HEIGHT}
        context = self.browser.new_context(
            base_url=self.server.session.address,
            viewport=size,
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            reduced_motion="reduce",
            storage_state=self.opened,
        )
        context.set_default_timeout(PATIENCE * 1000)
        self.contexts.append(context)
        page: Page = context.new_page()
        # The stack's clock stands, and so does that of the browser.
        page.clock.set_fixed_time(self.operator.world.clock.now / 1000)  # in seconds
        if self.opened is None:
            page.goto(self.server.session.link_to())
            page.wait_for_url(f"{self.server.session.address}/")  # where the link leads on to
            self.opened = context.storage_state()
        return page

    def close(self) -> None:
        """Close all tabs, and so their live pages."""
        for context in self.contexts:
            context.close()

    @contextmanager
    def still(self) -> Iterator[Operator]:
        """The operator of the stack, while no page is read."""
        with self.server.still:
            yield self.operator

    def wait_for(self, what: str, true: Callable[[], bool]) -> None:
        """Wait until `true()` is so; fails the test after PATIENCE seconds."""
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end, f"waited {PATIENCE} s for {what}"
            time.sleep(0.01)
