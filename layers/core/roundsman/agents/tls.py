"""TLS to services with a private certificate authority, or that ask for a client certificate.

    Tls(ca="ca.pem")  # a file in the agent's code folder
    Tls(certificate="client.pem", key="client.key")
    Tls(secret=StoredCredential.from_env())  # JSON: certificate, privateKey, and ca if needed

With a `ca`, no other authority is trusted. Certificates are verified as strictly on every Python as
on 3.13 (VERIFY_X509_STRICT), so that a test finds what the function in Lambda would refuse: an
authority needs the key usage `keyCertSign` and the extensions subject and authority key identifier.
"""

import json
import os
import ssl
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from roundsman.errors import CredentialRefused, DefinitionError

if TYPE_CHECKING:
    from roundsman.agents.credentials import Credential, Secret

PART_OF_SECRET = ("certificate", "privateKey", "ca")


class Tls:
    """The certificates of an agent. Files are PEM, and relative paths begin at its code folder.

    `secret` is a credential whose text is a JSON object with PEM texts in `certificate` and
    `privateKey`, and in `ca` if there is a private authority; it is read again as every credential.
    Raises DefinitionError for a file that cannot be read, a certificate without a key, and a
    certificate from both a file and a secret.
    """

    def __init__(
        self,
        *,
        ca: str | Path | None = None,
        certificate: str | Path | None = None,
        key: str | Path | None = None,
        secret: "Credential | None" = None,
    ) -> None:
        if (certificate is None) != (key is None):
            raise DefinitionError("a client certificate and its key must be given together")
        if certificate is not None and secret is not None:
            raise DefinitionError("a client certificate is in files or in a secret, not in both")
        self._secret = secret
        self._lock = threading.Lock()
        self._made_of: Secret | None = None
        self._ca = _read(ca) if ca is not None else None
        self._pair = _read(certificate) + "\n" + _read(key) if certificate and key else None
        try:
            self._context = _context(self._ca, self._pair)
        except (ssl.SSLError, ValueError) as error:
            raise DefinitionError("a certificate or key is not PEM, or they do not fit") from error

    @property
    def has_client_certificate(self) -> bool:
        """Whether the agent shows a certificate to its service."""
        return self._pair is not None or self._secret is not None

    def context(self) -> ssl.SSLContext:
        """The context of the next connection. Raises CredentialRefused for an unusable secret."""
        if self._secret is None:
            return self._context
        current = self._secret.current()
        with self._lock:
            if current != self._made_of:
                self._context = self._context_of(current)
                self._made_of = current
            return self._context

    def refused(self) -> bool:
        """Read the secret anew, as the service refused it; return whether it has changed."""
        return self._secret is not None and self._secret.refused()

    def _context_of(self, secret: "Secret") -> ssl.SSLContext:
        parts = _parts(secret)
        pair = f"{parts['certificate']}\n{parts['privateKey']}" if "certificate" in parts else None
        try:
            return _context(parts.get("ca", self._ca), pair)
        except (ssl.SSLError, ValueError):
            raise CredentialRefused(
                "the secret's certificate or key is not PEM, or they do not fit"
            ) from None


def _context(ca: str | None, pair: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if pair is not None:
        _load(context, pair)
    return context


def _load(context: ssl.SSLContext, pair: str) -> None:
    """Load a certificate with its key, from a file as OpenSSL wants it, which only we can read."""
    handle, name = tempfile.mkstemp()
    try:
        with os.fdopen(handle, "w") as file:
            file.write(pair)
        context.load_cert_chain(name, password=_no_password)
    finally:
        os.unlink(name)


def _no_password() -> str:
    raise ValueError  # otherwise OpenSSL asks on the terminal


def _read(path: str | Path) -> str:
    folder = os.environ.get("LAMBDA_TASK_ROOT", "")  # the code folder; a test's is the current one
    try:
        return (Path(folder) / path).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise DefinitionError(
            f"the file {str(path)!r} cannot be read as PEM from the agent's code folder"
        ) from error


def _parts(secret: "Secret") -> Mapping[str, str]:
    try:
        found = json.loads(secret.reveal())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise CredentialRefused("the secret of the certificates is not a JSON object")
    parts = {n: v for n in PART_OF_SECRET if isinstance(v := found.get(n), str) and v.strip()}
    if not parts or ("certificate" in parts) != ("privateKey" in parts):
        raise CredentialRefused(
            "the secret of the certificates needs certificate and privateKey, or ca, or all three"
        )
    return parts
