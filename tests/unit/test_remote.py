import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from roundsman.errors import DefinitionError, PermanentError, TransientError
from roundsman.remote import LARGEST_ANSWER, RemoteService, retry_after

PLENTY = timedelta(seconds=30)
SECRET = "tok_visa"


@dataclass
class Server:
    """A real server on loopback that answers each request with the next of its raw answers.

    An answer is bytes to send, or pieces of them; `None` closes the connection instead. A
    connection is kept open until its client closes it, `None` is met, or the answer says
    `Connection: close`.
    """

    answers: list[bytes | Iterable[bytes] | None] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    before_answer: Callable[[], object] = lambda: None
    close_after: bool = False
    closed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    url: str = ""

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):  # the listener was closed: the test is over
            while True:
                connection, _ = listener.accept()
                self.connections += 1
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            self._answer(connection)
        self.closed.release()

    def _answer(self, connection: socket.socket) -> None:
        while request := read_request(connection):
            self.requests.append(request)
            self.before_answer()
            answer = self.answers.pop(0) if self.answers else CREATED
            if answer is None:
                return
            pieces = [answer] if isinstance(answer, bytes) else answer
            for piece in pieces:
                connection.sendall(piece)
                if b"Connection: close" in piece:
                    return
            if self.close_after:
                return


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            while len(body) < int(line.split(b":")[1]):
                body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def refusal(status: str, error: object, *headers: str) -> bytes:
    body = json.dumps({"error": error, "message": f"about {SECRET}"}).encode()
    return answer(status, body, *headers)


CREATED = answer("201 Created", b'{"chargeId": "c-1", "note": "no one asked"}')


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as found:
        yield found


@contextmanager
def running() -> Iterator[Server]:
    found = Server()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=found.serve, args=(listener,), daemon=True).start()
        try:
            yield found
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def charge(service: RemoteService, time_left: timedelta = PLENTY) -> object:
    return service.call(
        "POST",
        "charges",
        key="ord-1/charge_card/perform",
        body={"token": SECRET, "amount": "39.80"},
        time_left=time_left,
        returns=("chargeId",),
    )


def transient(service: RemoteService, time_left: timedelta = PLENTY) -> TransientError:
    with pytest.raises(TransientError) as caught:
        charge(service, time_left)
    assert SECRET not in str(caught.value)
    return caught.value


def permanent(service: RemoteService) -> PermanentError:
    with pytest.raises(PermanentError) as caught:
        charge(service)
    assert SECRET not in str(caught.value)
    return caught.value


# ---- what is sent ------------------------------------------------------------------------


def test_a_call_sends_key_and_json_and_returns_the_fields_asked_for(server: Server) -> None:
    assert charge(RemoteService(server.url)) == {"chargeId": "c-1"}
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /charges HTTP/1.1\r\n")
    assert b"Idempotency-Key: ord-1/charge_card/perform\r\n" in head + b"\r\n"
    assert b"Content-Type: application/json\r\n" in head + b"\r\n"
    assert json.loads(body) == {"token": SECRET, "amount": "39.80"}


def test_each_part_of_the_path_is_one_segment_below_the_base(server: Server) -> None:
    server.answers = [answer("204 No Content")]
    service = RemoteService(server.url + "/v1/")
    key = "ord-1/reserve_stock/perform?x#y z\r\n"
    assert service.call("DELETE", "a b", key, key="k", time_left=PLENTY, ok=(204,)) == {}
    line = server.requests[0].splitlines()[0]
    assert line == (b"DELETE /v1/a%20b/ord-1%2Freserve_stock%2Fperform%3Fx%23y%20z%0D%0A HTTP/1.1")
    assert b"Content-Length" not in server.requests[0]


@pytest.mark.parametrize("part", ["", ".", ".."])
def test_a_part_of_a_path_that_points_elsewhere_is_refused(server: Server, part: str) -> None:
    with pytest.raises(PermanentError, match="PathUnsafe"):
        RemoteService(server.url).call("DELETE", "x", part, key="k", time_left=PLENTY)
    assert not server.requests


@pytest.mark.parametrize("key", ["", "a\r\nX-Other: 1", "a b", "é", "x" * 513])
def test_a_key_that_does_not_fit_in_a_header_is_refused(server: Server, key: str) -> None:
    with pytest.raises(PermanentError, match="IdempotencyKeyUnsafe"):
        RemoteService(server.url).call("POST", "x", key=key, time_left=PLENTY)
    assert not server.requests


def test_text_of_any_kind_in_a_body_can_be_sent(server: Server) -> None:
    body = {"name": "Zoë \ud800 \uffff 雪"}
    RemoteService(server.url).call("POST", "x", key="k", body=body, time_left=PLENTY)
    assert json.loads(server.requests[0].partition(b"\r\n\r\n")[2]) == body


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://host", "must begin with http://host or https://host"),
        ("file:///etc/passwd", "must begin with"),
        ("host:80", "must begin with"),
        ("", "must be ASCII without spaces"),
        ("http://ho st", "must be ASCII without spaces"),
        ("http://host/\r\nX: 1", "must be ASCII without spaces"),
        ("http://", "must begin with"),
        ("http://user:word@host", "must have no user, password"),
        ("http://host/?a=1", "must have no user, password, query or fragment"),
        ("http://host:99999", "is no URL"),
        ("http://[::1", "is no URL"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_a_sentence(url: str, sentence: str) -> None:
    with pytest.raises(DefinitionError, match=sentence):
        RemoteService(url)


# ---- what answers mean -------------------------------------------------------------------


@pytest.mark.parametrize(
    "status", ["500 Oops", "502 Bad Gateway", "503 Later", "504 Late", "599 Own", "999 Odd"]
)
def test_a_failure_of_the_service_is_transient(server: Server, status: str) -> None:
    server.answers = [answer(status)]
    error = transient(RemoteService(server.url))
    assert str(error) == f"POST answered {status[:3]}"
    assert error.retry_after is None


@pytest.mark.parametrize("status", ["408 Slow", "425 Early", "429 Many", "503 Later"])
def test_the_wait_that_the_service_asks_for_is_passed_on(server: Server, status: str) -> None:
    server.answers = [refusal(status, "TooManyRequests", "Retry-After: 7")]
    error = transient(RemoteService(server.url))
    assert str(error) == f"POST answered {status[:3]} TooManyRequests"
    assert error.retry_after == timedelta(seconds=7)


def test_a_wait_until_a_date_counts_from_now(server: Server) -> None:
    server.answers = [answer("429 Many", b"", "Retry-After: Fri, 20 Nov 2026 10:00:30 GMT")]
    now = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)
    error = transient(RemoteService(server.url, now=lambda: now))
    assert error.retry_after == timedelta(seconds=30)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("9" * 40, None),
        ("0", 0),
        ("120", 120),
        ("86400", 3600),
        ("Fri, 20 Nov 2026 09:00:00 GMT", 0),
        ("Sat, 21 Nov 2026 10:00:00 GMT", 3600),
        ("Fri, 20 Nov 2026 10:00:10 -0000", 10),
        ("Fri, 99 Nov 2026 10:00:10 GMT", None),
    ],
)
def test_a_retry_after_is_read_in_seconds_or_as_a_date_within_an_hour(
    header: str | None, expected: int | None
) -> None:
    now = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)
    wait = None if expected is None else timedelta(seconds=expected)
    assert retry_after(header, now) == wait


def test_409_is_transient_while_the_same_key_is_in_progress(server: Server) -> None:
    server.answers = [refusal("409 Conflict", "InProgress")]
    assert str(transient(RemoteService(server.url))) == "POST answered 409 InProgress"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("402 Payment Required", "CardDeclined"),
        ("409 Conflict", "OutOfStock"),
        ("409 Conflict", "KeyUndone"),
        ("422 Unprocessable", "AddressUndeliverable"),
        ("404 Not Found", "UnknownRoute"),
    ],
)
def test_a_refusal_is_permanent_with_the_services_own_type(
    server: Server, status: str, error: str
) -> None:
    server.answers = [refusal(status, error)]
    found = permanent(RemoteService(server.url))
    assert (found.error_type, found.message) == (error, f"POST answered {status[:3]}")


@pytest.mark.parametrize(
    "error",
    [f"the card {SECRET} is bad", "", None, 7, ["CardDeclined"], "A" * 65, "<b>", "two words"],
)
def test_an_error_that_is_no_short_name_is_not_repeated(server: Server, error: object) -> None:
    server.answers = [refusal("402 Payment Required", error)]
    assert permanent(RemoteService(server.url)).error_type == "Http402"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[1]", b"\xff\xfe", b'{"error": "A", "error": "B"}', b"[" * 50_000]
)
def test_a_refusal_without_readable_body_is_named_by_its_status(
    server: Server, body: bytes
) -> None:
    server.answers = [answer("403 Forbidden", body)]
    assert permanent(RemoteService(server.url)).error_type == "Http403"


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_transient_and_never_followed(server: Server, status: str) -> None:
    with running() as elsewhere:
        server.answers = [answer(status, b"", f"Location: {elsewhere.url}/charges")]
        error = transient(RemoteService(server.url))
        assert str(error) == f"POST answered {status[:3]}, a redirect; it is not followed"
        assert not elsewhere.requests


@pytest.mark.parametrize("status", ["200 OK", "202 Accepted", "204 No Content"])
def test_another_success_than_expected_is_transient(server: Server, status: str) -> None:
    server.answers = [answer(status)]
    assert "which is not what it should" in str(transient(RemoteService(server.url)))


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>ok</html>", b"[]", b'"c-1"', b'{"error": "Oops"}', b'{"chargeId": null}'],
)
def test_a_success_without_what_it_should_say_is_transient(server: Server, body: bytes) -> None:
    server.answers = [answer("201 Created", body)]
    assert str(transient(RemoteService(server.url))) == "POST answered 201 without chargeId"


def test_a_success_of_which_nothing_is_asked_may_say_anything(server: Server) -> None:
    server.answers = [answer("202 Accepted", b"queued")]
    service = RemoteService(server.url)
    assert service.call("POST", "messages", key="k", time_left=PLENTY, ok=(202,)) == {}


@pytest.mark.parametrize("status", ["201 Created", "402 Payment Required"])
def test_a_huge_answer_is_read_no_further_than_its_bound(server: Server, status: str) -> None:
    body = json.dumps({"chargeId": "c-1", "pad": "x" * LARGEST_ANSWER}).encode()
    server.answers = [answer(status, body)]
    service = RemoteService(server.url)
    with pytest.raises((TransientError, PermanentError), match=r"answered (201 without|402)"):
        charge(service)
    charge(service)
    assert server.connections == 2  # what was left unread is not taken for the next answer


def test_an_endless_answer_is_left_at_the_bound(server: Server) -> None:
    head = b"HTTP/1.1 201 Created\r\nContent-Length: 1000000000000\r\n\r\n"
    server.answers = [[head, *[b"x" * 65_536] * 100]]
    server.close_after = True
    assert str(transient(RemoteService(server.url))) == "POST answered 201 without chargeId"


@pytest.mark.parametrize(
    "cut",
    [
        CREATED[:-5],
        b"HTTP/1.1 409 Conflict\r\nContent-Ty",
        refusal("402 Payment Required", "CardDeclined")[:-5],
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{",
        b"HTTP/1.1 409",
    ],
)
def test_half_an_answer_is_transient_whatever_it_began_with(server: Server, cut: bytes) -> None:
    server.answers = [cut]
    server.close_after = True
    error = str(transient(RemoteService(server.url)))
    assert error.startswith("POST failed: ") or error == "POST answered 409, cut off"


def test_a_refusal_that_ends_with_its_connection_is_taken_where_it_is_whole(server: Server) -> None:
    server.answers = [b'HTTP/1.1 402 Payment Required\r\n\r\n{"error": "CardDeclined"}']
    server.close_after = True
    assert permanent(RemoteService(server.url)).error_type == "CardDeclined"


@pytest.mark.parametrize(
    "noise", [b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00", b"HTTP/1.1 abc\r\n\r\n"]
)
def test_an_answer_that_is_not_http_is_transient(server: Server, noise: bytes) -> None:
    server.answers = [noise]
    server.close_after = True
    assert "POST failed: " in str(transient(RemoteService(server.url)))


def test_a_chunked_answer_is_read_to_its_end(server: Server) -> None:
    head = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
    server.answers = [head + b'9\r\n{"chargeI\r\n9\r\nd": "c-2"\r\n1\r\n}\r\n0\r\n\r\n']
    service = RemoteService(server.url)
    assert charge(service) == {"chargeId": "c-2"}
    assert charge(service) == {"chargeId": "c-1"}
    assert server.connections == 1


# ---- time --------------------------------------------------------------------------------


def test_a_service_that_never_answers_is_left_when_the_time_is_over(server: Server) -> None:
    over = threading.Event()
    server.before_answer = over.wait
    error = transient(RemoteService(server.url), timedelta(milliseconds=50))
    over.set()
    assert str(error) == "POST was not answered in 0.1 s"


def test_a_service_that_trickles_is_left_when_the_time_is_over(server: Server) -> None:
    """Each byte comes soon enough; all of them together do not."""
    seconds = [0]

    def trickle() -> Iterator[bytes]:
        for byte in b"HTTP/1.1 201 Created\r\nX-Pad: " + b"x" * 100_000:
            seconds[0] += 1  # a byte a second
            yield bytes([byte])

    server.answers = [trickle()]
    service = RemoteService(server.url, monotonic=lambda: float(seconds[0]))
    error = transient(service, timedelta(seconds=7))
    assert str(error) == "POST was not answered in 7.0 s"


def test_no_time_left_means_that_nothing_is_sent(server: Server) -> None:
    assert "was not answered in 0.0 s" in str(transient(RemoteService(server.url), timedelta(0)))
    assert server.connections == 0


def test_a_port_where_nobody_listens_is_transient() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = transient(RemoteService(f"http://127.0.0.1:{port}"))
    assert str(error) == "POST failed: ConnectionRefusedError"


def test_a_name_that_nobody_knows_is_transient() -> None:
    assert str(transient(RemoteService("http://nowhere.invalid"))) == "POST failed: gaierror"


def test_a_service_that_speaks_no_tls_is_transient(server: Server) -> None:
    service = RemoteService(server.url.replace("http:", "https:"))
    assert "POST failed: " in str(transient(service, timedelta(milliseconds=50)))


# ---- connections -------------------------------------------------------------------------


def test_calls_share_a_connection(server: Server) -> None:
    service = RemoteService(server.url)
    server.answers = [CREATED, refusal("402 Payment Required", "CardDeclined"), CREATED]
    charge(service)
    permanent(service)
    charge(service)
    assert server.connections == 1


def test_a_connection_that_the_service_wants_closed_is_not_used_again(server: Server) -> None:
    server.answers = [answer("201 Created", b'{"chargeId": "c-9"}', "Connection: close")]
    service = RemoteService(server.url)
    assert charge(service) == {"chargeId": "c-9"}
    charge(service)
    assert server.connections == 2


def test_what_nobody_asked_for_is_never_taken_for_the_next_answer(server: Server) -> None:
    called, sent = threading.Event(), threading.Event()

    def more_than_asked() -> Iterator[bytes]:
        yield CREATED
        assert called.wait(timeout=20)
        yield refusal("402 Payment Required", "CardDeclined")
        sent.set()

    server.answers = [more_than_asked()]
    service = RemoteService(server.url)
    charge(service)
    called.set()
    assert sent.wait(timeout=20)
    assert charge(service) == {"chargeId": "c-1"}
    assert server.connections == 2


def test_a_connection_that_was_closed_while_idle_is_replaced(server: Server) -> None:
    server.close_after = True  # without having said so
    service = RemoteService(server.url)
    charge(service)
    assert server.closed.acquire(timeout=20)
    charge(service)
    assert (len(server.requests), server.connections) == (2, 2)


def test_a_connection_that_died_idle_is_replaced_with_the_same_key(server: Server) -> None:
    service = RemoteService(server.url)
    charge(service)
    server.answers = [None, CREATED]  # it is closed as the next request arrives on it
    assert charge(service) == {"chargeId": "c-1"}
    assert server.connections == 2
    keys = [line for r in server.requests for line in r.splitlines() if b"Idempotency" in line]
    assert keys == [b"Idempotency-Key: ord-1/charge_card/perform"] * 3


def test_a_lost_answer_on_a_new_connection_is_transient_and_not_repeated(server: Server) -> None:
    server.answers = [None]
    assert str(transient(RemoteService(server.url))) == "POST failed: RemoteDisconnected"
    assert len(server.requests) == 1


def test_a_replaced_connection_that_dies_too_is_transient(server: Server) -> None:
    service = RemoteService(server.url)
    charge(service)
    server.answers = [None, None]
    transient(service)
    assert len(server.requests) == 3


def test_threads_do_not_mix_their_answers(server: Server) -> None:
    service, wrong = RemoteService(server.url), list[object]()

    def calls() -> None:
        wrong.extend(r for _ in range(20) if (r := charge(service)) != {"chargeId": "c-1"})

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(server.requests) == 80
