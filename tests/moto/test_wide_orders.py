"""Steps side by side on the template's stack: their replies share a write, and nothing else."""

import json

import pytest

from benchmarks.harness.meter import Meter
from benchmarks.harness.stand_ins import WorkflowShape, stand_ins
from roundsman.model.states import TaskState
from roundsman_testing.stack import Stack
from tests.moto.orders import order

WIDE = WorkflowShape(2, 8)
"""Two stages of eight steps, two at each agent: the last reply of the first claims the second."""


def writes(world: Stack) -> int:
    """How often a scheduler has stored the task."""
    operations = ("PutItem", "TransactWriteItems")
    return sum(
        call.function == "SchedulerFunction" and call.operation in operations
        for call in world.calls
    )


@pytest.mark.exhaustive
def test_each_reply_of_a_write_has_a_line_and_counts_and_the_task_ends_once(
    world_of_batches: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    world = world_of_batches
    with stand_ins(Meter(world), WIDE):
        world.submit(order("wide", workflow=WIDE.name))
        world.run_until_idle()
    task = world.task("wide")
    assert task.state is TaskState.COMPLETED
    assert task.version == 1 + 1 + WIDE.operations, "each decision has a version"
    assert writes(world) == 1 + 8, "the start, and for each stage one write for each agent"
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    decided = [line for line in lines if line.get("message") == "decided" and "step" in line]
    assert sorted(line["step"] for line in decided) == sorted(task.steps)
    assert {(line["task_id"], line["attempt"]) for line in decided} == {("wide", 1)}
    assert len([line for line in decided if "ms" in line]) == WIDE.operations, "each took a time"
    assert [line["decisions"] for line in lines if "decisions" in line] == [task.version]


@pytest.mark.parametrize(
    "number", [1, *(pytest.param(number, marks=pytest.mark.exhaustive) for number in (2, 3))]
)
def test_a_scheduler_that_dies_at_a_write_of_several_replies_loses_none(
    world_of_batches: Stack, number: int
) -> None:
    world = world_of_batches
    with stand_ins(Meter(world), WIDE):
        world.submit(order("wide", workflow=WIDE.name))
        for _ in range(number):
            world.kill("SchedulerFunction", at="PutItem", after=2, done=True)
            world.run_until_idle()
            world.pass_time(61)
        world.pass_time(240)
    task = world.task("wide")
    assert task.state is TaskState.COMPLETED
    assert not world.stuck()
