"""What AWS's errors mean, said in this one place; nothing of botocore leaves the adapters.

The rule, in its order:

1. A condition that does not hold is an answer, not an error: ConditionFailed, which the adapter
   turns into a value. A cancelled transaction is one if any of its conditions failed; that some
   other item was also in conflict changes nothing about it.
2. What may pass by itself is TryAgain: throttling of every name; conflicts of transactions and
   one still in progress (never "already exists"); any answer of 5xx, 429 or 408; a connection
   that could not be made, broke or timed out; an answer that could not be read; credentials that
   could not be fetched or have just expired. Whether the call took effect is then unknown.
3. The rest is CallRefused: rights, missing resources, requests that AWS does not take.
"""

from collections.abc import Iterator, Mapping
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

from roundsman.errors import CallRefused, TryAgain

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

CONDITION_FAILED = "ConditionalCheckFailed"

TRANSIENT_STATUSES = frozenset({408, 429})

# Substrings, since each service spells its own: ThrottlingException, RequestThrottled,
# KmsThrottled, ProvisionedThroughputExceeded (as a cancellation reason, without "Exception").
TRANSIENT_WORDS = (
    "Throttl",
    "ThroughputExceeded",
    "RequestLimitExceeded",
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
    """The condition of a write does not hold; nothing was written. Stays within the adapters."""


def row_of(refused: ConditionFailed) -> "Mapping[str, Value]":
    """What the condition was held against, where that was asked for; nothing where no row was."""
    error = refused.__cause__
    response = cast(
        "Mapping[str, object]", error.response if isinstance(error, ClientError) else {}
    )
    return cast("Mapping[str, Value]", response.get("Item", {}))


@contextmanager
def aws_errors(doing: str) -> Iterator[None]:
    """Run calls to AWS; `doing` says what for (`storing the task ord-1`), for the sentence.

    Raises ConditionFailed, TryAgain or CallRefused, each without order contents.
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
    said = f"{doing}: {', '.join(codes)}"
    if any(code.startswith(CONDITION_FAILED) for code in codes):
        return ConditionFailed(said)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status >= 500 or status in TRANSIENT_STATUSES or any(map(is_transient, codes)):
        return TryAgain(said)
    return CallRefused(said, codes[0])


def is_transient(code: str) -> bool:
    """Whether an error of this name may pass by itself."""
    return any(word in code for word in TRANSIENT_WORDS)


def _codes(error: ClientError) -> list[str]:
    """The error's code, or those of the writes that had a transaction cancelled."""
    reasons = error.response.get("CancellationReasons") or []
    found = [code for reason in reasons if (code := reason.get("Code")) and code != "None"]
    return found or [error.response.get("Error", {}).get("Code") or "Unknown"]
