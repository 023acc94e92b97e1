"""The trace of an order: its id, its sampling, its header and its segments, as X-Ray wants them."""

import json
import re

import pytest

from roundsman.wire.tracing import (
    Segment,
    TraceHeader,
    first_segment,
    is_sampled,
    is_trace_of,
    read_header,
    trace_id,
)

SUBMITTED = 1_800_000_000_123
TRACE = trace_id("ord-1", SUBMITTED)
PARENT = "53995c3f42cd8ad8"


def test_a_trace_id_has_the_second_of_the_submission_and_96_bits_of_the_orders_id() -> None:
    assert re.fullmatch(r"1-[0-9a-f]{8}-[0-9a-f]{24}", TRACE)
    assert int(TRACE.split("-")[1], 16) == SUBMITTED // 1000
    assert trace_id("ord-1", SUBMITTED) == TRACE
    assert len({trace_id(f"ord-{n}", SUBMITTED) for n in range(1000)}) == 1000


def test_a_trace_is_recognised_as_that_of_its_order_only() -> None:
    assert is_trace_of(TRACE, "ord-1")
    assert not is_trace_of(TRACE, "ord-2")
    assert not is_trace_of(f"2{TRACE[1:]}", "ord-1")


@pytest.mark.parametrize("percent", [0.1, 1, 5, 50, 99.9])
def test_of_10_000_orders_the_share_is_sampled(percent: float) -> None:
    sampled = sum(is_sampled(f"ord-{n}", percent) for n in range(10_000))
    wanted = 10_000 * percent / 100
    deviation = (wanted * (100 - percent) / 100) ** 0.5
    assert abs(sampled - wanted) < 4 * deviation


def test_0_percent_samples_none_and_100_percent_all() -> None:
    assert not any(is_sampled(f"ord-{n}", 0) for n in range(10_000))
    assert all(is_sampled(f"ord-{n}", 100) for n in range(10_000))


def test_a_larger_share_contains_the_smaller_one() -> None:
    orders = [f"ord-{n}" for n in range(10_000)]
    few = {each for each in orders if is_sampled(each, 1)}
    assert few
    assert few < {each for each in orders if is_sampled(each, 2)}


def test_a_header_has_the_form_that_aws_documents_and_is_read_back() -> None:
    header = TraceHeader("1-5759e988-bd862e3fe1be46a994272793", PARENT)
    assert header.text() == (
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
    )
    assert read_header(header.text()) == header
    assert read_header(f"Lineage=1:a87bd80c:0; {header.text()}") == header


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "Root",
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8",
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0",
        "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1",
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad;Sampled=1",
        "Root=1-5759e988-BD862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
        f"Root={'1' * 10_000};Parent=53995c3f42cd8ad8;Sampled=1",
    ],
)
def test_any_other_header_is_no_trace(text: str | None) -> None:
    assert read_header(text) is None


def segment(**changes: object) -> Segment:
    fields: dict[str, object] = {
        "service": "payment",
        "trace": TRACE,
        "id": "0123456789abcdef",
        "parent": PARENT,
        "started_at": SUBMITTED,
        "ended_at": SUBMITTED + 250,
        "order_id": "ord-1",
        "queue": "shop_PaymentRequestQueue",
        "message_id": "m-1",
        "function": "shop-payment",
        "notes": {"step": "charge_card", "attempt": 2, "outcome": "succeeded"},
    }
    return Segment(**{**fields, **changes})  # type: ignore[arg-type]  # changed by name


def test_a_segment_has_what_xray_requires_and_opentelemetrys_names() -> None:
    assert json.loads(segment().document()) == {
        "name": "payment",
        "id": "0123456789abcdef",
        "trace_id": TRACE,
        "parent_id": PARENT,
        "start_time": 1_800_000_000.123,
        "end_time": 1_800_000_000.373,
        "annotations": {
            "order_id": "ord-1",
            "step": "charge_card",
            "attempt": 2,
            "outcome": "succeeded",
        },
        "metadata": {
            "default": {
                "faas.trigger": "pubsub",
                "faas.name": "shop-payment",
                "messaging.system": "aws_sqs",
                "messaging.operation.type": "process",
                "messaging.operation.name": "process",
                "messaging.destination.name": "shop_PaymentRequestQueue",
                "messaging.message.id": "m-1",
            }
        },
    }


def test_the_first_segment_has_no_parent_and_an_id_that_follows_from_the_trace() -> None:
    assert "parent_id" not in json.loads(segment(parent=None).document())
    assert re.fullmatch("[0-9a-f]{16}", first_segment(TRACE))
    assert first_segment(TRACE) != first_segment(trace_id("ord-2", SUBMITTED))


def test_a_segment_without_a_message_was_begun_by_a_timer() -> None:
    found = json.loads(segment(queue=None, message_id=None, function=None).document())
    assert found["metadata"]["default"] == {"faas.trigger": "timer"}


@pytest.mark.parametrize("outcome", ["transient", "permanent", "silent"])
def test_a_failed_attempt_is_an_error_and_not_a_fault_of_the_function(outcome: str) -> None:
    found = json.loads(segment(notes={"outcome": outcome}).document())
    assert found["error"] is True
    assert "fault" not in found


def test_an_exception_is_a_fault_with_its_type() -> None:
    found = json.loads(segment(problem="TryAgain").document())
    assert found["fault"] is True
    assert "error" not in found
    assert found["metadata"]["default"]["error.type"] == "TryAgain"
