"""An application that sends orders, receives their ends, and keeps several under way."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

PATIENCE = 300.0  # s without the end of any order
STEADY_ROUNDS = 2  # consecutive rounds that started no worker
MOST_ROUNDS = 20


@dataclass
class Shop:
    """An application that sends orders and measures their duration. Times are in seconds."""

    send: Callable[[str], None]
    """Sends an order with this ID."""
    hear: Callable[[], Sequence[str]]
    """Returns the IDs of orders that are complete; waits a moment if there are none."""
    clock: Callable[[], float] = time.monotonic
    under_way: dict[str, float] = field(default_factory=dict)
    """The time at which each order was sent, by its ID."""

    def carry(self, count: int, in_flight: int) -> tuple[float, list[float]]:
        """Process `count` orders; return the orders per second and the duration of each order.

        At any time, `in_flight` orders are under way. Raises TimeoutError if no order ends for
        `PATIENCE`.
        """
        began_at = heard_at = self.clock()
        to_send, took = count, list[float]()
        while len(took) < count:
            to_send -= self.top_up(min(in_flight, len(self.under_way) + to_send))
            ended = list(self.ended())
            took += ended
            if ended:
                heard_at = self.clock()
            elif self.clock() - heard_at > PATIENCE:
                raise TimeoutError(f"{len(self.under_way)} orders did not come to their end")
        return len(took) / (self.clock() - began_at), took

    def top_up(self, in_flight: int) -> int:
        """Send orders until `in_flight` are under way, and return how many were sent."""
        wanted = max(0, in_flight - len(self.under_way))
        for _ in range(wanted):
            order_id = f"bench-{uuid4().hex[:12]}"
            self.under_way[order_id] = self.clock()
            self.send(order_id)
        return wanted

    def ended(self) -> Iterator[float]:
        """Receive ends and yield the duration of each order; duplicates are ignored."""
        heard = self.hear()
        at = self.clock()
        for order_id in heard:
            since = self.under_way.pop(order_id, None)
            if since is not None:
                yield at - since


def completed_orders(sqs: "SQSClient", replies: str) -> Callable[[], list[str]]:
    """Return a function that receives the IDs of complete orders from the queue URL `replies`.

    The function waits up to 1 s for the first status.
    """

    def hear() -> list[str]:
        heard = sqs.receive_message(
            QueueUrl=replies, MaxNumberOfMessages=10, WaitTimeSeconds=1
        ).get("Messages", [])
        if heard:
            sqs.delete_message_batch(
                QueueUrl=replies,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                    for number, message in enumerate(heard)
                ],
            )
        statuses = [json.loads(message["Body"]) for message in heard]
        return [each["orderId"] for each in statuses if each["status"] == "completed"]

    return hear


def warm_up(shop: Shop, in_flight: int, workers: Callable[[], Sequence[int]]) -> int:
    """Process orders until no new workers are started, and return the number of these orders.

    The start of a worker uses a processor for half a second, which is not part of an order's cost.
    """
    before, steady, rounds = set[int](), 0, 0
    while steady < STEADY_ROUNDS and rounds < MOST_ROUNDS:
        shop.carry(2 * in_flight, in_flight)
        now = set(workers())
        steady = steady + 1 if now <= before else 0
        before, rounds = now, rounds + 1
    return rounds * 2 * in_flight


def spread(took: Sequence[float]) -> dict[str, float]:
    """Return the percentiles of durations in s, in ms."""
    cuts = quantiles([each * 1000 for each in took], n=100, method="inclusive")
    return {"p50": round(cuts[49], 1), "p95": round(cuts[94], 1), "p99": round(cuts[98], 1)}
