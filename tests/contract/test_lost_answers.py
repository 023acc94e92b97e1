"""Writes that were applied but whose answers were lost, and AWS's errors as they arrive.

botocore's own retry code runs: a hook makes it believe that the first answer never came.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from roundsman.engine.due import without_owed
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.events import HistoryRow
from roundsman.model.instants import MINUTE
from roundsman.ports import Created, Exists, Saved, Superseded
from tests.contract.samples import NOW, born, claimed, completed, order_row
from tests.contract.worlds import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@contextmanager
def hooked(client: "DynamoDBClient", event: str, hook: Callable[..., object]) -> Iterator[None]:
    """Within it, botocore calls the hook at the event; what it returns decides."""
    called = cast("Callable[..., None]", hook)  # the stubs think that nothing is returned
    client.meta.events.register_first(event, called)
    try:
        yield
    finally:
        client.meta.events.unregister(event, called)


@contextmanager
def first_answer_lost(client: "DynamoDBClient", operation: str) -> Iterator[list[int]]:
    """Within it, the first answer to `operation` never arrives; yields the attempts made."""
    attempts: list[int] = []

    def again(**_: object) -> float | None:
        attempts.append(len(attempts) + 1)
        return 0.0 if len(attempts) == 1 else None  # seconds to wait before another attempt

    with hooked(client, f"needs-retry.dynamodb.{operation}", again):
        yield attempts


@contextmanager
def answered(client: "DynamoDBClient", operation: str, status: int, body: str) -> Iterator[None]:
    """Within it, AWS answers `operation` with this, whatever moto has done by it."""

    class Raw:
        def stream(self) -> Iterator[bytes]:
            yield body.encode()

    def answer(**_: object) -> AWSResponse:
        return AWSResponse("http://aws.test", status, HTTPHeaders(), Raw())

    with hooked(client, f"before-send.dynamodb.{operation}", answer):
        yield


@contextmanager
def unreachable(
    client: "DynamoDBClient",
    operation: str,
    failure: type[ConnectTimeoutError | ReadTimeoutError] = ConnectTimeoutError,
) -> Iterator[None]:
    """Within it, calls of `operation` never get there."""

    def fail(**_: object) -> None:
        raise failure(endpoint_url="http://aws.test", error="timed out")

    with hooked(client, f"before-send.dynamodb.{operation}", fail):
        yield


def test_a_decision_whose_answer_was_lost_is_found_in_the_record(
    dynamo_world: World,
) -> None:
    store = dynamo_world.store
    store.create(order_row(), born())
    mine = claimed(born(), lock="mine-nonce.1")
    with first_answer_lost(dynamo_world.client, "PutItem") as attempts:
        assert store.save(mine, seen=1) == Superseded()
    assert attempts == [1, 2]
    found = store.load("ord-1001", NOW)
    assert found == mine
    assert found is not None
    assert found.step("reserve_stock").locked_by == "mine-nonce.1"


def test_a_decision_with_history_whose_answer_was_lost_is_stored_once(
    dynamo_world: World,
) -> None:
    store = dynamo_world.store
    store.create(order_row(), born())
    row = HistoryRow(2_000, NOW, "failed", None, None, "late")
    with first_answer_lost(dynamo_world.client, "TransactWriteItems") as attempts:
        assert store.save(claimed(born()), seen=1, history=[row]) in (Saved(), Superseded())
    assert attempts == [1, 2]
    assert store.load("ord-1001", NOW) == claimed(born())
    assert store.history("ord-1001") == [row]


def test_an_order_whose_answer_was_lost_is_there_with_the_same_content(
    dynamo_world: World,
) -> None:
    with first_answer_lost(dynamo_world.client, "TransactWriteItems") as attempts:
        result = dynamo_world.store.create(order_row(), born())
    assert attempts == [1, 2]
    assert result in (Created(), Exists(order_row(), born()))
    assert dynamo_world.store.load("ord-1001", NOW) == born()


def test_clearing_whose_answer_was_lost_has_cleared(dynamo_world: World) -> None:
    store = dynamo_world.store
    store.create(order_row(), born())
    task = completed(born(), owed=("completed",))
    store.save(task, seen=1)
    cleared = without_owed(task, NOW)
    with first_answer_lost(dynamo_world.client, "UpdateItem") as attempts:
        assert store.clear_owed(cleared) == Superseded()
    assert attempts == [1, 2]
    found = store.load("ord-1001", NOW)
    assert found is not None
    assert (found.owed, found.lane) == ((), cleared.lane)


def test_rearming_whose_answer_was_lost_is_as_good_as_new(dynamo_world: World) -> None:
    dynamo_world.store.create(order_row(), born())
    with first_answer_lost(dynamo_world.client, "UpdateItem") as attempts:
        assert dynamo_world.store.rearm(born(), NOW + MINUTE) == Saved()
    assert attempts == [1, 2]
    assert dynamo_world.store.load("ord-1001", NOW) == replace(born(), due_at=NOW + MINUTE)


def cancelled(*codes: str) -> str:
    reasons = ", ".join(f'{{"Code": "{code}"}}' for code in codes)
    kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"
    return f'{{"__type": "{kind}", "CancellationReasons": [{reasons}]}}'


def error(code: str) -> str:
    return f'{{"__type": "com.amazonaws.dynamodb.v20120810#{code}", "message": "no"}}'


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, cancelled("TransactionConflict", "None")),
        (400, cancelled("None", "TransactionConflict")),
        (400, cancelled("ProvisionedThroughputExceeded", "None")),
        (400, cancelled("ThrottlingError", "None")),
        (400, error("TransactionInProgressException")),
        (400, error("ProvisionedThroughputExceededException")),
        (400, error("RequestLimitExceeded")),
        (400, error("ExpiredTokenException")),
        (500, error("InternalServerError")),
        (503, "<html>not an answer</html>"),
    ],
)
def test_what_may_pass_is_tried_again_and_never_taken_for_an_order_that_exists(
    moto_world: World, status: int, body: str
) -> None:
    moto_world.store.create(order_row("other"), born("other"))
    with (
        answered(moto_world.client, "TransactWriteItems", status, body),
        pytest.raises(TryAgain, match="ord-1001"),
    ):
        moto_world.store.create(order_row(), born())


def test_an_order_that_exists_is_reported_to_exist_though_its_task_was_in_conflict(
    moto_world: World,
) -> None:
    moto_world.store.create(order_row(), born())
    body = cancelled("ConditionalCheckFailed", "TransactionConflict")
    with answered(moto_world.client, "TransactWriteItems", 400, body):
        assert moto_world.store.create(order_row(), born()) == Exists(order_row(), born())


@pytest.mark.parametrize("failure", [ConnectTimeoutError, ReadTimeoutError])
def test_a_connection_that_fails_is_tried_again(
    moto_world: World, failure: type[ConnectTimeoutError | ReadTimeoutError]
) -> None:
    with (
        unreachable(moto_world.client, "GetItem", failure),
        pytest.raises(TryAgain, match=f"ord-1001: {failure.__name__}"),
    ):
        moto_world.store.load("ord-1001", NOW)


@pytest.mark.parametrize(
    "body",
    [
        error("AccessDeniedException"),
        error("ResourceNotFoundException"),
        error("ValidationException"),
        cancelled("ValidationError", "None"),
    ],
)
def test_what_aws_refuses_for_good_is_raised_with_its_name(moto_world: World, body: str) -> None:
    with (
        answered(moto_world.client, "TransactWriteItems", 400, body),
        pytest.raises(CallRefused, match=r"ord-1001: [A-Z][A-Za-z]+$"),
    ):
        moto_world.store.create(order_row(), born())
