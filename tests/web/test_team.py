"""The console of a team: who gets in, who may command, and under which name."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
from httpx2 import Response
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from roundsman.model.json import Json
from roundsman_console.acts.actor import signed_in
from roundsman_console.aws.stack import DeployedStack, find_stack
from roundsman_console.faces.web.access.identity import HEADER
from roundsman_console.faces.web.access.identity_keys import IdentityKeys
from roundsman_console.faces.web.access.session import FORM_TOKEN, SECURITY_HEADERS, SHOWN, Session
from roundsman_console.faces.web.access.team import REPEATED_AFTER, Team
from roundsman_console.faces.web.application import PAGES, application
from roundsman_console.facts.application import application_events
from roundsman_console.inspector import Inspector
from tests.console.operators import DECLINED, Operator, holds_of
from tests.moto.orders import order
from tests.support.load_balancer import KEY_ID, NOW, TRUST, LoadBalancer, serving_keys
from tests.web.browsers import text_of

ADDRESS = "https://console.example.com"
BALANCER = LoadBalancer()


@dataclass
class Clock:
    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Desk:
    """Browsers of a team, behind the load balancer."""

    client: TestClient
    inspector: Inspector
    clock: Clock
    reports: list[str] = field(default_factory=list)
    journal: list[str] = field(default_factory=list)

    def get(self, path: str, **claims: Json) -> Response:
        return self.client.get(path, headers={HEADER: self.token(**claims)})

    def token(self, **claims: Json) -> str:
        return BALANCER.token(claims=BALANCER.claims(**claims))

    def form_token(self, **claims: Json) -> str:
        page = self.get("/commands/submit", **claims).text
        return page.partition(f'name="{FORM_TOKEN}" value="')[2].partition('"')[0]

    def posts(
        self, command: str, fields: Mapping[str, str], *, origin: str = ADDRESS, **claims: Json
    ) -> Response:
        given = {FORM_TOKEN: self.form_token(), **fields}
        headers = {HEADER: self.token(**claims), "Origin": origin}
        return self.client.post(f"/commands/{command}", data=given, headers=headers)


def desk_of(inspector: Inspector, *, read_only: bool = False) -> Iterator[Desk]:
    clock, reports, journal = Clock(), list[str](), list[str]()
    team = Team(
        ADDRESS,
        TRUST,
        BALANCER.key_of,
        now=clock,
        report=reports.append,
        journal=journal.append,
        read_only=read_only,
    )
    with TestClient(application(inspector, team), base_url=ADDRESS) as client:
        yield Desk(client, inspector, clock, reports, journal)


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A team before a stack of which nothing is asked."""
    yield from desk_of(Inspector(DeployedStack("shop", {}, {})))


def refused(answer: Response, status: int, words: str) -> None:
    assert answer.status_code == status
    assert words in text_of(answer.text)
    for secret in ("shop", "Overview", "amy", "on-call", TRUST.issuer, TRUST.signer):
        assert secret not in answer.text, "a refused page says nothing of the stack and the team"


def test_each_page_says_who_is_signed_in(desk: Desk) -> None:
    for path in ("/none", "/progress/none", "/results/none", "/commands/none"):
        assert "signed in: amy" in text_of(desk.get(path).text), path
    assert "signed in: ben" in text_of(desk.get("/none", sub="ben").text)


def test_a_name_is_shown_as_text(desk: Desk) -> None:
    page = desk.get("/none", sub="<script>alert(1)</script>").text
    assert "<script>alert" not in page
    assert "signed in: &lt;script&gt;alert(1)" in page


PATHS = [page.path for page in PAGES]


@pytest.mark.parametrize(
    "path", [*PATHS, "/static/console.css", "/static/none", "/session", "/alive", "/live", "/none"]
)
def test_nothing_is_shown_to_who_is_not_signed_in(desk: Desk, path: str) -> None:
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
        answer = desk.client.request(method, path)
        assert answer.status_code == 401, method
        if method != "HEAD":
            refused(answer, 401, "You are not signed in here.")
    assert desk.reports == [], "the health check of a load balancer is no news"


def test_neither_a_cookie_nor_a_token_in_the_address_opens_it(desk: Desk) -> None:
    refused(desk.client.get("/session?token=guess"), 401, "not signed in")
    assert desk.get("/session?token=guess").status_code == 404, "there is no such page"
    assert "Set-Cookie" not in desk.get("/none").headers


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (LoadBalancer().token(), "the signature of the identity is wrong"),
        (BALANCER.token(BALANCER.header(alg="none")), "not signed with ES256"),
        (BALANCER.token(BALANCER.header(alg="HS256")), "not signed with ES256"),
        (BALANCER.token(BALANCER.header(signer="arn:evil")), "another load balancer"),
        (BALANCER.token(BALANCER.header(iss="https://evil.example")), "another issuer"),
        (BALANCER.token(BALANCER.header(exp=NOW - 61)), "has expired"),
        (BALANCER.token(BALANCER.header(kid=KEY_ID[::-1])), "no UUID"),
        (BALANCER.token(BALANCER.header(kid=KEY_ID.replace("0", "1"))), "no such key"),
        ("evil", "no token of three parts"),
        ("", "no token of three parts"),
        ("é", "no token of three parts"),
    ],
)
def test_a_wrong_identity_is_refused_and_the_reason_is_reported(
    desk: Desk, token: str, why: str
) -> None:
    headers = [(HEADER.encode(), token.encode("latin-1"))]
    refused(desk.client.get("/none", headers=headers), 401, "You are not signed in here.")
    [report] = desk.reports
    assert why in report
    assert "evil" not in report


def test_two_identities_are_refused_also_if_they_are_equal(desk: Desk) -> None:
    for second in (desk.token(), desk.token(sub="ben"), "", "x"):
        for pair in ([desk.token(), second], [second, desk.token()]):
            headers = [(HEADER, one) for one in pair]
            refused(desk.client.get("/none", headers=headers), 401, "not signed in")
    both = f"{desk.token()},{desk.token()}"
    refused(desk.client.get("/none", headers={HEADER: both}), 401, "not signed in")
    assert "more than one identity" in desk.reports[0]


def test_an_identity_ends_while_a_page_is_open(desk: Desk) -> None:
    headers = {HEADER: desk.token()}
    assert desk.client.get("/alive", headers=headers).status_code == 200
    desk.clock.now += 180
    assert desk.client.get("/alive", headers=headers).status_code == 401


def test_a_reason_is_reported_once_a_minute(desk: Desk) -> None:
    for _ in range(3):
        desk.client.get("/none", headers={HEADER: "x"})
    assert len(desk.reports) == 1
    desk.client.get("/none", headers={HEADER: LoadBalancer().token()})
    assert len(desk.reports) == 2, "another reason"
    desk.clock.now += REPEATED_AFTER
    desk.client.get("/none", headers={HEADER: "x"})
    assert len(desk.reports) == 3


@pytest.mark.parametrize(
    "host", ["evil.example", "console.example.com:8080", "127.0.0.1:8080", "console.example.com."]
)
def test_another_host_is_refused_to_who_is_signed_in(desk: Desk, host: str) -> None:
    answer = desk.client.get("/none", headers={HEADER: desk.token(), "Host": host})
    refused(answer, 421, "does not answer under this address")


@pytest.mark.parametrize(
    "origin", ["", "null", "http://console.example.com", "https://evil.example"]
)
def test_a_form_of_another_site_is_refused(desk: Desk, origin: str) -> None:
    answer = desk.posts("none", {"reason": "x"}, origin=origin)
    refused(answer, 403, "does not come from a page of the console")


def test_a_form_is_that_of_one_person(desk: Desk) -> None:
    assert desk.form_token() == desk.form_token(), "until the console ends"
    assert desk.form_token() != desk.form_token(sub="ben")
    assert desk.posts("none", {}).status_code == 404, "there is no such command"
    refused(desk.posts("none", {}, sub="ben"), 403, "This form is of an earlier console")
    guess = {FORM_TOKEN: "guess"}
    refused(desk.posts("none", guess), 403, "This form is of an earlier console")


def test_a_decision_is_carried_out_once_in_whatever_request() -> None:
    team = Team(ADDRESS, TRUST, BALANCER.key_of, now=Clock(), report=print, journal=print)
    headers = Headers({HEADER: BALANCER.token(), "Host": "console.example.com"})

    def session() -> Session:
        found = asyncio.run(team.enter("GET", "/", headers))
        assert isinstance(found, Session)
        return found

    form = {"order": "ord-1"}
    shown = {**form, SHOWN: session().sign(form, "7")}
    assert not session().take(shown, "8"), "the order has changed"
    assert session().take(shown, "7")
    assert not session().take(shown, "7")


def test_the_form_of_another_start_is_refused(desk: Desk) -> None:
    for other in desk_of(Inspector(DeployedStack("shop", {}, {}))):
        token = {FORM_TOKEN: other.form_token()}
        refused(desk.posts("none", token), 403, "This form is of an earlier console")


@pytest.mark.parametrize("groups", [None, [], ["staff"], "staff"])
def test_who_is_not_in_the_group_may_only_look(desk: Desk, groups: Json) -> None:
    page = text_of(desk.get("/commands/submit", groups=groups).text)
    assert "signed in: amy read-only" in page
    assert "You may only look here" in page
    assert desk.form_token(groups=groups) == "", "there is no form"
    refused(desk.posts("none", {}, groups=groups), 403, "You may only look here")


def test_a_console_that_was_started_read_only_is_so_for_all() -> None:
    for desk in desk_of(Inspector(DeployedStack("shop", {}, {})), read_only=True):
        assert "signed in: amy read-only" in text_of(desk.get("/none").text)
        refused(desk.posts("none", {}), 403, "You may only look here")


@pytest.mark.parametrize("path", ["/none", "/static/console.js"])
def test_every_answer_has_the_security_headers(desk: Desk, path: str) -> None:
    for answer in (desk.client.get(path), desk.get(path)):
        found = {name: answer.headers[name] for name in SECURITY_HEADERS}
        assert found == dict(SECURITY_HEADERS)


def test_the_key_is_read_from_its_server() -> None:
    with serving_keys({f"/{KEY_ID}": (200, BALANCER.pem)}) as server:
        keys = IdentityKeys(server.connect, Clock())
        reports: list[str] = []
        team = Team(ADDRESS, TRUST, keys.key_of, now=Clock(), report=reports.append, journal=print)
        app = application(Inspector(DeployedStack("shop", {}, {})), team)
        with TestClient(app, base_url=ADDRESS) as client:
            for _ in range(2):
                headers = {HEADER: BALANCER.token()}
                assert client.get("/alive", headers=headers).status_code == 200
        assert (server.asked, reports) == ([f"/{KEY_ID}"], [])


@pytest.fixture
def sent(operator: Operator) -> Iterator[tuple[Desk, list[dict[str, Json]]]]:
    """A team before the operator's stack, and the commands that it sends."""
    stack = find_stack(None, application_events())
    bodies: list[dict[str, Json]] = []

    def note(params: Mapping[str, str], **_: object) -> None:
        bodies.append(json.loads(params["MessageBody"]))

    stack.sqs.meta.events.register("provide-client-params.sqs.SendMessage", note)
    for desk in desk_of(Inspector(stack)):
        yield desk, bodies


def an_undone_order(operator: Operator) -> None:
    operator.world.submit(order("ord-1") | DECLINED)
    operator.world.run()


def shown_by(answer: Response) -> str:
    found = re.search(r'name="shown" value="([^"]+)"', answer.text)
    assert found is not None, text_of(answer.text)
    return found[1]


def carried_out(desk: Desk, command: str, fields: Mapping[str, str]) -> Response:
    shown = shown_by(desk.posts(command, fields))
    again = {**fields, "go": "yes", "shown": shown}
    return desk.posts(command, again)


@pytest.mark.exhaustive
def test_a_command_carries_who_is_signed_in(
    operator: Operator, sent: tuple[Desk, list[dict[str, Json]]]
) -> None:
    desk, bodies = sent
    an_undone_order(operator)
    fields = {"order": "ord-1", "reason": "the card is good", "again": "yes"}
    page = text_of(carried_out(desk, "resubmit", fields).text)
    assert "Done. The history of ord-1 has" in page
    [body] = bodies
    assert (body["kind"], body["by"], body["forwardedFor"]) == ("resubmit", "amy", "amy")
    [line] = desk.journal
    assert json.loads(line) == {"person": "amy", "command": "resubmit", "about": "ord-1"}
    assert signed_in() is None, "nobody is signed in outside of a request"
    found = find_stack(None)
    # The stack has no ConsoleRoleId, so it believes what AWS says.
    rows = [one for one in found.tasks.history("ord-1") if one.by == "amy"]
    assert [(one.kind, "through console" in str(one.sender)) for one in rows] == [
        ("resubmit", False)
    ]


def test_a_decision_that_was_shown_to_one_person_is_not_carried_out_for_another(
    operator: Operator, sent: tuple[Desk, list[dict[str, Json]]]
) -> None:
    desk, bodies = sent
    an_undone_order(operator)
    fields = {"order": "ord-1", "reason": "x", "again": "yes"}
    shown = shown_by(desk.posts("resubmit", fields))
    own = {FORM_TOKEN: desk.form_token(sub="ben")}
    again = {**fields, **own, "go": "yes", "shown": shown}
    page = text_of(desk.posts("resubmit", again, sub="ben").text)
    assert "Nothing was sent: the form, or what it is about, has changed" in page
    assert (bodies, desk.journal) == ([], [])


def test_a_hold_has_the_name_of_who_is_signed_in(
    operator: Operator, sent: tuple[Desk, list[dict[str, Json]]]
) -> None:
    desk, _ = sent
    carried_out(desk, "hold", {"agent": "payment", "seconds": "30m", "reason": "it fails"})
    assert [one.by for one in holds_of(operator.world).holds()] == ["amy"]
