"""The example's stack with a PayloadBucket: what is stored for an order is erased with it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import boto3
import pytest

from roundsman.aws.outputs import nested_settings
from roundsman.client import CallRefused, Client, InvalidCall
from roundsman.model.events import CommandSource, Erase
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman.wire.commands import command_of
from roundsman_testing.stack import Clock, Services, Stack
from tests.moto.orders import order
from tests.project import deployed_project

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

DATA = b"a page that was scanned"


@pytest.fixture
def with_bucket(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """A deployment with the parameter PayloadBucket."""
    parameters = {"Engine.PayloadBucket": "true"}
    with deployed_project(roundsman_services, roundsman_clock, parameters) as made:
        yield made


def bucket_of(stack: Stack) -> str:
    return nested_settings(stack.stack.outputs)["PayloadBucketName"]


def keys(stack: Stack) -> list[str]:
    s3: S3Client = boto3.client("s3")
    found = s3.list_object_versions(Bucket=bucket_of(stack)).get("Versions", [])
    return [one["Key"] for one in found]


def erase(stack: Stack, order_id: str) -> None:
    source = CommandSource("c-17", "operator", "request 17")
    body = command_of(order_id, Erase(source)).body()
    stack.send("SchedulerQueue", body)


@pytest.mark.exhaustive
def test_what_an_application_has_stored_is_erased_with_its_order(with_bucket: Stack) -> None:
    world, client = with_bucket, Client.of_stack("roundsman")
    bucket = bucket_of(world)
    for function in ("SubmissionFunction", "SchedulerFunction", "PaymentFunction"):
        assert world.stack.function_environments[function]["PAYLOAD_BUCKET"] == bucket
    stays = client.upload("ord-10", DATA)
    for _ in range(2):
        reference = client.upload("ord-1", DATA)
    assert sorted(keys(world)) == [reference["payload"], stays["payload"]]
    client.submit(cast("dict[str, Json]", order("ord-1")))
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    erase(world, "ord-1")
    world.run()
    assert keys(world) == [stays["payload"]]
    world.assert_nothing_is_stuck()


@pytest.mark.exhaustive
def test_an_erasure_waits_for_a_bucket_that_is_gone(with_bucket: Stack) -> None:
    world, client = with_bucket, Client.of_stack("roundsman")
    client.submit(cast("dict[str, Json]", order("ord-1")))
    world.run()
    s3, bucket = boto3.client("s3"), bucket_of(world)
    s3.delete_bucket(Bucket=bucket)
    with pytest.raises(CallRefused, match=f"the bucket {bucket} is gone"):
        client.upload("ord-1", DATA)
    erase(world, "ord-1")
    world.run()
    assert world.task("ord-1").erased_at is not None
    assert world.waiting("SchedulerQueue") == 1
    s3.create_bucket(Bucket=bucket)
    world.pass_time(300)
    world.assert_nothing_is_stuck()


def test_without_a_bucket_nothing_is_uploaded_and_the_parameter_is_named(world: Stack) -> None:
    client = Client.of_stack("roundsman")
    with pytest.raises(InvalidCall, match="set the parameter PayloadBucket"):
        client.upload("ord-1", DATA)
    assert "AWS::S3::Bucket" not in {
        found["ResourceType"]
        for found in boto3.client("cloudformation").list_stack_resources(StackName="roundsman")[
            "StackResourceSummaries"
        ]
    }


def test_data_that_cannot_be_stored_is_an_invalid_call(with_bucket: Stack) -> None:
    client = Client.of_stack("roundsman")
    with pytest.raises(InvalidCall, match="orderId must be"):
        client.upload("ord/1", DATA)
    with pytest.raises(InvalidCall, match="at most 50000000 bytes"):
        client.upload("ord-1", bytes(50_000_001))
    assert keys(with_bucket) == []
