"""The same order on Step Functions, on the same local AWS: what Roundsman is compared with.

A standard state machine with a Lambda task for each remote call, and a last state that tells the
application's queue that the order is complete. It is the best case for Step Functions: no Retry,
no Catch, no undo, nothing stored but the execution itself. On the emulator that is in memory only;
an execution that runs when the emulator ends has failed.
"""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from benchmarks.orders import order

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

TASK = Path(__file__).parent / "step_function_task.py"
RESOURCES = ("reservations", "charges", "shipments", "messages")
ROLE = "arn:aws:iam::000000000000:role/benchmark"  # the emulator asks for none of its rights


@dataclass(frozen=True)
class StateMachine:
    """Sends an order into an execution of its own; `functions` are its tasks' names."""

    send: Callable[[str], None]
    functions: tuple[str, ...]


def state_machine(
    session: boto3.Session, endpoint: str, like: str, services: str, replies: str
) -> StateMachine:
    """Made on the emulator that answers at `endpoint`; gone with it.

    Its functions have the runtime and the memory of the one that is called `like`.
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
    """A task for each function in its order, and the status at the end."""
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
