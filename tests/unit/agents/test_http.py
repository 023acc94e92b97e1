"""What a call sends, its time, and its connections."""

import json
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from roundsman.agents.http import RemoteService
from roundsman.errors import DefinitionError, PermanentError
from tests.support.remote_server import (
    CREATED,
    PLENTY,
    RESET,
    SECRET,
    Clocks,
    Server,
    answer,
    charge,
    permanent,
    refusal,
    transient,
)


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
        ("http://user:" + "word@host", "must have no user, password"),
        ("http://host/?a=1", "must have no user, password, query or fragment"),
        ("http://host:99999", "is not a URL"),
        ("http://[::1", "is not a URL"),
        ("http://payments.example.com", "plain http is allowed only to this machine"),
        ("http://10.0.0.7:8080", "plain http is allowed only to this machine"),
        ("http://127.0.0.1.example.com", "plain http is allowed only to this machine"),
        ("http://0.0.0.0", "plain http is allowed only to this machine"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_a_sentence(url: str, sentence: str) -> None:
    with pytest.raises(DefinitionError, match=sentence):
        RemoteService(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8780",
        "http://127.0.0.1",
        "http://127.8.9.10:80/v1",
        "http://[::1]:8080",
        "https://10.0.0.7",
        "https://payments.example.com",
    ],
)
def test_plain_http_is_for_this_machine_and_https_for_every_other(url: str) -> None:
    RemoteService(url)


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


def test_calls_share_a_connection(server: Server) -> None:
    service = Clocks().service(server)
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
    service = Clocks().service(server)
    charge(service)
    called.set()
    assert sent.wait(timeout=20)
    assert charge(service) == {"chargeId": "c-1"}
    assert server.connections == 2


def test_a_connection_that_was_closed_while_idle_is_replaced(server: Server) -> None:
    server.close_after = True  # without a header that announces it
    service = Clocks().service(server)
    charge(service)
    assert server.closed.acquire(timeout=20)
    charge(service)
    assert (len(server.requests), server.connections) == (2, 2)


@pytest.mark.parametrize(
    ("monotonic", "wall"), [(1.1, 0), (0, 1.1), (0, -1.1), (-1.1, 0), (600, 600)]
)
def test_a_connection_that_was_idle_over_a_freeze_is_replaced_before_anything_is_sent_on_it(
    server: Server, monotonic: float, wall: float
) -> None:
    clocks = Clocks()
    service = clocks.service(server)
    charge(service)
    clocks.monotonic += monotonic
    clocks.now += timedelta(seconds=wall)
    server.answers = [CREATED]
    charge(service)
    assert (len(server.requests), server.connections) == (2, 2)
    charge(service)
    assert server.connections == 2


def test_a_connection_that_was_idle_for_a_second_is_used_again(server: Server) -> None:
    clocks = Clocks()
    service = clocks.service(server)
    charge(service)
    clocks.monotonic += 1
    clocks.now += timedelta(seconds=1)
    charge(service)
    assert server.connections == 1


def test_what_follows_an_answer_in_one_piece_is_not_taken_for_the_next_answer(
    server: Server,
) -> None:
    server.answers = [CREATED + refusal("402 Payment Required", "CardDeclined")]
    service = Clocks().service(server)
    charge(service)
    assert charge(service) == {"chargeId": "c-1"}
    assert server.connections == 2


def test_a_lost_answer_on_a_new_connection_is_transient_and_not_repeated(server: Server) -> None:
    server.answers = [None]
    assert (
        str(transient(RemoteService(server.url)))
        == "POST failed: the connection was closed before a response"
    )
    assert len(server.requests) == 1


def test_a_lost_answer_on_a_kept_connection_is_transient_and_not_repeated(
    server: Server,
) -> None:
    service = Clocks().service(server)
    charge(service)
    server.answers = [None]  # it is closed as the next request arrives on it
    assert str(transient(service)) == "POST failed: the connection was closed before a response"
    assert (len(server.requests), server.connections) == (2, 1)


def test_a_kept_connection_that_is_reset_under_a_call_is_transient_and_not_repeated(
    server: Server,
) -> None:
    service = Clocks().service(server)
    charge(service)
    server.answers = [RESET]
    assert str(transient(service)) == "POST failed: the connection was reset"
    assert (len(server.requests), server.connections) == (2, 1)


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
