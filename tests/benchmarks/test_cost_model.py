"""The cost model says what was counted, and each of its parts moves the way it must."""

from dataclasses import replace
from pathlib import Path

import pytest

from roundsman_console.cost.figures import Shape, load_figures, save_figures
from roundsman_console.cost.model import Bill, Wanted, bill_of, record_sizes, units_of
from roundsman_console.cost.prices import load_prices
from roundsman_console.cost.rivals import rivals_of

FIGURES, PRICES = load_figures(), load_prices()
BUSY = 1e12  # orders a month: what instances read once in five seconds is of no matter
MANY = Wanted(BUSY)


def bill(wanted: Wanted) -> Bill:
    return bill_of(wanted, FIGURES, PRICES)


def usd(wanted: Wanted, what: str) -> float:
    (line,) = [line for line in bill(wanted).lines if line.what == what]
    return line.usd


def test_an_order_of_four_steps_asks_for_what_was_counted() -> None:
    for name, batch in (("busy", 1), ("batch_5", 5), ("batch_10", 10)):
        counted = FIGURES.orders[name]
        units = units_of(replace(MANY, batch=batch), FIGURES, PRICES)
        assert units.write_units == pytest.approx(counted.write_units, abs=0.001)
        assert units.read_units == pytest.approx(counted.read_units, abs=0.001)
        assert units.sqs_requests == pytest.approx(counted.sqs_requests)
        assert units.invocations == pytest.approx(counted.invocations)


def test_statuses_cost_what_was_counted() -> None:
    counted = FIGURES.orders["statuses"]
    units = units_of(replace(MANY, statuses=3), FIGURES, PRICES)
    assert units.write_units == pytest.approx(counted.write_units, abs=0.001)
    assert units.sqs_requests == pytest.approx(counted.sqs_requests + counted.statuses)


def test_an_order_that_comes_alone_finds_nothing_kept_in_mind() -> None:
    units = units_of(Wanted(1), FIGURES, PRICES)
    assert units.write_units == FIGURES.orders["quiet"].write_units
    assert units.read_units == FIGURES.orders["quiet"].read_units


@pytest.mark.parametrize("shape", FIGURES.shapes, ids=lambda shape: f"{shape.steps} steps")
def test_orders_of_other_shapes_ask_for_what_was_counted(shape: Shape) -> None:
    wanted = replace(MANY, steps=shape.steps, result_bytes=shape.result_bytes)
    units = units_of(wanted, FIGURES, PRICES)
    assert units.sqs_requests == shape.sqs_requests
    # DynamoDB Local leaves out what AWS counts for each element of a map: up to one unit in 16.
    assert shape.write_units <= units.write_units + 0.001
    assert units.write_units <= 1.07 * shape.write_units
    assert shape.read_units <= units.read_units + 0.001
    assert units.read_units <= 1.07 * shape.read_units


def test_log_bytes_in_between_are_those_of_a_batch_of_five() -> None:
    counted = FIGURES.orders["batch_5"].log_bytes
    silent = replace(PRICES, assumed=replace(PRICES.assumed, log_line_overhead=0))
    units = units_of(replace(MANY, batch=5), FIGURES, silent)
    assert units.log_bytes == pytest.approx(counted, rel=0.01)


def test_a_longer_record_costs_a_unit_for_each_kilobyte() -> None:
    assert record_sizes(MANY, FIGURES)[-1] < 1024
    short, long = (
        units_of(replace(MANY, result_bytes=size), FIGURES, PRICES).write_units
        for size in (40, 1000)
    )
    assert long - short == 10


def test_each_part_grows_with_what_it_is_for() -> None:
    assert usd(replace(MANY, order_days=60), "storage") > usd(MANY, "storage")
    assert usd(replace(MANY, log_days=60), "logs kept") == 2 * usd(MANY, "logs kept")
    assert usd(replace(MANY, service_ms=100), "time") > usd(MANY, "time")
    assert usd(MANY, "time") < 0.801 * usd(replace(MANY, architecture="x86_64"), "time")
    assert usd(replace(MANY, batch=10), "requests") < usd(MANY, "requests")
    assert usd(replace(MANY, order_bytes=5000), "writes") > usd(MANY, "writes")
    slower = usd(replace(MANY, interval=300), "the supervisor's writes")
    assert slower == pytest.approx(usd(MANY, "the supervisor's writes") / 5)


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
