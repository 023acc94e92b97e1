"""Services that forget keys, and holds that last longer than a key: nothing happens twice."""

from dataclasses import dataclass, field
from datetime import timedelta

from roundsman.agents.agent import Agent
from roundsman.agents.outcomes import DidNotHappen, Happened
from roundsman.agents.request import StepRequest
from roundsman.definition.workflow import Step, Workflow
from roundsman.model.bulk_run import OrderResult, RunState
from roundsman.model.events import CommandSource, Resolve
from roundsman.model.states import TaskState
from roundsman_testing import World
from tests.world.shop import FENCED, a_step, a_workflow
from tests.world.test_bulk_runs import RUN, record, start, states

DAY, A_MINUTE = timedelta(days=1), timedelta(minutes=1)
RECEIPT = {"id": "ch-1"}


def charging(*, probe_outlives_key: bool) -> tuple[Step, Workflow]:
    """A step at a service that remembers keys for a day, and one that comes after it."""
    charge = a_step(
        "charge",
        compensation=FENCED,
        key_lifetime=DAY,
        probe_outlives_key=probe_outlives_key,
    )
    return charge, a_workflow(charge, a_step("ship", charge))


@dataclass
class Payment:
    """An agent that notes how it is called. Its probe answers what `finds` says."""

    charge: Step
    finds: Happened | DidNotHappen
    performed: list[str] = field(default_factory=list)
    probed: list[str] = field(default_factory=list)

    def agent(self) -> Agent:
        made = Agent("charge")

        @made.performs(self.charge)
        def perform(request: StepRequest) -> dict[str, str]:
            self.performed.append(request.idempotency_key)
            return RECEIPT

        @made.probes(self.charge)
        def probe(request: StepRequest) -> Happened | DidNotHappen:
            self.probed.append(request.idempotency_key)
            return self.finds

        @made.compensates(self.charge)
        def undo(_: StepRequest) -> None:
            raise AssertionError("nothing is undone")

        return made


def held_for_two_days(world: World, orders: int) -> list[str]:
    """The first requests of these orders go out; then their agent is held for two days."""
    sent = [world.submit() for _ in range(orders)]
    world.run(for_=timedelta(seconds=10))
    world.hold("charge", 2 * DAY, "the service is moved")
    world.run(for_=2 * DAY + timedelta(minutes=5))
    return sent


def test_a_probe_that_outlives_the_key_finds_what_a_held_order_has_done() -> None:
    charge, shop = charging(probe_outlives_key=True)
    payment = Payment(charge, Happened(RECEIPT))
    world = World(shop, agents=[payment.agent()])
    world.on("charge").loses_answer()
    [order] = held_for_two_days(world, 1)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.task(order).results()["charge"] == RECEIPT
    assert world.standing(order) == ["charge", "ship"]
    assert len(payment.performed) == len(payment.probed) == 1
    assert sorted(world.services.ledger.count.values()) == [1, 1]


def test_what_such_a_probe_does_not_find_is_done_once_under_a_new_key() -> None:
    charge, shop = charging(probe_outlives_key=True)
    payment = Payment(charge, DidNotHappen())
    world = World(shop, agents=[payment.agent()])
    world.on("charge").hangs()
    [order] = held_for_two_days(world, 1)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.standing(order) == ["charge", "ship"]
    [asked], [key] = payment.probed, payment.performed
    assert key != asked, "the old key is never performed under again"
    assert world.task(order).step("charge").round == 2


def sent_to_a_person(*, did: bool) -> tuple[World, list[str], Payment]:
    """Four orders that a hold kept until the service had forgotten their keys."""
    charge, shop = charging(probe_outlives_key=False)
    payment = Payment(charge, DidNotHappen())  # it asks by the key, and that is forgotten
    world = World(shop, agents=[payment.agent()])
    if did:
        world.on("charge").loses_answer(times=4)
    else:
        world.on("charge").hangs(times=4)
    orders = held_for_two_days(world, 4)
    assert states(world, orders) == {"Archived": 4}
    assert payment.probed == [], "it may not decide"
    assert len(payment.performed) == (4 if did else 0)
    for order in orders:
        error = world.task(order).step("charge").error
        assert error is not None
        assert error.type == "KeyExpired"
    [group] = world.processes.groups.groups()
    assert {world.task(order).failure for order in orders} == {group.id}
    assert "KeyExpired" in world.post.alerts[0].sms
    return world, orders, payment


def test_any_other_probe_may_not_decide_and_one_bulk_resolve_begins_what_did_not_happen() -> None:
    world, orders, payment = sent_to_a_person(did=False)
    event = Resolve(CommandSource(RUN, "amy", "not at the service"), "charge", did=False)
    start(world, orders, event=event)
    world.run()
    assert states(world, orders) == {"Completed": 4}
    assert record(world).state is RunState.FINISHED
    assert record(world).progress.count(OrderResult.COMPLETED) == 4
    assert all(world.standing(order) == ["charge", "ship"] for order in orders)
    assert sorted(payment.performed) == [f"{order}/charge/perform/2" for order in sorted(orders)]


def test_what_happened_is_resolved_with_its_result_and_never_happens_again() -> None:
    world, orders, payment = sent_to_a_person(did=True)
    for order in orders:
        world.operator.resolve(order, "charge", did=True, result=RECEIPT)
    world.run()
    assert states(world, orders) == {"Completed": 4}
    assert all(world.standing(order) == ["charge", "ship"] for order in orders)
    assert len(payment.performed) == 4


def test_a_call_that_lasts_longer_than_it_may_reaches_its_service_before_the_key_is_gone() -> None:
    """The service cannot fence it, and the engine sends nothing that may last beyond the key."""
    charge = a_step("charge", complete_within=A_MINUTE, key_lifetime=4 * A_MINUTE)
    world = World(a_workflow(charge))
    world.on("charge").loses_answer().takes(5 * A_MINUTE)
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.standing(order) == ["charge"]
