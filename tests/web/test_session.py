"""Who may use the console: one browser, by its own pages, under its own address."""

from collections.abc import Iterator

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from roundsman_console.aws.stack import DeployedStack
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.access.session import FORM_TOKEN, SECURITY_HEADERS, SHOWN
from roundsman_console.faces.web.application import application
from roundsman_console.inspector import Inspector
from tests.web.browsers import PORT, text_of


@pytest.fixture
def session() -> BrowserSession:
    return BrowserSession(PORT)


@pytest.fixture
def client(session: BrowserSession) -> Iterator[TestClient]:
    """A browser that has not opened the link yet. Nothing here asks the stack."""
    app = application(Inspector(DeployedStack("shop", {}, {})), session)
    with TestClient(app, base_url=session.address) as found:
        yield found


def opened(client: TestClient, session: BrowserSession) -> TestClient:
    assert client.get(session.link_to()).status_code == 200
    return client


def form(
    client: TestClient, session: BrowserSession, *, origin: str | None = None, token: str = ""
) -> Response:
    fields = {FORM_TOKEN: token or session.form_token, "reason": "x"}
    given = session.address if origin is None else origin
    return client.post("/commands/none", data=fields, headers={"Origin": given} if given else {})


def refused(answer: Response, status: int, words: str) -> None:
    assert answer.status_code == status
    assert words in text_of(answer.text)
    assert "shop" not in answer.text, "a refused page shows nothing of the stack"


def test_the_link_opens_the_console_once(client: TestClient, session: BrowserSession) -> None:
    link = session.link_to()
    assert client.get(link).status_code == 200
    client.cookies.clear()
    refused(client.get(link), 403, "This link was used before")


def test_a_look_at_the_link_does_not_use_it_up(client: TestClient, session: BrowserSession) -> None:
    assert client.head(session.link_to()).status_code == 403
    assert client.get(session.link_to()).status_code == 200


def test_a_wrong_token_opens_nothing_and_uses_up_nothing(
    client: TestClient, session: BrowserSession
) -> None:
    refused(client.get("/session?token=guess"), 403, "This link was used before")
    refused(client.get("/session"), 403, "This link was used before")
    assert client.get(session.link_to()).status_code == 200


def test_a_browser_without_the_cookie_is_refused(client: TestClient) -> None:
    refused(client.get("/orders"), 403, "opened in another browser")
    refused(client.get("/live?page=/"), 403, "opened in another browser")


def test_a_guessed_cookie_is_refused(client: TestClient, session: BrowserSession) -> None:
    client.cookies.set(session.cookie_name, "guess")
    refused(client.get("/orders"), 403, "opened in another browser")


def test_the_cookie_is_not_for_scripts_nor_for_other_sites(
    client: TestClient, session: BrowserSession
) -> None:
    cookie = client.get(session.link_to()).headers["Set-Cookie"]
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", f"evil.example:{PORT}", "127.0.0.1:1", ""),
        *(f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"other.localhost:{PORT}"),
    ],
)
def test_another_host_name_is_refused_for_every_path(
    client: TestClient, session: BrowserSession, host: str
) -> None:
    opened(client, session)
    for path in ("/orders", "/session?token=x", "/static/console.css"):
        refused(client.get(path, headers={"Host": host}), 421, "only under the address")


@pytest.mark.parametrize("origin", ["", "null", "https://evil.example", f"http://localhost:{PORT}"])
def test_a_form_of_another_site_is_refused(
    client: TestClient, session: BrowserSession, origin: str
) -> None:
    opened(client, session)
    refused(form(client, session, origin=origin), 403, "does not come from a page of the console")


def test_a_form_without_this_consoles_token_is_refused(
    client: TestClient, session: BrowserSession
) -> None:
    opened(client, session)
    refused(form(client, session, token="guess"), 403, "of an earlier console")


def test_a_form_of_the_console_is_read(client: TestClient, session: BrowserSession) -> None:
    answer = form(opened(client, session), session)
    assert (answer.status_code, "There is no such command" in answer.text) == (404, True)


def test_a_read_only_console_refuses_every_form(
    client: TestClient, session: BrowserSession
) -> None:
    session.read_only = True
    refused(form(opened(client, session), session), 403, "--read-only")


@pytest.mark.parametrize("path", ["/session", "/none", "/static/console.js", "/live?page=/none"])
def test_every_answer_has_the_security_headers(
    client: TestClient, session: BrowserSession, path: str
) -> None:
    headers = opened(client, session).get(path).headers
    assert {name: headers[name] for name in SECURITY_HEADERS} == dict(SECURITY_HEADERS)


def test_the_policy_lets_nothing_in_from_elsewhere_and_no_inline_script() -> None:
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy


def test_secrets_are_in_no_text_of_the_session(session: BrowserSession) -> None:
    token = session.link_to().partition("=")[2]
    assert token not in repr(session)
    assert session.form_token not in repr(session)


def test_a_cookie_goes_to_the_host_of_its_console_only(
    client: TestClient, session: BrowserSession
) -> None:
    cookie = client.get(session.link_to()).headers["Set-Cookie"]
    assert "domain" not in cookie.lower(), "no other host below localhost gets it"
    assert session.host.endswith(".localhost")
    assert session.host != BrowserSession(PORT).host, "nobody can guess it"


@pytest.mark.parametrize(
    "foreign", ["ui[tab]=1", 'prefs={"theme":"dark"}', "=", ";;", 'a="b', "roundsman_8901=guess"]
)
def test_a_cookie_of_another_program_locks_nobody_out(
    client: TestClient, session: BrowserSession, foreign: str
) -> None:
    cookie = client.get(session.link_to()).headers["Set-Cookie"].partition(";")[0]
    client.cookies.clear()
    for header in (f"{foreign}; {cookie}", f"{cookie}; {foreign}", f"{foreign};{cookie}"):
        assert client.get("/progress/none", headers={"Cookie": header}).status_code == 404, header
    refused(client.get("/orders", headers={"Cookie": foreign}), 403, "opened in another browser")


FROM_ELSEWHERE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}


def test_a_link_of_another_site_leads_through_a_page_that_asks_again(
    client: TestClient, session: BrowserSession
) -> None:
    opened(client, session)
    cookies = dict(client.cookies)
    client.cookies.clear()  # the browser keeps it back
    page = client.get("/progress/w-1?a=b", headers=FROM_ELSEWHERE)
    assert page.status_code == 200
    assert "shop" not in page.text
    assert 'action="' not in page.text, "the form goes to the address of the page"
    assert '<form method="post">' in page.text
    client.cookies.update(cookies)
    again = client.post(
        "/progress/w-1?a=b", headers={"Origin": session.address}, follow_redirects=False
    )
    assert (again.status_code, again.headers["Location"]) == (303, "/progress/w-1?a=b")


def test_the_page_that_asks_again_lets_nobody_in(
    client: TestClient, session: BrowserSession
) -> None:
    page = client.post("/orders", headers={**FROM_ELSEWHERE, "Origin": session.address})
    refused(page, 403, "opened in another browser")
    opened(client, session)
    other = client.post("/orders", headers={"Origin": "https://evil.example"})
    refused(other, 403, "does not come from a page of the console")


def test_only_a_person_who_follows_a_link_gets_the_page_that_asks_again(
    client: TestClient,
) -> None:
    for headers in (
        {**FROM_ELSEWHERE, "Sec-Fetch-Mode": "no-cors"},
        {**FROM_ELSEWHERE, "Sec-Fetch-Site": "none"},
        {**FROM_ELSEWHERE, "Sec-Fetch-Site": "same-origin"},
    ):
        refused(client.get("/orders", headers=headers), 403, "opened in another browser")


def test_a_read_only_console_can_be_reached_by_a_link_too(
    client: TestClient, session: BrowserSession
) -> None:
    session.read_only = True
    opened(client, session)
    again = client.post("/orders", headers={"Origin": session.address}, follow_redirects=False)
    assert (again.status_code, again.headers["Location"]) == (303, "/orders")


def test_nothing_of_the_stack_is_shown_before_the_link_was_opened(client: TestClient) -> None:
    for path in ("/static/none", "/static/", "/static/../orders", "/session", "/alive", "/none"):
        for method in ("GET", "POST", "HEAD", "PUT"):
            answer = client.request(method, path)
            assert answer.status_code >= 400, (method, path)
            assert "shop" not in answer.text, (method, path)
            assert "Overview" not in answer.text, (method, path)


def test_an_open_page_can_ask_whether_its_console_still_runs(
    client: TestClient, session: BrowserSession
) -> None:
    answer = opened(client, session).get("/alive")
    assert answer.status_code == 200
    assert "has no output ControlTableName" in answer.json()["why"], "this stack has no AWS"


@pytest.mark.parametrize(
    ("place", "page"),
    [
        ("", "/"),
        ("f-0a1b2c3d", "/groups/f-0a1b2c3d"),
        ("b-0a1b2c3d", "/bulk/b-0a1b2c3d"),
        ("payment_backup", "/agents/payment_backup"),
        ("payment", "/orders/payment"),  # this stack has no such agent
        ("ord-1", "/orders/ord-1"),
        ("//evil.example", "/orders/%2F%2Fevil.example"),
        ('"><script>', "/orders/%22%3E%3Cscript%3E"),
    ],
)
def test_the_link_leads_to_a_place(place: str, page: str) -> None:
    session = BrowserSession(PORT)
    stack = DeployedStack("shop", {"PaymentBackupRequestQueueUrl": "https://q"}, {})
    app = application(Inspector(stack), session)
    with TestClient(app, base_url=session.address) as client:
        opened_page = client.get(session.link_to(place)).text
    assert f'content="0; url={page}"' in opened_page


def test_a_console_under_127_0_0_1_warns_on_each_page() -> None:
    warning = "other programs that listen on this machine can get its cookie"
    for host, warns in (("127.0.0.1", True), ("a.localhost", False)):
        session = BrowserSession(PORT, host=host)
        app = application(Inspector(DeployedStack("shop", {}, {})), session)
        with TestClient(app, base_url=session.address) as client:
            client.get(session.link_to())
            assert (warning in client.get("/progress/none").text) is warns


def test_a_field_that_was_empty_may_be_missing_when_the_form_is_sent_again(
    session: BrowserSession,
) -> None:
    shown = session.sign({"order": "ord-1", "reason": ""}, "1")
    again = {"order": "ord-1", SHOWN: shown}
    assert not session.take({**again, "reason": "another"}, "1")
    assert not session.take(again, "2")
    assert session.take(again, "1")
    assert not session.take(again, "1"), "it is carried out once"
