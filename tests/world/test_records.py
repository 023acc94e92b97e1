"""What is stored of an order: results that grow, and ids that nothing can spell."""

from datetime import timedelta
from random import Random
from string import ascii_letters, digits

import pytest

from roundsman.agents.agent import Agent
from roundsman.agents.request import StepRequest
from roundsman.aws.dynamodb.codec import plain_task_item
from roundsman.definition.workflow import Step
from roundsman.model.instants import milliseconds
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman_testing import World
from tests.support.item_size import item_size
from tests.support.orders_samples import changed
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow
from workflows.order_fulfilment import order_fulfilment

KIB = 1024
DAY = timedelta(days=1)


def an_agent(step: Step, *, answers_with: int) -> Agent:
    """It answers with so many bytes of JSON, which hardly become fewer when they are packed."""
    drawn = Random(step.name)  # noqa: S311  # a sample, no secret

    def answer(_request: StepRequest) -> Json:
        return "".join(drawn.choices(ascii_letters + digits, k=answers_with - 2))

    def undo(_request: StepRequest) -> None:
        return None

    agent = Agent(step.agent)
    agent.performs(step)(answer)
    agent.compensates(step)(undo)
    return agent


def test_an_answer_that_is_larger_than_its_plan_allows_is_left_out_and_the_step_is_done() -> None:
    step = a_step("charge", compensation=FENCED, result_limit=4 * KIB)
    world = World(a_workflow(step), agents=[an_agent(step, answers_with=4 * KIB + 1)])
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.standing(order) == ["charge"]
    [row] = world.history(order)
    assert "the result has 4097 bytes; the plan allows 4096; nobody reads it" in row.reason


def test_of_answers_that_fill_the_record_together_those_too_many_are_left_out() -> None:
    steps: list[Step] = []
    for number in range(14):
        largest = {"compensation": FENCED, "result_limit": 32 * KIB}
        steps.append(a_step(f"step_{number}", **largest))
    agents = [an_agent(step, answers_with=32 * KIB) for step in steps]
    world = World(a_workflow(*steps), agents=agents)
    largest_item = 0

    def measured() -> bool:
        nonlocal largest_item
        for task in world.processes.watch.tasks.values():
            largest_item = max(largest_item, item_size(plain_task_item(task)))
        return False

    order = world.submit()
    world.run(for_=timedelta(hours=1), until=measured)
    task = world.task(order)
    assert task.state is TaskState.COMPLETED
    assert sum(one.left_out is not None for one in task.steps.values()) == 8
    assert 140 * KIB < largest_item < 200 * KIB, "six answers, packed; 14 would have 448 KiB"


STRANGE_IDS = ["ord/1", "ord\n1", "ord 1", "or\u010f-1", "\u6ce8\u6587", "", "a" * 129]


@pytest.mark.parametrize("order_id", STRANGE_IDS)
def test_an_order_whose_id_fits_in_no_header_or_subject_is_put_aside_with_the_reason(
    order_id: str,
) -> None:
    world = World(order_fulfilment)
    world.submit(changed("orderId", order_id))
    world.run()
    [aside] = world.post.put_aside
    assert [problem.path for problem in aside.problems] == ["orderId"]
    assert not world.processes.watch.tasks


def test_an_order_that_ends_in_another_way_at_once_is_kept_from_that_end_on() -> None:
    charge = a_step("charge", compensation=FENCED)
    ship = a_step("ship", after=(charge,))
    world = World(a_workflow(charge, ship), order_retention=30 * DAY)
    world.hold("ship", DAY)
    order = world.submit()
    world.run(for_=MINUTE)
    world.cancel(order)
    world.run()
    assert world.task(order).state is TaskState.CANCELLED
    world.run(for_=5 * DAY)
    undone_at = world.now
    world.operator.undo(order)
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    row = world.processes.store.order(order)
    assert row is not None
    assert (row.expires_at or 0) >= undone_at + milliseconds(30 * DAY)
