"""The errors of the inspector and the client, and errors of AWS calls as sentences for people."""

import re
from collections.abc import Mapping
from typing import Generic, TypeVar

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

from roundsman.errors import RoundsmanError

FAILED, USAGE, NOT_FOUND, UNCONFIRMED, INTERRUPTED = 1, 2, 3, 4, 130
"""The exit codes of commands; `faces.cli.errors` says what each means."""

T = TypeVar("T")

_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
_CLOCK = {"RequestTimeTooSkewed", "RequestInTheFuture"}
_CLOCK_WORDS = ("Signature expired", "Signature not yet current")
"""What the message of a wrong signature says if only its time is wrong."""
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
_RESOURCE = re.compile(r" on resource: \S+")
_NOT_AWS = (
    "The answer does not come from AWS. Check AWS_ENDPOINT_URL, and whether a sign-in page "
    "intercepts requests."
)


class InspectorError(RoundsmanError):
    """The operation could not be done. The message is one or more whole sentences for people."""


class InvalidArgument(InspectorError):
    """An argument is invalid. Nothing was sent or changed."""


class WrongFields(InvalidArgument):
    """Some arguments are invalid, each for a reason of its own. Nothing was sent or changed.

    The message is the first reason.
    """

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(next(iter(reasons.values())))
        self.reasons = reasons
        """The reasons, by the names of the arguments."""


class NotFound(InspectorError):
    """There is no such order, agent, failure group, bulk run, message or stack resource."""


class RetentionOver(NotFound):
    """The order was accepted, and its task is not kept any more."""


class UnknownOrder(NotFound):
    """No order with this id was accepted; its event may have been rejected."""


class Unconfirmed(InspectorError):
    """A command was sent, but its outcome cannot be read. It takes effect at most once."""


class Interrupted(InspectorError, Generic[T]):
    """Ctrl-C ended the operation after something was sent, or may have been.

    `result` is what the function would have returned, with what was sent until then. A Ctrl-C
    before that is a KeyboardInterrupt. The message says how far the operation came.
    """

    def __init__(self, sentence: str, result: T) -> None:
        super().__init__(sentence)
        self.result = result


class StackNotFound(InspectorError):
    """No stack is named, or there is no stack with this name."""


class InvalidCursor(InvalidArgument):
    """The text is not a cursor, or is the cursor of another list."""


class UnboundedSelection(InvalidArgument):
    """The filter selects too much for a command.

    It names neither a failure group nor a state, or completed orders without a workflow or without
    both ends of a time span.
    """


class AgentOnHold(InspectorError):
    """The orders would wait for an agent on hold. Nothing was sent."""


class UncorrectableMessage(InvalidArgument):
    """The fields of a message cannot be changed; the message can only be replaced."""


def sentence_of(error: RoundsmanError | ClientError | BotoCoreError | ResponseParserError) -> str:
    """Return an error of a call to the inspector as a sentence for people.

    If an AWS call is the cause of the error, its sentence comes first.
    """
    match error:
        case InspectorError():
            return str(error)
        case ClientError() | BotoCoreError():
            return aws_sentence(error)
        case ResponseParserError():
            return _NOT_AWS
        case RoundsmanError():
            return _caused(error)


def cause_of(error: RoundsmanError | ClientError | BotoCoreError | ResponseParserError) -> str:
    """Return why a call failed as a sentence, without what the call was for.

    All calls that fail for one cause have this sentence: credentials that have expired, or a right
    that is missing, on whichever resource.
    """
    match error.__cause__:
        case (ClientError() | BotoCoreError() | ResponseParserError()) as cause:
            sentence = sentence_of(cause)
        case _:
            sentence = sentence_of(error)
    return _RESOURCE.sub("", sentence)


def _caused(error: RoundsmanError) -> str:
    match error.__cause__:
        case ClientError() | BotoCoreError() as cause:
            return f"{aws_sentence(cause).removesuffix('.')} ({error})."
        case ResponseParserError():
            return f"{_NOT_AWS.removesuffix('.')} ({error})."
        case _:
            return f"{str(error).removesuffix('.')}."


def aws_sentence(error: ClientError | BotoCoreError) -> str:
    """Return an error of an AWS call as a sentence, with what to do about it if that is known."""
    match error:
        case SSOError() | TokenRetrievalError() | CredentialRetrievalError():
            sentence = (
                f"The AWS credentials are not available or have expired. Sign in again ({error})."
            )
        case NoCredentialsError() | PartialCredentialsError():
            sentence = "No AWS credentials are set. Sign in, or set AWS_PROFILE."
        case NoRegionError():
            sentence = "No AWS region is set. Set AWS_DEFAULT_REGION, or region in the profile."
        case ProfileNotFound():
            sentence = f"{error}. Set AWS_PROFILE to a profile that exists."
        case EndpointConnectionError() | ConnectTimeoutError() | ConnectionClosedError():
            sentence = f"{error} Check the network and AWS_ENDPOINT_URL."
        case ClientError():
            sentence = _client_sentence(error)
        case _:
            sentence = f"Cannot call AWS: {error}"
    return sentence


def _client_sentence(error: ClientError) -> str:
    detail = error.response.get("Error", {})
    code, message = detail.get("Code", "unknown"), detail.get("Message", "")
    action = error.operation_name
    if code in _EXPIRED:
        return "The AWS credentials have expired. Sign in again."
    if code in _CLOCK or any(words in message for words in _CLOCK_WORDS):
        return f"The clock of this machine differs from that of AWS. Set it ({message or code})."
    if code in _REFUSED:
        return f"AWS refused {action} with these credentials: {message or code}"
    if is_throttled(code):
        return f"AWS is throttling {action}. Try again in a moment."
    return f"AWS answered {action} with {code}: {message}"


def is_throttled(code: str) -> bool:
    """Return whether this AWS error code means throttling. Each service has its own codes."""
    return "Throttl" in code or code in _ASKED_TOO_MUCH


class ConsoleError(InspectorError):
    """An error that the user sees as one sentence; `code` is the exit code of the command."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code
