"""The console of a team under attack: forged requests on a socket, and forms of other people."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from roundsman_console.aws.stack import DeployedStack, find_stack
from roundsman_console.faces.web.access.identity import HEADER
from roundsman_console.faces.web.access.session import FORM_TOKEN
from roundsman_console.faces.web.access.team import Team
from roundsman_console.faces.web.application import LARGEST_FORM, application
from roundsman_console.faces.web.forms.trial import TRY_ONE
from roundsman_console.faces.web.server import bound
from roundsman_console.facts.application import application_events
from roundsman_console.inspector import Inspector
from tests.console.operators import DECLINED, Operator, holds_of
from tests.moto.orders import order
from tests.support.load_balancer import TRUST
from tests.web.browsers import text_of
from tests.web.hand import Form, forms_of
from tests.web.test_team import ADDRESS, BALANCER, Clock, Desk, desk_of

HOST = "Host: console.example.com"
LOOKS_ONLY: list[str] = ["staff"]
"""The groups of a person who may not command."""


@contextmanager
def listening_team() -> Iterator[int]:
    """A team's console on a socket; its port."""
    team = Team(ADDRESS, TRUST, BALANCER.key_of, now=Clock(), report=print, journal=print)
    app = application(Inspector(DeployedStack("shop", {}, {})), team)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    with bound("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with listening_team() as found:
        yield found


def status_of(port: int, *lines: str, target: str = "/none") -> int:
    """The status of the answer to a request with exactly these lines."""
    text = "\r\n".join([f"GET {target} HTTP/1.1", *lines, "Connection: close", "", ""])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sent:
        sent.sendall(text.encode("latin-1"))
        answer = b"".join(iter(lambda: sent.recv(65_536), b""))
    assert b"Overview" not in answer or answer.startswith(b"HTTP/1.1 404"), answer
    return int(answer.split(b" ", 2)[1])


def test_one_identity_is_believed_however_its_header_is_written(port: int) -> None:
    token = BALANCER.token()
    for line in (
        f"{HEADER}: {token}",
        f"{HEADER.upper()}:{token}",
        f"X-Amzn-Oidc-Data: \t {token} \t",
    ):
        assert status_of(port, HOST, line) == 404, "there is no such page"


def test_a_header_that_is_written_strangely_lets_nobody_in(port: int) -> None:
    token = BALANCER.token()
    wrong = {
        "two lines of two cases": [f"{HEADER}: {token}", f"X-AMZN-OIDC-DATA: {token}"],
        "a second one that is empty": [f"{HEADER}: {token}", f"{HEADER}:"],
        "a second one before it": [f"{HEADER}: evil", f"{HEADER}: {token}"],
        "a list": [f"{HEADER}: {token}, {token}"],
        "a space within": [f"{HEADER}: {token[:40]} {token[40:]}"],
        "a space before the colon": [f"{HEADER} : {token}"],
        "a line that goes on": [f"{HEADER}: {token[:40]}", f" {token[40:]}"],
        "a name with underscores": [f"x_amzn_oidc_data: {token}"],
        "a name with a space": [f" {HEADER}: {token}"],
        "quotes": [f'{HEADER}: "{token}"'],
        "a scheme": [f"{HEADER}: Bearer {token}"],
        "another header": [f"Authorization: Bearer {token}"],
        "a cookie": [f"Cookie: {HEADER}={token}"],
    }
    found = {name: status_of(port, HOST, *lines) for name, lines in wrong.items()}
    assert {status for status in found.values() if status not in (400, 401)} == set(), found


def test_headers_that_nobody_signed_let_nobody_in(port: int) -> None:
    for line in (
        "x-amzn-oidc-identity: amy",
        "x-amzn-oidc-accesstoken: abc",
        "x-forwarded-user: amy",
        "x-forwarded-for: 127.0.0.1",
        "x-original-url: /alive",
        "remote-user: amy",
    ):
        assert status_of(port, HOST, line) == 401, line


def test_another_address_is_refused_also_to_who_is_signed_in(port: int) -> None:
    identity = f"{HEADER}: {BALANCER.token()}"
    for lines in (
        ["Host: evil.example"],
        [HOST, "X-Forwarded-Host: evil.example", "Host: evil.example"],
        ["Host: evil.example", "X-Forwarded-Host: console.example.com"],
        ["Host: console.example.com@evil.example"],
    ):
        assert status_of(port, *lines, identity) in (400, 421), lines
    assert status_of(port, HOST, identity, target="http://evil.example/none") in (400, 404, 421)


def test_a_body_that_is_no_form_is_refused_in_words_and_does_nothing() -> None:
    for desk in desk_of(Inspector(DeployedStack("shop", {}, {}))):
        for body, status in (
            (b"", 403),
            (b"\xff\xfe", 400),
            (json.dumps({FORM_TOKEN: desk.form_token()}).encode(), 400),
            (b'--x\r\nContent-Disposition: form-data; name="go"\r\n\r\nyes\r\n--x--', 403),
            (b"go=yes&" + b"x" * LARGEST_FORM, 413),
            (f"{FORM_TOKEN}={desk.form_token()}&{FORM_TOKEN}=guess&go=yes".encode(), 403),
        ):
            headers = {HEADER: desk.token(), "Origin": ADDRESS}
            answer = desk.client.post("/commands/none", content=body, headers=headers)
            assert answer.status_code == status, body[:40]
            assert text_of(answer.text), body[:40]
            assert "Traceback" not in answer.text
        assert desk.journal == []


@pytest.fixture
def team(operator: Operator) -> Iterator[Desk]:
    """A team before a stack with an order that was undone."""
    operator.world.submit(order("ord-1") | DECLINED)
    operator.world.run()
    yield from desk_of(Inspector(find_stack(None, application_events())))


def fields_of(form: Form, **typed: str) -> dict[str, str]:
    return {one.name: one.value for one in form.fields} | typed


def form_of(html: str, command: str) -> Form:
    return next(one for one in forms_of(html) if one.action == f"/commands/{command}")


@pytest.mark.parametrize("command", ["hold", "resubmit", TRY_ONE, "none"])
def test_who_may_only_look_does_nothing_with_the_form_of_another(
    team: Desk, operator: Operator, command: str
) -> None:
    """The form is as it was shown to a person who may: with token, signature and all."""
    group = str(operator.world.task("ord-1").failure)
    subject = {"order": "ord-1", "agent": "payment", "seconds": "30m", "again": "yes"}
    made = {**subject, "incident": group, "reason": "x"}
    shown = team.posts(command, made)
    for form in forms_of(shown.text):
        made |= fields_of(form, go="yes")
    answer = team.posts(command, made, sub="ben", groups=LOOKS_ONLY)
    assert answer.status_code == 403
    assert "You may only look here" in text_of(answer.text)
    assert team.journal == []
    assert holds_of(operator.world).holds() == []
    assert operator.world.task("ord-1").state.value == "Undone"


def test_what_is_tried_for_one_person_is_not_tried_for_another(
    team: Desk, operator: Operator
) -> None:
    group = str(operator.world.task("ord-1").failure)
    form = form_of(team.get(f"/groups/{group}").text, TRY_ONE)
    own = {FORM_TOKEN: team.form_token(sub="ben")}
    fields = fields_of(form, reason="ben did it", **own)
    answer = team.posts(TRY_ONE, fields, sub="ben")
    assert "Nothing was sent: the form, or what it is about, has changed" in text_of(answer.text)
    assert team.journal == []
    mine = team.posts(TRY_ONE, fields_of(form, reason="amy did it"))
    assert "is tried: this page follows it" in text_of(mine.text)
    assert [json.loads(line)["person"] for line in team.journal] == ["amy"]


def test_the_way_back_of_one_person_is_shown_and_not_carried_out_for_another(
    team: Desk, operator: Operator
) -> None:
    typed = {"agent": "payment", "seconds": "30m", "reason": "x"}
    shown = form_of(team.posts("hold", typed).text, "hold")
    done = team.posts("hold", fields_of(shown, go="yes"))
    assert [one.by for one in holds_of(operator.world).holds()] == ["amy"]
    seen_by_ben = form_of(team.get(done.url.path, sub="ben").text, "release")
    answer = team.posts("release", fields_of(seen_by_ben), sub="ben")
    assert "Nothing was sent: the form, or what it is about, has changed" in text_of(answer.text)
    assert [one.by for one in holds_of(operator.world).holds()] == ["amy"]
    assert forms_of(team.get(done.url.path, sub="cat", groups=LOOKS_ONLY).text) == []
