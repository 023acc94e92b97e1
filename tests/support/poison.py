"""A poison record: each function that reads it is killed."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import boto3

from roundsman_testing.stack import Killed, Stack


@contextmanager
def deadly_to_read(world: Stack, task_id: str) -> Iterator[None]:
    """Kill each function that reads the task, alone or together with others."""
    key = json.dumps({"TaskId": {"S": task_id}})

    def die(params: Mapping[str, object], **_: object) -> None:
        if world.running and key in json.dumps([params.get("Key"), params.get("RequestItems")]):
            raise Killed(task_id)

    session = boto3.DEFAULT_SESSION
    assert session is not None
    reads = [f"provide-client-params.dynamodb.{name}" for name in ("GetItem", "BatchGetItem")]
    for event in reads:
        session.events.register(event, die)
    yield
    for event in reads:
        session.events.unregister(event, die)
