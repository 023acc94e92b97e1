"""What each of AWS's errors means."""

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    IncompleteReadError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError

from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.errors import CallRefused, RoundsmanError, Throttled, TryAgain

PASSING = (
    "ThrottlingException",
    "Throttling",
    "Throttled",
    "RequestThrottled",
    "ThrottledException",
    "KmsThrottled",
    "KMS.ThrottlingException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "TransactionConflictException",
    "TransactionInProgressException",
    "ReplicatedWriteConflictException",
    "InternalError",
    "InternalFailure",
    "InternalServerError",
    "ServiceUnavailable",
    "RequestTimeout",
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
)
LASTING = (
    "AccessDenied",
    "AccessDeniedException",
    "ResourceNotFoundException",
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "ValidationException",
    "InvalidParameterValue",
    "NotFound",
    "UnrecognizedClientException",
    "InvalidClientTokenId",
)


def client_error(code: str, status: int = 400, *reasons: str) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": "the paymentToken tok_secret is bad"},
        "ResponseMetadata": {"HTTPStatusCode": status},
        "CancellationReasons": [{"Code": reason} for reason in reasons],
    }
    return ClientError(response, "Operation")  # type: ignore[arg-type]


def meaning(error: Exception) -> Exception:
    with pytest.raises(Exception, match="storing ord-1") as raised, aws_errors("storing ord-1"):
        raise error
    assert raised.value.__cause__ is error
    return raised.value


@pytest.mark.parametrize("code", PASSING)
def test_what_may_pass_is_tried_again(code: str) -> None:
    assert isinstance(meaning(client_error(code)), TryAgain)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_an_answer_of_such_a_status_is_tried_again_whatever_its_name(status: int) -> None:
    assert isinstance(meaning(client_error("Strange", status)), TryAgain)


@pytest.mark.parametrize(
    "error",
    [
        client_error("ThrottlingException"),
        client_error("RequestThrottled", 403),
        client_error("KmsThrottled"),
        client_error("ProvisionedThroughputExceededException"),
        client_error("RequestLimitExceeded"),
        client_error("Strange", 429),
        client_error("TransactionCanceledException", 400, "None", "ThrottlingError"),
    ],
)
def test_what_aws_throttled_is_known_as_such(error: ClientError) -> None:
    assert isinstance(meaning(error), Throttled)


@pytest.mark.parametrize(
    "error",
    [
        client_error("InternalServerError", 500),
        client_error("Strange", 408),
        client_error("TransactionCanceledException", 400, "TransactionConflict"),
        ReadTimeoutError(endpoint_url="http://x"),
    ],
)
def test_nothing_else_that_may_pass_counts_as_throttled(error: Exception) -> None:
    assert not isinstance(meaning(error), Throttled)


@pytest.mark.parametrize("code", LASTING)
def test_the_rest_is_refused_under_its_name(code: str) -> None:
    refused = meaning(client_error(code))
    assert isinstance(refused, CallRefused)
    assert refused.code == code


@pytest.mark.parametrize(
    "error",
    [
        ConnectTimeoutError(endpoint_url="http://x"),
        ReadTimeoutError(endpoint_url="http://x"),
        EndpointConnectionError(endpoint_url="http://x"),
        ConnectionClosedError(endpoint_url="http://x"),
        IncompleteReadError(actual_bytes=1, expected_bytes=2),
        CredentialRetrievalError(provider="x", error_msg="x"),
        ResponseParserError("cut short"),
    ],
)
def test_a_connection_that_failed_is_tried_again(error: BotoCoreError) -> None:
    assert isinstance(meaning(error), TryAgain)


@pytest.mark.parametrize("error", [NoCredentialsError(), ParamValidationError(report="x")])
def test_what_never_left_this_process_is_refused(error: BotoCoreError) -> None:
    assert isinstance(meaning(error), CallRefused)


def test_a_condition_that_does_not_hold_is_no_error_of_ours() -> None:
    found = meaning(client_error("ConditionalCheckFailedException"))
    assert isinstance(found, ConditionFailed)
    assert not isinstance(found, RoundsmanError)


@pytest.mark.parametrize(
    ("reasons", "kind"),
    [
        (("ConditionalCheckFailed", "None"), ConditionFailed),
        (("TransactionConflict", "ConditionalCheckFailed"), ConditionFailed),
        (("None", "TransactionConflict"), TryAgain),
        (("None", "ThrottlingError"), Throttled),
        (("None", "ProvisionedThroughputExceeded"), Throttled),
        (("None", "ValidationError"), CallRefused),
        ((), CallRefused),
    ],
)
def test_a_cancelled_transaction_means_what_cancelled_it(
    reasons: tuple[str, ...], kind: type[Exception]
) -> None:
    assert type(meaning(client_error("TransactionCanceledException", 400, *reasons))) is kind


def test_the_text_of_an_error_of_aws_is_not_repeated_since_it_may_quote_the_order() -> None:
    assert "tok_secret" not in str(meaning(client_error("ValidationException")))


def test_errors_that_are_not_of_aws_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), aws_errors("dividing"):
        raise ZeroDivisionError
