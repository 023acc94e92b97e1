"""Runs the same order on Step Functions on the same local AWS, for comparison with Roundsman.

It is a standard state machine with a Lambda task for each remote call, and a final state that sends
the status `completed` to the application's queue. This is the best case for Step Functions: no
Retry, no Catch, no compensation, and no stored data except the execution. The emulator keeps the
execution only in memory; an execution that runs when the emulator ends has failed.
"""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from benchmarks.harness.orders import order

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

TASK = Path(__file__).parent / "step_function_task.py"
RESOURCES = ("reservations", "charges", "shipments", "messages")
ROLE = "arn:aws:iam::000000000000:role/benchmark"  # the emulator does not check its permissions


@dataclass(frozen=True)
class StateMachine:
    """A state machine that processes orders."""

    send: Callable[[str], None]
    """Starts an execution for the order with this ID."""
    functions: tuple[str, ...]
    """The names of the Lambda functions of its tasks."""


def state_machine(
    session: boto3.Session, endpoint: str, like: str, services: str, replies: str
) -> StateMachine:
    """Create the state machine on the emulator at `endpoint`, which is not persistent.

    Its functions have the runtime and the memory of the function `like`. `services` is the base URL
    of the remote services, and `replies` the URL of the application's queue.
    """
    functions: LambdaClient = session.client("lambda", endpoint_url=endpoint)
    model = functions.get_function_configuration(FunctionName=like)
    names = tuple(f"step-functions-{resource}" for resource in RESOURCES)
    arns = dict[str, str]()
    for name, resource in zip(names, RESOURCES, strict=True):
        made = functions.create_function(
            FunctionName=name,
            Runtime=model["Runtime"],
            Role=ROLE,
            Handler=f"{TASK.stem}.handler",
            Code={"ZipFile": _zipped()},
            Timeout=40,
            MemorySize=model["MemorySize"],
            Environment={"Variables": {"RESOURCE": resource, "SERVICE_URL": services}},
        )
        arns[resource] = made["FunctionArn"]
    states = session.client("stepfunctions", endpoint_url=endpoint)
    machine = states.create_state_machine(
        name="order", definition=json.dumps(definition(arns, replies)), roleArn=ROLE
    )["stateMachineArn"]

    def send(order_id: str) -> None:
        states.start_execution(
            stateMachineArn=machine, name=order_id, input=json.dumps(order(order_id))
        )

    return StateMachine(send, names)


def definition(functions: dict[str, str], replies: str) -> dict[str, object]:
    """Return the definition: a task for each function in order, and the status at the end."""
    names = [*functions, "completed"]
    states: dict[str, object] = {
        resource: {"Type": "Task", "Resource": arn, "ResultPath": f"$.{resource}", "Next": after}
        for (resource, arn), after in zip(functions.items(), names[1:], strict=True)
    }
    states["completed"] = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage",
        "Parameters": {
            "QueueUrl": replies,
            "MessageBody": {"orderId.$": "$.orderId", "status": "completed"},
        },
        "End": True,
    }
    return {"StartAt": names[0], "States": states}


def _zipped() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.write(TASK, TASK.name)
    return archive.getvalue()
