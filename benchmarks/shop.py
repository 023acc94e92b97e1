"""An application that sends orders and hears of their ends, some of them under way at any time."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

PATIENCE = 300.0  # s without any order's end: something is stuck
STEADY_ROUNDS = 2  # in a row that started no worker
MOST_ROUNDS = 20


@dataclass
class Shop:
    """`send` sends an order under an id; `hear` returns ids of orders that are complete.

    `hear` waits a moment where there is none. Times are in seconds.
    """

    send: Callable[[str], None]
    hear: Callable[[], Sequence[str]]
    clock: Callable[[], float] = time.monotonic
    under_way: dict[str, float] = field(default_factory=dict)  # since when, by order

    def carry(self, count: int, in_flight: int, leave: int = 0) -> tuple[float, list[float]]:
        """Orders a second until so many have ended, and what each took from its sending.

        There are `in_flight` under way at any time, and `leave` more are sent than are waited for.
        Raises TimeoutError where none ends for `PATIENCE`.
        """
        began_at = heard_at = self.clock()
        to_send, took = count + leave, list[float]()
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
        """Send orders until so many are under way; how many were sent."""
        wanted = max(0, in_flight - len(self.under_way))
        for _ in range(wanted):
            order_id = f"bench-{uuid4().hex[:12]}"
            self.under_way[order_id] = self.clock()
            self.send(order_id)
        return wanted

    def ended(self) -> Iterator[float]:
        """How long each order took whose end is told now. Being told twice is harmless."""
        heard = self.hear()
        at = self.clock()
        for order_id in heard:
            since = self.under_way.pop(order_id, None)
            if since is not None:
                yield at - since


def completed_orders(sqs: "SQSClient", replies: str) -> Callable[[], list[str]]:
    """Ids of orders that the queue `replies` says are complete; waits a second for the first."""

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
    """Carry orders until no more workers are started for them; how many orders that took.

    A worker that starts takes a processor for half a second, which is not the orders' doing.
    """
    before, steady, rounds = set[int](), 0, 0
    while steady < STEADY_ROUNDS and rounds < MOST_ROUNDS:
        shop.carry(2 * in_flight, in_flight)
        now = set(workers())
        steady = steady + 1 if now <= before else 0
        before, rounds = now, rounds + 1
    return rounds * 2 * in_flight


def spread(took: Sequence[float]) -> dict[str, float]:
    """Seconds as percentiles in ms."""
    cuts = quantiles([each * 1000 for each in took], n=100, method="inclusive")
    return {"p50": round(cuts[49], 1), "p95": round(cuts[94], 1), "p99": round(cuts[98], 1)}
