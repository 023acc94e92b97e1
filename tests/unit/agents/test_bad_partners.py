"""Each way in which a remote service can be bad, at a real one on loopback: what becomes of it.

docs/reference/agent.md has the table of them, and a test that each of its reasons is tested here.
"""

import io
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pytest

from roundsman.agents import _http_connection
from roundsman.agents.guard import CallHeld
from roundsman.agents.http import LARGEST_ANSWER
from roundsman.errors import TransientError
from roundsman.model.states import ProcessState
from roundsman.model.task import StepError
from tests.support.certificates import server_context
from tests.support.guards import FakeGuard, Terms
from tests.support.partner_world import Partner
from tests.support.remote_server import (
    CREATED,
    RESET,
    Server,
    answer,
    bytes_read,
    calls,
    refusal,
    running,
    unused_url,
)

DOWN = "payment's circuit is open: 5 calls in a row failed"
T = TypeVar("T")
CHARGE = "ord-1/charge_card/perform"


@dataclass
class Closed(FakeGuard):
    """A guard that lets no call through, or finds that out by one."""

    until: int
    after_the_call: bool = False

    def around(self, function: Callable[[], T], terms: Terms) -> T:
        if self.after_the_call:
            with suppress(TransientError):
                return function()
        raise CallHeld(DOWN, until=self.until, called=self.after_the_call)


def is_held(partner: Partner) -> None:
    """The step waits, is nobody's, and has not failed."""
    record = partner.record()
    assert record.error == StepError("Held", DOWN)
    assert (record.process_state, record.failure_count) == (ProcessState.PENDING, 0)
    assert record.locked_by is None


@pytest.fixture
def partner(server: Server) -> Partner:
    return Partner(server.url)


def keys(server: Server) -> set[bytes]:
    """The idempotency keys that were seen on the wire."""
    return {
        line.partition(b": ")[2]
        for request in server.requests
        for line in request.splitlines()
        if line.startswith(b"Idempotency-Key: ")
    }


# --- no connection ---------------------------------------------------------------------------


def test_nobody_listens() -> None:
    Partner(unused_url()).fails("POST was not sent: connection refused (3 tries)")


def test_the_name_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    partner = Partner("https://payments.example.com")
    partner.fails("POST was not sent: the service's name does not resolve (3 tries)")


def test_the_certificate_is_not_trusted(tmp_path: Path) -> None:
    with running(server_context(tmp_path)) as server:
        sentence = "POST was not sent: the service's certificate is not trusted (3 tries)"
        Partner(server.url).fails(sentence)
        assert not server.requests


def test_the_certificate_has_expired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(server_context(tmp_path, days=(-2, -1))) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        sentence = "POST was not sent: the service's certificate has expired (3 tries)"
        Partner(server.url).fails(sentence)


def test_there_is_no_tls_where_there_should_be(server: Server) -> None:
    server.greeting = b"220 ready\r\n"
    partner = Partner(server.url.replace("http:", "https:"))
    partner.fails("POST was not sent: the TLS handshake failed (3 tries)")


def test_the_service_is_known_to_be_down(partner: Partner, server: Server) -> None:
    """It is not called, and the order loses neither an attempt nor time."""
    partner.guard = Closed(until=partner.world.now + 30_000)
    complete_by = partner.world.task.complete_by
    decision = partner.attempt()
    assert (
        f"held: {DOWN}; checked again at 2027-01-15T08:00:35Z, no attempt counted"
        in decision.reason
    )
    assert not partner.record().outcome_unknown
    is_held(partner)
    assert server.requests == []
    partner.world.wait(60).start()
    assert partner.world.task.complete_by > complete_by


def test_the_service_goes_down_under_a_call(partner: Partner, server: Server) -> None:
    """It is called, that call opens the circuit, and what it did is settled before it repeats."""
    server.always = None
    partner.guard = Closed(until=partner.world.now + 30_000, after_the_call=True)
    partner.attempt()
    assert partner.record().outcome_unknown
    is_held(partner)
    assert len(server.requests) == 1


# --- no answer, or half of one ---------------------------------------------------------------


def test_the_service_hangs(partner: Partner, server: Server) -> None:
    """Left a moment before complete-by: while the agent may still say why."""
    over = threading.Event()
    server.before_answer = over.wait
    request = partner.request()
    read_at = request.complete_by - 100  # it was sent late, and so has all of its time left
    partner.world.wait_until(read_at)
    partner.hear(partner.answer(replace(request, sent_at=read_at)))
    over.set()
    assert partner.record().error == StepError("TransientError", "POST was not answered in 0.1 s")
    assert partner.record().process_state is ProcessState.PENDING


def test_the_service_trickles(
    partner: Partner, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes soon enough; all of them together do not."""
    readinto = _http_connection._Incoming.readinto

    def a_byte_a_second(incoming: _http_connection._Incoming, buffer: bytearray) -> int | None:
        partner.world.wait(1)
        return readinto(incoming, memoryview(buffer)[:1])

    monkeypatch.setattr(_http_connection._Incoming, "readinto", a_byte_a_second)
    server.always = b"HTTP/1.1 201 Created\r\nX-Pad: " + b"x" * 1_000
    partner.fails("POST was not answered in 29.0 s")


def test_the_connection_is_reset(partner: Partner, server: Server) -> None:
    server.always = RESET
    partner.fails("POST failed: the connection was reset (3 tries)")


def test_the_connection_is_closed_without_an_answer(partner: Partner, server: Server) -> None:
    server.always = None
    partner.fails("POST failed: the connection was closed before a response (3 tries)")


def test_an_idle_connection_has_died(partner: Partner, server: Server) -> None:
    """It is replaced before anything is sent on it: no failure of the service, and no try."""
    server.close_after = True
    partner.post_charge("ord-0/charge_card/perform", "5.00")
    assert server.closed.acquire(timeout=20)
    partner.succeeds()
    assert partner.slept == []
    assert calls(server) == ["POST /charges"] * 2


def test_a_kept_connection_is_closed_under_a_call(server: Server) -> None:
    """The answer is lost, as on a new connection: the probe is asked before anything is sent."""
    partner = Partner(server.url, probed=True)
    asked = partner.request()
    partner.post_charge("ord-0/charge_card/perform", "5.00")
    server.answers = [None, answer("200 OK", b'{"chargeId": "c-1"}')]
    partner.hear(partner.answer(asked))
    assert partner.record().result == {"chargeId": "c-1"}
    probe = "GET /charges/ord-1%2Fcharge_card%2Fperform"
    assert calls(server) == ["POST /charges", "POST /charges", probe]
    assert server.connections == 2


def test_the_head_of_the_answer_is_cut_off(partner: Partner, server: Server) -> None:
    server.always, server.close_after = b"HTTP/1.1 409 Conflict\r\nContent-Ty", True
    partner.fails("POST answered 409, and the body was cut off (3 tries)")


def test_the_body_of_the_answer_is_cut_off(partner: Partner, server: Server) -> None:
    server.always, server.close_after = CREATED[:-5], True
    partner.fails("POST failed: the response was cut off (3 tries)")


def test_what_answers_does_not_speak_http(partner: Partner, server: Server) -> None:
    server.always, server.close_after = b"SSH-2.0-OpenSSH_9.6\r\n", True
    partner.fails("POST failed: the response is not HTTP (3 tries)")


# --- answers that say something else ---------------------------------------------------------


def test_the_body_is_no_json(partner: Partner, server: Server) -> None:
    server.always = answer("201 Created", b"<html>Created</html>", "Content-Type: text/html")
    partner.fails("POST answered 201 with a body that is not a JSON object (3 tries)")


def test_a_field_is_missing(partner: Partner, server: Server) -> None:
    server.always = answer("201 Created", b'{"status": "ok"}')
    partner.fails("POST answered 201 without chargeId (3 tries)")


def test_an_error_comes_as_a_success(partner: Partner, server: Server) -> None:
    server.always = refusal("201 Created", "CardDeclined")
    partner.fails("POST answered 201 with an error, CardDeclined (3 tries)")


def test_an_error_comes_as_another_success(partner: Partner, server: Server) -> None:
    server.always = refusal("200 OK", "CardDeclined")
    partner.fails(
        "POST answered 200, which is not an expected status; its error is CardDeclined (3 tries)"
    )


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_the_answer_is_a_redirect(partner: Partner, server: Server, status: str) -> None:
    with running() as elsewhere:
        server.always = answer(status, b"", f"Location: {elsewhere.url}/charges")
        partner.fails(f"POST answered {status[:3]}, a redirect; it is not followed (3 tries)")
        assert not elsewhere.requests


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 201 Created\r\nContent-Length: 1000000000000\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
        b"HTTP/1.1 201 Created\r\n\r\n",
    ],
    ids=["length", "chunked", "until-closed"],
)
def test_the_answer_is_huge(
    partner: Partner, server: Server, head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = bytes_read(monkeypatch)
    server.always, server.close_after = [head, *[b"x" * 65_536] * 100], True
    partner.fails(f"POST answered 201 with a body of more than {LARGEST_ANSWER} bytes (3 tries)")
    assert sum(read) <= 3 * (LARGEST_ANSWER + 2 * io.DEFAULT_BUFFER_SIZE)


@pytest.mark.parametrize("status", ["408 Slow", "500 Oops", "502 Bad Gateway", "503 Later"])
def test_the_service_fails(partner: Partner, server: Server, status: str) -> None:
    server.always = answer(status)
    partner.fails(f"POST answered {status[:3]} (3 tries)")


def test_the_service_fails_for_a_moment(partner: Partner, server: Server) -> None:
    """A later try of the same attempt succeeds, under the same key."""
    server.answers = [answer("503 Later"), answer("502 Bad Gateway")]
    partner.succeeds()
    assert len(server.requests) == 3
    assert keys(server) == {CHARGE.encode()}
    assert partner.slept == [0.1, 0.2]  # half of 0.2 s and of 0.4 s: the jitter of this test


# --- busy ------------------------------------------------------------------------------------


def test_503_with_a_wait(partner: Partner, server: Server) -> None:
    server.always = answer("503 Later", b"", "Retry-After: 40")
    partner.fails("POST answered 503", wait=40)


def test_429_with_a_short_wait(partner: Partner, server: Server) -> None:
    """What the service asks for is waited within the attempt, where that is cheap."""
    server.answers = [answer("429 Many", b"", "Retry-After: 1")]
    partner.succeeds()
    assert partner.slept == [1.0]


def test_429_with_a_long_wait(partner: Partner, server: Server) -> None:
    server.always = answer("429 Many", b"", "Retry-After: 40")
    partner.fails("POST answered 429", kind="Busy", wait=40)
    assert partner.slept == []


def test_429_with_a_date(partner: Partner, server: Server) -> None:
    # The stories of the machine begin at 2027-01-15T08:00:00Z.
    server.always = answer("429 Many", b"", "Retry-After: Fri, 15 Jan 2027 08:01:00 GMT")
    partner.fails("POST answered 429", kind="Busy", wait=60)
    assert partner.slept == []


def test_429_without_a_wait(partner: Partner, server: Server) -> None:
    server.always = answer("429 Many")
    partner.fails("POST answered 429 (3 tries)", kind="Busy")


def test_425_too_early(partner: Partner, server: Server) -> None:
    server.always = answer("425 Too Early")
    partner.fails("POST answered 425 (3 tries)", kind="Busy")


def test_the_same_key_is_in_progress(partner: Partner, server: Server) -> None:
    server.always = refusal("409 Conflict", "InProgress")
    partner.fails("POST answered 409 InProgress (3 tries)", kind="Busy")


# --- refusals --------------------------------------------------------------------------------


def test_the_service_refuses(partner: Partner, server: Server) -> None:
    server.always = refusal("402 Payment Required", "CardDeclined")
    partner.fails_for_good("CardDeclined", "POST answered 402")
    assert len(server.requests) == 1


def test_a_refusal_is_no_json(partner: Partner, server: Server) -> None:
    server.always = answer("422 Unprocessable", b"<html>no</html>", "Content-Type: text/html")
    partner.fails_for_good("Http422", "POST answered 422")


def test_the_credential_is_refused(partner: Partner, server: Server) -> None:
    server.always = refusal("401 Unauthorized", "KeyExpired")
    partner.fails_for_now(
        "CredentialRefused", "the service refused the credential (401 KeyExpired) (3 tries)"
    )


def test_the_address_is_wrong(partner: Partner, server: Server) -> None:
    server.always = answer("404 Not Found", b"<html>no such page</html>")
    partner.fails_for_now(
        "WrongAddress", "the address answers 404 to POST without the service's error (3 tries)"
    )


def test_the_key_was_undone_before(partner: Partner, server: Server) -> None:
    server.always = refusal("409 Conflict", "KeyUndone")
    partner.fails_for_good("KeyUndone", "POST answered 409")
