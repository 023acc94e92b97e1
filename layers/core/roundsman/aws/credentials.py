"""An agent's credentials that are in AWS: a secret, a parameter, or the role of its function.

    _key = StoredCredential.from_env  # the secret or parameter that the agent's stack names
    _service = cache(lambda: RemoteService.from_env(signer=Bearer(_key())))

A secret is read at the first call that needs it, and again when it is 5 minutes old. If the service
refuses it, it is read once more, at most every 30 s; so a rotation needs no deployment.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from roundsman.agents.credentials import Secret, field_of
from roundsman.agents.http import CallToSign
from roundsman.errors import CredentialRefused, DefinitionError, TransientError

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from botocore.credentials import ReadOnlyCredentials

KEPT_FOR = timedelta(minutes=5)
REREAD_EVERY = timedelta(seconds=30)
"""A refused secret is read again at most as often: a wrong one must not cost a call each."""

# The call to the service waits for the secret, so reading it takes 6 s at most.
PATIENCE = Config(
    connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 2}
)

ARN = re.compile(
    r"arn:[a-z-]+:(secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:|ssm:[a-z0-9-]+:[0-9]{12}:parameter/)"
    r"[A-Za-z0-9/_+=.@-]+"
)
MISSING = ("ResourceNotFoundException", "ParameterNotFound", "AccessDeniedException")
"""Errors that a person must repair: the secret or the right to read it is not there."""


class StoredCredential:
    """A secret of Secrets Manager, or a parameter of SSM Parameter Store.

    `arn` is its whole ARN. `field` names a field of a secret that is a JSON object; None means the
    whole text. Surrounding white space is removed: a secret that was created from a file ends with
    a newline. Raises DefinitionError for anything else than such an ARN. May be used from several
    threads.
    """

    def __init__(
        self,
        arn: str,
        *,
        field: str | None = None,
        keep_for: timedelta = KEPT_FOR,
        monotonic: Callable[[], float] = time.monotonic,
        client: "Callable[[str, str], BaseClient] | None" = None,
    ) -> None:
        if not ARN.fullmatch(arn):
            raise DefinitionError(
                "the credential must be the ARN of a secret of Secrets Manager or of a parameter "
                "of SSM Parameter Store, and not the secret itself"
            )
        self._arn = arn
        self._field = field
        self._keep_for = keep_for.total_seconds()
        self._monotonic = monotonic
        self._client = client or _client
        self._lock = threading.Lock()
        self._known: Secret | None = None
        self._read_at = 0.0
        self._reread_at: float | None = None

    @classmethod
    def from_env(
        cls, env: Mapping[str, str] = os.environ, *, field: str | None = None
    ) -> "StoredCredential":
        """The credential that the stack names by its parameter Credential.

        Raises DefinitionError if the variable CREDENTIAL is not set, or is no ARN.
        """
        if not env.get("CREDENTIAL"):
            raise DefinitionError(
                "the environment variable CREDENTIAL is not set; set the parameter Credential of "
                "the agent's block in the template"
            )
        return cls(env["CREDENTIAL"], field=field)

    def current(self) -> Secret:
        """The text, at most `keep_for` old.

        If it cannot be read again, the last one is used: AWS's trouble is not the service's.
        Raises CredentialRefused if it is missing or may not be read, and TransientError otherwise.
        """
        with self._lock:
            now = self._monotonic()
            if self._known is not None and now - self._read_at < self._keep_for:
                return self._known
            try:
                self._known = self._read()
            except TransientError:
                if self._known is None:
                    raise
            self._read_at = now
            return self._known

    def refused(self) -> bool:
        """Read it anew, at most every 30 s; return whether it has changed."""
        with self._lock:
            now = self._monotonic()
            if self._reread_at is not None and now - self._reread_at < REREAD_EVERY.total_seconds():
                return False
            self._reread_at = now
            before = self._known
            try:
                self._known = self._read()
            except TransientError:
                return False
            self._read_at = now
            return self._known != before

    def _read(self) -> Secret:
        _, _, service, region, *_ = self._arn.split(":")
        try:
            client = self._client(service, region)
            text = _text_of(client, service, self._arn)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "unknown"))
            why = f"the agent's credential cannot be read ({code})"
            raise (CredentialRefused if code in MISSING else TransientError)(why) from None
        except BotoCoreError as error:
            why = f"the agent's credential cannot be read ({type(error).__name__})"
            raise TransientError(why) from None
        return Secret(text.strip() if self._field is None else field_of(text, self._field))


class Sigv4:
    """Signs each call with the role of the agent's function (AWS Signature Version 4).

    For services behind IAM: `execute-api` for API Gateway, `lambda` for a function URL. The role
    needs the right to call it. `region` is the function's own unless it is given. Not for S3, which
    signs otherwise.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
    """

    def __init__(
        self,
        service: str,
        region: str | None = None,
        *,
        credentials: "Callable[[], ReadOnlyCredentials] | None" = None,
    ) -> None:
        """Raises DefinitionError if there is no region, and for the service `s3`."""
        found = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not service or service == "s3":
            raise DefinitionError("Sigv4 needs the name of a service, which may not be s3")
        if not found:
            raise DefinitionError("Sigv4 needs a region; none is given, and AWS_REGION is not set")
        self._service = service
        self._region = found
        self._credentials = credentials or _roles_credentials

    def headers(self, call: CallToSign) -> Mapping[str, str]:
        """The headers of the signature. Raises CredentialRefused if the role has no credentials."""
        request = AWSRequest(call.method, call.url, dict(call.headers), call.content or b"")
        SigV4Auth(self._credentials(), self._service, self._region).add_auth(request)
        return {str(name): str(value) for name, value in request.headers.items()}

    def refused(self) -> bool:
        """Return False: the role's credentials are renewed by themselves."""
        return False


def _roles_credentials() -> "ReadOnlyCredentials":
    found = (boto3.DEFAULT_SESSION or boto3.Session()).get_credentials()
    if found is None:
        raise CredentialRefused("the agent's function has no credentials of a role")
    frozen: ReadOnlyCredentials = found.get_frozen_credentials()
    return frozen


def _client(service: str, region: str) -> "BaseClient":
    client: BaseClient = boto3.client(service, region_name=region, config=PATIENCE)  # type: ignore[call-overload]  # both services
    return client


def _text_of(client: "BaseClient", service: str, arn: str) -> str:
    if service == "ssm":
        parameter: Mapping[str, Mapping[str, object]] = client.get_parameter(  # type: ignore[attr-defined]  # of one of both
            Name=arn, WithDecryption=True
        )
        return str(parameter["Parameter"]["Value"])
    secret: Mapping[str, object] = client.get_secret_value(SecretId=arn)  # type: ignore[attr-defined]
    if "SecretString" not in secret:
        raise CredentialRefused("the agent's credential is binary; store it as text")
    return str(secret["SecretString"])
