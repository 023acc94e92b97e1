"""Reading the stack's queues: the number of messages and the age of the oldest message.

SQS reports approximate numbers of messages, but no ages. The age comes from CloudWatch, with a
delay of a minute or two, or, for an agent's request queue, from the agent's read mark.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.errors import aws_errors
from roundsman.inspector.documents.stats import AgeSource
from roundsman.inspector.read.agents import agent_names
from roundsman.inspector.read.stack import DeployedStack
from roundsman.lazy_dataclass import dataclass
from roundsman.model.events import Agents
from roundsman.model.instants import EPOCH, MINUTE

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

ASKERS = 8  # the number of queues that are read concurrently
CLOUDWATCH: Final = "cloudwatch"
MARKS: Final = "marks"
_URL, _REQUESTS, _URGENT = "QueueUrl", "RequestQueue", "UrgentRequestQueue"
_LOOK_BACK = 5 * MINUTE


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue. The numbers of messages are approximate, as SQS reports them."""

    name: str
    """The name of the stack's output without `Url`: `PaymentRequestQueue`."""
    url: str
    waiting: int = 0
    in_flight: int = 0
    delayed: int = 0
    oldest: int | None = None
    """The age of the oldest message in ms; None if it is not known."""
    told_by: AgeSource | None = None
    """The source of `oldest`: CLOUDWATCH or MARKS; None if it is not known."""

    @property
    def empty(self) -> bool:
        """Whether the queue has no messages, visible or not."""
        return not (self.waiting or self.in_flight or self.delayed)


def find_queues(stack: DeployedStack, agents: Agents, at: int) -> list[Queue]:
    """Return the queues in the stack's outputs, in the order of the outputs, at `at` (epoch ms)."""
    named = [
        Queue(name.removesuffix("Url"), url)
        for name, url in stack.outputs.items()
        if name.endswith(_URL)
    ]
    with ThreadPoolExecutor(ASKERS) as askers:
        counted = list(askers.map(lambda queue: _counted(stack, queue), named))
    return with_ages(counted, _measured(stack, counted, at), agents)


def with_ages(queues: Sequence[Queue], measured: Mapping[str, int], agents: Agents) -> list[Queue]:
    """Return the queues with the age of their oldest messages, from the more recent source.

    `measured` contains CloudWatch's ages in ms, by the queue's name. An agent's read mark is
    preferred, because it is seconds old and a CloudWatch metric is minutes old. A queue without
    waiting messages gets no age.
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
    sources: tuple[tuple[AgeSource, Mapping[str, int]], ...]
    sources = ((MARKS, by_mark), (CLOUDWATCH, measured))
    for told_by, ages in sources:
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
    """Return CloudWatch's last age of the oldest message in ms, by the queue's name.

    Only queues with waiting messages are queried, because each metric costs money. The result is
    empty if CloudWatch denies access or cannot be reached.
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
