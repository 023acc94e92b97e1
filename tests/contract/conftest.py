"""The tables that the suite runs on.

`world` is each of them. `atomic_world` leaves moto out, whose writes are not atomic between
threads; `dynamo_world` leaves memory out, which has no client of boto3 whose calls a test changes.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws

from roundsman.aws.clients import CONFIG
from roundsman_testing.dynamodb.schemas import create_tables
from roundsman_testing.dynamodb.tables import MemoryDynamoDB
from tests.contract.worlds import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MakeWorld: TypeAlias = Callable[[pytest.FixtureRequest], AbstractContextManager[World]]

numbers = count(1)


def dynamodb_client(endpoint: str | None = None, config: Config = CONFIG) -> "DynamoDBClient":
    """A client as the functions have it, by default."""
    client: DynamoDBClient = boto3.client("dynamodb", endpoint_url=endpoint, config=config)
    return client


@contextmanager
def memory(_request: pytest.FixtureRequest) -> Iterator[World]:
    client = MemoryDynamoDB().client
    yield World(client, create_tables(client, "memory-"))


@contextmanager
def moto(_request: pytest.FixtureRequest) -> Iterator[World]:
    with mock_aws():
        client = dynamodb_client()
        yield World(client, create_tables(client, "moto-"))


# On a busy machine an answer may take long. A call that is tried again changes what tests count.
PATIENT = CONFIG.merge(Config(connect_timeout=60, read_timeout=120))


@contextmanager
def local(request: pytest.FixtureRequest) -> Iterator[World]:
    client = dynamodb_client(request.getfixturevalue("dynamodb_endpoint"), PATIENT)
    yield World(client, create_tables(client, f"test{next(numbers)}-"))


MEMORY = pytest.param(memory, id="memory")
MOTO = pytest.param(moto, id="moto")
LOCAL = pytest.param(local, id="dynamodb_local", marks=pytest.mark.engine)


@pytest.fixture(params=[MEMORY, MOTO, LOCAL])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    make: MakeWorld = request.param
    with make(request) as made:
        yield made


@pytest.fixture(params=[MEMORY, LOCAL])
def atomic_world(request: pytest.FixtureRequest) -> Iterator[World]:
    make: MakeWorld = request.param
    with make(request) as made:
        yield made


@pytest.fixture(params=[MOTO, LOCAL])
def dynamo_world(request: pytest.FixtureRequest) -> Iterator[World]:
    make: Callable[[pytest.FixtureRequest], AbstractContextManager[World]] = request.param
    with make(request) as made:
        yield made


@pytest.fixture(params=[LOCAL])
def local_world(request: pytest.FixtureRequest) -> Iterator[World]:
    """For what needs more items, or more truth, than moto is good for."""
    make: Callable[[pytest.FixtureRequest], AbstractContextManager[World]] = request.param
    with make(request) as made:
        yield made


@pytest.fixture
def moto_world() -> Iterator[World]:
    """For what no engine does when asked: the answers are made up, moto only takes the calls.

    Its client tries once: how long botocore waits between its attempts is not what is tested.
    """
    with mock_aws():
        client = dynamodb_client(config=Config(retries={"total_max_attempts": 1}))
        yield World(client, create_tables(client, "moto-"))
