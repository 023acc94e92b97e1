"""The trace of an order in AWS X-Ray: its id, its header in messages, and its segments.

Every function that knows an order's id and when it was submitted knows its trace: nothing is stored
for it. The id is in X-Ray's format, `1-`, the second of the submission as 8 hex digits, `-`, and 24
hex digits, here of the SHA-256 of the order's id. Whether an order is sampled also follows from its
id: the orders sampled at 1 percent are among those sampled at 5 percent.

The header and the documents of segments are described at
https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader and
https://docs.aws.amazon.com/xray/latest/devguide/xray-api-segmentdocuments.html; the names of the
metadata are those of OpenTelemetry's semantic conventions for messages and functions.
"""

import re
from dataclasses import dataclass, field

from roundsman.model.instants import SECOND
from roundsman.model.json import Json, canonical_json, sha256

PARTS = 100_000
"""Parts of 100 percent: a sampled share is exact to 0.001 percent, as its setting is."""

TRACE_ID = re.compile(r"1-[0-9a-f]{8}-[0-9a-f]{24}")
SEGMENT_ID = re.compile(r"[0-9a-f]{16}")
FAILED = frozenset({"transient", "permanent", "silent"})
"""The outcomes of attempts that X-Ray shows as errors."""


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """The header of a message about a sampled order."""

    trace: str
    """The id of the trace."""
    parent: str
    """The id of the segment in which the message was sent."""

    def text(self) -> str:
        """Return the value of the message system attribute `AWSTraceHeader`."""
        return f"Root={self.trace};Parent={self.parent};Sampled=1"


@dataclass(slots=True, kw_only=True)
class Segment:
    """What one function does for one order: one message, or one visit of the supervisor.

    It contains ids, names and outcomes, and nothing that a customer ordered.
    """

    service: str
    """The name of the function, as in its logs."""
    id: str
    """16 hex digits, unique in the trace."""
    started_at: int
    """Epoch ms."""
    ended_at: int | None = None
    """Epoch ms; None while it is under way, and if it is not recorded."""
    order_id: str = ""
    trace: str | None = None
    """None while the order is not known, and if it is not traced."""
    parent: str | None = None
    """The id of the segment that caused this one; None for the first of the trace."""
    queue: str | None = None
    """The name of the message's queue; None without a message."""
    message_id: str | None = None
    function: str | None = None
    """The name of the Lambda function; None outside Lambda."""
    problem: str | None = None
    """The type of the exception that the function raised; None if it raised none."""
    notes: dict[str, str | int] = field(default_factory=dict)
    """What is known of the work: `workflow`, `step`, `attempt`, `outcome` and so on."""

    def document(self) -> str:
        """Return the segment document of X-Ray, once the work has ended."""
        found: dict[str, Json] = {
            "name": self.service,
            "id": self.id,
            "trace_id": self.trace,
            "start_time": self.started_at / SECOND,
            "end_time": (self.ended_at or self.started_at) / SECOND,
            "annotations": {"order_id": self.order_id, **self.notes},
            "metadata": {"default": self._metadata()},
        }
        if self.parent is not None:
            found["parent_id"] = self.parent
        if self.problem is not None:
            found["fault"] = True
        elif self.notes.get("outcome") in FAILED:
            found["error"] = True
        return canonical_json(found)

    def _metadata(self) -> dict[str, Json]:
        found: dict[str, str | None] = {
            "faas.trigger": "timer" if self.queue is None else "pubsub",
            "faas.name": self.function,
            "error.type": self.problem,
        }
        if self.queue is not None:
            found |= {
                "messaging.system": "aws_sqs",
                "messaging.operation.type": "process",
                "messaging.operation.name": "process",
                "messaging.destination.name": self.queue,
                "messaging.message.id": self.message_id,
            }
        return {name: value for name, value in found.items() if value is not None}


def is_sampled(order_id: str, percent: float) -> bool:
    """Whether the order is traced if this share of all orders is. `percent` is from 0 to 100."""
    return int(sha256(f"sample {order_id}")[:12], 16) % PARTS < round(percent * PARTS / 100)


def trace_id(order_id: str, submitted_at: int) -> str:
    """Return the id of the order's trace. `submitted_at` is epoch ms."""
    return f"1-{submitted_at // SECOND:08x}-{_digest(order_id)}"


def is_trace_of(trace: str, order_id: str) -> bool:
    """Whether a trace that a message names can be that of the order.

    Other headers come with messages too: Lambda and the AWS SDKs set them.
    """
    return TRACE_ID.fullmatch(trace) is not None and trace.endswith(_digest(order_id))


def first_segment(trace: str) -> str:
    """Return the id of the segment in which the order was stored.

    It is the parent of each segment whose message had no header: a command, or a timer.
    """
    return sha256(trace)[:16]


def read_header(text: str | None) -> TraceHeader | None:
    """Read the header of a message; None if it is missing, not sampled or not a header."""
    pairs = (each.strip().partition("=") for each in (text or "").split(";"))
    found = {name: value for name, _, value in pairs}
    trace, parent = found.get("Root", ""), found.get("Parent", "")
    if found.get("Sampled") != "1" or not TRACE_ID.fullmatch(trace):
        return None
    return TraceHeader(trace, parent) if SEGMENT_ID.fullmatch(parent) else None


def _digest(order_id: str) -> str:
    return sha256(order_id)[:24]
