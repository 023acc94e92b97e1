"""Who may use the console: one browser, by its own pages, under its own address."""

from collections.abc import Iterator

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from roundsman_console.inspector import Inspector
from roundsman_console.stack.stack import DeployedStack
from roundsman_console.web.application import application
from roundsman_console.web.session import FORM_TOKEN, SECURITY_HEADERS, Session
from tests.web.browsers import PORT, text_of

ADDRESS = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def session() -> Session:
    return Session(PORT)


@pytest.fixture
def client(session: Session) -> Iterator[TestClient]:
    """A browser that has not opened the link yet. Nothing here asks the stack."""
    app = application(Inspector(DeployedStack("shop", {}, {})), session)
    with TestClient(app, base_url=ADDRESS) as found:
        yield found


def opened(client: TestClient, session: Session) -> TestClient:
    assert client.get(session.link).status_code == 200
    return client


def form(
    client: TestClient, session: Session, *, origin: str = ADDRESS, token: str = ""
) -> Response:
    fields = {FORM_TOKEN: token or session.form_token, "reason": "x"}
    return client.post("/commands/none", data=fields, headers={"Origin": origin} if origin else {})


def refused(answer: Response, status: int, words: str) -> None:
    assert answer.status_code == status
    assert words in text_of(answer.text)
    assert "shop" not in answer.text, "a refused page shows nothing of the stack"


def test_the_link_opens_the_console_once(client: TestClient, session: Session) -> None:
    link = session.link
    assert client.get(link).status_code == 200
    client.cookies.clear()
    refused(client.get(link), 403, "This link was used before")


def test_a_look_at_the_link_does_not_use_it_up(client: TestClient, session: Session) -> None:
    assert client.head(session.link).status_code == 403
    assert client.get(session.link).status_code == 200


def test_a_wrong_token_opens_nothing_and_uses_up_nothing(
    client: TestClient, session: Session
) -> None:
    refused(client.get("/session?token=guess"), 403, "This link was used before")
    refused(client.get("/session"), 403, "This link was used before")
    assert client.get(session.link).status_code == 200


def test_a_browser_without_the_cookie_is_refused(client: TestClient) -> None:
    refused(client.get("/orders"), 403, "opened in another browser")
    refused(client.get("/live?page=/"), 403, "opened in another browser")


def test_a_guessed_cookie_is_refused(client: TestClient, session: Session) -> None:
    client.cookies.set(session.cookie_name, "guess")
    refused(client.get("/orders"), 403, "opened in another browser")


def test_the_cookie_is_not_for_scripts_nor_for_other_sites(
    client: TestClient, session: Session
) -> None:
    cookie = client.get(session.link).headers["Set-Cookie"]
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1:1", ""])
def test_another_host_name_is_refused_for_every_path(
    client: TestClient, session: Session, host: str
) -> None:
    opened(client, session)
    for path in ("/orders", "/session?token=x", "/static/console.css"):
        refused(client.get(path, headers={"Host": host}), 421, "only under the address")


@pytest.mark.parametrize("origin", ["", "null", "https://evil.example", f"http://localhost:{PORT}"])
def test_a_form_of_another_site_is_refused(
    client: TestClient, session: Session, origin: str
) -> None:
    opened(client, session)
    refused(form(client, session, origin=origin), 403, "does not come from a page of the console")


def test_a_form_without_this_consoles_token_is_refused(
    client: TestClient, session: Session
) -> None:
    opened(client, session)
    refused(form(client, session, token="guess"), 403, "of an earlier console")


def test_a_form_of_the_console_is_read(client: TestClient, session: Session) -> None:
    answer = form(opened(client, session), session)
    assert (answer.status_code, "There is no such command" in answer.text) == (404, True)


def test_a_read_only_console_refuses_every_form(client: TestClient, session: Session) -> None:
    session.read_only = True
    refused(form(opened(client, session), session), 403, "--read-only")


@pytest.mark.parametrize("path", ["/session", "/none", "/static/console.js", "/live?page=/none"])
def test_every_answer_has_the_security_headers(
    client: TestClient, session: Session, path: str
) -> None:
    headers = opened(client, session).get(path).headers
    assert {name: headers[name] for name in SECURITY_HEADERS} == dict(SECURITY_HEADERS)


def test_the_policy_lets_nothing_in_from_elsewhere_and_no_inline_script() -> None:
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy


def test_secrets_are_in_no_text_of_the_session(session: Session) -> None:
    token = session.link.partition("=")[2]
    assert token not in repr(session)
    assert session.form_token not in repr(session)
