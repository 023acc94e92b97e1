"""Who is signed in? The identity that an Application Load Balancer of AWS adds to each request.

The load balancer signs the header `x-amzn-oidc-data`: a JSON Web Token with ES256, whose claims are
those that the identity provider tells about the person. See
https://docs.aws.amazon.com/elasticloadbalancing/latest/application/listener-authenticate-users.html
Signer, issuer, key and expiry are in the header of the token. Its parts end with the padding of
base64, which the standard of such tokens forbids and libraries for them refuse, so it is read here;
what is cryptographic is done by `cryptography`.
"""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from roundsman.model.json import Json
from roundsman_console.base.limits import LONGEST_NAME

HEADER = "x-amzn-oidc-data"
"""The name of the header with the token."""
LONGEST_TOKEN = 24_000
"""Characters. A load balancer refuses claims of more than 11,000 bytes."""
SKEW = 60
"""Seconds by which the clocks of the load balancer and of this machine may differ. A token is valid
for some two minutes, and each request has a new one."""
LONGEST_VALID = 900
"""Seconds for which a token may be valid from now on. If one is valid for longer, the clock here is
behind, and a stolen token would be believed for as much longer."""

_PART = re.compile(r"[A-Za-z0-9_-]+={0,2}")
_KEY_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SIGNATURE_BYTES = 64
"""Of ES256: two numbers of 32 bytes."""

KeyOf = Callable[[str], ec.EllipticCurvePublicKey]
"""Returns the public key with this id, which is a UUID. Raises NotSignedIn."""


class NotSignedIn(Exception):
    """A request has no valid identity; the text says why, and contains nothing of the request."""


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose tokens are believed, and what is read of them."""

    signer: str
    """The ARN of the load balancer."""
    issuer: str
    """The identity provider, as the load balancer knows it."""
    group: str
    """Who is in this group may send commands."""
    group_claim: str = "groups"
    """The claim with the groups of a person: a list of names, or one name."""
    name_claim: str = "sub"
    """The claim with the name of a person."""
    client: str = ""
    """The client of the identity provider, as the load balancer knows it; empty for any."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A person whom the load balancer has signed in."""

    name: str
    """At most LONGEST_NAME characters, all of which can be seen."""
    may_command: bool
    """Whether the person is in the group of those who may send commands."""


def read_identity(token: str, trust: Trust, key_of: KeyOf, at: int) -> Identity:
    """Return who is signed in, by a token that was received `at` (epoch seconds).

    Raises NotSignedIn if the token is not valid, or not of the load balancer and the identity
    provider of `trust`. The key is looked up only for a token that claims to be of them.
    """
    parts = token.split(".")
    if len(token) > LONGEST_TOKEN or len(parts) != 3:
        raise NotSignedIn("the identity is no token of three parts")
    header, claims = _object(parts[0]), _object(parts[1])
    key_id = _checked_header(header, trust, at)
    _check_signature(parts, key_of(key_id))
    begins = claims.get("nbf", 0)
    if not isinstance(begins, int | float) or begins > at + SKEW:
        raise NotSignedIn("the identity is not valid yet; if none is, the clock here is wrong")
    return Identity(_name(claims.get(trust.name_claim)), _in_group(claims, trust))


def _checked_header(header: dict[str, Json], trust: Trust, at: int) -> str:
    """Return the id of the key with which the token claims to be signed."""
    if header.get("alg") != "ES256":
        raise NotSignedIn("the identity is not signed with ES256")
    if "crit" in header:
        raise NotSignedIn("the identity has critical fields that are not known")
    if header.get("signer") != trust.signer:
        raise NotSignedIn("the identity is signed by another load balancer than --signer")
    if header.get("iss") != trust.issuer:
        raise NotSignedIn("the identity is of another issuer than --issuer")
    if trust.client and header.get("client") != trust.client:
        raise NotSignedIn("the identity is of another client than --client")
    expires = header.get("exp")
    if not isinstance(expires, int) or isinstance(expires, bool):
        raise NotSignedIn("the identity has no time of expiry")
    if at >= expires + SKEW:
        raise NotSignedIn("the identity has expired; if each one has, the clock here is wrong")
    if expires > at + LONGEST_VALID:
        raise NotSignedIn("the identity is valid too long; if each one is, the clock here is wrong")
    key_id = header.get("kid")
    if not isinstance(key_id, str) or not _KEY_ID.fullmatch(key_id):
        raise NotSignedIn("the id of the key of the identity is no UUID")
    return key_id


def _check_signature(parts: list[str], key: ec.EllipticCurvePublicKey) -> None:
    signature = _decoded(parts[2])
    if len(signature) != _SIGNATURE_BYTES or not isinstance(key.curve, ec.SECP256R1):
        raise NotSignedIn("the identity has no signature of ES256")
    halves = signature[: _SIGNATURE_BYTES // 2], signature[_SIGNATURE_BYTES // 2 :]
    encoded = encode_dss_signature(*(int.from_bytes(half, "big") for half in halves))
    try:
        key.verify(encoded, f"{parts[0]}.{parts[1]}".encode(), ec.ECDSA(SHA256()))
    except InvalidSignature as error:
        raise NotSignedIn("the signature of the identity is wrong") from error


def _object(part: str) -> dict[str, Json]:
    try:
        found = json.loads(_decoded(part))
    except (ValueError, RecursionError) as error:
        raise NotSignedIn("the identity has a part that is no JSON") from error
    if not isinstance(found, dict):
        raise NotSignedIn("the identity has a part that is no JSON object")
    return cast(dict[str, Json], found)


def _decoded(part: str) -> bytes:
    """Decode base64url with or without its padding."""
    if not _PART.fullmatch(part):
        raise NotSignedIn("the identity has a part that is not in base64url")
    bare = part.rstrip("=")
    try:
        return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except ValueError as error:
        raise NotSignedIn("the identity has a part that is not in base64url") from error


def _name(value: Json) -> str:
    if not isinstance(value, str) or not value.strip():
        raise NotSignedIn("the identity has no name in the claim of --name-claim")
    if value != value.strip() or not value.isprintable() or len(value) > LONGEST_NAME:
        raise NotSignedIn(
            f"the name of the person is longer than {LONGEST_NAME} characters, or cannot be shown"
        )
    return value


def _in_group(claims: dict[str, Json], trust: Trust) -> bool:
    """Whether the group is in the claim; a name of several words is one name."""
    found = claims.get(trust.group_claim)
    return trust.group in found if isinstance(found, list) else found == trust.group
