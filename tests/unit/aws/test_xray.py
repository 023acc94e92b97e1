"""The tracer: what it records for a sampled order, and that its failures cost nothing."""

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import count

import pytest

from roundsman.aws.handlers.tracing import tracer_of
from roundsman.aws.tracing import OFF, Tracer
from roundsman.aws.xray import AT_ONCE, KEPT, XRayTracer
from roundsman.errors import InvalidMessage, Problem
from roundsman.wire.tracing import TraceHeader, first_segment, trace_id

SUBMITTED = 1_800_000_000_123
TRACE = trace_id("ord-1", SUBMITTED)


class XRay:
    """X-Ray, and a tracer that sends to it."""

    def __init__(self, percent: float = 100) -> None:
        self.now = SUBMITTED
        self.calls: list[list[dict[str, object]]] = []
        self.problem: Exception | None = None
        numbers = count(1)
        self.tracer: Tracer = XRayTracer(
            "scheduler",
            percent,
            put=self._put,
            clock=lambda: self.now,
            segment_id=lambda: f"{next(numbers):016x}",
        )

    def _put(self, documents: Sequence[str]) -> None:
        self.calls.append([json.loads(document) for document in documents])
        if self.problem is not None:
            raise self.problem

    @property
    def segments(self) -> list[dict[str, object]]:
        return [segment for call in self.calls for segment in call]

    def handle(self, header: str | None = None, problem: Exception | None = None) -> str | None:
        """Handle a message of the order; return the header of what it sends, or raise."""
        with self.tracer.message("SchedulerQueue", "m-1", header):
            self.tracer.order("ord-1", SUBMITTED, "order_fulfilment")
            if problem is not None:
                raise problem
            return self.tracer.header()


def test_a_message_of_a_sampled_order_is_one_segment() -> None:
    xray = XRay()
    with xray.tracer.message("SchedulerQueue", "m-1", None):
        xray.tracer.order("ord-1", SUBMITTED, "order_fulfilment")
        xray.tracer.note("command", "start")
        xray.tracer.note("agent", None)
        xray.now += 40
    assert xray.calls == []
    xray.tracer.send()
    [segment] = xray.segments
    assert segment["annotations"] == {
        "order_id": "ord-1",
        "workflow": "order_fulfilment",
        "command": "start",
    }
    assert segment["trace_id"] == TRACE
    assert segment["end_time"] == (SUBMITTED + 40) / 1000


def test_the_work_that_stored_the_order_is_the_first_segment() -> None:
    xray = XRay()
    with xray.tracer.message("SubmissionQueue", "m-1", None):
        xray.tracer.order("ord-1", SUBMITTED, "order_fulfilment", new=True)
        assert xray.tracer.header() == TraceHeader(TRACE, first_segment(TRACE)).text()
    xray.tracer.send()
    [segment] = xray.segments
    assert segment["id"] == first_segment(TRACE)
    assert "parent_id" not in segment


def test_a_segment_is_the_child_of_the_one_that_sent_its_message() -> None:
    xray = XRay()
    sent = xray.handle(header=TraceHeader(TRACE, "a" * 16).text())
    xray.tracer.send()
    [segment] = xray.segments
    assert segment["parent_id"] == "a" * 16
    assert sent == TraceHeader(TRACE, str(segment["id"])).text()


@pytest.mark.parametrize(
    "header", [None, TraceHeader(trace_id("ord-2", SUBMITTED), "a" * 16).text(), "Sampled=1"]
)
def test_without_a_header_of_this_trace_the_parent_is_the_first_segment(
    header: str | None,
) -> None:
    xray = XRay()
    xray.handle(header=header)
    xray.tracer.send()
    [segment] = xray.segments
    assert (segment["trace_id"], segment["parent_id"]) == (TRACE, first_segment(TRACE))


def test_an_order_that_is_not_sampled_has_no_segment_and_no_header() -> None:
    xray = XRay(percent=0.001)
    assert xray.handle(header=TraceHeader(TRACE, "a" * 16).text()) is None
    xray.tracer.send()
    assert xray.calls == []


def test_a_message_of_no_order_has_no_segment() -> None:
    xray = XRay()
    with xray.tracer.message("SchedulerQueue", "m-1", None):
        assert xray.tracer.header() is None
    assert xray.tracer.header() is None
    xray.tracer.send()
    assert xray.calls == []


def test_a_header_belongs_to_one_message_only() -> None:
    xray = XRay()
    assert xray.handle() is not None
    assert xray.tracer.header() is None


def test_an_agent_traces_a_request_whose_header_is_that_of_its_order() -> None:
    xray = XRay()
    with xray.tracer.message("RequestQueue", "m-1", TraceHeader(TRACE, "a" * 16).text()):
        xray.tracer.request("ord-1", {"step": "charge_card", "attempt": 1})
        assert xray.tracer.header() is not None
    with xray.tracer.message("RequestQueue", "m-2", TraceHeader(TRACE, "a" * 16).text()):
        xray.tracer.request("ord-2", {"step": "charge_card", "attempt": 1})
        assert xray.tracer.header() is None
    with xray.tracer.message("RequestQueue", "m-3", None):
        xray.tracer.request("ord-1", {"step": "charge_card", "attempt": 1})
        assert xray.tracer.header() is None
    xray.tracer.send()
    [segment] = xray.segments
    assert segment["parent_id"] == "a" * 16


def test_an_exception_passes_and_is_a_fault_of_the_segment() -> None:
    xray = XRay()
    with pytest.raises(KeyError):
        xray.handle(problem=KeyError("the card's number"))
    xray.tracer.send()
    [segment] = xray.segments
    assert segment["fault"] is True
    assert "number" not in json.dumps(segment)


def test_a_rejected_message_says_so() -> None:
    xray = XRay()
    with pytest.raises(InvalidMessage):
        xray.handle(problem=InvalidMessage([Problem("kind", "secret")]))
    xray.tracer.send()
    assert '"outcome": "rejected"' in json.dumps(xray.segments)
    assert "secret" not in json.dumps(xray.segments)


def test_a_visit_of_the_supervisor_is_a_segment_if_something_was_stored() -> None:
    xray = XRay()
    xray.tracer.order("ord-1", SUBMITTED, "order_fulfilment")
    xray.tracer.acted()
    header = xray.tracer.header()
    assert header is not None
    xray.tracer.order("ord-1", SUBMITTED, "order_fulfilment")
    assert xray.tracer.header() == header
    xray.tracer.order("ord-2", SUBMITTED, "order_fulfilment")
    xray.tracer.send()
    [segment] = xray.segments
    assert (segment["trace_id"], segment["parent_id"]) == (TRACE, first_segment(TRACE))
    assert xray.tracer.header() is None


def test_a_visit_whose_message_names_it_is_a_segment_although_nothing_was_stored() -> None:
    xray = XRay()
    xray.tracer.order("ord-1", SUBMITTED, "order_fulfilment")
    header = xray.tracer.header()
    xray.tracer.send()
    [segment] = xray.segments
    assert header == TraceHeader(TRACE, str(segment["id"])).text()


def test_many_segments_are_sent_in_several_calls_and_no_more_are_kept() -> None:
    xray = XRay()
    for _ in range(KEPT + 10):
        xray.handle()
    xray.tracer.send()
    assert {len(call) for call in xray.calls} == {AT_ONCE}
    assert len(xray.segments) == KEPT


def test_after_a_failure_nothing_is_sent_for_a_minute(
    capsys: pytest.CaptureFixture[str],
) -> None:
    xray = XRay()
    xray.problem = TimeoutError("X-Ray does not answer")
    xray.handle()
    xray.tracer.send()
    assert len(xray.calls) == 1
    assert "traces not sent" in capsys.readouterr().out
    xray.now += 59_999
    xray.handle()
    xray.tracer.send()
    assert len(xray.calls) == 1
    xray.now += 1
    xray.problem = None
    xray.handle()
    xray.tracer.send()
    assert len(xray.calls) == 2


def test_nothing_is_kept_from_one_invocation_to_the_next() -> None:
    xray = XRay()
    xray.problem = TimeoutError()
    xray.handle()
    xray.tracer.send()
    xray.problem, xray.now = None, xray.now + 60_000
    xray.tracer.send()
    assert len(xray.calls) == 1


@pytest.mark.exhaustive
def test_where_tracing_is_off_nothing_of_it_is_imported() -> None:
    assert tracer_of(0) is OFF
    code = (
        "import sys; from roundsman.aws.handlers import agent, scheduler, submission, supervisor;"
        "from roundsman.aws.handlers.tracing import tracer_of; tracer_of(0.0);"
        "print([n for n in sys.modules if n.endswith(('.xray', '.traced', 'wire.tracing'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_tracer_of_a_function_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "payment")
    assert isinstance(tracer_of(5), XRayTracer)


def test_the_tracer_that_is_off_does_nothing() -> None:
    with OFF.message("SchedulerQueue", "m-1", TraceHeader(TRACE, "a" * 16).text()):
        OFF.order("ord-1", SUBMITTED, "order_fulfilment", new=True)
        OFF.request("ord-1", {"step": "charge_card"})
        OFF.note("outcome", "succeeded")
        OFF.acted()
        assert OFF.header() is None
    OFF.send()
