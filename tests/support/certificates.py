"""Certificates made for a test, and a TLS server's context with one of them."""

import ssl
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
