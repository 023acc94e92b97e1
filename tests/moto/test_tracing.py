"""One order is one trace, through submission, scheduler, agents, supervisor and people."""

import json
from collections.abc import Iterator, Mapping
from typing import cast

import boto3
import pytest
from typer.testing import CliRunner

from roundsman.model.events import CommandSource, Resubmit
from roundsman.model.states import TaskState
from roundsman.wire.commands import command_of
from roundsman.wire.tracing import first_segment, trace_id
from roundsman_console.main import app
from roundsman_testing.stack import Clock, Services, Stack
from roundsman_testing.stack.calls import AwsFault
from tests.moto.orders import ALL_EFFECTS, order
from tests.project import deployed_project

FUNCTIONS = {"submission", "scheduler", "inventory", "payment", "shipping", "mail"}


@pytest.fixture
def traced(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """A deployment that traces every order."""
    parameters = {"Engine.TracingSamplePercent": "100"}
    with deployed_project(roundsman_services, roundsman_clock, parameters) as made:
        yield made


def segments(stack: Stack, trace: str) -> list[dict[str, object]]:
    """The segments of a trace that X-Ray has."""
    found = boto3.client("xray").batch_get_traces(TraceIds=[trace])["Traces"]
    return [json.loads(each["Document"]) for trace in found for each in trace["Segments"]]


def sent(stack: Stack) -> list[Mapping[str, object]]:
    """Each message that the functions sent to a queue."""
    found: list[Mapping[str, object]] = []
    for call in stack.calls:
        if call.operation == "SendMessage":
            found.append({**call.parameters})
        elif call.operation == "SendMessageBatch":
            url = call.parameters["QueueUrl"]
            entries = cast("list[dict[str, object]]", call.parameters["Entries"])
            found += [{**entry, "QueueUrl": url} for entry in entries]
    return found


def roots(stack: Stack) -> set[str]:
    """The traces of the messages that the functions sent; `none` for one without a header."""
    headers = [each.get("MessageSystemAttributes", {}) for each in sent(stack)]
    texts = [
        cast("dict[str, dict[str, str]]", each).get("AWSTraceHeader", {}).get("StringValue", "none")
        for each in headers
    ]
    return {text.partition(";")[0].removeprefix("Root=") for text in texts}


def is_a_tree(found: list[dict[str, object]], trace: str) -> bool:
    """Whether each segment but the first has a parent in the trace."""
    ids = {each["id"] for each in found}
    without = [each["id"] for each in found if "parent_id" not in each]
    parents = {each["parent_id"] for each in found if "parent_id" in each}
    return without == [first_segment(trace)] and parents <= ids


@pytest.mark.exhaustive
def test_one_order_is_one_trace_across_all_functions(traced: Stack) -> None:
    traced.submit(order("ord-1"))
    traced.run()
    task = traced.task("ord-1")
    assert task.state is TaskState.COMPLETED
    trace = trace_id("ord-1", task.created_at)
    found = segments(traced, trace)
    assert {each["name"] for each in found} == FUNCTIONS
    assert is_a_tree(found, trace)
    assert roots(traced) == {trace}
    attempts = [
        cast("dict[str, object]", each["annotations"])
        for each in found
        if each["name"] not in ("submission", "scheduler")
    ]
    assert len(attempts) == len({each["step"] for each in attempts})
    assert {each["outcome"] for each in attempts} == {"succeeded"}


@pytest.mark.exhaustive
def test_a_retry_and_an_undo_are_in_the_trace(traced: Stack) -> None:
    traced.faults({"service": "inventory", "status": 503, "times": 1})
    traced.submit({**order("ord-1"), "paymentToken": "tok_declined"})
    traced.pass_time_until(lambda: traced.task("ord-1").ended)
    trace = trace_id("ord-1", traced.task("ord-1").created_at)
    found = segments(traced, trace)
    notes = [cast("dict[str, object]", each["annotations"]) for each in found]
    assert is_a_tree(found, trace)
    assert roots(traced) == {trace}
    assert "undo" in {each.get("operation") for each in notes}
    assert "permanent" in {each.get("outcome") for each in notes}
    assert all(each["error"] for each in found if "'permanent'" in str(each["annotations"]))


@pytest.mark.exhaustive
def test_a_visit_of_the_supervisor_and_a_persons_command_are_in_the_trace(traced: Stack) -> None:
    traced.submit(order("ord-1"))
    traced.run_one_batch("SubmissionQueue")
    assert traced.bodies(traced.url("SchedulerQueue"))  # the command to start is lost
    traced.pass_time_until(lambda: traced.task("ord-1").ended)
    trace = trace_id("ord-1", traced.task("ord-1").created_at)
    event = Resubmit(CommandSource("c-1", "ann", "try again"), again=True)
    traced.send("SchedulerQueue", command_of("ord-1", event).body())
    traced.run()
    found = segments(traced, trace)
    assert "supervisor" in {each["name"] for each in found}
    commands = [cast("dict[str, object]", each["annotations"]).get("command") for each in found]
    assert "resubmit" in commands
    assert is_a_tree(found, trace)


@pytest.mark.exhaustive
def test_show_names_the_trace_of_a_traced_order(traced: Stack) -> None:
    traced.submit(order("ord-1"))
    traced.run()
    trace = trace_id("ord-1", traced.task("ord-1").created_at)
    shown = CliRunner().invoke(app, ["show", "ord-1"], env={"COLUMNS": "200"})
    assert f"\nTrace: {trace}\n" in shown.stdout
    found = json.loads(CliRunner().invoke(app, ["show", "ord-1", "--json"]).stdout)
    assert found["traceId"] == trace


@pytest.mark.exhaustive
def test_show_names_no_trace_where_tracing_is_off(world: Stack) -> None:
    world.submit(order("ord-1"))
    world.run()
    assert "Trace:" not in CliRunner().invoke(app, ["show", "ord-1"]).stdout
    found = json.loads(CliRunner().invoke(app, ["show", "ord-1", "--json"]).stdout)
    assert found["traceId"] is None


def test_segments_have_nothing_that_a_customer_ordered(traced: Stack) -> None:
    secrets = {"customerId": "customer-42", "paymentToken": "tok_declined"}
    traced.submit({**order("ord-1"), **secrets})  # no part of a random number, as c-42 may be
    traced.run()
    found = json.dumps(segments(traced, trace_id("ord-1", traced.task("ord-1").created_at)))
    for secret in ("KB-101", "customer-42", "tok_", "Main St", "Ghent", "A. Reader"):
        assert secret not in found


@pytest.mark.exhaustive
def test_where_tracing_is_off_a_message_and_a_call_are_as_ever(
    roundsman_services: Services, roundsman_clock: Clock
) -> None:
    def calls_of(percent: str) -> list[tuple[str, str, str]]:
        parameters = {"Engine.TracingSamplePercent": percent}
        with deployed_project(roundsman_services, roundsman_clock, parameters) as stack:
            reply_to = stack.reply_queue("shop")
            stack.submit(order("ord-1", replyTo=reply_to))
            stack.run()
            if percent == "0":
                assert roots(stack) == {"none"}
                assert "MessageSystemAttributes" not in str(stack.calls)
            bodies = [str(each["MessageBody"]) for each in sent(stack)]
            assert stack.task("ord-1").state is TaskState.COMPLETED
        made = [
            (call.function, call.operation, "") for call in stack.calls if call.service != "xray"
        ]
        return [*made, *(("", "", str(len(body))) for body in bodies)]

    assert calls_of("0") == calls_of("100")


@pytest.mark.parametrize("how", [AwsFault.BROKEN, AwsFault.ANSWER_LOST, AwsFault.THROTTLED])
def test_xray_that_does_not_answer_costs_no_message(traced: Stack, how: AwsFault) -> None:
    for function in ("SubmissionFunction", "SchedulerFunction", "PaymentFunction"):
        traced.fail(function, at="PutTraceSegments", how=how)
    traced.submit(order("ord-1"))
    traced.run()
    assert traced.effects("ord-1") == ALL_EFFECTS
    assert traced.task("ord-1").state is TaskState.COMPLETED
    traced.assert_nothing_is_stuck()
    tries = [call for call in traced.calls if call.operation == "PutTraceSegments"]
    assert [call.function for call in tries].count("SchedulerFunction") == 1  # none for a minute
