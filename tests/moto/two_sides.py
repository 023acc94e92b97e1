"""A world in memory and the template's functions on moto, as one story uses both."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Protocol, cast

import pytest

import workflows.registry
from roundsman import Callback, Json, PermanentError, StepRequest, Workflow
from roundsman.agents.agent import Agent
from roundsman.agents.callbacks import failed_reply, succeeded_reply
from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.client import Client
from roundsman.model.bulk_run import BulkRecord, Terms
from roundsman.model.events import CommandSource, Reconcile, Resubmit
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import milliseconds
from roundsman.model.task import PERFORM, Task
from roundsman.wire.commands import command_of
from roundsman_console.acts.bulk.start import bulk_runs_of, new_run, start_run
from roundsman_console.acts.reconcile.reconcile import command_id_of
from roundsman_console.aws.stack import find_stack
from roundsman_testing import Capacity, World
from roundsman_testing.stack import AwsFault, Stack
from roundsman_testing.stack.calls import AwsCall, InjectedFault
from roundsman_testing.stack.resources import EventSource
from roundsman_testing.world.guards import Circuit
from roundsman_testing.world.services import Script
from tests.console.test_reconciling import purge, restore, tables
from tests.moto.orders import order
from workflows.order_fulfilment import order_fulfilment

AGENTS = {"inventory": "reserve_stock", "payment": "charge_card", "shipping": "create_shipment",
          "mail": "send_confirmation"}  # fmt: skip
"""The agents of the example, each with its step."""
OPERATIONS = {"inventory": "reservations", "payment": "charges", "shipping": "shipments",
              "mail": "messages"}  # fmt: skip
"""What an agent posts to its service."""

View = Mapping[str, object]

NOT_TAKEN: View = {"state": "not taken"}


class Side(Protocol):
    """One of the two, as the stories use it. Orders are called by their ids."""

    def follow(self, workflow: Workflow) -> None:
        """Deploy this workflow; from now on orders are submitted for it."""

    def submit(self, *orders: str, prices: tuple[str, ...] = ("19.90",)) -> None:
        """Submit orders with one line for each price."""

    def service_is_down(self, agent: str) -> None: ...
    def services_are_up(self) -> None: ...
    def service_refuses(self, agent: str, error: str) -> None: ...
    def hold(self, agent: str, for_: timedelta) -> None: ...
    def cancel(self, order_id: str) -> None: ...
    def agent_dies(self, agent: str) -> None: ...
    def asks(self, agent: str, within: timedelta) -> None:
        """Each call of the agent's step has its effect and returns a Callback."""

    def answer(self, order_id: str, agent: str, asked: int | None = None) -> None:
        """Answer a Callback: that of the attempt `asked`, from 1, or the one that waits."""

    def resubmit_in_bulk(self, orders: list[str], terms: Terms) -> None: ...
    def bulk_view(self) -> View: ...
    def scheduler_is_down(self, for_: timedelta) -> None: ...
    def scheduler_takes(self, time: timedelta) -> None:
        """Before all else: there is one scheduler, which takes so long for each message."""

    def tables_are_down(self, for_: timedelta) -> None: ...
    def redrive(self) -> None: ...
    def backup(self) -> None: ...
    def restore(self) -> None: ...
    def run(self, for_: timedelta) -> None: ...
    def view(self, order_id: str) -> View: ...


def view_of(task: Task, standing: Mapping[str, int]) -> View:
    """What must be the same: the end, how many attempts count against each step, the effects.

    An order that goes on may be looked at between two attempts or during one: jitter decides that.
    """
    steps = {name: record.failure_count for name, record in task.steps.items()}
    state = task.state.value if task.ended else "under way"
    return {"state": state, "failures": steps, "effects": dict(standing)}


def view_of_run(record: BulkRecord) -> View:
    """What must be the same of a bulk run."""
    progress = record.progress
    return {
        "state": record.state.value,
        "why": record.why,
        "sent": progress.sent,
        "ended": dict(progress.ended),
        "refused": progress.refusals,
    }


def event_of(order_id: str, workflow: Workflow, prices: tuple[str, ...]) -> dict[str, object]:
    """An order event with one line for each price, to be processed by the workflow."""
    lines = [{"sku": f"KB-{place}", "quantity": 1, "unitPrice": price}
             for place, price in enumerate(prices)]  # fmt: skip
    return {**order(order_id, workflow=workflow.name), "lines": lines}


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
    """A world of the example's workflow."""

    def __init__(
        self, circuit: Circuit | None = None, interval: timedelta = timedelta(minutes=1)
    ) -> None:
        """With this circuit for each agent, and a supervisor that makes a pass each `interval`."""
        circuits = dict.fromkeys(AGENTS, circuit or Circuit())
        self._make = partial(World, order_fulfilment, circuits=circuits, interval=interval)
        self._world = self._make()
        self._workflow = order_fulfilment

    def follow(self, workflow: Workflow) -> None:
        self._world.deploy(workflow)
        self._workflow = workflow

    def submit(self, *orders: str, prices: tuple[str, ...] = ("19.90",)) -> None:
        for order_id in orders:
            self._world.submit(
                cast("Mapping[str, Json]", event_of(order_id, self._workflow, prices))
            )

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

    def service_refuses(self, agent: str, error: str) -> None:
        self._world.on(AGENTS[agent]).refuses(error)

    def hold(self, agent: str, for_: timedelta) -> None:
        self._world.hold(agent, for_)

    def cancel(self, order_id: str) -> None:
        self._world.cancel(order_id)

    def agent_dies(self, agent: str) -> None:
        self._world.on(AGENTS[agent]).loses_answer()

    def asks(self, agent: str, within: timedelta) -> None:
        self._world.on(AGENTS[agent]).waits(within, times=100)

    def answer(self, order_id: str, agent: str, asked: int | None = None) -> None:
        self._world.answer(order_id, AGENTS[agent], {"answered": True}, asked=asked)

    def resubmit_in_bulk(self, orders: list[str], terms: Terms) -> None:
        self._run = self._world.resubmit_in_bulk(orders, terms)

    def bulk_view(self) -> View:
        return view_of_run(self._world.bulk_run(self._run))

    def scheduler_is_down(self, for_: timedelta) -> None:
        self._world.down("scheduler", for_)
        self._world.run(for_=for_)

    def scheduler_takes(self, time: timedelta) -> None:
        self._world = self._make(capacity={"scheduler": Capacity(takes=time)})

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
        agents = {step: agent for agent, step in AGENTS.items()}
        effects = self._world.services.ledger.standing(order_id)
        standing = Counter(agents[effect.step.partition("[")[0]] for effect in effects)
        return view_of(self._world.task(order_id), standing)


class OnMoto:
    """A stack that was just deployed or has started over."""

    def __init__(self, stack: Stack, patch: pytest.MonkeyPatch) -> None:
        self._stack = stack
        self._patch = patch
        self._orders: list[str] = []
        self._tokens: dict[tuple[str, str], list[str]] = {}
        self._workflow = order_fulfilment
        self._takes: timedelta | None = None

    def follow(self, workflow: Workflow) -> None:
        known = {**workflows.registry.WORKFLOWS, workflow.name: workflow}
        self._patch.setattr(workflows.registry, "WORKFLOWS", known)
        self._stack.redeploy()
        self._workflow = workflow

    def submit(self, *orders: str, prices: tuple[str, ...] = ("19.90",)) -> None:
        self._orders += orders
        self._stack.submit(*(event_of(each, self._workflow, prices) for each in orders))

    def service_is_down(self, agent: str) -> None:
        self._stack.faults({"service": agent, "status": 503})

    def services_are_up(self) -> None:
        self._stack.faults()

    def service_refuses(self, agent: str, error: str) -> None:
        refusal = {"error": error, "message": "no"}
        operation = f"POST /{OPERATIONS[agent]}"
        self._stack.faults({"operation": operation, "status": 422, "body": refusal})

    def hold(self, agent: str, for_: timedelta) -> None:
        table, now = self._stack.stack.outputs["ControlTableName"], self._stack.clock()
        holds = DynamoHolds(self._stack.dynamodb, control_table=table, clock=self._stack.clock)
        holds.hold(Hold(agent, OPERATOR, now, now + milliseconds(for_), "", "operator"))

    def cancel(self, order_id: str) -> None:
        self._stack.submit({"orderId": order_id, "cancel": {}})

    def agent_dies(self, agent: str) -> None:
        self._stack.kill(f"{agent.title()}Function", at="SendMessage")

    def asks(self, agent: str, within: timedelta) -> None:
        function = f"{agent.title()}Function"
        self._stack.invoke(function, {"Records": []})  # loads its code
        instance = self._stack._instances[function]
        found = getattr(instance._modules["app"], agent)
        assert isinstance(found, Agent)

        def ask(
            operation: str, perform: Callable[[StepRequest], object], request: StepRequest
        ) -> object:
            value = perform(request)
            if operation != PERFORM:
                return value
            asked = self._tokens.setdefault((request.task_id, agent), [])
            asked.append(request.callback_token)
            return Callback(within=within)

        instance._handler = found.called_by(ask).lambda_handler

    def answer(self, order_id: str, agent: str, asked: int | None = None) -> None:
        answer: Json = {"answered": True}
        if asked is None:
            client = Client(self._stack.stack.outputs)
            client.answer(order_id=order_id, step=AGENTS[agent], result=answer)
            return
        token = self._tokens[order_id, agent][asked - 1]
        if f"{agent} undo" in self._stack.effects(order_id):  # as the outside system of a world
            error = PermanentError("KeyUndone", "an undo has spent this key")
            body = failed_reply(token, error, clock=self._stack.clock)
        else:
            body = succeeded_reply(token, answer, clock=self._stack.clock)
        self._stack.send(f"{agent.title()}ReplyQueue", body)

    def resubmit_in_bulk(self, orders: list[str], terms: Terms) -> None:
        stack = find_stack(self._stack.stack.name)
        run = new_run(Resubmit, "operator", "", " ".join(orders), terms, self._stack.clock())
        self._run = start_run(stack, run, orders, lambda _: None).id

    def bulk_view(self) -> View:
        found = bulk_runs_of(find_stack(self._stack.stack.name)).find(self._run)
        assert found is not None
        return view_of_run(found[0])

    def scheduler_is_down(self, for_: timedelta) -> None:
        created = self._stack.stack
        others = [one for one in created.mappings if one.function != "SchedulerFunction"]
        self._stack.stack = replace(created, mappings=tuple(others))
        self._stack.pass_time(for_.total_seconds())
        self._stack.stack = created

    def scheduler_takes(self, time: timedelta) -> None:
        self._takes = time

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
        if self._takes is None:
            self._stack.pass_time(for_.total_seconds())
            return
        end = self._stack.clock() + milliseconds(for_)
        while self._stack.clock() < end:
            self.scheduler_is_down(self._takes)  # for other messages, while it handles one
            if (source := self._next_of_scheduler()) is not None:
                self._stack.work_off(replace(source, batch_size=1))

    def _next_of_scheduler(self) -> EventSource | None:
        """The queue of the scheduler whose first message has waited for the longest time."""
        ready = [
            (
                max(cast("int", first.sent_timestamp), first.visible_at, first.delayed_until),
                place,
                source,
            )
            for place, source in enumerate(self._stack.stack.mappings)
            if source.function == "SchedulerFunction"
            for first in self._stack._queue(source.queue_url).messages[:1]
        ]
        return min(ready, default=(0, 0, None))[2]

    def view(self, order_id: str) -> View:
        if self._stack.store.load(order_id, self._stack.clock()) is None:
            return NOT_TAKEN
        done = self._stack.effects(order_id)
        standing = Counter({
            agent: done.get(f"{agent} perform", 0) - done.get(f"{agent} undo", 0)
            for agent in AGENTS
        })  # fmt: skip
        return view_of(self._stack.task(order_id), +standing)
