"""Errors of commands: one sentence on standard error and an exit code, never a traceback.

The exit codes of all commands are defined here; docs/reference/cli.md lists them for scripts.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError
from rich.console import Console

from roundsman.errors import RoundsmanError
from roundsman_console.sanitize import inert

FAILED, USAGE, NOT_FOUND, UNCONFIRMED, INTERRUPTED = 1, 2, 3, 4, 130

EXIT_CODES = {
    0: "done; with `--no-wait`: sent",
    FAILED: "refused, or could not be done; the sentence says why",
    USAGE: "wrong usage; nothing was sent",
    NOT_FOUND: "no such order, agent, group, run or message",
    UNCONFIRMED: "sent, but not known to be done: it acts once, whenever it is read",
    INTERRUPTED: "ended by Ctrl-C",
}
"""The meaning of each exit code. `local status` has its own exit codes, listed in its help."""

_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
_REFUSED = {
    "AccessDenied",
    "AccessDeniedException",
    "AuthFailure",
    "AuthorizationError",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "KMS.AccessDeniedException",
    "KMSAccessDenied",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "NotAuthorized",
    "SignatureDoesNotMatch",
    "UnauthorizedOperation",
    "UnrecognizedClientException",
}
_ASKED_TOO_MUCH = {
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "SlowDown",
    "TooManyRequestsException",
}
_NOT_AWS = "What answers is not AWS: is AWS_ENDPOINT_URL right, and no sign-in page in between?"


class ConsoleError(Exception):
    """An error that the user sees as one sentence; `code` is the exit code of the command."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


@contextmanager
def sentences() -> Iterator[None]:
    """Print an error in the `with` block on standard error as one sentence, and raise typer.Exit.

    Handles ConsoleError, RoundsmanError, errors of AWS calls and Ctrl-C. Ctrl-C prints nothing.
    """
    try:
        yield
    except ConsoleError as error:
        complain(str(error))
        raise typer.Exit(error.code) from error
    except (ClientError, BotoCoreError) as error:
        complain(aws_sentence(error))
        raise typer.Exit(FAILED) from error
    except ResponseParserError as error:
        complain(_NOT_AWS)
        raise typer.Exit(FAILED) from error
    except RoundsmanError as error:
        complain(_explained(error))
        raise typer.Exit(FAILED) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(INTERRUPTED) from error


def _explained(error: RoundsmanError) -> str:
    """Return the error as a sentence. If an AWS call is the cause, its sentence comes first."""
    match error.__cause__:
        case ClientError() | BotoCoreError() as cause:
            return f"{aws_sentence(cause).removesuffix('.')} ({error})."
        case ResponseParserError():
            return f"{_NOT_AWS.removesuffix('.')} ({error})."
        case _:
            return f"{error}."


def aws_sentence(error: ClientError | BotoCoreError) -> str:
    """Return an error of an AWS call as a sentence, with what to do about it if that is known."""
    match error:
        case SSOError() | TokenRetrievalError() | CredentialRetrievalError():
            said = f"The AWS credentials cannot be had, or have expired: sign in again ({error})."
        case NoCredentialsError() | PartialCredentialsError():
            said = "No AWS credentials are set: sign in, or set AWS_PROFILE."
        case NoRegionError():
            said = "No AWS region is set: set AWS_DEFAULT_REGION, or region in the profile."
        case ProfileNotFound():
            said = f"{error}: set AWS_PROFILE to one that exists."
        case EndpointConnectionError() | ConnectTimeoutError() | ConnectionClosedError():
            said = f"{error} Is the network there, and AWS_ENDPOINT_URL right?"
        case ClientError():
            said = _client_sentence(error)
        case _:
            said = f"AWS cannot be asked: {error}"
    return said


def _client_sentence(error: ClientError) -> str:
    detail = error.response.get("Error", {})
    code, said = detail.get("Code", "unknown"), detail.get("Message", "")
    action = error.operation_name
    if code in _EXPIRED:
        return "The AWS credentials have expired: sign in again."
    if code in _REFUSED:
        return f"AWS refused {action} with these credentials: {said or code}"
    if is_throttled(code):
        return f"AWS is throttling {action}: try again in a moment."
    return f"AWS answered {action} with {code}: {said}"


def is_throttled(code: str) -> bool:
    """Return whether this AWS error code means throttling. Each service has its own codes."""
    return "Throttl" in code or code in _ASKED_TOO_MUCH


def complain(sentence: str) -> None:
    """Print a message on standard error. `inert` is applied: it may quote text from outside."""
    said = "\n".join(inert(line) for line in sentence.splitlines())
    Console(stderr=True, highlight=False, soft_wrap=True).print(said, style="red", markup=False)
