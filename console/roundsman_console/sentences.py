"""Trouble as one sentence and an exit code, never a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)
from rich.console import Console

from roundsman.errors import RoundsmanError
from roundsman_console.inert import inert

FAILED, USAGE, NOT_FOUND, UNCONFIRMED = 1, 2, 3, 4
"""Exit codes: could not be done, wrong usage, no such order, sent but not known to be done."""

_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
_REFUSED = {
    "AccessDenied",
    "AccessDeniedException",
    "AuthFailure",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_THROTTLED = {"Throttling", "ThrottlingException", "ProvisionedThroughputExceededException"}


class ConsoleError(Exception):
    """One sentence for a person, and the exit code of the command."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


@contextmanager
def sentences() -> Iterator[None]:
    """Around a command: whatever goes wrong is said on standard error in one sentence."""
    try:
        yield
    except ConsoleError as error:
        complain(str(error))
        raise typer.Exit(error.code) from error
    except (ClientError, BotoCoreError) as error:
        complain(aws_sentence(error))
        raise typer.Exit(FAILED) from error
    except RoundsmanError as error:
        complain(f"{error}.")
        raise typer.Exit(FAILED) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(130) from error


def aws_sentence(error: ClientError | BotoCoreError) -> str:
    """What AWS, or the way to it, refused; and what to do about it where that is known."""
    match error:
        case NoCredentialsError() | PartialCredentialsError():
            return "No AWS credentials are set: sign in, or set AWS_PROFILE."
        case NoRegionError():
            return "No AWS region is set: set AWS_DEFAULT_REGION, or region in the profile."
        case ProfileNotFound():
            return f"{error}: set AWS_PROFILE to one that exists."
        case EndpointConnectionError():
            return f"{error} Is the network there, and AWS_ENDPOINT_URL right?"
        case ClientError():
            return _client_sentence(error)
        case _:
            return f"AWS cannot be asked: {error}"


def _client_sentence(error: ClientError) -> str:
    detail = error.response.get("Error", {})
    code, said = detail.get("Code", "unknown"), detail.get("Message", "")
    action = error.operation_name
    if code in _EXPIRED:
        return "The AWS credentials have expired: sign in again."
    if code in _REFUSED:
        return f"AWS refused {action} with these credentials: {said or code}"
    if code in _THROTTLED:
        return f"AWS is throttling {action}: try again in a moment."
    return f"AWS answered {action} with {code}: {said}"


def complain(sentence: str) -> None:
    """Say it on standard error; what it quotes from outside is made harmless first."""
    said = "\n".join(inert(line) for line in sentence.splitlines())
    Console(stderr=True, highlight=False, soft_wrap=True).print(said, style="red", markup=False)
