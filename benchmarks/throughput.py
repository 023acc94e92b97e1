"""Orders a second and their latency, on the local emulator: idle, and with many in flight.

The emulator's functions are processes of this machine and its queues answer in milliseconds, so
this compares one engine with another, and one day with the next; it is not what AWS does. Each
order is timed from its sending to the `completed` status, as an application sees it. Remote calls
take 10 ms.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import quantiles
from typing import TYPE_CHECKING
from uuid import uuid4

import boto3

from benchmarks.orders import order
from benchmarks.report import Report, Setting, Table, amount
from benchmarks.stack import TEMPLATE
from roundsman_console.local import LocalAws
from roundsman_console.services import RemoteServices

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

SERVICE_MS = 10
SERVICES = ("inventory", "payment", "shipping", "mail")
IN_FLIGHT = 20
PATIENCE = 120  # s without any status: something is stuck


@dataclass
class Shop:
    """Sends orders and hears of their ends. Seconds throughout."""

    sqs: "SQSClient"
    submissions: str
    replies: str
    _sent_at: dict[str, float] = field(default_factory=dict)

    def send(self) -> None:
        order_id = f"bench-{uuid4().hex[:12]}"
        self._sent_at[order_id] = time.monotonic()
        event = order(order_id, replyTo=self.replies)
        self.sqs.send_message(QueueUrl=self.submissions, MessageBody=json.dumps(event))

    def completed(self) -> Iterator[float]:
        """How long each order took whose end is told now; waits for at least one message."""
        heard = self.sqs.receive_message(
            QueueUrl=self.replies, MaxNumberOfMessages=10, WaitTimeSeconds=1
        ).get("Messages", [])
        for message in heard:
            at = time.monotonic()
            self.sqs.delete_message(QueueUrl=self.replies, ReceiptHandle=message["ReceiptHandle"])
            status = json.loads(message["Body"])
            if status["status"] == "completed" and status["orderId"] in self._sent_at:
                yield at - self._sent_at.pop(status["orderId"])

    def carry(self, count: int, in_flight: int) -> tuple[float, list[float]]:
        """Orders a second, and what each took, with so many of them under way at any time."""
        began_at = heard_at = time.monotonic()
        sent, took = 0, list[float]()
        while len(took) < count:
            while sent < count and sent - len(took) < in_flight:
                self.send()
                sent += 1
            before = len(took)
            took += self.completed()
            if len(took) > before:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > PATIENCE:
                raise TimeoutError(f"{count - len(took)} orders did not come to their end")
        return count / (time.monotonic() - began_at), took


def measure(setting: Setting) -> Report:
    """Deploys a stack of its own; takes a minute or two."""
    setting.say("deploying a stack on the emulator")
    with _shop() as shop:
        setting.say("warming up")
        shop.carry(IN_FLIGHT, IN_FLIGHT)
        setting.say("orders one at a time")
        _, idle = shop.carry(max(10, setting.orders // 5), 1)
        setting.say(f"{setting.orders} orders, {IN_FLIGHT} in flight")
        rate, loaded = shop.carry(setting.orders, IN_FLIGHT)
    found = {"idle": _spread(idle), f"{IN_FLIGHT} in flight": _spread(loaded)}
    rows = [[name, *(amount(ms) for ms in spread.values())] for name, spread in found.items()]
    return Report(
        [Table("Latency in ms, on the emulator", ("", "p50", "p95", "p99"), rows)],
        {"throughput": {"orders_per_second": round(rate, 1), "latency_ms": {**found}}},
        [f"{rate:.1f} orders a second with {IN_FLIGHT} in flight."],
    )


@contextmanager
def _shop() -> Iterator[Shop]:
    with RemoteServices(port=0) as services:
        services.application.set_faults(
            {"rules": [{"service": name, "latencyMs": SERVICE_MS} for name in SERVICES]}
        )
        with LocalAws.up(port=0, services=services.url, project=TEMPLATE.parent) as aws:
            session = boto3.Session("test", "test", region_name=aws.region)
            sqs = session.client("sqs", endpoint_url=aws.endpoint)
            name = f"{aws.outputs['ReplyQueuePrefix']}bench"
            replies = sqs.create_queue(QueueName=name)["QueueUrl"]
            yield Shop(sqs, aws.outputs["SubmissionQueueUrl"], replies)


def _spread(took: Sequence[float]) -> dict[str, float]:
    """ms."""
    cuts = quantiles([each * 1000 for each in took], n=100, method="inclusive")
    return {"p50": round(cuts[49], 1), "p95": round(cuts[94], 1), "p99": round(cuts[98], 1)}
