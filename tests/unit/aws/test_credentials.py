"""Secrets and roles of AWS as credentials: where they come from, when they are read again."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.client import BaseClient
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ClientError, ConnectTimeoutError
from moto import mock_aws

from roundsman.agents.credentials import Bearer, Secret
from roundsman.agents.http import CallToSign, RemoteService
from roundsman.aws.credentials import Sigv4, StoredCredential
from roundsman.errors import CredentialRefused, DefinitionError, TransientError
from tests.support.remote_server import (
    CREATED,
    PLENTY,
    Server,
    answer,
    charge,
    refusal,
    running,
    sent,
    transient,
)

HIDDEN = "k-3f9a"
REFUSED = answer("401 Unauthorized")
ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/pay-EoDzbd"
CALL = CallToSign("POST", "https://pay.example.com/charges", {}, b"{}")


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as found:
        yield found


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        yield


@dataclass
class Store:
    """Secrets Manager, as far as it is asked: each reading gives the next text, or raises it."""

    texts: list[str | Exception]
    reads: int = 0
    seconds: float = 0.0

    def client(self, service: str, region: str) -> BaseClient:
        assert (service, region) == ("secretsmanager", "eu-west-1")
        return self  # type: ignore[return-value]  # the one call that is made of it

    def get_secret_value(self, SecretId: str) -> dict[str, str]:
        assert SecretId == ARN
        self.reads += 1
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        if isinstance(text, Exception):
            raise text
        return {"SecretString": text}

    def credential(self, name: str | None = None) -> StoredCredential:
        return StoredCredential(ARN, field=name, monotonic=lambda: self.seconds, client=self.client)


def fails(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"about {HIDDEN}"}}, "GetSecretValue")


# ---- where it comes from -----------------------------------------------------------------


@pytest.mark.usefixtures("aws")
def test_a_secret_and_a_parameter_are_read_by_their_arn() -> None:
    secrets, parameters = boto3.client("secretsmanager"), boto3.client("ssm")
    arn = secrets.create_secret(Name="prod/pay", SecretString=f"{HIDDEN}\n")["ARN"]
    assert StoredCredential(arn).current().reveal() == HIDDEN
    parameters.put_parameter(Name="/prod/pay", Value=HIDDEN, Type="SecureString")
    arn = parameters.get_parameter(Name="/prod/pay")["Parameter"]["ARN"]
    assert StoredCredential.from_env({"CREDENTIAL": arn}).current().reveal() == HIDDEN


@pytest.mark.usefixtures("aws")
def test_a_field_of_a_json_secret_is_read_by_its_name() -> None:
    text = json.dumps({"apiKey": HIDDEN, "other": "x"})
    arn = boto3.client("secretsmanager").create_secret(Name="pay", SecretString=text)["ARN"]
    found = StoredCredential.from_env({"CREDENTIAL": arn}, field="apiKey")
    assert found.current().reveal() == HIDDEN


@pytest.mark.usefixtures("aws")
def test_a_binary_secret_is_refused_in_words() -> None:
    arn = boto3.client("secretsmanager").create_secret(Name="pay", SecretBinary=b"\xff")["ARN"]
    with pytest.raises(CredentialRefused, match="is binary; store it as text"):
        StoredCredential(arn).current()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (HIDDEN, "is not a JSON object"),
        (f'["{HIDDEN}"]', "has no text in its field 'apiKey'"),
        (f'{{"other": "{HIDDEN}"}}', "has no text in its field 'apiKey'"),
        ('{"apiKey": " "}', "has no text in its field 'apiKey'"),
        ('{"apiKey": 7}', "has no text in its field 'apiKey'"),
    ],
)
def test_a_missing_field_is_reported_without_the_text(text: str, sentence: str) -> None:
    with pytest.raises(CredentialRefused, match=sentence) as caught:
        Store([text]).credential("apiKey").current()
    assert HIDDEN not in str(caught.value)


@pytest.mark.parametrize("arn", ["", HIDDEN, "arn:aws:s3:::bucket", f"{ARN} x", "prod/pay"])
def test_anything_else_than_the_arn_of_a_secret_or_parameter_is_refused(arn: str) -> None:
    with pytest.raises(DefinitionError, match="must be the ARN of a secret") as caught:
        StoredCredential(arn)
    assert not arn or arn not in str(caught.value)


def test_a_stack_that_names_no_credential_is_refused() -> None:
    with pytest.raises(DefinitionError, match="CREDENTIAL is not set; set the parameter"):
        StoredCredential.from_env({"CREDENTIAL": ""})


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (fails("AccessDeniedException"), CredentialRefused, "AccessDeniedException"),
        (fails("ResourceNotFoundException"), CredentialRefused, "ResourceNotFoundException"),
        (fails("ThrottlingException"), TransientError, "ThrottlingException"),
        (ConnectTimeoutError(endpoint_url="https://x"), TransientError, "ConnectTimeoutError"),
    ],
)
def test_a_credential_that_cannot_be_read_is_a_transient_failure_that_says_why(
    error: Exception, kind: type[TransientError], words: str
) -> None:
    with pytest.raises(TransientError) as caught:
        Store([error]).credential().current()
    assert type(caught.value) is kind
    assert str(caught.value) == f"the agent's credential cannot be read ({words})"
    assert caught.value.__cause__ is None, "AWS's own message is not shown"


# ---- when it is read again ---------------------------------------------------------------


def test_it_is_read_once_for_five_minutes() -> None:
    store = Store([HIDDEN, "k-2"])
    credential = store.credential()
    for seconds in (0, 1, 299):
        store.seconds = seconds
        assert credential.current() == Secret(HIDDEN)
    assert store.reads == 1
    store.seconds = 300
    assert credential.current() == Secret("k-2")


def test_the_last_one_serves_while_it_cannot_be_read_again() -> None:
    store = Store([HIDDEN, fails("ThrottlingException"), "k-2"])
    credential = store.credential()
    credential.current()
    store.seconds = 300
    assert credential.current() == Secret(HIDDEN)
    store.seconds = 599
    assert credential.current() == Secret(HIDDEN)
    assert store.reads == 2
    store.seconds = 600
    assert credential.current() == Secret("k-2")


def test_a_refused_one_is_read_at_once_and_at_most_every_thirty_seconds() -> None:
    store = Store([HIDDEN, HIDDEN, "k-2"])
    credential = store.credential()
    credential.current()
    assert not credential.refused(), "it is the same still"
    store.seconds = 29
    assert not credential.refused()
    assert store.reads == 2
    store.seconds = 30
    assert credential.refused()
    assert credential.current() == Secret("k-2")
    store.seconds = 329
    assert credential.current() == Secret("k-2")
    assert store.reads == 3


def test_a_refused_one_that_cannot_be_read_has_not_changed() -> None:
    store = Store([HIDDEN, fails("AccessDeniedException")])
    credential = store.credential()
    credential.current()
    assert not credential.refused()
    assert credential.current() == Secret(HIDDEN)


def test_a_rotation_needs_no_deployment_and_costs_no_try(server: Server) -> None:
    service = RemoteService(server.url, signer=Bearer(Store([HIDDEN, "k-2"]).credential()))
    server.answers = [CREATED, REFUSED, CREATED]
    charge(service)
    assert charge(service) == {"chargeId": "c-1"}
    assert sent(server, "Authorization") == [f"Bearer {HIDDEN}"] * 2 + ["Bearer k-2"]
    keys = sent(server, "Idempotency-Key")
    assert len(set(keys)) == 1


def test_a_credential_that_stays_refused_is_sent_once_a_call(server: Server) -> None:
    store = Store([HIDDEN])
    service = RemoteService(server.url, signer=Bearer(store.credential()))
    server.always = REFUSED
    for _ in range(3):
        error = transient(service)
        assert isinstance(error, CredentialRefused)
        assert HIDDEN not in str(error)
    assert (len(server.requests), store.reads) == (3, 2)


def test_a_new_credential_that_is_refused_too_is_not_sent_a_third_time(server: Server) -> None:
    service = RemoteService(server.url, signer=Bearer(Store([HIDDEN, "k-2"]).credential()))
    server.always = refusal("403 Forbidden", "ScopeMissing")
    assert "403 ScopeMissing" in str(transient(service))
    assert len(server.requests) == 2


def test_a_refusal_of_the_order_reads_no_credential_again(server: Server) -> None:
    store = Store([HIDDEN])
    service = RemoteService(server.url, signer=Bearer(store.credential()))
    server.always = refusal("403 Forbidden", "CustomerBlocked")
    with pytest.raises(Exception, match="CustomerBlocked"):
        service.call("POST", "x", key="k", time_left=PLENTY, refusals=("CustomerBlocked",))
    assert (len(server.requests), store.reads) == (1, 1)


# ---- SigV4 -------------------------------------------------------------------------------

ROLE = ReadOnlyCredentials("AKIDEXAMPLE", HIDDEN, "session-token")


def test_a_call_is_signed_with_the_credentials_of_the_role(server: Server) -> None:
    signer = Sigv4("execute-api", "eu-west-1", credentials=lambda: ROLE)
    charge(RemoteService(server.url + "/v1", signer=signer))
    [authorization] = sent(server, "Authorization")
    assert authorization.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/execute-api/aws4_request" in authorization
    assert sent(server, "X-Amz-Security-Token") == ["session-token"]
    assert authorization == signature_of(server)
    assert HIDDEN not in server.requests[0].decode()


def signature_of(server: Server) -> str:
    """The signature of the request that has arrived, as its receiver works it out."""
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    signed = headers.pop("Authorization").split("SignedHeaders=")[1].split(",")[0].split(";")
    method, target, _ = first.split(" ")
    kept = {n: v for n, v in headers.items() if n.lower() in signed and n != "Host"}
    request = AWSRequest(method, f"http://{headers['Host']}{target}", kept, body)
    request.context["timestamp"] = headers["X-Amz-Date"]
    auth = SigV4Auth(ROLE, "execute-api", "eu-west-1")
    canonical = auth.canonical_request(request)
    signature = auth.signature(auth.string_to_sign(request, canonical), request)
    scope = auth.scope(request)
    names = auth.signed_headers(auth.headers_to_sign(request))
    return f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={names}, Signature={signature}"


def test_the_region_is_the_functions_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    signed = Sigv4("lambda", credentials=lambda: ROLE).headers(CALL)
    assert "/eu-central-1/lambda/aws4_request" in signed["Authorization"]


@pytest.mark.parametrize(("service", "sentence"), [("", "name of a service"), ("s3", "not be s3")])
def test_a_service_that_cannot_be_signed_for_is_refused(service: str, sentence: str) -> None:
    with pytest.raises(DefinitionError, match=sentence):
        Sigv4(service, "eu-west-1")


def test_signing_without_a_region_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(DefinitionError, match="needs a region"):
        Sigv4("lambda")
