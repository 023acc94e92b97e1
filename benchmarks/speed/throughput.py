"""Measures orders per second and latency on the local emulator, compared with Step Functions.

The emulator's functions are processes of this machine, and its queues answer in milliseconds. So
the results compare two engines, or two days, and do not show the performance on AWS. The latency of
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
from benchmarks.speed.step_functions import state_machine
from benchmarks.speed.timing import machine
from roundsman_dev.local import LocalAws
from roundsman_testing.remote_services import RemoteServices

SERVICE_MS = 10
SERVICES = ("inventory", "payment", "shipping", "mail")
IN_FLIGHT = 20
FEWEST_IDLE = 20


@dataclass(frozen=True)
class Engine:
    """An engine that processes orders on the local AWS."""

    name: str
    shop: Shop
    workers: Callable[[], Sequence[int]]
    """Returns the IDs of the processes that run its functions."""


@dataclass(frozen=True)
class Found:
    """The results of one engine; processor times are in ms per order."""

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
    """Deploy a new stack and measure both engines; this takes about five minutes."""
    setting.say("deploying a stack on the emulator")
    with _local_aws() as (aws, services):
        engines = _engines(aws, services)
        found = {each.name: _carried(each, aws.pid, setting) for each in engines}
    return report(found)


def _carried(engine: Engine, emulator: int, setting: Setting) -> Found:
    setting.say(f"{engine.name}: starting all workers")
    warmed = warm_up(engine.shop, IN_FLIGHT, engine.workers)
    setting.say(f"{engine.name}: orders one at a time")
    _, idle = engine.shop.carry(max(FEWEST_IDLE, setting.orders // 5), 1)
    setting.say(f"{engine.name}: {setting.orders} orders, {IN_FLIGHT} in flight")
    workers = list(engine.workers())

    def taken() -> tuple[float, float, float]:
        return processor_ms([emulator]), processor_ms(workers), time.process_time() * 1000

    before = taken()
    rate, loaded = engine.shop.carry(setting.orders, IN_FLIGHT)
    emulator_ms, functions_ms, bench_ms = (
        (now - then) / setting.orders for now, then in zip(taken(), before, strict=True)
    )
    return Found(warmed, idle, loaded, rate, emulator_ms, functions_ms, bench_ms)


@contextmanager
def _local_aws() -> Iterator[tuple[LocalAws, str]]:
    with RemoteServices(port=0) as services:
        services.application.set_faults(
            {"rules": [{"service": name, "latencyMs": SERVICE_MS} for name in SERVICES]}
        )
        with LocalAws.up(port=0, services=services.url, project=TEMPLATE.parent) as aws:
            yield aws, services.url


def _engines(aws: LocalAws, services: str) -> list[Engine]:
    session = boto3.Session("test", "test", region_name=aws.region)
    sqs = session.client("sqs", endpoint_url=aws.endpoint)
    name = f"{aws.outputs['ReplyQueuePrefix']}bench"
    replies = sqs.create_queue(QueueName=name)["QueueUrl"]

    def send(order_id: str) -> None:
        event = json.dumps(order(order_id, replyTo=replies))
        sqs.send_message(QueueUrl=aws.outputs["SubmissionQueueUrl"], MessageBody=event)

    def workers_of(functions: Sequence[str]) -> Callable[[], list[int]]:
        return lambda: [pid for function in functions for pid in aws.worker_pids(function)]

    ours = [value for output, value in aws.outputs.items() if output.endswith("FunctionName")]
    theirs = state_machine(session, aws.endpoint, ours[0], services, replies)
    hear = completed_orders(sqs, replies)
    return [
        Engine("Roundsman", Shop(send, hear), workers_of(ours)),
        Engine("Step Functions", Shop(theirs.send, hear), workers_of(theirs.functions)),
    ]


def report(found: dict[str, Found]) -> Report:
    """Return the tables of all engines."""
    latency = [
        [f"{name}, {when}", *(amount(ms) for ms in spread(took).values())]
        for name, each in found.items()
        for when, took in (("one at a time", each.idle), (f"{IN_FLIGHT} in flight", each.loaded))
    ]
    cores = os.cpu_count() or 1
    rates = [
        [
            name,
            amount(round(each.rate, 1)),
            *(
                amount(round(ms, 1))
                for ms in (each.emulator_ms, each.functions_ms, each.bench_ms, each.processor_ms)
            ),
            amount(round(cores * 1000 / each.processor_ms, 1)) if each.processor_ms else "",
        ]
        for name, each in found.items()
    ]
    headings = ("", "orders a second", "emulator", "functions", "bench", "in all", "most a second")
    return Report(
        [
            Table("Latency in ms, on one local AWS", ("", "p50", "p95", "p99"), latency),
            Table(
                f"Orders a second with {IN_FLIGHT} in flight, and processor ms an order",
                headings,
                rates,
            ),
        ],
        [
            f"Remote calls take {SERVICE_MS} ms. Before anything was timed, all workers had been "
            "started, with "
            + " and ".join(f"{each.warmed} orders ({name})" for name, each in found.items())
            + ".",
            f"Most a second: what {cores} cores could carry that did nothing else.",
            f"Measured on {machine()}.",
        ],
    )
