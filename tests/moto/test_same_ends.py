"""A story has the same ends in a world in memory and on the template's functions on moto.

Both are looked at while the story goes on, too: a test in memory that says Undone for an order that
the deployed stack still holds in Retry would be worth nothing.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Protocol

import pytest

from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import milliseconds
from roundsman.model.task import Task
from roundsman.testing import World
from roundsman.testing.stack import Stack
from tests.moto.orders import order
from workflows.order_fulfilment import order_fulfilment

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
AGENTS = {"inventory": "reserve_stock", "payment": "charge_card", "shipping": "create_shipment",
          "mail": "send_confirmation"}  # fmt: skip
"""The agents of the example, each with its step."""

View = Mapping[str, object]


class Side(Protocol):
    """One of the two, as the stories use it. Orders are called by their ids."""

    def submit(self, *orders: str) -> None: ...
    def service_is_down(self, agent: str) -> None: ...
    def services_are_up(self) -> None: ...
    def refuses_cards(self) -> None: ...
    def hold(self, agent: str, for_: timedelta) -> None: ...
    def cancel(self, order_id: str) -> None: ...
    def run(self, for_: timedelta) -> None: ...
    def view(self, order_id: str) -> View: ...


def view_of(task: Task, standing: set[str]) -> View:
    """What must be the same: the end, how many attempts count against each step, the effects.

    An order that goes on may be looked at between two attempts or during one: jitter decides that.
    """
    steps = {name: record.failure_count for name, record in task.steps.items()}
    state = task.state.value if task.ended else "under way"
    return {"state": state, "failures": steps, "effects": sorted(standing)}


class InMemory:
    def __init__(self) -> None:
        self._world = World(order_fulfilment)

    def submit(self, *orders: str) -> None:
        for order_id in orders:
            self._world.submit(order(order_id))  # type: ignore[arg-type]

    def service_is_down(self, agent: str) -> None:
        self._world.on(AGENTS[agent]).is_down()

    def services_are_up(self) -> None:
        for step in AGENTS.values():
            self._world.on(step).is_up()

    def refuses_cards(self) -> None:
        self._world.on("charge_card").refuses("CardDeclined", times=100)

    def hold(self, agent: str, for_: timedelta) -> None:
        self._world.hold(agent, for_)

    def cancel(self, order_id: str) -> None:
        self._world.cancel(order_id)

    def run(self, for_: timedelta) -> None:
        self._world.run(for_=for_)

    def view(self, order_id: str) -> View:
        standing = {effect.step for effect in self._world.services.ledger.standing(order_id)}
        return view_of(self._world.task(order_id), standing)


class OnMoto:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def submit(self, *orders: str) -> None:
        self._stack.submit(*map(order, orders))

    def service_is_down(self, agent: str) -> None:
        self._stack.faults({"service": agent, "status": 503})

    def services_are_up(self) -> None:
        self._stack.faults()

    def refuses_cards(self) -> None:
        refusal = {"error": "CardDeclined", "message": "no"}
        self._stack.faults({"operation": "POST /charges", "status": 402, "body": refusal})

    def hold(self, agent: str, for_: timedelta) -> None:
        table, now = self._stack.stack.outputs["ControlTableName"], self._stack.clock()
        holds = DynamoHolds(self._stack.dynamodb, control_table=table, clock=self._stack.clock)
        holds.hold(Hold(agent, OPERATOR, now, now + milliseconds(for_), "", "operator"))

    def cancel(self, order_id: str) -> None:
        self._stack.submit({"orderId": order_id, "cancel": {}})

    def run(self, for_: timedelta) -> None:
        self._stack.pass_time(for_.total_seconds())

    def view(self, order_id: str) -> View:
        done = self._stack.effects(order_id)
        standing = {
            step for agent, step in AGENTS.items()
            if done.get(f"{agent} perform", 0) > done.get(f"{agent} undo", 0)
        }  # fmt: skip
        return view_of(self._stack.task(order_id), standing)


Story = Callable[[Side], list[View]]


def watched(side: Side, order_id: str, *waits: timedelta) -> list[View]:
    """What is seen of an order after each of these times."""
    seen = []
    for wait in waits:
        side.run(wait)
        seen.append(side.view(order_id))
    return seen


def an_order_completes(side: Side) -> list[View]:
    side.submit("ord-1")
    return watched(side, "ord-1", MINUTE)


def a_card_is_declined(side: Side) -> list[View]:
    side.refuses_cards()
    side.submit("ord-1")
    return watched(side, "ord-1", 5 * MINUTE)


def an_outage(agent: str, lasts: timedelta) -> Story:
    def story(side: Side) -> list[View]:
        side.service_is_down(agent)
        side.submit("ord-1")
        seen = watched(side, "ord-1", MINUTE, 4 * MINUTE, lasts - 5 * MINUTE)
        side.services_are_up()
        return seen + watched(side, "ord-1", 10 * MINUTE)

    return story


def an_outage_while_orders_come(side: Side) -> list[View]:
    side.service_is_down("payment")
    side.submit("ord-1", "ord-2", "ord-3")
    side.run(MINUTE)
    side.submit("ord-4")
    seen = watched(side, "ord-4", 10 * MINUTE)
    side.services_are_up()
    side.run(10 * MINUTE)
    return [*seen, *(side.view(f"ord-{number}") for number in range(1, 5))]


def a_hold(side: Side) -> list[View]:
    side.hold("shipping", HOUR)
    side.submit("ord-1")
    return watched(side, "ord-1", MINUTE, 50 * MINUTE, 20 * MINUTE)


def a_held_order_is_cancelled(side: Side) -> list[View]:
    side.hold("shipping", HOUR)
    side.submit("ord-1")
    side.run(MINUTE)
    side.cancel("ord-1")
    return watched(side, "ord-1", 5 * MINUTE)


@pytest.mark.parametrize(
    "story",
    [
        an_order_completes,
        a_card_is_declined,
        a_hold,
        a_held_order_is_cancelled,
        pytest.param(an_outage("payment", 10 * MINUTE), id="a service is down for ten minutes"),
        pytest.param(an_outage_while_orders_come, marks=pytest.mark.exhaustive),
        *(
            pytest.param(
                an_outage(agent, 3 * HOUR),
                id=f"the service of {agent} is down for three hours",
                marks=pytest.mark.exhaustive,
            )
            for agent in AGENTS
        ),
    ],
)
def test_a_story_has_the_same_ends_in_memory_and_on_moto(story: Story, world: Stack) -> None:
    assert story(InMemory()) == story(OnMoto(world))
