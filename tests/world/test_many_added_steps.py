"""Orders whose steps add one another hundreds of times: to their end, and back to their start."""

from datetime import timedelta

import pytest

from roundsman import Agent, Compensation, Done, Retry, Step, StepRequest, Undo, Workflow
from roundsman.model.states import TaskState
from roundsman_testing import World

MINUTE = timedelta(minutes=1)
FENCED = Compensation(fences_late_performs=True)

begin = Step(name="begin", agent="counter", complete_within=MINUTE, compensation=FENCED)
count = Step(name="count", agent="counter", complete_within=MINUTE, compensation=FENCED)
close = Step(
    name="close",
    agent="closer",
    complete_within=MINUTE,
    after=(begin,),
    compensation=FENCED,
    retry=Retry(max_attempts=1),
)
loop = Workflow(
    name="loop",
    steps=(begin, close),
    may_add=(count,),
    complete_within=timedelta(hours=12),
    on_failure=Undo(),
)


def world_of(times: int) -> World:
    """A world in which `begin` adds the first of so many steps, and each of them the next one."""
    agent = Agent("counter")

    @agent.performs(begin)
    def start(_: StepRequest) -> Done:
        return Done(then=(count.named("n1", input=1),))

    @agent.performs(count)
    def go_on(request: StepRequest) -> Done:
        number = int(str(request.step_input))
        if number == times:
            return Done(number)
        return Done(number, then=(count.named(f"n{number + 1}", input=number + 1),))

    @agent.compensates(begin)
    @agent.compensates(count)
    def undo(_: StepRequest) -> None: ...

    return World(loop, agents=[agent])


def names(times: int) -> list[str]:
    return [f"count[n{number}]" for number in range(1, times + 1)]


TIMES = [40, pytest.param(400, marks=pytest.mark.verify)]  # 1,000 take minutes, as each is read


@pytest.mark.parametrize("times", TIMES)
def test_an_order_whose_steps_add_one_another_in_a_loop_completes(times: int) -> None:
    world = world_of(times)
    world.submit({"orderId": "ord-1"})
    world.run()
    task = world.task("ord-1")
    assert task.state is TaskState.COMPLETED
    assert [*task.added] == names(times)
    assert world.standing("ord-1") == ["begin", *names(times), "close"]
    world.all_is_well()


@pytest.mark.verify
@pytest.mark.parametrize("times", TIMES)
def test_such_an_order_that_fails_at_its_end_is_undone_from_its_last_step_to_its_first(
    times: int,
) -> None:
    world = world_of(times)
    world.on("close").refuses("Refused")
    world.submit({"orderId": "ord-1"})
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    undone = [row.step for row in world.history("ord-1") if row.kind == "undone"]
    assert undone == ["close", *names(times)[::-1], "begin"]
    assert world.standing("ord-1") == []
    world.all_is_well()
