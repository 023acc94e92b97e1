"""Translates AWS errors to Roundsman's exceptions; callers never see a botocore exception.

The first rule that matches applies:

1. A failed condition is a result, not an error. It raises ConditionFailed, which the adapter
   turns into a return value. A cancelled transaction counts as a failed condition if any of its
   conditions failed, even if another of its items was in conflict.
2. An error that may be temporary raises TryAgain: throttling under any of its names; a
   transaction conflict; a transaction still in progress (it does not mean "already exists"); any
   response with status 5xx, 429 or 408; a connection that could not be made, broke or timed out;
   a response that could not be parsed; credentials that could not be fetched or have just
   expired. It is then unknown whether the call took effect. Of these, throttling and the status
   429 raise its subclass Throttled.
3. Every other error raises CallRefused: missing permissions, missing resources, invalid requests.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    MetadataRetrievalError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.parsers import ResponseParserError

from roundsman.errors import CallRefused, Throttled, TryAgain

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

CONDITION_FAILED = "ConditionalCheckFailed"

TOO_MANY_REQUESTS = 429
TRANSIENT_STATUSES = frozenset({408, TOO_MANY_REQUESTS})

# Substrings, because each service has its own names: ThrottlingException, RequestThrottled,
# KmsThrottled, ProvisionedThroughputExceeded (as a cancellation reason, without "Exception").
THROTTLE_WORDS = ("Throttl", "ThroughputExceeded", "RequestLimitExceeded")
TRANSIENT_WORDS = (
    *THROTTLE_WORDS,
    "TransactionConflict",
    "TransactionInProgress",
    "ReplicatedWriteConflict",
    "InternalError",
    "InternalFailure",
    "InternalServerError",
    "ServiceUnavailable",
    "RequestTimeout",
    "ExpiredToken",
    "RequestExpired",
)

TRANSIENT_FAILURES = (
    BotoConnectionError,
    HTTPClientError,
    IncompleteReadError,
    CredentialRetrievalError,
    MetadataRetrievalError,
    ResponseParserError,
)


class ConditionFailed(Exception):
    """The condition of a write failed and nothing was written. It never leaves the adapters."""


def row_of(refused: ConditionFailed) -> "Mapping[str, Value]":
    """The item that failed the condition; empty if there was no item.

    Only for a write with `ReturnValuesOnConditionCheckFailure`; empty for any other.
    """
    error = refused.__cause__
    response = cast(
        "Mapping[str, object]", error.response if isinstance(error, ClientError) else {}
    )
    return cast("Mapping[str, Value]", response.get("Item", {}))


@contextmanager
def aws_errors(doing: str) -> Iterator[None]:
    """Translate the errors of the AWS calls in the `with` block.

    `doing` begins the exception's message with the purpose of the call: `storing the task ord-1`.
    Raises ConditionFailed, TryAgain (or Throttled) or CallRefused; their messages contain no order
    contents.
    """
    try:
        yield
    except ClientError as error:
        raise _meaning(error, doing) from error
    except TRANSIENT_FAILURES as error:
        raise TryAgain(f"{doing}: {type(error).__name__}") from error
    except BotoCoreError as error:
        raise CallRefused(f"{doing}: {type(error).__name__}", type(error).__name__) from error


def _meaning(error: ClientError, doing: str) -> Exception:
    codes = _codes(error)
    message = f"{doing}: {', '.join(codes)}"
    if any(code.startswith(CONDITION_FAILED) for code in codes):
        return ConditionFailed(message)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status == TOO_MANY_REQUESTS or _name_any(codes, THROTTLE_WORDS):
        return Throttled(message)
    if status >= 500 or status in TRANSIENT_STATUSES or _name_any(codes, TRANSIENT_WORDS):
        return TryAgain(message)
    return CallRefused(message, codes[0])


def _name_any(codes: Sequence[str], words: Sequence[str]) -> bool:
    return any(word in code for code in codes for word in words)


def _codes(error: ClientError) -> list[str]:
    """The error's code, or the codes of the writes that cancelled a transaction."""
    reasons = error.response.get("CancellationReasons") or []
    found = [code for reason in reasons if (code := reason.get("Code")) and code != "None"]
    return found or [error.response.get("Error", {}).get("Code") or "Unknown"]
