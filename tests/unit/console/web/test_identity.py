"""Which identities of a load balancer are believed, and whose they are."""

import base64
import hashlib
import hmac
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from roundsman.model.json import Json
from roundsman_console.faces.web.access.identity import (
    LONGEST_TOKEN,
    LONGEST_VALID,
    SKEW,
    Identity,
    NotSignedIn,
    Trust,
    read_identity,
)
from tests.support.load_balancer import ISSUER, KEY_ID, NOW, SIGNER, TRUST, LoadBalancer, part, text

BALANCER = LoadBalancer()


def read(token: str, trust: Trust = TRUST, at: int = NOW) -> Identity:
    return read_identity(token, trust, BALANCER.key_of, at)


def refused(token: str, words: str, *, at: int = NOW) -> None:
    """The token is refused, and the reason contains nothing of it."""
    with pytest.raises(NotSignedIn) as raised:
        read(token, at=at)
    assert words in str(raised.value)
    for given in ("amy", KEY_ID, SIGNER, ISSUER, "evil"):
        assert given not in str(raised.value)


def never_asked(key_id: str) -> ec.EllipticCurvePublicKey:
    raise AssertionError(f"the key {key_id} was asked for")


def test_a_person_is_known_by_name_and_group() -> None:
    assert read(BALANCER.token()) == Identity("amy", may_command=True)


def test_the_padding_of_the_load_balancer_is_a_part_of_what_is_signed() -> None:
    token = BALANCER.token()
    assert "=" in token.rpartition(".")[2], "64 bytes have padding"
    assert read(token.rstrip("=")).name == "amy", "that of the signature itself is not signed"
    claims = next(
        found
        for length in range(3)
        if "=" in part(text(found := BALANCER.claims(email="a" * length)))
    )
    padded = BALANCER.token(claims=claims)
    assert read(padded).name == "amy"
    head, body, signature = padded.split(".")
    refused(f"{head}.{body.rstrip('=')}.{signature}", "signature of the identity is wrong")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"alg": "none"}, "not signed with ES256"),
        ({"alg": "HS256"}, "not signed with ES256"),
        ({"alg": "ES384"}, "not signed with ES256"),
        ({"alg": "es256"}, "not signed with ES256"),
        ({"alg": None}, "not signed with ES256"),
        ({"alg": ["ES256"]}, "not signed with ES256"),
        ({"crit": ["b64"], "b64": False}, "critical fields"),
        ({"signer": SIGNER.replace("console", "evil")}, "another load balancer"),
        ({"signer": SIGNER + "x"}, "another load balancer"),
        ({"signer": None}, "another load balancer"),
        ({"signer": [SIGNER]}, "another load balancer"),
        ({"iss": ISSUER + "/"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"exp": None}, "no time of expiry"),
        ({"exp": "1800000120"}, "no time of expiry"),
        ({"exp": 1.8e9 + 120}, "no time of expiry"),
        ({"exp": True}, "no time of expiry"),
        ({"exp": NOW - SKEW}, "has expired"),
        ({"exp": NOW + LONGEST_VALID + 1}, "valid too long"),
        ({"kid": None}, "no UUID"),
        ({"kid": 7}, "no UUID"),
        ({"kid": ""}, "no UUID"),
        ({"kid": "../" + KEY_ID}, "no UUID"),
        ({"kid": KEY_ID + "?x"}, "no UUID"),
        ({"kid": KEY_ID + "\n"}, "no UUID"),
        ({"kid": "@evil.example/" + KEY_ID}, "no UUID"),
        ({"kid": KEY_ID.replace("0", "\u0660")}, "no UUID"),
    ],
)
def test_a_signed_token_with_another_header_is_refused_before_a_key_is_asked_for(
    changes: dict[str, Json], words: str
) -> None:
    token = BALANCER.token(BALANCER.header(**changes))
    refused(token, words)
    with pytest.raises(NotSignedIn):
        read_identity(token, TRUST, never_asked, NOW)


def test_clocks_may_differ_by_the_skew_and_no_more() -> None:
    token = BALANCER.token(BALANCER.header(exp=NOW))
    assert read(token, at=NOW + SKEW - 1).name == "amy"
    refused(token, "has expired", at=NOW + SKEW)


def test_a_clock_that_is_an_hour_off_believes_nobody() -> None:
    """Else a token that was stolen an hour ago would be believed where the clock is behind."""
    refused(BALANCER.token(), "valid too long; if each one is, the clock here is", at=NOW - 3_600)
    refused(BALANCER.token(), "has expired; if each one has, the clock here is", at=NOW + 3_600)


@pytest.mark.parametrize("begins", [NOW + SKEW + 1, NOW * 1.5, "soon", [NOW]])
def test_a_token_that_is_not_valid_yet_is_refused(begins: Json) -> None:
    claims = BALANCER.claims(nbf=begins)
    refused(BALANCER.token(claims=claims), "not valid yet")
    assert read(BALANCER.token(claims={**claims, "nbf": NOW + SKEW})).name == "amy"


def test_only_the_one_client_is_believed_if_it_is_named() -> None:
    trust = Trust(SIGNER, ISSUER, "on-call", client="console")
    assert read(BALANCER.token(), trust).name == "amy"
    for other in ("evil", "console ", "", None, ["console"]):
        token = BALANCER.token(BALANCER.header(client=other))
        assert read(token).name == "amy", "no client is named"
        with pytest.raises(NotSignedIn, match="of another client than --client"):
            read_identity(token, trust, never_asked, NOW)


def test_a_key_that_is_not_known_is_refused() -> None:
    token = BALANCER.token(BALANCER.header(kid=KEY_ID.replace("a", "b")))
    refused(token, "no such key")


def test_another_key_and_changed_claims_are_refused() -> None:
    refused(LoadBalancer().token(), "signature of the identity is wrong")
    head, _, signature = BALANCER.token().split(".")
    changed = part(text(BALANCER.claims(sub="evil")))
    refused(f"{head}.{changed}.{signature}", "signature of the identity is wrong")


def test_the_public_key_as_a_secret_signs_nothing() -> None:
    head = part(text(BALANCER.header(alg="HS256")))
    body = part(text(BALANCER.claims()))
    digest = hmac.digest(BALANCER.pem, f"{head}.{body}".encode(), hashlib.sha256)
    refused(f"{head}.{body}.{part(digest)}", "not signed with ES256")
    head = part(text(BALANCER.header()))
    digest = hmac.digest(BALANCER.pem, f"{head}.{body}".encode(), hashlib.sha256)
    refused(f"{head}.{body}.{part(digest)}", "no signature of ES256")


def test_a_signature_of_another_form_is_refused() -> None:
    head, body, _ = BALANCER.token().split(".")
    for wrong in (b"\0" * 64, b"\xff" * 64):
        refused(f"{head}.{body}.{part(wrong)}", "signature of the identity is wrong")
    raw = BALANCER.signature(f"{head}.{body}")
    for wrong in (raw[:-1], raw + b"\0", b"0"):
        refused(f"{head}.{body}.{part(wrong)}", "no signature of ES256")


def test_a_key_of_another_curve_is_refused() -> None:
    other = ec.generate_private_key(ec.SECP256K1()).public_key()
    with pytest.raises(NotSignedIn, match="no signature of ES256"):
        read_identity(BALANCER.token(), TRUST, lambda _: other, NOW)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a",
        "a.b",
        "..",
        "a.b.c.d",
        "a b.c.d",
        "é.a.a",
        "a+/.a.a",
        "====.a.a",
        "a.a.a",
        f"{part(b'[]')}.{part(b'{}')}.{part(b'x')}",
        f"{part(b'{')}.{part(b'{}')}.{part(b'x')}",
        f"{part(bytes([255, 254]))}.{part(b'{}')}.{part(b'x')}",
        f"{part(b'[' * 5000)}.{part(b'{}')}.{part(b'x')}",
        f"{part(b'{}')}.{part(b'{}')}.",
        "a" * (LONGEST_TOKEN + 1),
    ],
)
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(NotSignedIn):
        read_identity(token, TRUST, never_asked, NOW)


def test_a_token_is_read_up_to_the_longest() -> None:
    long = BALANCER.token(claims=BALANCER.claims(more="x" * 11_000))
    assert read(long).name == "amy"
    refused(BALANCER.token(claims=BALANCER.claims(more="x" * LONGEST_TOKEN)), "three parts")


@pytest.mark.parametrize(
    ("groups", "may"),
    [
        (["on-call"], True),
        ("on-call", True),
        (["staff", "on-calls", "on", "ON-CALL"], False),
        ("staff on-call", False),
        ("on-call,staff", False),
        ({"on-call": True}, False),
        ([["on-call"]], False),
        ([], False),
        (None, False),
        (True, False),
    ],
)
def test_only_who_is_in_the_group_may_command(groups: Json, may: bool) -> None:
    assert read(BALANCER.token(claims=BALANCER.claims(groups=groups))).may_command is may


def test_the_claims_with_name_and_groups_are_chosen() -> None:
    trust = Trust(SIGNER, ISSUER, "ops", group_claim="custom:team", name_claim="email")
    claims = BALANCER.claims(email="amy@example.com") | {"custom:team": "ops"}
    assert read(BALANCER.token(claims=claims), trust) == Identity("amy@example.com", True)
    assert not read(
        BALANCER.token(claims=BALANCER.claims(email="amy@example.com")), trust
    ).may_command


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "  ",
        7,
        ["amy"],
        " amy",
        "amy\n",
        "a\x1b[2Jmy",
        "a\u202emy",
        "a\u200bmy",
        "a" * 101,
    ],
)
def test_a_name_that_is_missing_or_cannot_be_shown_is_refused(name: Json) -> None:
    with pytest.raises(NotSignedIn, match="name"):
        read(BALANCER.token(claims=BALANCER.claims(sub=name)))


def test_a_name_may_have_spaces_and_any_letters() -> None:
    for name in ("Amélie Ünal", "a" * 100, "amy (through console)"):
        assert read(BALANCER.token(claims=BALANCER.claims(sub=name))).name == name


def test_the_stand_in_writes_what_a_load_balancer_writes() -> None:
    head, _, _ = BALANCER.token().split(".")
    assert json.loads(base64.urlsafe_b64decode(head))["signer"] == SIGNER
