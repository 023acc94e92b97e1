"""Reads the stack's queues and their dead-letter queues from SQS."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roundsman_console.inspector.doctor.facts import QueueFact
from roundsman_console.inspector.doctor.readings import Looking
from roundsman_console.inspector.read.stack import DeployedStack

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

SUFFIX = "QueueUrl"
REJECTED = "RejectedQueueUrl"


@dataclass(slots=True)
class StackQueues:
    """The queues of a stack."""

    work: list[QueueFact] = field(default_factory=list)
    """The queues that functions read."""
    dead: list[QueueFact] = field(default_factory=list)
    """The dead-letter queues."""
    rejected: QueueFact | None = None
    """The RejectedQueue; None if it could not be read."""


def find_queues(stack: DeployedStack, names: Mapping[str, str], looking: Looking) -> StackQueues:
    """Return the queues that the stack's outputs name, and their dead-letter queues.

    `names` are the logical ids by URL; no output names the dead-letter queues.
    """
    found = StackQueues()
    urls = {name: url for name, url in stack.outputs.items() if name.endswith(SUFFIX)}
    for output, url in sorted(urls.items()):
        name = output.removesuffix("Url")
        queue = _look(stack.sqs, name, url, looking)
        if queue is None:
            continue
        if output == REJECTED:
            found.rejected = queue
        else:
            found.work.append(queue)
    targets = {q.dead_letters_to: q.url for q in found.work if q.dead_letters_to}
    for arn, source in targets.items():
        url = f"{source.rpartition('/')[0]}/{arn.rpartition(':')[2]}"
        name = names.get(url, arn.rpartition(":")[2])
        queue = _look(stack.sqs, name, url, looking)
        if queue is not None:
            found.dead.append(queue)
    return found


def _look(sqs: "SQSClient", name: str, url: str, looking: Looking) -> QueueFact | None:
    with looking.at(name):
        answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        return _queue(
            name, url, {str(key): value for key, value in answer.get("Attributes", {}).items()}
        )
    return None


def _queue(name: str, url: str, said: Mapping[str, str]) -> QueueFact:
    redrive = _redrive(said.get("RedrivePolicy", ""))
    return QueueFact(
        name,
        url,
        said.get("QueueArn", ""),
        waiting=int(said.get("ApproximateNumberOfMessages", "0")),
        in_flight=int(said.get("ApproximateNumberOfMessagesNotVisible", "0")),
        dead_letters_to=redrive.get("deadLetterTargetArn"),
    )


def _redrive(policy: str) -> dict[str, str]:
    """Return the fields of a redrive policy as text.

    SQS returns `maxReceiveCount` as it was set: as a number or as text.
    """
    found = json.loads(policy) if policy else {}
    return {str(key): str(value) for key, value in found.items()}
