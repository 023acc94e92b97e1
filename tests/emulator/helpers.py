"""What tests of the deployed stack read, break and ask, beside the stack's own clients."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import cast

import boto3
import pytest
from boto3.dynamodb.types import TypeDeserializer
from typer.testing import CliRunner, Result

from roundsman.model.queue_lag import PROMPT_MARK_INTERVAL, queue_key
from roundsman_console.main import app
from tests.emulator.conftest import DeployedStack

PATIENCE = 180  # seconds; only ever used up when something is broken


@contextmanager
def faults(stack: DeployedStack, *rules: dict[str, object]) -> Iterator[None]:
    """Let the remote services fail by these rules, and by none after it."""
    set_faults(stack, *rules)
    try:
        yield
    finally:
        set_faults(stack)


def set_faults(stack: DeployedStack, *rules: dict[str, object]) -> None:
    """Replace what goes wrong; whatever hangs by the rules before is let go."""
    stack.services.application.set_faults(json.loads(json.dumps({"rules": rules})))


FEWEST = 2  # instances at once: the least that a mapping of a queue can be given


@contextmanager
def few_agents(stack: DeployedStack, agent: str) -> Iterator[None]:
    """As few as can be for an agent's normal requests; its urgent queue keeps its own."""
    name = f"{stack.output(f'{agent.capitalize()}FunctionName')}:live"
    found = stack.functions.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]
    queue = f"_{agent.capitalize()}RequestQueue"
    [mapping] = [each for each in found if queue in each["EventSourceArn"]]
    uuid, before = mapping["UUID"], mapping["ScalingConfig"]
    stack.functions.update_event_source_mapping(
        UUID=uuid, ScalingConfig={"MaximumConcurrency": FEWEST}
    )
    try:
        yield
    finally:
        stack.functions.update_event_source_mapping(UUID=uuid, ScalingConfig=before)


def submit_many(stack: DeployedStack, orders: Sequence[Mapping[str, object]]) -> None:
    """Send order events ten at a time, as fast as the queue takes them."""
    for first in range(0, len(orders), 10):
        stack.sqs.send_message_batch(
            QueueUrl=stack.output("SubmissionQueueUrl"),
            Entries=[
                {"Id": str(number), "MessageBody": json.dumps(each)}
                for number, each in enumerate(orders[first : first + 10])
            ],
        )


def hanging(stack: DeployedStack, calls: int) -> Callable[[], bool]:
    return lambda: stack.services.application.faults()["hanging"] == calls


def is_in(stack: DeployedStack, state: str, *order_ids: str) -> Callable[[], bool]:
    return lambda: all(stack.task(order_id).get("State") == state for order_id in order_ids)


def steps_of(stack: DeployedStack, order_id: str) -> dict[str, dict[str, object]]:
    return cast("dict[str, dict[str, object]]", stack.task(order_id).get("Steps", {}))


def circuit(stack: DeployedStack, agent: str) -> dict[str, object]:
    """The breaker's row, as all instances of the agent share it."""
    found = stack.dynamodb.get_item(
        TableName=stack.output("ControlTableName"),
        Key={"ControlId": {"S": f"breaker#{agent}"}},
        ConsistentRead=True,
    )
    return {name: next(iter(value.values())) for name, value in found.get("Item", {}).items()}


def is_open(stack: DeployedStack, agent: str) -> bool:
    return circuit(stack, agent).get("State") in ("OPEN", "HALF_OPEN")


def step_is(stack: DeployedStack, order_id: str, step: str, state: str) -> Callable[[], bool]:
    return lambda: steps_of(stack, order_id).get(step, {}).get("ProcessState") == state


def entry_of(
    stack: DeployedStack, order_id: str, service: str, operation: str
) -> dict[str, object]:
    """The one key under which the ledger knows this operation of the order."""
    found = [
        cast("dict[str, object]", entry)
        for entry in stack.services.application.effects(order_id)
        if isinstance(entry, dict)
        and (entry["service"], entry["operation"]) == (service, operation)
    ]
    assert len(found) == 1, found
    return found[0]


def happened_at(stack: DeployedStack, order_id: str, service: str, operation: str) -> int:
    """The one instant (epoch ms) at which an operation really had its effect for an order."""
    [at] = cast("list[int]", entry_of(stack, order_id, service, operation)["at"])
    return at


def history_of(stack: DeployedStack, order_id: str) -> list[dict[str, object]]:
    """The rows of the task's history as plain values, oldest first."""
    answer = stack.dynamodb.query(
        TableName=stack.output("HistoryTableName"),
        KeyConditionExpression="TaskId = :task",
        ExpressionAttributeValues={":task": {"S": order_id}},
        ConsistentRead=True,
    )
    plain = TypeDeserializer()
    return [{name: plain.deserialize(v) for name, v in row.items()} for row in answer["Items"]]


def states_of(stack: DeployedStack, order_ids: Sequence[str]) -> dict[str, str]:
    """The states of up to a hundred tasks; none for one that is not there."""
    table = stack.output("TasksTableName")
    answer = stack.dynamodb.batch_get_item(
        RequestItems={
            table: {
                "Keys": [{"TaskId": {"S": order_id}} for order_id in order_ids],
                "ProjectionExpression": "TaskId, #state",
                "ExpressionAttributeNames": {"#state": "State"},
                "ConsistentRead": True,
            }
        }
    )
    return {item["TaskId"]["S"]: item["State"]["S"] for item in answer["Responses"][table]}


def rows(stack: DeployedStack, table: str) -> list[dict[str, object]]:
    """All rows of a table as plain values, by its output's name."""
    pages = stack.dynamodb.get_paginator("scan").paginate(
        TableName=stack.output(table), ConsistentRead=True
    )
    plain = TypeDeserializer()
    return [
        {name: plain.deserialize(value) for name, value in item.items()}
        for page in pages
        for item in page["Items"]
    ]


def read_mark(stack: DeployedStack, agent: str) -> dict[str, object]:
    """What an agent has noted of the last normal request whose read it noted."""
    [marks] = [row for row in rows(stack, "ControlTableName") if row["ControlId"] == "marks"]
    return cast("dict[str, object]", marks[queue_key(agent, "normal")])


def note_the_next_read(stack: DeployedStack, agent: str) -> None:
    """Wait until each instance of an agent, which does nothing now, notes its next read.

    An instance notes at most one read every PROMPT_MARK_INTERVAL while no request waits. An agent
    that dies over a request whose read it has not noted leaves nothing that shows that the request
    was sent, and the engine does not count the attempt.
    """
    noted = int(cast("Decimal", read_mark(stack, agent)["ReadAt"]))
    what = f"the {agent} agent to note its next read"
    stack.wait_for(what, lambda: time.time() * 1000 - noted >= PROMPT_MARK_INTERVAL)


def types(stack: DeployedStack, *arguments: str) -> Result:
    """Run one command of the command line against the stack, as a person with AWS's variables."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in stack.aws.environment.items():
            patch.setenv(name, value)
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        verb, *rest = arguments
        return CliRunner().invoke(app, [verb, "--stack", stack.aws.stack, *rest, "--json"])


def reads(stack: DeployedStack, *arguments: str) -> dict[str, object]:
    """What a command that must go well says as JSON."""
    result = types(stack, *arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def asks(stack: DeployedStack, verb: str, order_id: str, *arguments: str) -> None:
    """An operator's command, sent through the SchedulerQueue, until the scheduler has done it.

    Where the record changes between the look and the command, it is refused, and asked again.
    """
    options = ("--as", "ops", "--reason", "routine", "--yes", "--wait", str(PATIENCE))
    for _ in range(5):
        result = types(stack, verb, order_id, *arguments, *options)
        if "read it again" not in result.stdout:
            break
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["outcome"], document["by"]) == ("done", "ops")
