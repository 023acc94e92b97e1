"""The example as it is deployed, in a world: its own events, its own agents, services over HTTP."""

import importlib
from collections.abc import Iterator

import pytest

from roundsman import Agent
from roundsman_testing import TaskState, World
from roundsman_testing.remote_services import RemoteServices
from tests.moto.orders import ALL_EFFECTS, effects_of, order
from workflows.order_fulfilment import order_fulfilment

NAMES = ("inventory", "payment", "shipping", "mail")


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteServices]:
    with RemoteServices() as started:
        monkeypatch.setenv("SERVICE_URL", started.url)
        yield started


def agents() -> list[Agent]:
    """Those of functions/agents, each of which reads its service's address anew."""
    found = []
    for name in NAMES:
        module = importlib.import_module(f"functions.agents.{name}.app")
        module.service.cache_clear()
        agent = getattr(module, name)
        assert isinstance(agent, Agent)
        found.append(agent)
    return found


def test_the_example_runs_as_it_is_deployed(services: RemoteServices) -> None:
    world = World(order_fulfilment, agents=agents())
    order_id = world.submit(order("ord-1001"))  # type: ignore[arg-type]  # a test's own shorthand
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert effects_of(services, order_id) == ALL_EFFECTS


def test_the_example_undoes_at_its_services_what_it_did(services: RemoteServices) -> None:
    world = World(order_fulfilment, agents=agents())
    world.on("create_shipment").refuses("AddressUndeliverable")
    order_id = world.submit(order("ord-1001"))  # type: ignore[arg-type]
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE
    assert effects_of(services, order_id)["payment undo"] == 1
    assert effects_of(services, order_id)["inventory undo"] == 1
    assert world.standing(order_id) == []


def test_an_answer_that_is_lost_is_asked_for_with_the_example_s_own_probe(
    services: RemoteServices,
) -> None:
    world = World(order_fulfilment, agents=agents())
    world.on("charge_card").loses_answer()
    order_id = world.submit(order("ord-1001"))  # type: ignore[arg-type]
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert effects_of(services, order_id) == ALL_EFFECTS


def test_an_event_that_the_example_refuses_is_put_aside_with_every_reason() -> None:
    world = World(order_fulfilment)
    world.submit({"orderId": "ord-1", "currency": "euro"})
    world.run()
    with pytest.raises(LookupError, match=r"ord-1 was never taken; rejected: .*currency"):
        world.task("ord-1")


def test_an_event_says_its_wishes_itself() -> None:
    world = World(order_fulfilment)
    event = order("ord-1", workflow="order_fulfilment", retention=60)
    with pytest.raises(ValueError, match="workflow and the options as arguments or in processing"):
        world.submit(event, workflow="order_fulfilment")  # type: ignore[arg-type]
    world.submit(event)  # type: ignore[arg-type]
    world.run()
    assert world.task("ord-1").retain_for == 60_000
