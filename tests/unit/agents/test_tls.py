"""Private authorities and client certificates, at a real TLS server on loopback."""

import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from roundsman.agents.credentials import FixedCredential, Secret
from roundsman.agents.http import RemoteService
from roundsman.agents.tls import Tls
from roundsman.errors import CredentialRefused, DefinitionError, TransientError
from tests.support.certificates import Authority
from tests.support.remote_server import charge, running, transient

CHARGED = {"chargeId": "c-1"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path)
    made.write()
    return made


def other(tmp_path: Path, name: str = "another authority") -> Authority:
    folder = tmp_path / "other"
    folder.mkdir()
    made = Authority(folder, name=name)
    made.write()
    return made


def as_secret(certificate: Path, key: Path, ca: Path) -> Secret:
    return Secret(
        json.dumps(
            {
                "certificate": certificate.read_text(),
                "privateKey": key.read_text(),
                "ca": ca.read_text(),
            }
        )
    )


# ---- a private authority -----------------------------------------------------------------


def test_a_service_with_a_certificate_of_a_private_authority_is_called(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMBDA_TASK_ROOT", str(tmp_path))
    with running(authority.server()) as server:
        service = RemoteService.from_env({"SERVICE_URL": server.url, "SERVICE_CA": "ca.pem"})
        assert charge(service) == charge(service) == CHARGED


@pytest.mark.parametrize(
    ("host", "days", "sentence"),
    [
        (None, (-2, -1), "has expired"),
        (None, (1, 2), "is not valid yet"),
        ("other.example", (-1, 1), "is for another address"),
    ],
)
def test_a_certificate_that_cannot_be_right_is_transient_and_says_why(
    authority: Authority, host: str | None, days: tuple[int, int], sentence: str
) -> None:
    with running(authority.server(host=host, days=days)) as server:
        error = transient(RemoteService(server.url, tls=Tls(ca=authority.folder / "ca.pem")))
    assert type(error) is TransientError
    assert str(error) == f"POST was not sent: the service's certificate {sentence}"


def test_a_certificate_for_another_host_name_says_so(authority: Authority) -> None:
    with running(authority.server(host="other.example")) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        error = transient(RemoteService(url, tls=Tls(ca=authority.folder / "ca.pem")))
    assert str(error) == "POST was not sent: the service's certificate is for another name"


def test_no_other_authority_is_trusted(authority: Authority, tmp_path: Path) -> None:
    with running(other(tmp_path).server()) as server:
        error = transient(RemoteService(server.url, tls=Tls(ca=authority.folder / "ca.pem")))
    assert str(error) == "POST was not sent: the service's certificate is not trusted"


def test_an_authority_that_python_3_13_refuses_is_refused_on_every_python(tmp_path: Path) -> None:
    careless = Authority(tmp_path, strict=False)
    tls = Tls(ca=careless.write())
    assert tls.context().verify_flags & ssl.VERIFY_X509_STRICT
    with running(careless.server()) as server:
        error = transient(RemoteService(server.url, tls=tls))
    assert str(error) == (
        "POST was not sent: the service's certificate or that of its authority lacks an extension "
        "that Python 3.13 asks for (key usage, key identifiers)"
    )


# ---- a client certificate ----------------------------------------------------------------


def test_a_client_certificate_in_files_is_shown(authority: Authority) -> None:
    certificate, key = authority.issue("client")
    ca = authority.folder / "ca.pem"
    with running(authority.server(clients=ca)) as server:
        tls = Tls(ca=ca, certificate=certificate, key=key)
        assert charge(RemoteService(server.url, tls=tls)) == CHARGED


def test_a_client_certificate_in_a_secret_is_shown(authority: Authority) -> None:
    ca = authority.folder / "ca.pem"
    secret = as_secret(*authority.issue("client"), ca)
    with running(authority.server(clients=ca)) as server:
        service = RemoteService(server.url, tls=Tls(secret=FixedCredential(secret)))
        assert charge(service) == CHARGED


def of_tls_1_2(context: ssl.SSLContext) -> ssl.SSLContext:
    """The service refuses within the handshake, so its reason always arrives."""
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def test_a_client_certificate_of_another_authority_is_refused_in_words(
    authority: Authority, tmp_path: Path
) -> None:
    certificate, key = other(tmp_path).issue("client")
    ca = authority.folder / "ca.pem"
    with running(of_tls_1_2(authority.server(clients=ca))) as server:
        service = RemoteService(server.url, tls=Tls(ca=ca, certificate=certificate, key=key))
        error = transient(service)
    assert isinstance(error, CredentialRefused)
    assert str(error) == (
        "the service refused the client certificate: its authority is not known there"
    )


def test_an_expired_client_certificate_is_refused_in_words(authority: Authority) -> None:
    certificate, key = authority.issue("client", days=(-2, -1))
    ca = authority.folder / "ca.pem"
    with running(of_tls_1_2(authority.server(clients=ca))) as server:
        service = RemoteService(server.url, tls=Tls(ca=ca, certificate=certificate, key=key))
        error = transient(service)
    assert isinstance(error, CredentialRefused)
    assert str(error) == "the service refused the client certificate: it has expired"


def test_with_tls_1_3_the_reason_is_the_services_or_a_hint(
    authority: Authority, tmp_path: Path
) -> None:
    """The refusal comes after the handshake, and may be lost if the connection is reset."""
    ca = authority.folder / "ca.pem"
    certificate, key = other(tmp_path).issue("client")
    with running(authority.server(clients=ca)) as server:
        service = RemoteService(server.url, tls=Tls(ca=ca, certificate=certificate, key=key))
        error = transient(service)
        assert not server.requests
    assert "the client certificate" in str(error)


@dataclass
class Rotating:
    """A secret that is another one after it was refused."""

    texts: list[Secret]

    def current(self) -> Secret:
        return self.texts[0]

    def refused(self) -> bool:
        return len(self.texts) > 1 and bool(self.texts.pop(0))


def test_a_client_certificate_that_was_renewed_is_shown_without_a_deployment(
    authority: Authority,
) -> None:
    ca = authority.folder / "ca.pem"
    expired = as_secret(*authority.issue("old", days=(-2, -1)), ca)
    secret = Rotating([expired, as_secret(*authority.issue("client"), ca)])
    with running(of_tls_1_2(authority.server(clients=ca))) as server:
        service = RemoteService(server.url, tls=Tls(secret=secret))
        assert isinstance(transient(service), CredentialRefused)
        assert charge(service) == CHARGED


# ---- what cannot be used -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda folder: Tls(certificate=folder / "ca.pem"), "must be given together"),
        (lambda folder: Tls(ca=folder / "gone.pem"), "gone.pem' cannot be read as PEM"),
        (lambda folder: Tls(ca=folder / "client.key"), "is not PEM, or they do not fit"),
        (
            lambda folder: Tls(certificate=folder / "ca.pem", key=folder / "client.key"),
            "is not PEM, or they do not fit",
        ),
        (
            lambda folder: Tls(
                certificate=folder / "client.pem",
                key=folder / "client.key",
                secret=FixedCredential(Secret("{}")),
            ),
            "in files or in a secret, not in both",
        ),
    ],
)
def test_files_that_cannot_be_used_are_refused_at_the_start(
    authority: Authority, make: Callable[[Path], Tls], sentence: str
) -> None:
    authority.issue("client")
    with pytest.raises(DefinitionError, match=sentence):
        make(authority.folder)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("k-3f9a", "is not a JSON object"),
        ("[]", "is not a JSON object"),
        ('{"certificate": "k-3f9a"}', "needs certificate and privateKey, or ca, or all three"),
        ('{"other": "k-3f9a"}', "needs certificate and privateKey, or ca, or all three"),
        ('{"ca": "k-3f9a"}', "is not PEM, or they do not fit"),
        ('{"certificate": "k-3f9a", "privateKey": "k"}', "is not PEM, or they do not fit"),
    ],
)
def test_a_secret_that_holds_no_certificates_is_reported_without_its_text(
    text: str, sentence: str
) -> None:
    service = RemoteService("https://127.0.0.1:9", tls=Tls(secret=FixedCredential(Secret(text))))
    error = transient(service)
    assert isinstance(error, CredentialRefused)
    assert sentence in str(error)
    assert "k-3f9a" not in str(error)


def test_no_key_stays_on_the_disk(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    certificate, key = authority.issue("client")
    Tls(certificate=certificate, key=key)
    with pytest.raises(DefinitionError):
        Tls(certificate=authority.folder / "ca.pem", key=key)
    assert not list(folder.iterdir())


def test_certificates_need_https(authority: Authority) -> None:
    with pytest.raises(
        DefinitionError, match="certificates need an address that begins with https"
    ):
        RemoteService("http://localhost", tls=Tls(ca=authority.folder / "ca.pem"))
