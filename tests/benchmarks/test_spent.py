"""The bill of a live stack: from what CloudWatch has summed up to what each workflow has cost."""

import pytest

from roundsman_console.facts.cost.figures import load_figures
from roundsman_console.facts.cost.memory import MEMORIES
from roundsman_console.facts.cost.model import (
    DEFAULT_MEMORY,
    Wanted,
    message_ms,
    processor_ms,
)
from roundsman_console.facts.cost.prices import load_prices
from roundsman_console.facts.cost.usage import (
    PAYLOADS_LEFT_OUT,
    CostSpent,
    price_words,
    sizes_of,
    spent_of,
)

FIGURES, PRICES = load_figures(), load_prices()
MILLION = 1_000_000.0
USED = {
    "write TasksTable 0": 5 * MILLION,
    "write TasksTable 1": 4 * MILLION,
    "write OrdersTable 0": 2 * MILLION,
    "read TasksTable 0": 8 * MILLION,
    "sent SchedulerQueue": MILLION,
    "empty SchedulerQueue": 2 * MILLION,
    "invocations SchedulerFunction": 5 * MILLION,
    "invocations PaymentFunction": MILLION,
    "invocations SupervisorFunction": 1_000.0,
    "duration SchedulerFunction": 1_000 * MILLION,
    "duration PaymentFunction": 1_000 * MILLION,
    "logs SchedulerLogs": 2.0 * 1024**3,
    "orders": MILLION,
    "decisions order_fulfilment": 6 * MILLION,
    "ended order_fulfilment": MILLION,
    "decisions gift": 2 * MILLION,
    "ended gift": MILLION / 2,
}


def spent(parameters: dict[str, str] | None = None) -> CostSpent:
    return spent_of(USED, 7.0, sizes_of(parameters or {}), FIGURES, PRICES)


def usd(found: CostSpent, service: str, what: str) -> float:
    (line,) = [one for one in found.lines if (one.service, one.what) == (service, what)]
    return line.usd


def test_each_sum_is_priced_as_what_it_is() -> None:
    found = spent()
    assert usd(found, "DynamoDB", "writes") == pytest.approx(11 * 0.625)
    assert usd(found, "DynamoDB", "reads") == pytest.approx(8 * 0.125)
    assert usd(found, "SQS", "messages sent, at most a request each") == pytest.approx(0.4)
    assert usd(found, "SQS", "receives and deletes") == pytest.approx(2 * 6 * 0.4)
    assert usd(found, "SQS", "waiting for messages") == pytest.approx(2 * 0.4)
    assert usd(found, "Lambda", "invocations") == pytest.approx(6.001 * 0.2)
    assert usd(found, "CloudWatch", "logs sent") == pytest.approx(2 * 0.5)


def test_payloads_are_named_as_left_out_where_there_is_a_bucket_for_them() -> None:
    with_bucket = spent_of(USED, 7.0, sizes_of({}), FIGURES, PRICES, "shop-payloads")
    assert price_words(with_bucket) == f"{price_words(spent())} {PAYLOADS_LEFT_OUT}"
    assert with_bucket.payload_bucket == "shop-payloads"
    assert spent().payload_bucket is None


def test_a_function_costs_by_its_own_memory_and_processor() -> None:
    gb = 1_000 * MILLION / 1_000 * 0.0000166667
    assert usd(spent(), "Lambda", "time") == pytest.approx(2 * gb * DEFAULT_MEMORY / 1024)
    named = {"SchedulerMemory": "512", "PaymentMemory": "128"}
    assert usd(spent(named), "Lambda", "time") == pytest.approx(gb * (0.5 + 0.125))
    on_arm = usd(spent({**named, "Architecture": "arm64"}), "Lambda", "time")
    assert on_arm < 0.81 * gb * (0.5 + 0.125)


def test_each_function_is_shown_with_other_memory() -> None:
    payment, scheduler = spent({"SchedulerMemory": "256", "PaymentMemory": "512"}).functions
    assert (payment.function, payment.now.memory, payment.now.ms) == ("PaymentFunction", 512, 1000)
    assert (scheduler.now.memory, scheduler.now.ms) == (256, 200)
    for one in (payment, scheduler):
        by_memory = {each.memory: each for each in one.others}
        assert tuple(by_memory) == MEMORIES
        assert by_memory[one.now.memory] == one.now
        times = [each.ms for each in one.others]
        costs = [each.usd for each in one.others]
        assert times == sorted(times, reverse=True)
        assert costs == sorted(costs)
    # What an agent takes beyond the model's time is its service, which memory does not hasten.
    agent = Wanted(0, memory=512)
    processor = processor_ms("agent", agent, FIGURES, PRICES)
    assert {each.memory: each for each in payment.others}[1024].ms == pytest.approx(
        1000 - processor / 2
    )
    # Of the scheduler, as large a part as in the model.
    of_model = Wanted(0, memory=256)
    part = processor_ms("scheduler", of_model, FIGURES, PRICES)
    part /= message_ms("scheduler", of_model, FIGURES, PRICES)
    assert {each.memory: each for each in scheduler.others}[512].ms == pytest.approx(
        200 * (1 - part / 2)
    )


def test_a_function_that_did_not_run_has_no_row() -> None:
    ran = {one.function for one in spent().functions}
    assert ran == {"PaymentFunction", "SchedulerFunction"}


def test_a_workflow_bears_its_part_of_the_decisions_and_not_what_waits() -> None:
    found = spent()
    first, second = found.workflows
    assert (first.workflow, second.workflow) == ("order_fulfilment", "gift")
    orders = found.usd - found.usd_standing
    assert first.usd == pytest.approx(orders * 6 / 8)
    assert first.usd + second.usd == pytest.approx(orders)
    assert second.usd_per_million == pytest.approx(2 * second.usd)
    assert found.usd_per_million == pytest.approx(orders)


def test_nothing_used_costs_nothing() -> None:
    found = spent_of({}, 7.0, sizes_of({}), FIGURES, PRICES)
    assert (found.usd, found.usd_per_million, found.workflows) == (0, 0, [])
