"""Random stories with low bounds: one undo of an added step at a time, three that are not settled.

No order of a story reaches the real bounds. Each invariant holds, and each order ends.
"""

import pytest

from roundsman.engine import added_steps, compensation, task_state
from roundsman.model.task import Task
from tools import soak_stories
from tools.soak_stories import Story

SHORT = (44, 48, 51, 54, 91)
"""Stories in which undos wait for room; in the last an order ends as no other undo begins."""


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rooms for further undos that decisions find."""
    monkeypatch.setattr(soak_stories, "ADDING", 1.0)
    monkeypatch.setattr(task_state, "MOST_ADDED_UNDOS", 1)
    monkeypatch.setattr(compensation, "MOST_ADDED_UNDOS", 1)
    monkeypatch.setattr(added_steps, "MOST_OPEN_ADDED", 3)
    found = list[int]()
    room_for_undos = task_state.room_for_undos

    def noted(task: Task) -> int:
        found.append(room_for_undos(task))
        return found[-1]

    for module in (task_state, compensation):
        monkeypatch.setattr(module, "room_for_undos", noted)
    return found


@pytest.mark.verify
@pytest.mark.parametrize("seed", SHORT)
def test_each_order_ends_as_it_must_though_undos_wait_for_room(seed: int, rooms: list[int]) -> None:
    Story(seed).run()
    assert min(rooms) <= 0


@pytest.mark.verify
@pytest.mark.usefixtures("rooms")
@pytest.mark.parametrize("seed", range(100, 200))
def test_no_story_breaks_an_invariant(seed: int) -> None:
    Story(seed).run()
