"""Credentials of an agent for its service, and how a call shows them. No text ever shows one.

    _key = StoredCredential.from_env  # of roundsman.aws.credentials: a secret in AWS
    _service = cache(lambda: RemoteService.from_env(signer=Bearer(_key())))

An agent without a credential does not import this module.
"""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from roundsman.agents.http import TOKEN, CallToSign
from roundsman.errors import CredentialRefused, DefinitionError

IN_A_HEADER = re.compile(r"[\x20-\x7e]+")


class Secret:
    """A text that no log, repr or error message shows. `reveal` returns it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself. Do not keep it, log it, or put it in a message."""
        return self._text

    def __repr__(self) -> str:
        """Return a text without the secret; `str` and formatting use it too."""
        return "Secret(hidden)"

    def __eq__(self, other: object) -> bool:
        """Whether the other is a Secret of the same text."""
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        """The hash of the text."""
        return hash(self._text)

    def __reduce__(self) -> str:
        """Raise TypeError: a pickle or a copy would show the text."""
        raise TypeError("a secret cannot be pickled or copied")


class Credential(Protocol):
    """A secret text that may change while the function lives."""

    def current(self) -> Secret:
        """The text. Raises CredentialRefused or TransientError if it cannot be read."""

    def refused(self) -> bool:
        """Read it anew, because the service refused it; return whether it has changed."""


@dataclass(frozen=True, slots=True)
class FixedCredential:
    """A credential that never changes, for tests. Do not write one into an agent's code."""

    secret: Secret

    def current(self) -> Secret:
        """The secret."""
        return self.secret

    def refused(self) -> bool:
        """Return False: there is no other."""
        return False


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Sends the credential in a header of its own. Raises DefinitionError for no header's name."""

    credential: Credential
    header: str = "X-Api-Key"
    prefix: str = ""
    """Written before the credential, for example `Token `."""

    def __post_init__(self) -> None:
        """Check the header's name."""
        if not TOKEN.fullmatch(self.header):
            raise DefinitionError(f"{self.header!r} is not the name of a header")

    def headers(self, call: CallToSign) -> Mapping[str, str]:  # noqa: ARG002  # part of Signer
        """The header. Raises CredentialRefused if the credential does not fit in one."""
        return {self.header: _for_header(self.prefix + self.credential.current().reveal())}

    def refused(self) -> bool:
        """Read the credential anew; return whether it has changed."""
        return self.credential.refused()


@dataclass(frozen=True, slots=True)
class Bearer:
    """Sends the credential as `Authorization: Bearer ...` (RFC 6750)."""

    credential: Credential

    def headers(self, call: CallToSign) -> Mapping[str, str]:
        """The header. Raises CredentialRefused if the credential does not fit in one."""
        return ApiKey(self.credential, "Authorization", "Bearer ").headers(call)

    def refused(self) -> bool:
        """Read the credential anew; return whether it has changed."""
        return self.credential.refused()


@dataclass(frozen=True, slots=True)
class Basic:
    """Sends `Authorization: Basic ...` (RFC 7617).

    The credential is `name:password`, or a JSON object with the fields `username` and `password`,
    as the secrets that AWS makes.
    """

    credential: Credential

    def headers(self, call: CallToSign) -> Mapping[str, str]:  # noqa: ARG002  # part of Signer
        """The header. Raises CredentialRefused if the credential has neither form."""
        text = self.credential.current().reveal()
        if text.startswith("{"):
            text = f"{field_of(text, 'username')}:{field_of(text, 'password')}"
        if ":" not in text:
            raise CredentialRefused("the agent's credential is not name:password")
        return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}

    def refused(self) -> bool:
        """Read the credential anew; return whether it has changed."""
        return self.credential.refused()


def field_of(text: str, name: str) -> str:
    """The field of a JSON object. No message quotes the text."""
    try:
        found = json.loads(text)
    except ValueError:
        raise CredentialRefused("the agent's credential is not a JSON object") from None
    value = found.get(name) if isinstance(found, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise CredentialRefused(f"the agent's credential has no text in its field {name!r}")
    return value.strip()


def _for_header(text: str) -> str:
    """The text, if a header can have it: http.client's own error would quote it."""
    if not IN_A_HEADER.fullmatch(text):
        raise CredentialRefused("the agent's credential has a character that no header can have")
    return text
