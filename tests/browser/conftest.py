"""A Chromium, and the console of a stack on moto that it opens."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest
from starlette.responses import Response

from roundsman_console.aws.stack import find_stack
from roundsman_console.faces.web.application import Console, Values
from roundsman_console.faces.web.readings import released
from roundsman_console.facts.application import application_events
from roundsman_console.inspector import Inspector
from roundsman_testing.stack import Clock, Services, Stack
from tests.browser.desk import Desk, served, started_chromium
from tests.browser.stories import busy
from tests.console.operators import Operator, let_go_is_seen_at_once, operator_of
from tests.project import deployed_project, of_each_agent
from tests.web.wellness import doctor_finds_nothing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FAST = dict.fromkeys(
    (
        *(
            "/",
            "/orders",
            "/orders/{order}",
            "/groups",
            "/groups/{group}",
            "/agents",
            "/bulk",
            "/bulk/{run}",
        ),
        "/progress/{work}",
    ),
    0.05,
)
"""Seconds from one reading of a live page to the next, so that no test waits for one."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run of a few orders is shown at once, and no page is too slow on a busy machine."""
    monkeypatch.setattr("roundsman_console.faces.web.previews.PATIENCE", 600)
    monkeypatch.setattr("roundsman_console.faces.web.deadlines.PAGE_SECONDS", 600)
    monkeypatch.setattr("roundsman_console.faces.web.live.LIVE_FOR", 600)
    monkeypatch.setattr("roundsman_console.faces.web.live.ON_THE_WAY", 600)


@pytest.fixture(scope="package")
def chromium(session_without_real_aws: None) -> "Iterator[Browser]":
    """One Chromium for all of these tests; each tab has a profile of its own."""
    with started_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def one_world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One deployment for all tests of a module."""
    parameters = {**of_each_agent("BreakerFailures", "100"), "Engine.UndoneAlertCount": "3"}
    with deployed_project(roundsman_services, roundsman_clock, parameters) as world:
        yield world


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    """What a module's stack and console are changed with."""
    with pytest.MonkeyPatch.context() as found:
        yield found


@pytest.fixture(scope="module")
def module_operator(
    patch: pytest.MonkeyPatch, one_world: Stack, session_without_real_aws: None
) -> Iterator[Operator]:
    """Someone at the command line of the module's stack."""
    with let_go_is_seen_at_once(one_world):
        yield operator_of(one_world, patch)


@pytest.fixture(scope="module")
def live_seconds() -> Mapping[str, float]:
    """Seconds from one reading of a live page to the next. A module may have others."""
    return FAST


@pytest.fixture(scope="module")
def module_desk(
    chromium: "Browser",
    module_operator: Operator,
    patch: pytest.MonkeyPatch,
    live_seconds: Mapping[str, float],
) -> Iterator[Desk]:
    """The console of the module's stack, as its tests leave it."""
    inspector = Inspector(find_stack(None, application_events()))
    doctor_finds_nothing(module_operator.world, patch)
    with served(inspector, patch, every=live_seconds) as server:
        desk = Desk(chromium, server, module_operator)
        yield desk
        desk.close()


@pytest.fixture
def desk(module_desk: Desk) -> Iterator[Desk]:
    """The console of a stack in which nothing has happened yet."""
    with module_desk.still() as operator:
        operator.world.start_over()
        released._RELEASED.clear()  # its clock begins again, so they would lie ahead
    yield module_desk
    module_desk.close()


@pytest.fixture(scope="module")
def busy_desk(module_desk: Desk, patch: pytest.MonkeyPatch) -> Desk:
    """The console of a stack in which something of everything has happened, and nothing does now.

    Each page is read once, and shown to each tab as it was read.
    """
    with module_desk.still() as operator:
        busy(operator)
    answer, known = Console.answer, dict[str, Response]()

    async def once(
        self: Console, template: str, read: Callable[[], Values], *, path: str
    ) -> Response:
        if path not in known:
            known[path] = await answer(self, template, read, path=path)
        return known[path]

    patch.setattr(Console, "answer", once)
    return module_desk
