"""Writes of long workflows, counted on DynamoDB's own engine, are held to what is promised."""

import pytest

from benchmarks.cost.growth import grown
from benchmarks.harness.stand_ins import WorkflowShape

MOST = {4: 13, 10: 19, 20: 30, 50: 85, 100: 180}
"""The most write units of an order, by its steps one after the other."""
ENDS = 9
"""The write units of an order apart from its replies: of its creation, its start and its end."""


@pytest.mark.engine
@pytest.mark.verify
def test_a_long_workflow_costs_few_writes_a_step(dynamodb_endpoint: str) -> None:
    shapes = [WorkflowShape(steps) for steps in MOST]
    found = {each.shape.steps: each.counts for each in grown(dynamodb_endpoint, shapes)}
    units = {steps: counts.write_units for steps, counts in found.items()}
    assert not {steps: count for steps, count in units.items() if count > MOST[steps]}
    assert units[10] == ENDS + 10, "a unit for each step"
    assert units[100] - units[50] < 1.25 * (units[50] - ENDS), "linear: three times in the square"
    assert max(found[100].records) < 3 * 1024
    assert found[100].read_units <= 15 + 100


@pytest.mark.engine
@pytest.mark.verify
def test_results_do_not_weigh_on_every_later_write(dynamodb_endpoint: str) -> None:
    shapes = [WorkflowShape(steps, result_bytes=1000) for steps in (20, 40)]
    units = [each.counts.write_units for each in grown(dynamodb_endpoint, shapes)]
    assert units[1] - units[0] < 1.25 * units[0], "linear: three times in the square"
    assert units[1] < 40 * 6.5
