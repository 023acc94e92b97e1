"""The cost model says what was counted, and each of its parts moves the way it must."""

from dataclasses import replace
from pathlib import Path

import pytest

from roundsman.aws.dynamodb import settled
from roundsman.model.instants import SECOND
from roundsman.model.queue_lag import PROMPT_MARK_INTERVAL
from roundsman_console.facts.cost import records
from roundsman_console.facts.cost.estimate import VOLUMES, volumes_of
from roundsman_console.facts.cost.figures import ShapeUse, load_figures, save_figures
from roundsman_console.facts.cost.model import (
    DEFAULT_MEMORY,
    MARKED_EVERY,
    Bill,
    Wanted,
    bill_of,
    billed_ms,
    message_ms,
    rivals_of,
    stored_of,
    units_of,
)
from roundsman_console.facts.cost.prices import load_prices

FIGURES, PRICES = load_figures(), load_prices()
BUSY = 1e12  # orders a month: what an instance reads once in five seconds is of little matter
MANY = Wanted(BUSY)
REFRESHED = 0.06  # units of an order that are still due to that


def bill(wanted: Wanted) -> Bill:
    return bill_of(wanted, FIGURES, PRICES)


def usd(wanted: Wanted, what: str) -> float:
    (line,) = [line for line in bill(wanted).lines if line.what == what]
    return line.usd


def test_an_order_of_four_steps_asks_for_what_was_counted() -> None:
    for name, batch in (("busy", 1), ("batch_5", 5), ("batch_10", 10)):
        counted = FIGURES.orders[name]
        units = units_of(replace(MANY, batch=batch), FIGURES, PRICES)
        assert 0 <= units.write_units - counted.write_units < REFRESHED
        assert 0 <= units.read_units - counted.read_units < REFRESHED
        assert units.sqs_requests == pytest.approx(counted.sqs_requests)
        assert units.invocations == pytest.approx(counted.invocations)


def test_statuses_cost_what_was_counted() -> None:
    counted = FIGURES.orders["statuses"]
    units = units_of(replace(MANY, statuses=3), FIGURES, PRICES)
    assert 0 <= units.write_units - counted.write_units < REFRESHED
    assert 0 <= units.read_units - counted.read_units < REFRESHED
    assert units.sqs_requests == pytest.approx(counted.sqs_requests + counted.statuses)


def test_an_order_that_comes_alone_finds_nothing_kept_in_mind() -> None:
    units = units_of(Wanted(1), FIGURES, PRICES)
    assert units.write_units == FIGURES.orders["quiet"].write_units
    assert units.read_units == FIGURES.orders["quiet"].read_units


def test_more_instances_read_more_of_what_each_keeps_for_five_seconds() -> None:
    quick, slow, never_idle = (
        units_of(replace(MANY, service_ms=ms), FIGURES, PRICES) for ms in (0, 2_000, 60_000)
    )
    busy, quiet = FIGURES.orders["busy"], FIGURES.orders["quiet"]
    more = quiet.read_units - busy.read_units
    assert slow.read_units - quick.read_units == pytest.approx(more * 2 / 5, rel=0.01)
    assert MARKED_EVERY * SECOND == PROMPT_MARK_INTERVAL
    more = quiet.write_units - busy.write_units
    assert slow.write_units - quick.write_units == pytest.approx(more * 2 / 10, rel=0.01)
    assert never_idle.write_units == quiet.write_units
    assert never_idle.read_units == quiet.read_units


@pytest.mark.parametrize(
    ("ms", "batch", "sends"), [(0, 5, 1), (10, 5, 1), (40, 5, 2), (100, 5, 3), (3_000, 5, 3)]
)
def test_replies_of_a_slow_service_wait_for_one_more_attempt_at_most(
    ms: float, batch: int, sends: int
) -> None:
    quick = units_of(replace(MANY, batch=batch), FIGURES, PRICES)
    found = units_of(replace(MANY, batch=batch, service_ms=ms), FIGURES, PRICES)
    assert found.sqs_requests - quick.sqs_requests == pytest.approx(4 * (sends - 1) / batch)
    alone = units_of(replace(MANY, service_ms=ms), FIGURES, PRICES)
    assert alone.sqs_requests == FIGURES.orders["busy"].sqs_requests


def test_the_time_of_an_order_is_that_of_its_messages_and_costs_by_memory() -> None:
    times = billed_ms(MANY, FIGURES, PRICES)
    assert times["submission"] == message_ms("submission", MANY, FIGURES, PRICES)
    assert times["scheduler"] == 5 * message_ms("scheduler", MANY, FIGURES, PRICES)
    slow = billed_ms(replace(MANY, service_ms=100), FIGURES, PRICES)
    assert slow["agent"] == pytest.approx(times["agent"] + 400)
    assert slow["scheduler"] == times["scheduler"]
    gb_seconds = units_of(MANY, FIGURES, PRICES).gb_seconds
    assert gb_seconds == pytest.approx(sum(times.values()) / 1000 * DEFAULT_MEMORY / 1024)


@pytest.mark.parametrize("shape", FIGURES.shapes, ids=lambda shape: f"{shape.steps} steps")
def test_orders_of_other_shapes_ask_for_what_was_counted(shape: ShapeUse) -> None:
    wanted = replace(MANY, steps=shape.steps, result_bytes=shape.result_bytes)
    units = units_of(wanted, FIGURES, PRICES)
    assert units.sqs_requests == shape.sqs_requests
    # DynamoDB Local leaves out what AWS counts for each element of a map: up to one unit in 16.
    assert shape.write_units <= units.write_units
    assert units.write_units <= 1.07 * shape.write_units + REFRESHED * shape.steps / 4
    assert shape.read_units <= units.read_units
    assert units.read_units <= 1.07 * shape.read_units + REFRESHED * shape.steps / 4


def test_log_bytes_in_between_are_those_of_a_batch_of_five() -> None:
    counted = FIGURES.orders["batch_5"].log_bytes
    silent = replace(PRICES, assumed=replace(PRICES.assumed, log_line_overhead=0))
    units = units_of(replace(MANY, batch=5), FIGURES, silent)
    assert units.log_bytes == pytest.approx(counted, rel=0.01)


def test_a_longer_record_costs_a_unit_for_each_kilobyte_that_is_left_when_packed() -> None:
    assert stored_of(MANY, FIGURES)[-1].record < 1024
    short, long = (
        units_of(replace(MANY, result_bytes=size), FIGURES, PRICES).write_units
        for size in (40, 1000)
    )
    assert long - short == pytest.approx(5)
    ten = stored_of(replace(MANY, steps=10), FIGURES)
    assert ten[9].record - ten[8].record < 40


def test_the_steps_of_a_long_task_are_written_once_more_in_rows() -> None:
    """So that twice the steps cost about twice the writes."""
    assert (records.ROW_FROM, records.ROW_UP_TO) == (settled.ROW_FROM, settled.ROW_UP_TO)
    assert records.FEW_STEPS == settled.FEW_STEPS
    eight, fifty, hundred = (
        stored_of(replace(MANY, steps=steps, result_bytes=1000), FIGURES) for steps in (8, 50, 100)
    )
    assert not eight[-1].rows
    assert max(one.record for one in hundred) == max(one.record for one in fifty)
    assert sum(fifty[-1].rows) < sum(hundred[-1].rows) < 2.5 * sum(fifty[-1].rows)
    writes = [
        units_of(replace(MANY, steps=steps, result_bytes=1000), FIGURES, PRICES).write_units
        for steps in (25, 50, 100)
    ]
    assert writes[2] - writes[1] == pytest.approx(2 * (writes[1] - writes[0]), rel=0.15)


def test_each_part_grows_with_what_it_is_for() -> None:
    assert usd(replace(MANY, order_days=60), "storage") > usd(MANY, "storage")
    assert usd(replace(MANY, log_days=60), "logs kept") == 2 * usd(MANY, "logs kept")
    assert usd(replace(MANY, service_ms=100), "time") > usd(MANY, "time")
    assert usd(MANY, "time") < 0.801 * usd(replace(MANY, architecture="x86_64"), "time")
    assert usd(replace(MANY, batch=10), "requests") < usd(MANY, "requests")
    assert usd(replace(MANY, order_bytes=5000), "writes") > usd(MANY, "writes")
    slower = usd(replace(MANY, interval=300), "the supervisor's writes")
    assert slower == pytest.approx(usd(MANY, "the supervisor's writes") / 5)


def test_each_field_of_search_is_one_write_unit_and_an_entry() -> None:
    one, three = (replace(MANY, search_fields=fields) for fields in (1, 3))
    for wanted in (one, three):
        more = units_of(wanted, FIGURES, PRICES).write_units
        more -= units_of(MANY, FIGURES, PRICES).write_units
        assert more == pytest.approx(wanted.search_fields)
    stored = [usd(wanted, "storage") for wanted in (MANY, one, three)]
    assert stored[2] - stored[0] == pytest.approx(3 * (stored[1] - stored[0]))
    assert stored[0] < stored[1] < 2 * stored[0]


def test_the_sum_is_that_of_its_lines_and_no_line_is_negative() -> None:
    found = bill(Wanted(3e6))
    assert found.usd() == pytest.approx(sum(line.usd for line in found.lines))
    assert found.usd() == pytest.approx(found.usd("orders") + found.usd("standing"))
    assert min(line.usd for line in found.lines) >= 0


def test_twice_the_orders_cost_twice_but_for_what_stands_there() -> None:
    one, two = bill(MANY), bill(replace(MANY, orders_per_month=2 * BUSY))
    assert two.usd("orders") == pytest.approx(2 * one.usd("orders"))
    assert two.usd("standing") == one.usd("standing")
    assert two.usd_per_million == pytest.approx(one.usd_per_million)


def idle(profile: str) -> Bill:
    return bill(Wanted(0, profile=profile))


def test_lean_waits_for_orders_at_about_three_dollars_a_month_and_standard_at_less_than_eight() -> (
    None
):
    assert idle("lean").usd() <= 3.20
    assert idle("standard").usd() <= 8
    assert idle("lean").usd("orders") == 0


def test_a_metric_costs_nothing_in_an_hour_without_orders() -> None:
    def metrics(orders: float) -> float:
        return usd(Wanted(orders), "custom metrics")

    assert metrics(0) == 0
    assert metrics(365) == pytest.approx(metrics(1e6) / 2)  # one in every other hour
    assert metrics(1e6) == pytest.approx(FIGURES.standing["full"].metrics * 0.3)


def test_a_profile_is_cheaper_from_the_number_of_orders_at_which_it_becomes_so() -> None:
    volumes, cheaper_from = volumes_of(MANY, FIGURES, PRICES)
    rivals = {one.name: one.usd_per_million for one in rivals_of(MANY, FIGURES, PRICES)}
    found = {(one.profile, one.elsewhere): one.orders_per_month for one in cheaper_from}
    for (profile, rival), orders in found.items():
        assert orders is not None

        def less(n: int, profile: str = profile, rival: str = rival) -> bool:
            wanted = replace(MANY, orders_per_month=n, profile=profile)
            return bill(wanted).usd() < rivals[rival] * n / 1e6

        assert less(orders)
        assert not less(orders - 1)
    lean = found["lean", "Step Functions Standard"]
    assert lean is not None
    assert lean <= 50_000
    assert [(one.orders_per_month, len(one.profiles)) for one in volumes] == [
        (orders, 3) for orders in VOLUMES
    ]


def test_an_order_that_costs_more_here_is_never_cheaper() -> None:
    _, found = volumes_of(replace(MANY, service_ms=900_000), FIGURES, PRICES)
    assert {one.orders_per_month for one in found} == {None}


def test_the_same_order_elsewhere_costs_what_its_operations_do() -> None:
    functions, durable = rivals_of(MANY, FIGURES, PRICES)
    assert functions.usd_per_million == pytest.approx(100.8)  # 4 transitions, 4 invocations
    assert 40 < durable.usd_per_million < 41  # 5 operations, and what they write


def test_every_price_says_its_unit_and_its_page() -> None:
    for price in PRICES.prices.values():
        assert price.usd > 0 < price.per
        assert price.unit
        assert price.source.startswith("https://aws.amazon.com/")


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    save_figures(FIGURES, path)
    assert load_figures(path) == FIGURES
