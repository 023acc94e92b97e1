"""`roundsman preflight` reads the orders of a deployed stack, and names those that lose a function.

The stack is on moto; the orders are those of the example, and so are the agents' functions.
"""

import json
from pathlib import Path

import boto3
import pytest

from roundsman import Agent
from roundsman_console.aws.stack import find_stack
from roundsman_dev.check.project import ProjectProblem, read_agents
from roundsman_dev.preflight.open_orders import OrdersRead, read_orders
from tests.console.operators import Operator, document, in_retry
from tests.console.test_preflight import ADDRESSES
from tests.moto.orders import order


def orders_check(operator: Operator) -> dict[str, object]:
    """The check of the orders, as scripts read it."""
    result = operator.types("preflight", *ADDRESSES, "--json")
    checks = document(result)["checks"]
    assert isinstance(checks, list)
    found: dict[str, object] = {one["check"]: one for one in checks}["orders"]
    return found


@pytest.mark.exhaustive
def test_an_open_order_whose_agent_would_be_removed_is_named(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_retry(operator)
    assert orders_check(operator)["status"] == "ok"

    def all_but_payment(folder: Path) -> dict[str, Agent]:
        return {key: one for key, one in read_agents(folder).items() if one.name != "payment"}

    monkeypatch.setattr("roundsman_dev.project.planned.read_agents", all_but_payment)
    found = orders_check(operator)
    assert (found["status"], found["sentence"]) == (
        "warning",
        "1 order would lose a function of an agent.",
    )
    assert "payment is no agent any more, but it performs charge_card: ord-1." in json.dumps(found)
    assert "roundsman move --workflow order_fulfilment" in str(found["do"])


@pytest.mark.exhaustive
def test_agents_that_cannot_be_read_are_not_compared(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise ProjectProblem("functions/agents/mail/app.py: ImportError: no money.")

    monkeypatch.setattr("roundsman_dev.project.planned.read_agents", fails)
    found = orders_check(operator)
    assert (found["status"], found["details"]) == (
        "unchecked",
        ["functions/agents/mail/app.py: ImportError: no money."],
    )


def test_a_bounded_number_of_orders_is_read_and_those_that_have_ended_are_not(
    operator: Operator,
) -> None:
    operator.world.submit(order("ord-0"))
    operator.world.run()
    in_retry(operator)
    stack = find_stack(None)

    def read(most: int) -> OrdersRead:
        return read_orders(
            boto3.client("dynamodb"),
            tasks_table=stack.output("TasksTableName"),
            control_table=stack.output("ControlTableName"),
            shards=stack.shards,
            most=most,
        )

    found = read(10)
    assert [task.task_id for task in found.tasks] == ["ord-1"]
    assert (set(found.plans), found.more) == ({found.tasks[0].plan}, False)
    assert (len(read(0).tasks), read(0).more) == (0, True)
