"""Reading the stack's queues: the number of messages and the age of the oldest message.

SQS reports approximate numbers of messages, but no ages. The age comes from CloudWatch, with a
delay of a minute or two, or from a read mark: an agent's of its request queue, or the scheduler's
of its own queue or of an agent's replies.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.errors import aws_errors
from roundsman.model.events import Agents
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.queue_lag import ReadMark
from roundsman.model.scheduler_queues import COMMANDS, QueueView, is_read_mark
from roundsman_console.aws.metrics import Metric, read_metrics
from roundsman_console.aws.queues import read_counts
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.constraints import Count
from roundsman_console.base.result import HIDDEN, MS, Shown
from roundsman_console.base.threads import map_in_threads
from roundsman_console.facts.agent.reading import agent_names

ASKERS = 8  # the number of queues that are read concurrently
AgeSource: TypeAlias = Literal["cloudwatch", "marks"]
"""The source of the age of a queue's oldest message."""
CLOUDWATCH: Final = "cloudwatch"
MARKS: Final = "marks"
_URL, _URGENT = "QueueUrl", "UrgentRequestQueue"
_LOOK_BACK = 5 * MINUTE


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue. The numbers of messages are approximate, as SQS reports them."""

    name: Annotated[str, Shown(name="queue")]
    """The name of the stack's output without `Url`: `PaymentRequestQueue`."""
    url: Annotated[str, HIDDEN]
    waiting: Count = 0
    in_flight: Count = 0
    delayed: Count = 0
    oldest: Annotated[int | None, Shown(unit=MS)] = None
    """The age of the oldest message (in JSON in seconds); null if the queue is empty or the age is
    not known."""
    age_source: Annotated[AgeSource | None, Shown(name="oldestToldBy")] = None
    """The source of the age: CloudWatch, or the mark of what was read last."""

    @property
    def empty(self) -> bool:
        """Whether the queue has no messages, visible or not."""
        return not (self.waiting or self.in_flight or self.delayed)


def find_queues(stack: DeployedStack, at: int, agent: str | None = None) -> list[Queue]:
    """Return the queues in the stack's outputs, in the order of the outputs, at `at` (epoch ms).

    With `agent`, only those of this agent.
    """
    named = [one for one in named_queues(stack) if agent is None or is_of_agent(one.name, agent)]
    counted = map_in_threads(ASKERS, lambda queue: _counted(stack, queue), named)
    measured = measured_ages(stack, counted, at)
    return with_ages(counted, measured, stack.board.agents(), lags_of(stack.board.marks(), at))


def named_queues(stack: DeployedStack) -> list[Queue]:
    """Return the queues in the stack's outputs, in their order; nothing is counted."""
    return [
        Queue(name.removesuffix("Url"), url)
        for name, url in stack.outputs.items()
        if name.endswith(_URL)
    ]


def is_of_agent(queue: str, agent: str) -> bool:
    """Whether the queue with this name is for requests to the agent, or for its replies."""
    own = re.escape(agent.replace("_", ""))
    return bool(
        re.fullmatch(rf"{own}(?:urgent)?(?:request|reply)(?:deadletter)?queue", queue.lower())
    )


def lags_of(marks: Mapping[str, ReadMark], at: int) -> dict[str, int]:
    """Return how far the scheduler is behind with each of its queues at `at` (epoch ms).

    The lags are in ms, by the key of the queue's mark (`roundsman.model.scheduler_queues`). A queue
    with which it keeps up, or whose mark is out of date, is missing.
    """
    views = {key: QueueView(mark) for key, mark in marks.items() if is_read_mark(key)}
    return {key: view.lag(at) for key, view in views.items() if view.is_behind(at)}


def with_ages(
    queues: Sequence[Queue],
    measured: Mapping[str, int],
    agents: Agents,
    lags: Mapping[str, int],
) -> list[Queue]:
    """Return the queues with the age of their oldest messages, from the more recent source.

    `measured` contains CloudWatch's ages in ms, by the queue's name. A read mark is preferred,
    because it is seconds old and a CloudWatch metric is minutes old: `agents` has those of the
    agents, `lags` what `lags_of` says of the scheduler's. A queue without waiting messages gets no
    age.
    """
    noted = {key.partition("/")[0] for key in agents}
    by_mark = {_queue_of_mark(key): lag for key, lag in lags.items()}
    for queue in queues:
        agent = agent_names({f"{queue.name}Url": queue.url}, noted)
        priority = "urgent" if queue.name.endswith(_URGENT) else "normal"
        view = agents.get(f"{agent[0]}/{priority}") if agent else None
        if view is not None and view.lag > 0:
            by_mark[queue.name.lower()] = view.lag
    return [_aged(queue, by_mark, measured) for queue in queues]


def _queue_of_mark(key: str) -> str:
    """The name in lower case of the queue with the mark `payment/replies`: `paymentreplyqueue`."""
    if key == COMMANDS:
        return "schedulerqueue"
    return f"{key.partition('/')[0].replace('_', '')}replyqueue"


def _aged(queue: Queue, by_mark: Mapping[str, int], measured: Mapping[str, int]) -> Queue:
    if not queue.waiting:
        return queue
    mark = by_mark.get(queue.name.lower())
    if mark is not None:
        return replace(queue, oldest=mark, age_source=MARKS)
    if queue.name in measured:
        return replace(queue, oldest=measured[queue.name], age_source=CLOUDWATCH)
    return queue


def _counted(stack: DeployedStack, queue: Queue) -> Queue:
    with aws_errors(f"counting what is in {queue.name}"):
        found = read_counts(stack.sqs, queue.url)
    return replace(queue, waiting=found.waiting, in_flight=found.in_flight, delayed=found.delayed)


def measured_ages(stack: DeployedStack, queues: Sequence[Queue], at: int) -> dict[str, int]:
    """Return CloudWatch's last age of the oldest message in ms, by the queue's name.

    Only queues with waiting messages are queried, because each metric costs money. The result is
    empty if CloudWatch denies access or cannot be reached.
    """
    wanted = {
        queue.name: Metric(
            "AWS/SQS",
            "ApproximateAgeOfOldestMessage",
            {"QueueName": queue.url.rpartition("/")[2]},
            "Maximum",
        )
        for queue in queues
        if queue.waiting
    }
    try:
        found = read_metrics(stack, wanted, at - _LOOK_BACK, at, MINUTE)
    except (ClientError, BotoCoreError):
        return {}
    return {name: int(points[-1][1] * SECOND) for name, points in found.items()}
