"""What one order asks for is held against what was recorded; a rise fails, with what to do."""

from dataclasses import asdict, replace

import pytest

from benchmarks.cost.counting import BATCHES, Everything, count_calls, count_everything
from benchmarks.cost.growth import grown
from benchmarks.cost.guard import RISEN, call_complaints, complaints, standing_complaints
from benchmarks.harness.calls import BOTOCORE, POWERTOOLS
from benchmarks.harness.stand_ins import WorkflowShape
from roundsman_console.facts.cost.figures import OrderUse, load_figures

MOST_WRITE_UNITS_OF_FIFTY = 34
"""The write units of an order with fifty steps side by side; a write for each reply makes 85."""

MOST_WRITE_UNITS_OF_SIXTY_ADDED = 460
MOST_READ_UNITS_OF_SIXTY_ADDED = 54
"""The units of an order of sixty steps of which each adds the next one. Without rows of settled
steps it would have 523 write units."""

MOST_CALLS = 39_500
MOST_OWN_CALLS = 9_300
"""The calls of Python functions of an order of four steps, in all and without those of botocore and
Powertools: some percent more than Python 3.11 makes. Later versions make fewer of the same code,
because there a comprehension is no call."""

AN_ORDER = OrderUse(
    write_units=13, read_units=7, sqs_requests=30, statuses=0, invocations=10, log_bytes=5_000
)


@pytest.mark.engine
def test_no_order_asks_for_more_than_was_recorded(dynamodb_endpoint: str) -> None:
    found, recorded = count_everything(dynamodb_endpoint), load_figures()
    problems = [
        *complaints(recorded.orders, found.orders),
        *call_complaints(recorded.roles, found.roles),
        *standing_complaints(recorded, found),
    ]
    assert not problems, "\n".join([*problems, RISEN])


@pytest.mark.engine
def test_fifty_steps_side_by_side_are_few_writes_where_replies_arrive_in_batches(
    dynamodb_endpoint: str,
) -> None:
    [fifty, four] = grown(dynamodb_endpoint, [WorkflowShape(1, 50), WorkflowShape(4)], BATCHES)
    assert fifty.counts.write_units <= MOST_WRITE_UNITS_OF_FIFTY
    assert (four.counts.write_units, four.counts.sqs_requests) == (13, 30)


@pytest.mark.engine
def test_a_step_that_is_added_at_run_time_costs_no_more_than_was_measured(
    dynamodb_endpoint: str,
) -> None:
    [found] = grown(dynamodb_endpoint, [WorkflowShape(1, added=60)])
    assert found.counts.write_units <= MOST_WRITE_UNITS_OF_SIXTY_ADDED
    assert found.counts.read_units <= MOST_READ_UNITS_OF_SIXTY_ADDED


@pytest.mark.engine
def test_an_order_makes_no_more_calls_of_python_functions_than_were_counted(
    dynamodb_endpoint: str,
) -> None:
    found = count_calls(dynamodb_endpoint)
    own = {name: calls for name, calls in found.items() if name not in (BOTOCORE, POWERTOOLS)}
    assert sum(found.values()) <= MOST_CALLS, found
    assert sum(own.values()) <= MOST_OWN_CALLS, own


def risen(**more: float) -> list[str]:
    now = OrderUse(**{**asdict(AN_ORDER), **more})
    return list(complaints({"busy": AN_ORDER}, {"busy": now}))


def test_half_a_unit_more_is_a_rise() -> None:
    assert risen(read_units=7.5) == ["busy: 7.5 read units an order, recorded are 7"]
    assert risen(write_units=14)
    assert risen(sqs_requests=30.1)
    assert risen(invocations=11)
    assert risen(statuses=1)


def test_a_few_bytes_of_logs_are_no_rise_and_one_in_a_hundred_is() -> None:
    assert not risen(log_bytes=5_049)
    assert risen(log_bytes=5_051) == ["busy: 5,051 log bytes an order, recorded are 5,000"]


def test_a_count_that_fell_is_reported_too_so_that_it_cannot_rise_again_unseen() -> None:
    assert risen(write_units=12) == ["busy: 12 write units an order, recorded are 13"]
    assert risen(log_bytes=4_000)


def test_an_order_that_was_never_recorded_is_reported() -> None:
    assert list(complaints({}, {"busy": AN_ORDER})) == ["busy: was never recorded"]


def test_the_sentence_names_the_command() -> None:
    assert "python -m benchmarks record" in RISEN


def test_an_additional_metric_and_an_additional_read_of_each_pass_are_reported() -> None:
    recorded = load_figures()
    lean = recorded.standing["lean"]
    one_more = replace(lean.one_pass, read_units=lean.one_pass.read_units + 1)
    more = replace(lean, metrics=lean.metrics + 1, one_pass=one_more)
    now = Everything({}, {**recorded.standing, "lean": more})
    assert [one.partition(":")[0] for one in standing_complaints(recorded, now)] == [
        "the supervisor, lean",
        "the stack, lean",
    ]


def test_an_additional_call_to_aws_for_each_message_is_reported() -> None:
    recorded = load_figures().roles
    scheduler = recorded["scheduler"]
    more = replace(scheduler, dynamodb_calls=scheduler.dynamodb_calls + 0.2)
    assert list(call_complaints(recorded, recorded)) == []
    assert list(call_complaints(recorded, {**recorded, "scheduler": more})) == [
        "scheduler: 2.4 DynamoDB calls a message, recorded are 2.2"
    ]
