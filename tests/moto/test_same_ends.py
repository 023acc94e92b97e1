"""A story has the same ends in a world in memory and on the template's functions on moto.

Both are looked at while the story goes on, too: a test in memory that says Undone for an order that
the deployed stack still holds in Retry would be worth nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

import pytest

from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.model.events import CommandSource, Reconcile
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import milliseconds
from roundsman.model.task import Task
from roundsman.wire.commands import command_of
from roundsman_console.inspector.reconcile import command_id_of
from roundsman_testing import World
from roundsman_testing.stack import AwsFault, Stack
from roundsman_testing.stack.calls import AwsCall, InjectedFault
from roundsman_testing.world.services import Script
from tests.console.test_reconciling import purge, restore, tables
from tests.moto.orders import order
from workflows.order_fulfilment import order_fulfilment

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
AGENTS = {"inventory": "reserve_stock", "payment": "charge_card", "shipping": "create_shipment",
          "mail": "send_confirmation"}  # fmt: skip
"""The agents of the example, each with its step."""

View = Mapping[str, object]

NOT_TAKEN: View = {"state": "not taken"}


class Side(Protocol):
    """One of the two, as the stories use it. Orders are called by their ids."""

    def submit(self, *orders: str) -> None: ...
    def service_is_down(self, agent: str) -> None: ...
    def services_are_up(self) -> None: ...
    def refuses_cards(self) -> None: ...
    def hold(self, agent: str, for_: timedelta) -> None: ...
    def cancel(self, order_id: str) -> None: ...
    def agent_dies(self, agent: str) -> None: ...
    def scheduler_is_down(self, for_: timedelta) -> None: ...
    def tables_are_down(self, for_: timedelta) -> None: ...
    def redrive(self) -> None: ...
    def backup(self) -> None: ...
    def restore(self) -> None: ...
    def run(self, for_: timedelta) -> None: ...
    def view(self, order_id: str) -> View: ...


def view_of(task: Task, standing: set[str]) -> View:
    """What must be the same: the end, how many attempts count against each step, the effects.

    An order that goes on may be looked at between two attempts or during one: jitter decides that.
    """
    steps = {name: record.failure_count for name, record in task.steps.items()}
    state = task.state.value if task.ended else "under way"
    return {"state": state, "failures": steps, "effects": sorted(standing)}


class TablesDown(list[InjectedFault]):
    """Lets every call of a function to DynamoDB fail for good."""

    def __iter__(self) -> Iterator[InjectedFault]:
        return iter([OfTables(AwsFault.BROKEN)])

    def remove(self, fault: InjectedFault) -> None:
        """Keep the fault: it hits every call."""


class OfTables(InjectedFault):
    """A fault of each call to DynamoDB."""

    def meets(self, call: AwsCall) -> bool:
        return call.service == "dynamodb"


class InMemory:
    def __init__(self) -> None:
        self._world = World(order_fulfilment)

    def submit(self, *orders: str) -> None:
        for order_id in orders:
            self._world.submit(order(order_id))  # type: ignore[arg-type]

    def service_is_down(self, agent: str) -> None:
        for script in self._scripts(agent):
            script.is_down()

    def services_are_up(self) -> None:
        for agent in AGENTS:
            for script in self._scripts(agent):
                script.is_up()

    def _scripts(self, agent: str) -> list[Script]:
        operations = ("perform",) if agent == "mail" else ("perform", "undo")
        return [self._world.on(AGENTS[agent], operation) for operation in operations]

    def refuses_cards(self) -> None:
        self._world.on("charge_card").refuses("CardDeclined", times=100)

    def hold(self, agent: str, for_: timedelta) -> None:
        self._world.hold(agent, for_)

    def cancel(self, order_id: str) -> None:
        self._world.cancel(order_id)

    def agent_dies(self, agent: str) -> None:
        self._world.on(AGENTS[agent]).loses_answer()

    def scheduler_is_down(self, for_: timedelta) -> None:
        self._world.down("scheduler", for_)
        self._world.run(for_=for_)

    def tables_are_down(self, for_: timedelta) -> None:
        self._world.tables_down(for_)
        self._world.run(for_=for_)

    def redrive(self) -> None:
        self._world.redrive()

    def backup(self) -> None:
        self._backup = self._world.backup()

    def restore(self) -> None:
        self._world.restore(self._backup)

    def run(self, for_: timedelta) -> None:
        self._world.run(for_=for_)

    def view(self, order_id: str) -> View:
        if order_id not in self._world.processes.watch.tasks:
            return NOT_TAKEN
        standing = {effect.step for effect in self._world.services.ledger.standing(order_id)}
        return view_of(self._world.task(order_id), standing)


class OnMoto:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._orders: list[str] = []

    def submit(self, *orders: str) -> None:
        self._orders += orders
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

    def agent_dies(self, agent: str) -> None:
        self._stack.kill(f"{agent.title()}Function", at="SendMessage")

    def scheduler_is_down(self, for_: timedelta) -> None:
        created = self._stack.stack
        others = [one for one in created.mappings if one.function != "SchedulerFunction"]
        self._stack.stack = replace(created, mappings=tuple(others))
        self.run(for_)
        self._stack.stack = created

    def tables_are_down(self, for_: timedelta) -> None:
        calls = self._stack.aws
        calls.strikes = TablesDown()
        self.run(for_)
        calls.strikes = []

    def redrive(self) -> None:
        for source in self._stack.stack.mappings:
            dead = self._stack._queue(source.queue_url).dead_letter_queue
            for body in self._stack.bodies(dead.name) if dead else ():
                self._stack.sqs.send_message(QueueUrl=source.queue_url, MessageBody=body)

    def backup(self) -> None:
        self._backup = self._stack.clock(), tables(self._stack)

    def restore(self) -> None:
        at, items = self._backup
        purge(self._stack)
        restore(self._stack, items)
        self._stack.redeploy()
        for order_id in self._orders:
            asked = CommandSource(command_id_of(at, order_id), "ops", "the tables were restored")
            command = command_of(order_id, Reconcile(asked, at))
            self._stack.send("SchedulerQueue", command.body())
        self._stack.run()

    def run(self, for_: timedelta) -> None:
        self._stack.pass_time(for_.total_seconds())

    def view(self, order_id: str) -> View:
        if self._stack.store.load(order_id, self._stack.clock()) is None:
            return NOT_TAKEN
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


def an_order_is_cancelled_midway(side: Side) -> list[View]:
    side.service_is_down("shipping")
    side.submit("ord-1")
    seen = watched(side, "ord-1", MINUTE)
    side.cancel("ord-1")
    seen += watched(side, "ord-1", 5 * MINUTE)
    side.services_are_up()
    return seen + watched(side, "ord-1", 10 * MINUTE)


def an_agent_dies(agent: str) -> Story:
    def story(side: Side) -> list[View]:
        side.agent_dies(agent)
        side.submit("ord-1")
        return watched(side, "ord-1", SECOND, 10 * MINUTE)

    return story


def the_scheduler_is_down(side: Side) -> list[View]:
    side.submit("ord-1")
    side.scheduler_is_down(3 * HOUR)
    side.submit("ord-2")
    return [*watched(side, "ord-1", 10 * MINUTE), *watched(side, "ord-2", SECOND)]


def the_tables_are_down(lasts: timedelta) -> Story:
    def story(side: Side) -> list[View]:
        side.submit("ord-1")
        side.tables_are_down(lasts)  # ends between two deliveries, which are a minute apart
        seen = watched(side, "ord-1", SECOND, 10 * MINUTE)
        side.redrive()
        return seen + watched(side, "ord-1", 10 * MINUTE)

    return story


def the_tables_are_restored(side: Side) -> list[View]:
    side.hold("shipping", HOUR)
    side.submit("ord-1")
    seen = watched(side, "ord-1", MINUTE)
    side.backup()
    side.run(10 * MINUTE)
    side.cancel("ord-1")
    seen += watched(side, "ord-1", 10 * MINUTE)
    side.restore()
    seen += watched(side, "ord-1", SECOND)
    return seen + watched(side, "ord-1", 2 * HOUR)


@pytest.mark.parametrize(
    "story",
    [
        an_order_completes,
        a_card_is_declined,
        a_hold,
        a_held_order_is_cancelled,
        pytest.param(an_outage("payment", 10 * MINUTE), id="a service is down for ten minutes"),
        an_order_is_cancelled_midway,
        pytest.param(the_tables_are_down(10.5 * MINUTE), id="the tables are down for ten minutes"),
        pytest.param(
            the_tables_are_down(4 * HOUR),
            id="the tables are down for longer than messages are delivered",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(the_scheduler_is_down, marks=pytest.mark.exhaustive),
        pytest.param(the_tables_are_restored, marks=pytest.mark.exhaustive),
        *(
            pytest.param(
                an_agent_dies(agent),
                id=f"the agent {agent} dies with its answer",
                marks=pytest.mark.exhaustive,
            )
            for agent in AGENTS
        ),
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
