"""A session that ends while somebody fills in a form: nothing typed is lost, and nothing is done.

The form comes back with what was typed, and is sent again only by the person who typed it.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.testclient import TestClient

from roundsman_console.aws.stack import find_stack
from roundsman_console.faces.web.access.identity import HEADER
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.access.session import FORM_TOKEN
from roundsman_console.faces.web.application import LARGEST_FORM, application
from roundsman_console.faces.web.form_registry import commands
from roundsman_console.facts.application import application_events
from roundsman_console.inspector import Inspector
from tests.support.load_balancer import LoadBalancer
from tests.web.browsers import PORT, Browser, text_of
from tests.web.hand import Form, forms_of
from tests.web.test_team import ADDRESS, BALANCER, Desk, desk_of

TYPED = {"agent": "payment", "seconds": "45m", "reason": '"it" <b>declines</b> every card\x1b[31m'}
AS_SHOWN = {**TYPED, "go": "yes", "shown": "x", FORM_TOKEN: "of before"}
EVENT = '{\r\n  "orderId": "<script>alert(1)</script>"\r\n}'


@contextmanager
def signed_out(browser: Browser) -> Iterator[None]:
    """The browser has no cookie of the console."""
    kept = dict(browser.client.cookies)
    browser.client.cookies.clear()
    yield
    browser.client.cookies.update(kept)


def holds(browser: Browser) -> list[object]:
    agents = browser.operator.reads("agents")["agents"]
    assert isinstance(agents, list)
    return [one["name"] for one in agents if one.get("holds")]


def sent_by(form: Form) -> dict[str, str]:
    return {field.name: field.value for field in form.fields}


def test_the_form_of_a_browser_that_is_not_known_any_more_comes_back_as_it_was_typed(
    browser: Browser,
) -> None:
    origin = {"Origin": browser.session.address}
    with signed_out(browser):
        page = browser.client.post("/commands/hold", data=AS_SHOWN, headers=origin)
    assert page.status_code == 403
    [form] = forms_of(page.text)
    assert sent_by(form) == TYPED, "neither the token nor what carries it out is on the page"
    assert form.action == "/commands/hold"
    assert "<b>" not in page.text
    assert "roundsman_" not in page.text
    assert "order_fulfilment" not in page.text
    assert "What you typed is on this page." in text_of(page.text)
    assert "<script" not in page.text, "no script sends it"
    assert holds(browser) == []

    again = browser.client.post(form.action, data=sent_by(form), headers=origin)
    assert [one.status_code for one in again.history] == [303]
    assert "Nothing was done: the console was started again" in text_of(again.text)
    shown = next(form for form in forms_of(again.text) if form.action == "/commands/hold")
    assert {name: sent_by(shown)[name] for name in TYPED} == TYPED
    assert [button.words for button in shown.buttons] == ["Show what it would do"]
    assert holds(browser) == [], "it is shown, and not carried out"

    fields = {name: text for name, text in sent_by(shown).items() if name in TYPED}
    assert "Done: payment is held for 45 min." in browser.carries_out("hold", **fields)


def test_a_text_of_several_lines_comes_back_as_it_was_typed(browser: Browser) -> None:
    with signed_out(browser):
        page = browser.posts("submit", body=EVENT)
    [form] = forms_of(page.text)
    assert sent_by(form) == {"body": EVENT}
    assert "<script>alert" not in page.text


@pytest.mark.parametrize(
    "headers",
    [{}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": ADDRESS}],
)
def test_what_another_site_sends_is_not_shown(browser: Browser, headers: dict[str, str]) -> None:
    with signed_out(browser):
        page = browser.client.post("/commands/hold", data=AS_SHOWN, headers=headers)
    assert page.status_code == 403
    assert "declines" not in page.text
    assert forms_of(page.text) == []


def test_nothing_but_the_form_of_a_command_comes_back(browser: Browser) -> None:
    origin = {"Origin": browser.session.address}
    with signed_out(browser):
        for method, path, body in (
            ("POST", "/orders", b"reason=kept"),
            ("POST", "/none", b"reason=kept"),
            ("GET", "/commands/hold?reason=kept", b""),
            ("PUT", "/commands/hold", b"reason=kept"),
            ("POST", "/commands/hold", b"reason=kept&" + b"x" * LARGEST_FORM),
            ("POST", "/commands/hold", b"kept"),
            ("POST", "/commands/hold", b"\xffkept=1"),
            ("POST", "/commands/hold", json.dumps({"reason": "kept"}).encode()),
        ):
            page = browser.client.request(method, path, content=body, headers=origin)
            assert page.status_code == 403, path
            assert "opened in another browser" in text_of(page.text)
            assert "kept" not in page.text


def test_a_form_of_a_console_that_was_started_again_is_shown_again(browser: Browser) -> None:
    session = BrowserSession(PORT, host=browser.session.host)
    inspector = Inspector(find_stack(None, application_events()))
    with TestClient(application(inspector, session), base_url=session.address) as client:
        client.get(session.link_to())
        before = {**AS_SHOWN, FORM_TOKEN: browser.session.form_token}
        origin = {"Origin": session.address}
        page = client.post("/commands/hold", data=before, headers=origin)
    assert "Nothing was done" in text_of(page.text)
    [form] = [form for form in forms_of(page.text) if form.action == "/commands/hold"]
    assert sent_by(form) == {**TYPED, FORM_TOKEN: session.form_token, "shown": ""}
    assert holds(browser) == []


@pytest.mark.exhaustive
def test_every_form_keeps_what_was_typed(browser: Browser) -> None:
    origin = {"Origin": browser.session.address}
    for command in commands():
        typed = {"reason": "kept <b>", "order": "ord-1", "agent": "mail", FORM_TOKEN: "old"}
        page = browser.client.post(f"/commands/{command}", data=typed, headers=origin)
        assert page.status_code == 200, command
        assert "Nothing was done: the console was started again" in text_of(page.text), command
        assert "kept <b>" not in page.text
        if 'name="reason"' in page.text:
            assert 'value="kept &lt;b&gt;"' in page.text, command


@pytest.fixture
def team(browser: Browser) -> Iterator[Desk]:
    """A team before the operator's stack."""
    yield from desk_of(browser.inspector)


def posted(desk: Desk, token: str, fields: dict[str, str], origin: str = ADDRESS) -> str:
    """The page after somebody with this identity has sent a form."""
    headers = {"Origin": origin, **({HEADER: token} if token else {})}
    answer = desk.client.post("/commands/hold", data=fields, headers=headers)
    assert answer.status_code in (200, 401), answer.status_code
    return answer.text


def test_the_form_of_a_person_who_is_not_signed_in_any_more_comes_back(
    browser: Browser, team: Desk
) -> None:
    for token in ("", LoadBalancer().token(), BALANCER.token(BALANCER.header(exp=1))):
        page = posted(team, token, AS_SHOWN)
        [form] = forms_of(page)
        assert sent_by(form) == TYPED
        assert "You are not signed in here." in text_of(page)
        assert "roundsman_" not in page
        assert forms_of(posted(team, token, AS_SHOWN, "https://evil.example")) == []
    back = posted(team, team.token(), sent_by(form))
    assert "Nothing was done" in text_of(back)
    assert 'value="45m"' in back
    assert (holds(browser), team.journal) == ([], [])


def test_the_form_that_one_person_filled_in_is_shown_again_to_another(
    browser: Browser, team: Desk
) -> None:
    fields = {**AS_SHOWN, FORM_TOKEN: team.form_token()}
    page = posted(team, team.token(sub="ben"), fields)
    assert "another person signed in" in text_of(page)
    assert re.search(rf'name="{FORM_TOKEN}" value="{team.form_token(sub="ben")}"', page)
    assert 'value="45m"' in page
    assert (holds(browser), team.journal) == ([], [])


def test_whether_a_browser_is_let_in_is_told_without_asking_aws(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "roundsman_console.faces.web.aws_reachable.AwsReachable.ask",
        lambda _: pytest.fail("AWS was asked"),
    )
    assert browser.client.head("/alive").status_code == 204
    with signed_out(browser):
        assert browser.client.head("/alive").status_code == 403
