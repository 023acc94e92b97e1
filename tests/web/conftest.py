"""A browser before the console of a stack on moto."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from roundsman_console.aws.stack import find_stack
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.application import application
from roundsman_console.facts.application import application_events
from roundsman_console.inspector import Inspector
from roundsman_testing.stack import Clock, Services, Stack
from tests.console.operators import Operator, let_go_is_seen_at_once, operator_of
from tests.project import deployed_project, of_each_agent
from tests.web.browsers import PORT, Browser


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run of a few orders is shown at once, and no page is too slow on a busy machine."""
    monkeypatch.setattr("roundsman_console.faces.web.previews.PATIENCE", 600)
    monkeypatch.setattr("roundsman_console.faces.web.deadlines.PAGE_SECONDS", 600)
    # The check has ended when the page is read.
    monkeypatch.setattr(
        "roundsman_console.faces.web.readings.background_checks.in_background",
        lambda check: check(),
    )


@pytest.fixture(scope="module")
def one_world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One deployment for all tests of a module."""
    parameters = of_each_agent("BreakerFailures", "100")
    with deployed_project(roundsman_services, roundsman_clock, parameters) as world:
        yield world


@pytest.fixture
def operator(
    monkeypatch: pytest.MonkeyPatch, one_world: Stack, session_without_real_aws: None
) -> Iterator[Operator]:
    """Someone at the command line of a stack as deployed just now."""
    with let_go_is_seen_at_once(one_world):
        yield operator_of(one_world, monkeypatch)


@pytest.fixture
def browser(operator: Operator) -> Iterator[Browser]:
    """A browser that has opened the link of a console for the operator's stack."""
    session = BrowserSession(PORT)
    inspector = Inspector(find_stack(None, application_events()))
    app = application(inspector, session)
    with TestClient(app, base_url=session.address) as client:
        client.get(session.link_to())
        yield Browser(client, session, operator, inspector)
