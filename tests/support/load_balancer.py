"""A stand-in of a load balancer that signs people in, and of the server of its keys."""

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from roundsman.model.json import Json
from roundsman_console.faces.web.access.identity import NotSignedIn, Trust
from roundsman_console.faces.web.access.identity_keys import Connect

SIGNER = (
    "arn:aws:elasticloadbalancing:eu-central-1:111122223333:loadbalancer/app/console/"
    "50dc6c495c0c9188"
)
ISSUER = "https://login.example.com"
KEY_ID = "0f6c1a9e-5b1d-4f5a-9c3e-2b7d8e9f0a1b"
TRUST = Trust(SIGNER, ISSUER, "on-call")
NOW = 1_800_000_000
"""Epoch seconds."""


def part(content: bytes) -> str:
    """A part of a token, with its padding, as load balancers write it."""
    return base64.urlsafe_b64encode(content).decode()


def text(value: Json) -> bytes:
    return json.dumps(value).encode()


@dataclass
class LoadBalancer:
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def header(self, **changes: Json) -> dict[str, Json]:
        found: dict[str, Json] = {
            "typ": "JWT",
            "alg": "ES256",
            "kid": KEY_ID,
            "signer": SIGNER,
            "iss": ISSUER,
            "client": "console",
            "exp": NOW + 120,
        }
        return {name: value for name, value in (found | changes).items() if value is not None}

    def claims(self, **changes: Json) -> dict[str, Json]:
        found: dict[str, Json] = {"sub": "amy", "groups": ["staff", "on-call"]}
        return {name: value for name, value in (found | changes).items() if value is not None}

    def token(self, header: Json = None, claims: Json = None) -> str:
        """A token with this header and these claims, signed."""
        head = part(text(self.header() if header is None else header))
        body = part(text(self.claims() if claims is None else claims))
        return f"{head}.{body}.{part(self.signature(f'{head}.{body}'))}"

    def signature(self, signed: str) -> bytes:
        halves = decode_dss_signature(self.key.sign(signed.encode(), ec.ECDSA(SHA256())))
        return b"".join(half.to_bytes(32, "big") for half in halves)

    def key_of(self, key_id: str) -> ec.EllipticCurvePublicKey:
        if key_id != KEY_ID:
            raise NotSignedIn("the server of the keys has no such key")
        return self.key.public_key()

    @property
    def pem(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass
class KeyServer:
    """What the server of the keys answers, and for what it was asked."""

    connect: Connect
    asked: list[str]


@contextmanager
def serving_keys(keys: Mapping[str, tuple[int, bytes]]) -> Iterator[KeyServer]:
    """A server on 127.0.0.1 with an answer for each path; 403 for others, as of AWS."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, body = keys.get(self.path, (403, b"<Error/>"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        port = server.server_address[1]
        try:
            yield KeyServer(lambda: HTTPConnection("127.0.0.1", port, timeout=30), asked)
        finally:
            server.shutdown()
            thread.join()
