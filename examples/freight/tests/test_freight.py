"""How a freight is shared: by the first two carriers, whatever the third and the customer do."""

from collections.abc import Mapping
from datetime import timedelta

import freight
import pytest
from freight import carriers, mail

from roundsman import Json, PermanentError
from roundsman_testing import TaskState, World

BEGIN = 1_800_000_000_000  # when a world begins
DAY = 86_400_000
HOUR = timedelta(hours=1)


class Services:
    """Stand in for the carriers and the mail, and note which room is reserved."""

    def __init__(self, *full: str) -> None:
        self.full = full
        self.rooms: dict[str, str] = {}
        self.loads: dict[str, list[str]] = {}

    def call(
        self, method: str, *path: str, key: str, body: Json, **_: object
    ) -> Mapping[str, Json]:
        """Answer one call."""
        match method, path, body:
            case "POST", ("rooms",), {"carrier": str(carrier), "pallets": 4}:
                if carrier in self.full:
                    raise PermanentError("NoRoom")
                self.rooms[key] = carrier
            case "DELETE", ("rooms", room), _:
                self.rooms.pop(room, None)
            case "PUT", ("loads", order), {"carriers": list(both)}:
                self.loads[order] = [str(carrier) for carrier in both]
            case "DELETE", ("loads", order), _:
                self.loads.pop(order, None)
            case "POST", ("mails",), {"to": "ann", "carriers": [_, _]}:
                pass
            case _:
                raise AssertionError((method, path, body))
        return {}


def ordered(services: Services, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose agents call these services, with one order of seven pallets."""
    monkeypatch.setattr(freight, "service", lambda: services)
    world = World(freight.freight, agents=[carriers, mail])
    world.submit({"orderId": "f-1", "customer": "ann", "pallets": 7})
    return world


def test_two_carriers_have_the_freight_and_the_third_its_room_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = Services()
    world = ordered(services, monkeypatch).run()
    assert world.task("f-1").state is TaskState.COMPLETED
    assert len(services.rooms) == 2
    assert sorted(services.rooms.values()) == services.loads["f-1"]


def test_without_a_word_it_leaves_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    services = Services()
    world = ordered(services, monkeypatch)
    world.run(until=lambda: bool(services.loads))
    assert DAY <= world.now - BEGIN < DAY + 300_000


def test_a_customer_who_accepts_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    services = Services()
    world = ordered(services, monkeypatch).run(for_=HOUR)
    world.signal("f-1", "accepted")
    world.run(for_=HOUR)
    assert world.task("f-1").state is TaskState.COMPLETED
    assert services.loads


def test_a_carrier_without_room_delays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    services = Services("road")
    ordered(services, monkeypatch).run()
    assert services.loads == {"f-1": ["air", "sea"]}


def test_a_carrier_that_does_not_answer_delays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    services = Services()
    world = ordered(services, monkeypatch)
    world.on("ask_sea").is_down()
    world.run(for_=HOUR)
    world.signal("f-1", "accepted")
    world.run(for_=HOUR)
    assert services.loads == {"f-1": ["air", "road"]}


def test_with_one_carrier_only_nothing_is_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    services = Services("road", "sea")
    world = ordered(services, monkeypatch).run()
    assert world.task("f-1").state is TaskState.UNDONE
    assert (services.rooms, services.loads) == ({}, {})


def test_a_cancelled_order_gives_all_rooms_back(monkeypatch: pytest.MonkeyPatch) -> None:
    services = Services()
    world = ordered(services, monkeypatch).run(for_=HOUR)
    world.operator.cancel("f-1")
    world.run()
    assert world.task("f-1").state is TaskState.CANCELLED
    assert services.rooms == {}
