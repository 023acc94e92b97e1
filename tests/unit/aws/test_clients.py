"""What the functions' own clients say to AWS."""

from typing import Literal

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest

from roundsman.aws.clients import FUNCTION_CONFIG, Clients


class Seen(Exception):
    """The request as it would have gone out."""


def test_a_client_names_itself_by_one_text_that_is_not_built_anew_for_each_call() -> None:
    clients = Clients()

    def stop(request: AWSPreparedRequest, **_: object) -> None:
        raise Seen(request.headers["User-Agent"])

    for client in (clients.sqs, clients.dynamodb):
        client.meta.events.register("before-send", stop)
    with pytest.raises(Seen, match=r"Boto3/[0-9.]+ Roundsman"):
        clients.sqs.list_queues()
    with pytest.raises(Seen, match=r"Boto3/[0-9.]+ Roundsman"):
        clients.dynamodb.list_tables()


@pytest.mark.parametrize(
    ("service", "operation", "parameters"),
    [
        ("dynamodb", "put_item", {"TableName": "t", "Item": {}, "Unknown": "x"}),
        ("dynamodb", "update_item", {"TableName": "t", "Key": {}, "Unknown": "x"}),
        ("dynamodb", "delete_item", {"TableName": "t", "Key": {}, "Unknown": "x"}),
        (
            "dynamodb",
            "transact_write_items",
            {"TransactItems": [{"Put": {"TableName": "t", "Item": {}, "Unknown": "x"}}]},
        ),
        ("sqs", "send_message", {"QueueUrl": "q", "MessageBody": "m", "Unknown": "x"}),
        (
            "sqs",
            "send_message_batch",
            {"QueueUrl": "q", "Entries": [{"Id": "1", "MessageBody": "m", "Unknown": "x"}]},
        ),
        ("sns", "publish", {"TopicArn": "t", "Message": "m", "Unknown": "x"}),
    ],
)
def test_a_parameter_that_botocore_does_not_know_is_never_left_out(
    service: Literal["dynamodb", "sqs", "sns"], operation: str, parameters: dict[str, object]
) -> None:
    client: object = boto3.client(service, config=FUNCTION_CONFIG)

    def stop(**_: object) -> None:
        raise AssertionError("the request would have been sent")

    vars(client)["meta"].events.register("before-send", stop)
    with pytest.raises(KeyError, match="Unknown"):
        getattr(client, operation)(**parameters)


def test_a_function_leaves_validation_to_aws() -> None:
    client = boto3.client("dynamodb", config=FUNCTION_CONFIG)

    def stop(**_: object) -> None:
        raise Seen

    client.meta.events.register("before-send", stop)
    with pytest.raises(Seen):
        client.put_item(TableName="t", Item={"TaskId": {"S": 5}})
