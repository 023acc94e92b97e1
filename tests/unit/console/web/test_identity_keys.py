"""The keys of load balancers: asked for once, and never too many."""

import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from roundsman_console.faces.web.access.identity import NotSignedIn
from roundsman_console.faces.web.access.identity_keys import (
    LARGEST_KEY,
    MOST_ASKED,
    MOST_KEPT,
    SECONDS,
    IdentityKeys,
    keys_of_region,
)
from tests.support.load_balancer import KEY_ID, LoadBalancer, serving_keys

BALANCER = LoadBalancer()


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def ids(count: int) -> list[str]:
    return [str(UUID(int=number)) for number in range(count)]


def test_a_key_is_asked_for_once() -> None:
    with serving_keys({f"/{KEY_ID}": (200, BALANCER.pem)}) as server:
        keys = IdentityKeys(server.connect, Clock())
        first = keys.key_of(KEY_ID)
        assert first.public_numbers() == BALANCER.key.public_key().public_numbers()
        assert keys.key_of(KEY_ID) is first
        assert server.asked == [f"/{KEY_ID}"]


def test_the_requests_of_one_page_ask_for_a_key_once() -> None:
    with serving_keys({f"/{KEY_ID}": (200, BALANCER.pem)}) as server:
        together = threading.Barrier(8)
        keys = IdentityKeys(server.connect, Clock())

        def ask(_: int) -> object:
            together.wait()
            return keys.key_of(KEY_ID)

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, range(8)))
        assert len(set(map(id, found))) == 1
        assert server.asked == [f"/{KEY_ID}"]


RSA = rsa.generate_private_key(65_537, 2048).public_key()
P384 = ec.generate_private_key(ec.SECP384R1()).public_key()


def pem(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, b"<Error/>", "no such key"),
        (404, BALANCER.pem, "no such key"),
        (302, BALANCER.pem, "no such key"),
        (200, b"", "no such key"),
        (200, b"<html>", "no such key"),
        (200, b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "no such key"),
        (200, BALANCER.pem + b"\n" * LARGEST_KEY, "no such key"),
        (200, pem(P384), "not for ES256"),
        (200, pem(RSA), "not for ES256"),
    ],
)
def test_what_is_no_key_is_refused_and_not_kept(status: int, body: bytes, words: str) -> None:
    answers = {f"/{KEY_ID}": (status, body)}
    with serving_keys(answers) as server:
        keys = IdentityKeys(server.connect, Clock())
        with pytest.raises(NotSignedIn, match=words):
            keys.key_of(KEY_ID)
        answers[f"/{KEY_ID}"] = (200, BALANCER.pem)
        assert keys.key_of(KEY_ID).key_size == 256


def test_a_server_that_does_not_answer_is_said() -> None:
    with serving_keys({}) as server:
        connect = server.connect
    keys = IdentityKeys(connect, Clock())  # it is gone
    with pytest.raises(NotSignedIn, match="does not answer"):
        keys.key_of(KEY_ID)


def test_made_up_ids_are_asked_for_a_few_times_a_minute_and_known_keys_go_on() -> None:
    clock = Clock()
    with serving_keys({f"/{KEY_ID}": (200, BALANCER.pem)}) as server:
        keys = IdentityKeys(server.connect, clock)
        known = keys.key_of(KEY_ID)
        for key_id in ids(MOST_ASKED - 1):
            with pytest.raises(NotSignedIn, match="no such key"):
                keys.key_of(key_id)
        for _ in range(3):
            with pytest.raises(NotSignedIn, match="in a minute"):
                keys.key_of(str(UUID(int=99)))
        assert len(server.asked) == MOST_ASKED
        assert keys.key_of(KEY_ID) is known
        clock.now += 60
        with pytest.raises(NotSignedIn, match="no such key"):
            keys.key_of(str(UUID(int=99)))


def test_the_keys_that_were_used_last_are_kept() -> None:
    clock, others = Clock(), ids(MOST_KEPT)
    answers = {f"/{one}": (200, BALANCER.pem) for one in (KEY_ID, *others)}
    with serving_keys(answers) as server:
        keys = IdentityKeys(server.connect, clock)
        for one in (KEY_ID, *others):
            keys.key_of(one)
            keys.key_of(KEY_ID)
        assert server.asked.count(f"/{KEY_ID}") == 1
        keys.key_of(others[0])
        assert server.asked.count(f"/{others[0]}") == 2, "it was forgotten"


def test_the_keys_of_aws_are_read_over_https_from_the_region() -> None:
    connection = keys_of_region("eu-central-1")()
    assert isinstance(connection, HTTPSConnection)
    assert connection.host == "public-keys.auth.elb.eu-central-1.amazonaws.com"
    assert (connection.port, connection.timeout) == (443, SECONDS)
