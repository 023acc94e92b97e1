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
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class _Work:
    started_at: int
    segment: str
    queue: str | None = None
    message_id: str | None = None
    header: TraceHeader | None = None
    order_id: str = ""
    trace: str | None = None
    """None while the order is not known, and if it is not traced."""
    is_recorded: bool = False
    parent: str | None = None
    notes: dict[str, str | int] = field(default_factory=dict)


class XRayTracer(Tracer):
    """Records the work for `percent` of all orders, and sends it to X-Ray.

    `put` sends documents of segments, AT_ONCE at most; `segment_id` makes the id of a segment.
    """

    def __init__(
        self,
        service: str,
        percent: float,
        *,
        put: Callable[[Sequence[str]], None],
        clock: Clock = now,
        segment_id: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._service = service
        self._percent = percent
        self._put = put
        self._clock = clock
        self._segment_id = segment_id
        self._work: _Work | None = None
        self._in_message = False
        self._done: list[Segment] = []
        self._quiet_until = 0

    @contextmanager
    def message(self, queue: str, message_id: str, header: str | None) -> Iterator[None]:
        """Record what is done inside for the order of one message."""
        self._work = _Work(
            self._clock(), self._segment_id(), queue, message_id, read_header(header)
        )
        self._in_message = True
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
            self._work, self._in_message = None, False

    def order(self, order_id: str, submitted_at: int, workflow: str, *, new: bool = False) -> None:
        """Note which order the work is for."""
        if not self._in_message and (self._work is None or self._work.order_id != order_id):
            self._work = _Work(self._clock(), self._segment_id())
        work = self._work
        if work is None or work.trace is not None or not is_sampled(order_id, self._percent):
            return
        work.order_id, work.trace = order_id, trace_id(order_id, submitted_at)
        work.notes["workflow"] = workflow
        if new:
            work.segment = first_segment(work.trace)
        elif work.header is not None and work.header.trace == work.trace:
            work.parent = work.header.parent
        else:
            work.parent = first_segment(work.trace)

    def request(self, order_id: str, notes: Mapping[str, str | int]) -> None:
        """Note which order a request is for. The request's header decides if it is traced."""
        work = self._work
        if work is None or work.header is None or not is_trace_of(work.header.trace, order_id):
            return
        work.order_id, work.trace, work.parent = order_id, work.header.trace, work.header.parent
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
        return TraceHeader(work.trace, work.segment).text()

    def send(self) -> None:
        """Send the segments. A failure is logged once, and then nothing is sent for a minute."""
        done, self._done = self._done, []
        if not self._in_message:
            self._work = None
        if not done or self._clock() < self._quiet_until:
            return
        documents = [segment.document() for segment in done]
        try:
            for start in range(0, len(documents), AT_ONCE):
                self._put(documents[start : start + AT_ONCE])
        except Exception as problem:  # noqa: BLE001  # whatever it is, the work is done
            self._quiet_until = self._clock() + MINUTE
            logger().warning("traces not sent", extra=where(problem))

    def _end(self, problem: str | None) -> None:
        work = self._work
        if work is None or work.trace is None or work.is_recorded or len(self._done) >= KEPT:
            return
        work.is_recorded = True
        self._done.append(
            Segment(
                service=self._service,
                trace=work.trace,
                id=work.segment,
                parent=work.parent,
                started_at=work.started_at,
                ended_at=self._clock(),
                order_id=work.order_id,
                queue=work.queue,
                message_id=work.message_id,
                function=os.environ.get("AWS_LAMBDA_FUNCTION_NAME"),
                problem=problem,
                notes=work.notes,
            )
        )


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
