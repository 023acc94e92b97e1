"""Deploys the stack with its tables on DynamoDB Local, which reports real capacity units.

The rest of the stack runs on moto, as in the tests: the real handlers are called with batches from
the queues, and the clock advances only when a benchmark sets it. The tables are created on DynamoDB
Local as the template defines them, and every function uses them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

import boto3

from roundsman_testing.remote_services import RemoteServices
from roundsman_testing.stack import Clock, Stack, deployed

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import CreateTableInputTypeDef

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
SERVICES = ("InventoryUrl", "PaymentUrl", "ShippingUrl", "MailUrl")
KEPT_OF_A_TABLE = ("TableName", "AttributeDefinitions", "KeySchema")
KEPT_OF_AN_INDEX = ("IndexName", "KeySchema", "Projection")


@contextmanager
def stack_on_the_engine(
    endpoint: str, parameters: Mapping[str, str] | None = None
) -> Iterator[Stack]:
    """Yield a new stack with empty tables on the DynamoDB Local at `endpoint`."""
    clock = Clock()
    with RemoteServices(clock=clock.at_the_services) as services:
        values = {**dict.fromkeys(SERVICES, services.url), **(parameters or {})}
        with deployed(TEMPLATE, values, services=services, clock=clock) as stack:
            engine: DynamoDBClient = boto3.client("dynamodb", endpoint_url=endpoint)
            names = _move_tables(boto3.client("dynamodb"), engine)
            try:
                # moto intercepts only AWS addresses, so requests to this endpoint pass.
                with patch.dict("os.environ", {"AWS_ENDPOINT_URL_DYNAMODB": endpoint}):
                    yield stack
            finally:
                for name in names:
                    engine.delete_table(TableName=name)


def _move_tables(moto: "DynamoDBClient", engine: "DynamoDBClient") -> list[str]:
    """Create the tables of moto on DynamoDB Local, and return their names."""
    names = moto.list_tables()["TableNames"]
    for name in names:
        found = cast("Mapping[str, object]", moto.describe_table(TableName=name)["Table"])
        asked: dict[str, object] = {key: found[key] for key in KEPT_OF_A_TABLE}
        indexes = cast("list[Mapping[str, object]]", found.get("GlobalSecondaryIndexes") or [])
        if indexes:
            asked["GlobalSecondaryIndexes"] = [
                {key: index[key] for key in KEPT_OF_AN_INDEX} for index in indexes
            ]
        asked["BillingMode"] = "PAY_PER_REQUEST"
        engine.create_table(**cast("CreateTableInputTypeDef", asked))
    return names
