"""How a subscription ends: charged after its trial or on its first day, cancelled, or refused."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
import subscription
from subscription import access, billing

from roundsman import Json, PermanentError
from roundsman_testing import TaskState, World

BEGIN = 1_800_000_000_000  # when a world begins: 2027-01-15T08:00:00Z
DAY = 86_400_000


class Service:
    """Stands in for both services, and notes who has access and who was charged."""

    def __init__(self) -> None:
        self.has: set[tuple[str, ...]] = set()
        self.refuses = False

    def call(self, method: str, *path: str, **_: object) -> Mapping[str, Json]:
        """Answer one call."""
        if self.refuses and path[0] == "charges" and method == "PUT":
            raise PermanentError("CardDeclined")
        (self.has.add if method == "PUT" else self.has.discard)(path)
        return {}


ACCESS, CHARGE = ("access", "ann"), ("charges", "ann")


def subscribed(
    service: Service, monkeypatch: pytest.MonkeyPatch, first_day: str = "2027-01-01T00:00:00Z"
) -> World:
    """A world whose agents call this service, with one order that the customer has confirmed."""
    world = ordered(service, monkeypatch, first_day)
    world.signal("s-1", "confirmed")
    return world


def ordered(
    service: Service, monkeypatch: pytest.MonkeyPatch, first_day: str = "2027-01-01T00:00:00Z"
) -> World:
    monkeypatch.setattr(subscription, "service", lambda: service)
    world = World(subscription.subscription, agents=[access, billing])
    world.submit({"orderId": "s-1", "customer": "ann", "firstDay": first_day})
    return world


def days(world: World) -> float:
    return (world.now - BEGIN) / DAY


def test_a_customer_is_charged_after_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    world = subscribed(service, monkeypatch)
    world.run(for_=timedelta(days=29))
    assert service.has == {ACCESS}
    world.run()
    assert world.task("s-1").state is TaskState.COMPLETED
    assert service.has == {ACCESS, CHARGE}
    assert 30 <= days(world) < 30.01


def test_a_customer_who_does_not_confirm_gets_no_access(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    world = ordered(service, monkeypatch).run()
    assert world.task("s-1").state is TaskState.UNDONE
    error = world.task("s-1").step("confirmed").error
    assert error is not None
    assert error.type == "NoSignal"
    assert service.has == set()
    assert 2 <= days(world) < 2.01


def test_a_customer_who_moves_in_later_is_charged_then(monkeypatch: pytest.MonkeyPatch) -> None:
    world = subscribed(Service(), monkeypatch, "2027-03-16T08:00:00Z").run()
    assert world.task("s-1").state is TaskState.COMPLETED
    assert 60 <= days(world) < 60.01


def test_a_customer_who_cancels_in_the_trial_is_not_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Service()
    world = subscribed(service, monkeypatch)
    world.run(for_=timedelta(days=10))
    world.cancel("s-1")
    world.run()
    assert world.task("s-1").state is TaskState.CANCELLED
    assert service.has == set()
    assert days(world) < 11


def test_a_customer_whose_card_is_declined_loses_the_access(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Service()
    service.refuses = True
    world = subscribed(service, monkeypatch).run()
    assert world.task("s-1").state is TaskState.UNDONE
    assert service.has == set()


def test_a_first_day_that_is_no_instant_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    world = subscribed(service, monkeypatch, "next week").run()
    assert world.task("s-1").state is TaskState.UNDONE
    error = world.task("s-1").step("first_day").error
    assert error is not None
    assert error.type == "NoInstant"
    assert service.has == set()


def test_a_person_ends_the_trial_early(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    world = subscribed(service, monkeypatch)
    world.run(for_=timedelta(days=3))
    world.operator.resolve("s-1", "trial", did=True)
    world.run()
    assert world.task("s-1").state is TaskState.COMPLETED
    assert days(world) < 4


def test_a_customer_who_subscribes_twice_has_one_trial_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Service()
    world = subscribed(service, monkeypatch)
    world.submit({"orderId": "s-2", "customer": "ann", "firstDay": "2027-01-01T00:00:00Z"})
    world.submit({"orderId": "s-3", "customer": "bob", "firstDay": "2027-01-01T00:00:00Z"})
    for order in ("s-2", "s-3"):
        world.signal(order, "confirmed")
    world.run(for_=timedelta(days=1))
    assert world.task("s-3").step("give_access").done
    assert not world.task("s-2").step("give_access").done
    world.run(for_=timedelta(days=30))
    assert world.task("s-1").state is TaskState.COMPLETED
    assert world.task("s-2").step("give_access").done
