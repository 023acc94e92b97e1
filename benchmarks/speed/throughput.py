"""Measures orders per second and latency on the local emulator.

The emulator's functions are processes of this machine, and its queues answer in milliseconds. So
the results compare two days, and do not show the performance on AWS. The latency of
an order is the time from sending it to its `completed` status in the application's queue. Remote
calls take 10 ms. All workers are started before the measurement.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import boto3

from benchmarks.harness.orders import order
from benchmarks.harness.processor import processor_ms
from benchmarks.harness.shop import Shop, completed_orders, spread, warm_up
from benchmarks.harness.stack import TEMPLATE
from benchmarks.report import Report, Setting, Table, amount
from benchmarks.speed.timing import machine
from roundsman_dev.local import LocalAws
from roundsman_testing.remote_services import RemoteServices

SERVICE_MS = 10
SERVICES = ("inventory", "payment", "shipping", "mail")
IN_FLIGHT = 20
FEWEST_IDLE = 20


@dataclass(frozen=True)
class Found:
    """The results; processor times are in ms per order."""

    warmed: int
    """The number of orders before the measurement."""
    idle: Sequence[float]
    """The latencies in s of orders that were sent one at a time."""
    loaded: Sequence[float]
    """The latencies in s with `IN_FLIGHT` orders under way."""
    rate: float
    """Orders per second."""
    emulator_ms: float
    functions_ms: float
    bench_ms: float
    """The application and the remote services, which run in this process."""

    @property
    def processor_ms(self) -> float:
        return self.emulator_ms + self.functions_ms + self.bench_ms


def measure(setting: Setting) -> Report:
    """Deploy a new stack and send orders to it; this takes about three minutes."""
    setting.say("deploying a stack on the emulator")
    with _local_aws() as aws:
        functions = [value for name, value in aws.outputs.items() if name.endswith("FunctionName")]

        def workers() -> list[int]:
            return [pid for function in functions for pid in aws.worker_pids(function)]

        return report(_carried(_shop(aws), workers, aws.pid, setting))


def _carried(
    shop: Shop, workers: Callable[[], Sequence[int]], emulator: int, setting: Setting
) -> Found:
    setting.say("starting all workers")
    warmed = warm_up(shop, IN_FLIGHT, workers)
    setting.say("orders one at a time")
    _, idle = shop.carry(max(FEWEST_IDLE, setting.orders // 5), 1)
    setting.say(f"{setting.orders} orders, {IN_FLIGHT} in flight")
    started = list(workers())

    def taken() -> tuple[float, float, float]:
        return processor_ms([emulator]), processor_ms(started), time.process_time() * 1000

    before = taken()
    rate, loaded = shop.carry(setting.orders, IN_FLIGHT)
    emulator_ms, functions_ms, bench_ms = (
        (now - then) / setting.orders for now, then in zip(taken(), before, strict=True)
    )
    return Found(warmed, idle, loaded, rate, emulator_ms, functions_ms, bench_ms)


@contextmanager
def _local_aws() -> Iterator[LocalAws]:
    with RemoteServices(port=0) as services:
        services.application.set_faults(
            {"rules": [{"service": name, "latencyMs": SERVICE_MS} for name in SERVICES]}
        )
        with LocalAws.up(port=0, services=services.url, project=TEMPLATE.parent) as aws:
            yield aws


def _shop(aws: LocalAws) -> Shop:
    session = boto3.Session("test", "test", region_name=aws.region)
    sqs = session.client("sqs", endpoint_url=aws.endpoint)
    name = f"{aws.outputs['ReplyQueuePrefix']}bench"
    replies = sqs.create_queue(QueueName=name)["QueueUrl"]

    def send(order_id: str) -> None:
        event = json.dumps(order(order_id, replyTo=replies))
        sqs.send_message(QueueUrl=aws.outputs["SubmissionQueueUrl"], MessageBody=event)

    return Shop(send, completed_orders(sqs, replies))


def report(found: Found) -> Report:
    """Return the tables."""
    latency = [
        [when, *(amount(ms) for ms in spread(took).values())]
        for when, took in (("one at a time", found.idle), (f"{IN_FLIGHT} in flight", found.loaded))
    ]
    cores = os.cpu_count() or 1
    parts = (found.emulator_ms, found.functions_ms, found.bench_ms, found.processor_ms)
    rate = [
        amount(round(found.rate, 1)),
        *(amount(round(ms, 1)) for ms in parts),
        amount(round(cores * 1000 / found.processor_ms, 1)) if found.processor_ms else "",
    ]
    headings = ("orders a second", "emulator", "functions", "bench", "in all", "most a second")
    return Report(
        [
            Table("Latency in ms, on one local AWS", ("", "p50", "p95", "p99"), latency),
            Table(
                f"Orders a second with {IN_FLIGHT} in flight, and processor ms an order",
                headings,
                [rate],
            ),
        ],
        [
            f"Remote calls take {SERVICE_MS} ms. Before anything was timed, all workers had been "
            f"started, with {found.warmed} orders.",
            f"Most a second: what {cores} cores could carry that did nothing else.",
            f"Measured on {machine()}.",
        ],
    )
