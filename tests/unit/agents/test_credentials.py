"""What a call sends of a credential, and that nothing else shows it."""

import base64
import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from roundsman.agents.credentials import (
    ApiKey,
    Basic,
    Bearer,
    FixedCredential,
    Secret,
)
from roundsman.agents.http import CallToSign, RemoteService, Signer
from roundsman.errors import CredentialRefused, DefinitionError
from tests.support.remote_server import (
    Server,
    charge,
    sent,
    transient,
)

HIDDEN = "k-3f9a"
CALL = CallToSign("POST", "https://pay.example.com/charges", {}, b"{}")


# ---- what is sent ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signer", "header", "value"),
    [
        (Bearer, "Authorization", f"Bearer {HIDDEN}"),
        (ApiKey, "X-Api-Key", HIDDEN),
        (lambda c: ApiKey(c, "Authorization", "Token "), "Authorization", f"Token {HIDDEN}"),
    ],
)
def test_a_key_is_sent_in_its_header(
    server: Server, signer: Callable[[FixedCredential], Signer], header: str, value: str
) -> None:
    charge(RemoteService(server.url, signer=signer(FixedCredential(Secret(HIDDEN)))))
    assert sent(server, header) == [value]


@pytest.mark.parametrize("text", ["me:pass:word", '{"username": "me", "password": "pass:word"}'])
def test_name_and_password_are_sent_as_basic(text: str) -> None:
    value = Basic(FixedCredential(Secret(text))).headers(CALL)["Authorization"]
    assert base64.b64decode(value.removeprefix("Basic ")) == b"me:pass:word"


def test_basic_needs_a_name_and_a_password() -> None:
    with pytest.raises(CredentialRefused, match="is not name:password") as caught:
        Basic(FixedCredential(Secret(HIDDEN))).headers(CALL)
    assert HIDDEN not in str(caught.value)


@pytest.mark.parametrize("text", ["", f"{HIDDEN}\nX-Other: 1", f"{HIDDEN}é"])
def test_a_text_that_no_header_can_have_is_refused_and_not_shown(server: Server, text: str) -> None:
    """http.client would refuse it too, with an error that quotes it."""
    service = RemoteService(server.url, signer=ApiKey(FixedCredential(Secret(text))))
    error = transient(service)
    assert str(error) == "the agent's credential has a character that no header can have"
    assert not server.requests


def test_a_header_of_the_agents_own_is_sent_with_each_call(server: Server) -> None:
    service = RemoteService(server.url, headers={"X-Version": "2", "Accept": "text/json"})
    charge(service)
    charge(service)
    assert sent(server, "X-Version") == ["2", "2"]
    assert sent(server, "Accept") == ["text/json"] * 2


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"X Version": "2"}, "'X Version' must be visible ASCII"),
        ({"X-Version": f"{HIDDEN}\r\n"}, "'X-Version' must be visible ASCII"),
        ({"X-Version": ""}, "'X-Version' must be visible ASCII"),
        ({"idempotency-Key": "1"}, "'idempotency-Key' is set by RemoteService itself"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(headers: dict[str, str], sentence: str) -> None:
    with pytest.raises(DefinitionError, match=sentence) as caught:
        RemoteService("https://pay.example.com", headers=headers)
    assert HIDDEN not in str(caught.value)


def test_a_name_that_no_header_has_is_refused() -> None:
    with pytest.raises(DefinitionError, match="is not the name of a header"):
        ApiKey(FixedCredential(Secret(HIDDEN)), header="X Key")


# ---- nothing shows it --------------------------------------------------------------------


@dataclass
class Holder:
    secret: Secret = field(default_factory=lambda: Secret(HIDDEN))


def test_no_text_of_a_secret_shows_it() -> None:
    secret = Secret(HIDDEN)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r}", repr(Holder())]
    shown += [repr(Bearer(FixedCredential(secret))), repr(ApiKey(FixedCredential(secret)))]
    shown += [repr(CallToSign("GET", "https://x", {"Authorization": HIDDEN}, HIDDEN.encode()))]
    assert not [text for text in shown if HIDDEN in text]
    for copied in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps):
        with pytest.raises(TypeError):
            copied(secret)


def test_an_agent_without_a_credential_pays_for_none_at_its_start() -> None:
    code = (
        "import sys, roundsman.agents.http\n"
        "assert not {'roundsman.agents.credentials', 'roundsman.agents.tls'} & sys.modules.keys()\n"
        "import roundsman.agents.credentials, roundsman.agents.tls\n"
        "assert not {'boto3', 'botocore', 'cryptography'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
