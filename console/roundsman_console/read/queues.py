"""The stack's queues: how much waits in each, and how old the oldest of it is.

SQS tells how many messages there are, about, and not how old they are. That is told by CloudWatch,
a minute or two late; or, of an agent's queue, by the mark that the agent leaves of what it reads.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.errors import aws_errors
from roundsman.model.events import Agents
from roundsman.model.instants import EPOCH, MINUTE
from roundsman_console.read.agents import agent_names
from roundsman_console.read.stack import DeployedStack

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

ASKERS = 8  # queues asked at once
CLOUDWATCH, MARKS = "cloudwatch", "marks"
_URL, _REQUESTS, _URGENT = "QueueUrl", "RequestQueue", "UrgentRequestQueue"
_LOOK_BACK = 5 * MINUTE


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue. `name` is its output's (`PaymentRequestQueue`); counts are about right.

    `oldest` is the age in ms of what has waited longest, None where nobody tells; `told_by` who
    told it.
    """

    name: str
    url: str
    waiting: int = 0
    in_flight: int = 0
    delayed: int = 0
    oldest: int | None = None
    told_by: str | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is in it."""
        return not (self.waiting or self.in_flight or self.delayed)


def find_queues(stack: DeployedStack, agents: Agents, at: int) -> list[Queue]:
    """The queues that the stack's outputs name, in their order, as of `at` (epoch ms)."""
    named = [
        Queue(name.removesuffix("Url"), url)
        for name, url in stack.outputs.items()
        if name.endswith(_URL)
    ]
    with ThreadPoolExecutor(ASKERS) as askers:
        counted = list(askers.map(lambda queue: _counted(stack, queue), named))
    return with_ages(counted, _measured(stack, counted, at), agents)


def with_ages(queues: Sequence[Queue], measured: Mapping[str, int], agents: Agents) -> list[Queue]:
    """The queues with the age (ms) of their oldest message, by whoever knows the more recent.

    `measured` is CloudWatch's, by name. A mark is seconds old, a measurement minutes, so the mark
    goes first. Of an empty queue nothing is old.
    """
    noted = {key.partition("/")[0] for key in agents}
    by_mark: dict[str, int] = {}
    for queue in queues:
        agent = agent_names({f"{queue.name}Url": queue.url}, noted)
        priority = "urgent" if queue.name.endswith(_URGENT) else "normal"
        view = agents.get(f"{agent[0]}/{priority}") if agent else None
        if view is not None and view.lag > 0:
            by_mark[queue.name] = view.lag
    return [_aged(queue, by_mark, measured) for queue in queues]


def _aged(queue: Queue, by_mark: Mapping[str, int], measured: Mapping[str, int]) -> Queue:
    if not queue.waiting:
        return queue
    for told_by, ages in ((MARKS, by_mark), (CLOUDWATCH, measured)):
        if queue.name in ages:
            return replace(queue, oldest=ages[queue.name], told_by=told_by)
    return queue


def _counted(stack: DeployedStack, queue: Queue) -> Queue:
    with aws_errors(f"counting what is in {queue.name}"):
        found = stack.sqs.get_queue_attributes(
            QueueUrl=queue.url,
            AttributeNames=[
                "ApproximateNumberOfMessages",
                "ApproximateNumberOfMessagesNotVisible",
                "ApproximateNumberOfMessagesDelayed",
            ],
        )["Attributes"]
    return replace(
        queue,
        waiting=int(found.get("ApproximateNumberOfMessages", "0")),
        in_flight=int(found.get("ApproximateNumberOfMessagesNotVisible", "0")),
        delayed=int(found.get("ApproximateNumberOfMessagesDelayed", "0")),
    )


def _measured(stack: DeployedStack, queues: Sequence[Queue], at: int) -> dict[str, int]:
    """The age (ms) of the oldest message by queue, as CloudWatch measured it last.

    It is asked about what is not empty only, since a measurement costs; and without the right to
    ask, or where there is no CloudWatch, nothing is known.
    """
    asked = [queue for queue in queues if queue.waiting]
    if not asked:
        return {}
    until = EPOCH + timedelta(milliseconds=at)
    try:
        found = stack.cloudwatch.get_metric_data(
            MetricDataQueries=[_query(place, queue) for place, queue in enumerate(asked)],
            StartTime=until - timedelta(milliseconds=_LOOK_BACK),
            EndTime=until,
            ScanBy="TimestampDescending",
        )["MetricDataResults"]
    except (ClientError, BotoCoreError):
        return {}
    values = {result["Id"]: result.get("Values", []) for result in found}
    return {
        queue.name: int(values[f"q{place}"][0] * 1000)
        for place, queue in enumerate(asked)
        if values.get(f"q{place}")
    }


def _query(place: int, queue: Queue) -> "MetricDataQueryTypeDef":
    return {
        "Id": f"q{place}",
        "MetricStat": {
            "Metric": {
                "Namespace": "AWS/SQS",
                "MetricName": "ApproximateAgeOfOldestMessage",
                "Dimensions": [{"Name": "QueueName", "Value": queue.url.rpartition("/")[2]}],
            },
            "Period": 60,
            "Stat": "Maximum",
        },
    }
