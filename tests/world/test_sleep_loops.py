"""A loop that polls, sleeps, and adds its next round: sleeps as kinds of added steps."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from roundsman import (
    Agent,
    Compensation,
    Done,
    NamedStep,
    NotYet,
    Sleep,
    SleepUntil,
    Step,
    StepRequest,
    Undo,
    Workflow,
)
from roundsman.model.states import ProcessState, TaskState
from roundsman_testing import Mishaps, World
from tests.world.shop import since_morning

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
FENCED = Compensation(fences_late_performs=True)
EVE = "2027-01-20T08:00:00Z"
"""Five days after the morning of a world."""

order_parts = Step(name="order_parts", agent="shop", complete_within=MINUTE, compensation=FENCED)
ship = Step(name="ship", agent="shop", complete_within=MINUTE, after=(order_parts,))
look = Step(name="look", agent="shop", complete_within=MINUTE)
pause = Sleep(name="pause", for_=6 * HOUR)
eve = SleepUntil("input.eve", name="eve")


@dataclass
class Shop:
    """Looks after each sleep whether the parts have come; they have after three looks."""

    sleep: Sleep | SleepUntil
    looks: list[int] = field(default_factory=list)
    waits: int = 0
    """How many looks are polls that find nothing."""

    def workflow(self) -> Workflow:
        return Workflow(
            name="parts",
            steps=(order_parts, ship),
            may_add=(look, self.sleep),
            complete_within=10 * DAY,
            on_failure=Undo(),
            retain_for=DAY,
        )

    def agent(self) -> Agent:
        agent = Agent("shop")

        @agent.performs(order_parts)
        def begin(_: StepRequest) -> Done:
            return Done(then=self.round(1))

        @agent.performs(look)
        def inquire(request: StepRequest) -> Done | NotYet:
            if self.waits:
                self.waits -= 1
                return NotYet(again_in=10 * MINUTE, within=HOUR)
            number = int(str(request.step_input))
            self.looks.append(number)
            return Done(number, then=self.round(number + 1) if number < 3 else ())

        @agent.performs(ship)
        def send(request: StepRequest) -> list[str]:
            return sorted(request.results)

        @agent.compensates(order_parts)
        def cancel(_: StepRequest) -> None: ...

        return agent

    def round(self, number: int) -> tuple[NamedStep, ...]:
        sleep = self.sleep.named(f"r{number}")
        return sleep, look.named(f"r{number}", input=number, after=(sleep,))


def world_of(shop: Shop, **options: Mishaps | int) -> World:
    world = World(shop.workflow(), agents=[shop.agent()], **options)  # type: ignore[arg-type]
    world.submit({"orderId": "ord-1", "eve": EVE})
    return world


def is_complete(world: World) -> bool:
    states = {one.process_state for one in world.task("ord-1").steps.values()}
    return world.task("ord-1").state is TaskState.COMPLETED and states == {ProcessState.PROCESSED}


def test_a_loop_sleeps_before_each_round_and_what_follows_waits_for_all_of_it() -> None:
    shop = Shop(pause)
    world = world_of(shop).run()
    assert is_complete(world)
    assert shop.looks == [1, 2, 3]
    assert 18 * HOUR <= since_morning(world) < 19 * HOUR
    added = [f"{kind}[r{number}]" for number in (1, 2, 3) for kind in ("pause", "look")]
    assert [*world.task("ord-1").added] == added
    world.all_is_well()


def test_a_step_of_the_loop_is_polled_before_it_adds_the_next_round() -> None:
    shop = Shop(pause, waits=2)
    world = world_of(shop).run()
    assert is_complete(world)
    assert shop.looks == [1, 2, 3]
    assert 18 * HOUR + 20 * MINUTE <= since_morning(world) < 19 * HOUR + 20 * MINUTE
    world.all_is_well()


def test_an_added_sleep_ends_at_an_instant_of_the_order_and_a_later_one_at_once() -> None:
    world = world_of(Shop(eve)).run()
    assert is_complete(world)
    assert 5 * DAY <= since_morning(world) < 5 * DAY + HOUR
    world.all_is_well()


def test_an_order_that_is_cancelled_in_an_added_sleep_is_undone_now() -> None:
    world = world_of(Shop(pause)).run(for_=HOUR)
    assert world.task("ord-1").step("pause[r1]").situation_name == "asleep"
    world.cancel("ord-1")
    world.run()
    assert world.task("ord-1").state is TaskState.CANCELLED
    assert world.standing("ord-1") == []
    assert since_morning(world) < 2 * HOUR


def test_a_person_ends_an_added_sleep() -> None:
    world = world_of(Shop(pause)).run(for_=HOUR)
    world.operator.resolve("ord-1", "pause[r1]", did=True)
    world.run()
    assert is_complete(world)
    assert since_morning(world) < 14 * HOUR


@pytest.mark.parametrize("seed", range(4))
def test_with_lost_and_repeated_messages_and_dying_functions_the_loop_still_ends(seed: int) -> None:
    mishaps = Mishaps(crashes=0.01, losses=0.01, repeats=0.2, stale_reads=0.2)
    world = world_of(Shop(pause), mishaps=mishaps, seed=seed).run()
    assert is_complete(world)
    world.all_is_well()
