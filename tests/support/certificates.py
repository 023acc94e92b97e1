"""Certificates made for a test, and a TLS server's context with one of them."""

import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


def server_context(
    folder: Path, *, name: str | None = None, days: tuple[int, int] = (-1, 1)
) -> ssl.SSLContext:
    """A server's context; its self-signed certificate is `folder`/certificate.pem.

    The certificate is for 127.0.0.1, or for `name` instead; `days` from now are its validity.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's service")])
    subject = x509.DNSName(name) if name else x509.IPAddress(ip_address("127.0.0.1"))
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(own)
        .issuer_name(own)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * DAY)
        .not_valid_after(now + days[1] * DAY)
        .add_extension(x509.SubjectAlternativeName([subject]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


@dataclass(frozen=True)
class Authority:
    """A private certificate authority, with the extensions that strict verification asks for.

    Its certificate is `folder`/ca.pem. `strict` false leaves them out, as careless scripts do.
    """

    folder: Path
    strict: bool = True
    name: str = "a test's authority"
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1()), repr=False
    )

    @property
    def subject(self) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])

    def write(self) -> Path:
        """Write its certificate, and return its path."""
        now, public = datetime.now(UTC), self.key.public_key()
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.subject)
            .issuer_name(self.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        )
        if self.strict:
            identifier = x509.SubjectKeyIdentifier.from_public_key(public)
            builder = builder.add_extension(KEY_CERT_SIGN, critical=True).add_extension(
                identifier, critical=False
            )
        path = self.folder / "ca.pem"
        made = builder.sign(self.key, hashes.SHA256())
        path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        return path

    def issue(
        self, name: str, *, host: str | None = None, days: tuple[int, int] = (-1, 1)
    ) -> tuple[Path, Path]:
        """Issue a certificate for 127.0.0.1 or `host`; return it and its key as files."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        subject = x509.DNSName(host) if host else x509.IPAddress(ip_address("127.0.0.1"))
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + days[0] * DAY)
            .not_valid_after(now + days[1] * DAY)
            .add_extension(x509.SubjectAlternativeName([subject]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
        )
        certificate, private = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        made = builder.sign(self.key, hashes.SHA256())
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate, private

    def server(
        self,
        *,
        host: str | None = None,
        days: tuple[int, int] = (-1, 1),
        clients: Path | None = None,
    ) -> ssl.SSLContext:
        """A server's context; with `clients`, it asks for a certificate of that authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue("server", host=host, days=days))
        if clients is not None:
            context.load_verify_locations(clients)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


KEY_CERT_SIGN = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
