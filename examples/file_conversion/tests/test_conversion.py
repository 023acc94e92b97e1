"""How a conversion ends: done after some polls, not done in its time, or cancelled."""

from collections import Counter
from collections.abc import Mapping

import conversion
import pytest
from conversion import converter, file_conversion, library

from roundsman import Json, TransientError
from roundsman_testing import TaskState, World

ORDER: Json = {"orderId": "film", "source": "raw/film", "format": "mp4"}


class Service:
    """Stands in for the service: a job is done when it was looked at so often."""

    def __init__(self, looks: int = 4) -> None:
        self.looks = looks
        self.jobs = Counter[str]()
        self.removed: list[str] = []
        self.library: set[str] = set()
        self.down = 0

    def call(self, method: str, *path: str, key: str, **_: object) -> Mapping[str, Json]:
        """Answer one call."""
        if self.down:
            self.down -= 1
            raise TransientError("503")
        match method, path:
            case "POST", ("jobs",):
                self.jobs[key] += 1
                done = self.jobs[key] >= self.looks
                return {"state": "done" if done else "running", "file": f"{key}.mp4"}
            case "DELETE", ("jobs", found):
                self.removed.append(found)
            case "PUT", ("library", found):
                self.library.add(found)
            case "DELETE", ("library", found):
                self.library.discard(found)
            case _:
                raise AssertionError(path)
        return {}


def world_of(service: Service, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose agents call this service, with one order."""
    monkeypatch.setattr(conversion, "service", lambda: service)
    world = World(file_conversion, agents=[converter, library])
    world.submit(ORDER)
    return world


def test_a_job_that_is_done_after_some_polls_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    world = world_of(service, monkeypatch).run()
    assert world.task("film").state is TaskState.COMPLETED
    assert service.jobs == {"film/convert/perform": 4}
    assert service.library == {"film"}


def test_a_job_that_is_not_done_in_its_time_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(looks=1_000_000)
    world = world_of(service, monkeypatch).run()
    assert world.task("film").state is TaskState.UNDONE
    assert service.removed == ["film/convert/perform"]
    assert 240 <= service.jobs["film/convert/perform"] <= 242
    assert not service.library


def test_a_service_that_is_down_for_a_poll_delays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    world = world_of(service, monkeypatch)
    world.run(until=lambda: service.jobs["film/convert/perform"] == 2)
    service.down = 3
    world.run()
    assert world.task("film").state is TaskState.COMPLETED


def test_a_cancelled_order_stops_its_job_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    world = world_of(service, monkeypatch)
    world.run(until=lambda: service.jobs["film/convert/perform"] == 2)
    world.operator.cancel("film")
    world.run()
    assert world.task("film").state is TaskState.CANCELLED
    assert service.removed == ["film/convert/perform"]
    assert service.jobs["film/convert/perform"] == 2
