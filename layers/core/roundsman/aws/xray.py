"""Sends the traces of sampled orders to AWS X-Ray.

One segment for each message that a function handles, sent by PutTraceSegments once the work of the
invocation is done. Lambda's own daemon would take segments by UDP, but runs only in invocations
that Lambda itself has sampled, and a batch of messages has many orders.

A trace is worth less than the work: X-Ray gets one try of at most 1.5 s, and after a failure an
instance sends nothing for a minute.
"""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from roundsman.aws.clients import CONFIG
from roundsman.aws.clock import now
from roundsman.aws.observability import logger, where
from roundsman.aws.tracing import Tracer
from roundsman.errors import InvalidMessage
from roundsman.model.instants import MINUTE
from roundsman.ports import Clock
from roundsman.wire.tracing import (
    Segment,
    TraceHeader,
    first_segment,
    is_sampled,
    is_trace_of,
    read_header,
    trace_id,
)

if TYPE_CHECKING:
    from mypy_boto3_xray import XRayClient

TRACE_CONFIG = CONFIG.merge(
    Config(
        connect_timeout=0.5, read_timeout=1, retries={"mode": "standard", "total_max_attempts": 1}
    )
)
AT_ONCE = 50
"""Segments in one call, as X-Ray's daemon sends them."""
KEPT = 500
"""The most segments that are kept until they are sent; a supervisor's pass may visit any number."""


@dataclass(eq=False)
class XRayTracer(Tracer):
    """Records the work for `percent` of all orders, and sends it to X-Ray."""

    service: str
    percent: float
    _: KW_ONLY
    put: Callable[[Sequence[str]], None]
    """Sends documents of segments, AT_ONCE at most."""
    clock: Clock = now
    segment_id: Callable[[], str] = lambda: secrets.token_hex(8)
    _work: Segment | None = field(default=None, init=False)
    _header: TraceHeader | None = field(default=None, init=False)
    """That of the message."""
    _in_message: bool = field(default=False, init=False)
    _done: list[Segment] = field(default_factory=list, init=False)
    _quiet_until: int = field(default=0, init=False)

    @contextmanager
    def message(self, queue: str, message_id: str, header: str | None) -> Iterator[None]:
        """Record what is done inside for the order of one message."""
        self._work = self._begun(queue, message_id)
        self._header, self._in_message = read_header(header), True
        problem: str | None = None
        try:
            yield
        except Exception as error:
            problem = type(error).__name__
            if isinstance(error, InvalidMessage):
                self.note("outcome", "rejected")
            raise
        finally:
            self._end(problem)
            self._work, self._header, self._in_message = None, None, False

    def order(self, order_id: str, submitted_at: int, workflow: str, *, new: bool = False) -> None:
        """Note which order the work is for."""
        if not self._in_message and (self._work is None or self._work.order_id != order_id):
            self._work = self._begun()
        work = self._work
        if work is None or work.trace is not None or not is_sampled(order_id, self.percent):
            return
        work.order_id, work.trace = order_id, trace_id(order_id, submitted_at)
        work.notes["workflow"] = workflow
        if new:
            work.id = first_segment(work.trace)
        elif self._header is not None and self._header.trace == work.trace:
            work.parent = self._header.parent
        else:
            work.parent = first_segment(work.trace)

    def request(self, order_id: str, notes: Mapping[str, str | int]) -> None:
        """Note which order a request is for. The request's header decides if it is traced."""
        work, header = self._work, self._header
        if work is None or header is None or not is_trace_of(header.trace, order_id):
            return
        work.order_id, work.trace, work.parent = order_id, header.trace, header.parent
        work.notes.update(notes)

    def note(self, name: str, value: str | int | None) -> None:
        """Note something about the work."""
        if self._work is not None and value is not None:
            self._work.notes[name] = value

    def acted(self) -> None:
        """End the visit of an order: something was stored for it."""
        if not self._in_message:
            self._end(None)

    def header(self) -> str | None:
        """Return the header of a message that the work sends."""
        work = self._work
        if work is None or work.trace is None:
            return None
        if not self._in_message:  # a visit that stored nothing, but whose message names it
            self._end(None)
        return TraceHeader(work.trace, work.id).text()

    def send(self) -> None:
        """Send the segments. A failure is logged once, and then nothing is sent for a minute."""
        done, self._done = self._done, []
        if not self._in_message:
            self._work = None
        if not done or self.clock() < self._quiet_until:
            return
        documents = [segment.document() for segment in done]
        try:
            for start in range(0, len(documents), AT_ONCE):
                self.put(documents[start : start + AT_ONCE])
        except Exception as problem:  # noqa: BLE001  # whatever it is, the work is done
            self._quiet_until = self.clock() + MINUTE
            logger().warning("traces not sent", extra=where(problem))

    def _begun(self, queue: str | None = None, message_id: str | None = None) -> Segment:
        return Segment(
            service=self.service,
            id=self.segment_id(),
            started_at=self.clock(),
            queue=queue,
            message_id=message_id,
            function=os.environ.get("AWS_LAMBDA_FUNCTION_NAME"),
        )

    def _end(self, problem: str | None) -> None:
        work = self._work
        if work is None or work.trace is None or work.ended_at is not None:
            return
        if len(self._done) >= KEPT:
            return
        work.ended_at, work.problem = self.clock(), problem
        self._done.append(work)


def put_segments() -> Callable[[Sequence[str]], None]:
    """Return what sends segments to X-Ray. Its client is made when it is first called."""
    client = cache(_client)
    return lambda documents: _put(client(), documents)


def _client() -> "XRayClient":
    client: XRayClient = boto3.client("xray", config=TRACE_CONFIG)
    return client


def _put(client: "XRayClient", documents: Sequence[str]) -> None:
    answer = client.put_trace_segments(TraceSegmentDocuments=[*documents])
    if refused := answer.get("UnprocessedTraceSegments"):
        codes = sorted({str(each.get("ErrorCode")) for each in refused})
        extra = {"how_many": len(refused), "codes": codes}
        logger().warning("X-Ray refused segments of traces", extra=extra)
