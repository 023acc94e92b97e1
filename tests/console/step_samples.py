"""Tasks whose steps wait, were moved or were spared, for tests of what is printed of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from roundsman.definition.plan import Plan, plan_of
from roundsman.definition.workflow import Retry, Step, Workflow
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.task import StepRecord, Task
from roundsman_console.facts.order.order_facts import OrderFacts

AT = 1_800_000_000_000
"""When all is printed: 2027-01-15T08:00:00Z."""

CHARGE = Step(
    name="charge",
    agents=("payment", "payment_backup"),
    complete_within=timedelta(seconds=30),
    heartbeat_within=timedelta(seconds=10),
    retry=Retry(max_attempts=3),
)
PICK = Step(
    name="pick",
    agent="warehouse",
    complete_within=timedelta(seconds=30),
    for_each="input.lines",
    tolerate=0.1,
    retry=Retry(max_attempts=3),
)
HOLD = Hold("payment", OPERATOR, AT - 60_000, AT + 600_000, "maintenance", "amy")


def plan() -> Plan:
    """Charge, and one pick for each line."""
    return plan_of(Workflow(name="story", steps=(CHARGE, PICK), complete_within=timedelta(hours=1)))


def task(steps: Mapping[str, StepRecord]) -> Task:
    """A task with these records."""
    born = new_task(plan(), "ord-1", ProcessingOptions(), AT, shards=16)
    return replace(born, steps=steps)


def facts(of: Task, holds: Sequence[Hold] = (), *, planned: bool = True) -> OrderFacts:
    """What is known of a task when all is printed."""
    return OrderFacts(of, plan() if planned else None, at=AT, holds=holds)
