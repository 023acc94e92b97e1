"""How long a proof takes by calculation, in an account of any size."""

import re

import yaml

from roundsman_dev.prove.command import LEAST_MINUTES, MOST_MINUTES, MOST_ORDERS, minutes_for
from roundsman_dev.prove.duration import (
    INSTANCES,
    TIMEOUT,
    estimated_minutes,
    seconds_of_orders,
)
from roundsman_dev.prove.project import project_files

LEAST_QUOTA = 10
"""The concurrency of a new account."""


def blocks() -> dict[str, dict[str, object]]:
    """The parameters of each agent's stack in the template of a proof, by the agent's name."""
    [text] = [text for path, text in project_files().items() if path.name == "template.yaml"]
    plain = yaml.safe_load(re.sub(r"!\w+", "", text))
    parameters = [
        one["Properties"]["Parameters"]
        for one in plain["Resources"].values()
        if one["Type"] == "AWS::Serverless::Application"
    ]
    return {one["Agent"]: one for one in parameters if "Agent" in one}


def test_a_proof_of_a_thousand_orders_takes_at_most_45_minutes() -> None:
    assert 20 < estimated_minutes(1_000) <= 45


def test_the_calculation_is_for_the_agents_that_are_deployed() -> None:
    assert {name: one["Concurrency"] for name, one in blocks().items()} == INSTANCES
    assert {one["TimeoutSeconds"] for one in blocks().values()} == {TIMEOUT}


def test_the_least_quota_has_room_for_the_engine_while_every_agent_is_busy() -> None:
    """The supervisor and the scheduler have an instance each, however long a service takes."""
    assert sum(INSTANCES.values()) + 2 <= LEAST_QUOTA


def test_more_orders_take_longer_and_are_waited_for() -> None:
    assert seconds_of_orders(40) < seconds_of_orders(1_000) < seconds_of_orders(10_000)
    assert minutes_for(1) == LEAST_MINUTES
    for orders in (1_000, MOST_ORDERS):
        assert seconds_of_orders(orders) / 60 < minutes_for(orders) <= MOST_MINUTES
