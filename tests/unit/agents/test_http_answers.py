"""What each answer of a remote service means."""

import io
import json
from datetime import UTC, datetime, timedelta

import pytest

from roundsman.agents.http import LARGEST_ANSWER, RemoteService, retry_after
from roundsman.errors import (
    Busy,
    CredentialRefused,
    DefinitionError,
    PermanentError,
    TransientError,
    WrongAddress,
)
from tests.support.remote_server import (
    CREATED,
    PLENTY,
    SECRET,
    Clocks,
    Server,
    answer,
    bytes_read,
    charge,
    permanent,
    refusal,
    running,
    transient,
    unused_url,
)


@pytest.mark.parametrize(
    "status", ["500 Oops", "502 Bad Gateway", "503 Later", "504 Late", "599 Own", "999 Odd"]
)
def test_a_failure_of_the_service_is_transient(server: Server, status: str) -> None:
    server.answers = [answer(status)]
    error = transient(RemoteService(server.url))
    assert str(error) == f"POST answered {status[:3]}"
    assert (error.retry_after, error.cause) == (None, f"answered {status[:3]}")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("408 Slow", TransientError),
        ("425 Early", Busy),
        ("429 Many", Busy),
        ("503 Later", TransientError),
    ],
)
def test_the_wait_that_the_service_asks_for_is_passed_on(
    server: Server, status: str, kind: type[TransientError]
) -> None:
    server.answers = [refusal(status, "TooManyRequests", "Retry-After: 7")]
    error = transient(RemoteService(server.url))
    assert type(error) is kind
    assert str(error) == f"POST answered {status[:3]} TooManyRequests"
    assert error.retry_after == timedelta(seconds=7)


def test_the_cause_of_a_failure_names_the_status_and_nothing_of_the_body(server: Server) -> None:
    server.answers = [refusal("503 Later", "NoStockForAda")]
    error = transient(RemoteService(server.url))
    assert str(error) == "POST answered 503 NoStockForAda"
    assert error.cause == "answered 503"


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


def test_a_service_is_busy_while_the_same_key_is_in_progress(server: Server) -> None:
    server.answers = [refusal("409 Conflict", "InProgress", "Retry-After: 2")]
    error = transient(RemoteService(server.url))
    assert isinstance(error, Busy)
    assert (str(error), error.retry_after) == ("POST answered 409 InProgress", timedelta(seconds=2))


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
    server.answers = [answer("422 Unprocessable", body)]
    assert permanent(RemoteService(server.url)).error_type == "Http422"


@pytest.mark.parametrize(
    ("status", "error", "sentence"),
    [
        ("401 Unauthorized", "", "the service refused the credential (401)"),
        ("401 Unauthorized", "KeyExpired", "the service refused the credential (401 KeyExpired)"),
        ("403 Forbidden", f"no {SECRET}", "the service refused the credential (403)"),
        ("403 Forbidden", "ScopeMissing", "the service refused the credential (403 ScopeMissing)"),
        ("407 Proxy", "", "the proxy refused the credential (407)"),
    ],
)
def test_a_refused_credential_is_no_refusal_of_the_order(
    server: Server, status: str, error: str, sentence: str
) -> None:
    server.answers = [refusal(status, error)]
    found = transient(RemoteService(server.url))
    assert (type(found), str(found)) == (CredentialRefused, sentence)


def test_a_refused_credential_is_one_also_if_the_answer_may_be_cut_off(server: Server) -> None:
    server.answers = [b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n"]
    assert type(transient(RemoteService(server.url))) is CredentialRefused


@pytest.mark.parametrize("status", ["404 Not Found", "405 Method Not Allowed"])
@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"error": "Not Found"}', b'{"message": "no such route"}']
)
def test_an_address_that_does_not_know_the_path_is_no_refusal_of_the_order(
    server: Server, status: str, body: bytes
) -> None:
    server.answers = [answer(status, body)]
    found = transient(RemoteService(server.url))
    assert type(found) is WrongAddress
    assert str(found) == f"the address answers {status[:3]} to POST without the service's error"


@pytest.mark.parametrize(
    ("given", "declared"),
    [
        (refusal("403 Forbidden", "CustomerBlocked"), "CustomerBlocked"),
        (answer("403 Forbidden"), "Http403"),
        (answer("404 Not Found"), "Http404"),
    ],
)
def test_a_refusal_that_the_application_declares_is_one_whatever_its_status(
    server: Server, given: bytes, declared: str
) -> None:
    server.answers = [given, given]
    service = RemoteService(server.url)
    with pytest.raises(PermanentError) as caught:
        service.call("POST", "x", key="k", time_left=PLENTY, refusals=("Other", declared))
    assert caught.value.error_type == declared
    with pytest.raises((CredentialRefused, WrongAddress)):
        service.call("POST", "x", key="k", time_left=PLENTY, refusals=("Other",))


@pytest.mark.parametrize(
    ("status", "kind"), [("429 Many", Busy), ("503 Later", TransientError)], ids=str
)
def test_a_status_that_the_application_declares_so_promises_that_nothing_happened(
    server: Server, status: str, kind: type[TransientError]
) -> None:
    server.answers = [answer(status), answer(status)]
    service, declared = RemoteService(server.url), int(status[:3])
    for statuses, promised in (((declared, 500), True), ((500,), False)):
        with pytest.raises(kind) as caught:
            service.call("POST", "x", key="k", time_left=PLENTY, no_effect_on=statuses)
        assert caught.value.no_effect is promised


def test_what_was_not_sent_had_no_effect_and_what_was_not_answered_may_have_had_one(
    server: Server,
) -> None:
    server.answers = [None]
    assert not transient(RemoteService(server.url)).no_effect
    assert transient(RemoteService(unused_url())).no_effect


@pytest.mark.parametrize("status", [201, 399, 600, "503"])
def test_only_the_status_of_a_failure_can_be_declared_so(server: Server, status: int) -> None:
    with pytest.raises(DefinitionError, match="it must have statuses of failures, such as 503"):
        RemoteService(server.url).call(
            "POST", "x", key="k", time_left=PLENTY, no_effect_on=(status,)
        )
    assert not server.requests


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_transient_and_never_followed(server: Server, status: str) -> None:
    with running() as elsewhere:
        server.answers = [answer(status, b"", f"Location: {elsewhere.url}/charges")]
        error = transient(RemoteService(server.url))
        assert str(error) == f"POST answered {status[:3]}, a redirect; it is not followed"
        assert not elsewhere.requests


def test_another_success_that_says_error_is_transient_and_names_it(server: Server) -> None:
    """A refusal would be 4xx. Whoever answers so may have done it, so nothing is concluded."""
    server.answers = [refusal("200 OK", "CardDeclined")]
    sentence = "POST answered 200, which is not an expected status; its error is CardDeclined"
    assert str(transient(RemoteService(server.url))) == sentence


@pytest.mark.parametrize("status", ["200 OK", "202 Accepted", "204 No Content"])
def test_another_success_than_expected_is_transient(server: Server, status: str) -> None:
    server.answers = [answer(status)]
    assert "which is not an expected status" in str(transient(RemoteService(server.url)))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "with a body that is not a JSON object"),
        (b"<html>ok</html>", "with a body that is not a JSON object"),
        (b"[]", "with a body that is not a JSON object"),
        (b'"c-1"', "with a body that is not a JSON object"),
        (b'{"error": "Oops"}', "with an error, Oops"),
        (b'{"error": "Oops", "chargeId": "c-1"}', "with an error, Oops"),
        (b'{"error": {"text": "' + SECRET.encode() + b'"}}', "with an error"),
        (b'{"chargeId": null, "error": null}', "without chargeId"),
    ],
)
def test_a_success_without_what_it_should_say_is_transient(
    server: Server, body: bytes, sentence: str
) -> None:
    server.answers = [answer("201 Created", body)]
    assert str(transient(RemoteService(server.url))) == f"POST answered 201 {sentence}"


def test_a_success_that_says_error_is_none_also_where_nothing_is_asked_of_it(
    server: Server,
) -> None:
    server.answers = [refusal("202 Accepted", "MailboxFull")]
    service = RemoteService(server.url)
    with pytest.raises(TransientError, match="POST answered 202 with an error, MailboxFull"):
        service.call("POST", "messages", key="k", time_left=PLENTY, ok=(202,))


def test_a_success_of_which_nothing_is_asked_may_say_anything(server: Server) -> None:
    server.answers = [answer("202 Accepted", b"queued")]
    service = RemoteService(server.url)
    assert service.call("POST", "messages", key="k", time_left=PLENTY, ok=(202,)) == {}


@pytest.mark.parametrize("status", ["201 Created", "402 Payment Required"])
def test_a_huge_answer_is_read_no_further_than_its_bound(server: Server, status: str) -> None:
    body = json.dumps({"chargeId": "c-1", "pad": "x" * LARGEST_ANSWER}).encode()
    server.answers = [answer(status, body)]
    service = RemoteService(server.url)
    with pytest.raises(
        (TransientError, PermanentError), match=r"answered (201 with a body of more than|402)"
    ):
        charge(service)
    charge(service)
    assert server.connections == 2  # what was left unread is not taken for the next answer


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 201 Created\r\nContent-Length: 1000000000000\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
        b"HTTP/1.1 201 Created\r\n\r\n",
    ],
)
def test_an_endless_answer_is_left_at_the_bound(
    server: Server, head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = bytes_read(monkeypatch)
    server.answers = [[head, *[b"x" * 65_536] * 100]]
    server.close_after = True
    sentence = f"POST answered 201 with a body of more than {LARGEST_ANSWER} bytes"
    assert str(transient(RemoteService(server.url))) == sentence
    assert LARGEST_ANSWER < sum(read) <= LARGEST_ANSWER + 2 * io.DEFAULT_BUFFER_SIZE


@pytest.mark.parametrize("line", [b"X-Pad: " + b"x" * 100_000 + b"\r\n", b"X-Pad: x\r\n"])
def test_an_endless_head_is_left_at_a_bound(
    server: Server, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = bytes_read(monkeypatch)
    server.answers = [[b"HTTP/1.1 201 Created\r\n", *[line] * 1_000]]
    server.close_after = True
    assert str(transient(RemoteService(server.url))) == "POST failed: the response is not HTTP"
    assert sum(read) <= 100_000


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
    assert error in (
        "POST failed: the response was cut off",
        "POST answered 409, and the body was cut off",
        "POST failed: the response is not HTTP",
    )


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
    assert str(transient(RemoteService(server.url))) == "POST failed: the response is not HTTP"


def test_a_chunked_answer_is_read_to_its_end(server: Server) -> None:
    head = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
    server.answers = [head + b'9\r\n{"chargeI\r\n9\r\nd": "c-2"\r\n1\r\n}\r\n0\r\n\r\n']
    service = Clocks().service(server)
    assert charge(service) == {"chargeId": "c-2"}
    assert charge(service) == {"chargeId": "c-1"}
    assert server.connections == 1
