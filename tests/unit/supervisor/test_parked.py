"""In which order, and how many at once, parked orders are woken."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from roundsman.model.priority import Priority
from roundsman.model.wakes import Wake
from roundsman.ports import ParkedEntry
from roundsman.supervisor.parked import STAGES, ParkedOrders

if TYPE_CHECKING:
    from roundsman.ports import TaskStore

BEGIN = Wake(of="", seen_at=0)


class Lanes:
    """What is parked for `post`: pairs of an order and since when, by priority."""

    def __init__(self, **parked: list[tuple[str, int]]) -> None:
        self._parked = parked

    def parked(
        self, target: str, priority: Priority, shard: int, *, after: int
    ) -> Iterator[ParkedEntry]:
        for order, since in self._parked.get(priority, []) if target == "post" else ():
            if since > after:
                yield ParkedEntry(order, since, shard)


def woken(lanes: Lanes, most: int) -> list[list[str]]:
    """The orders that each visit wakes, up to the end of a round."""
    parked = ParkedOrders(cast("TaskStore", lanes), lambda: 0, shards=1)
    visits, wake = [], BEGIN
    while wake.stage < len(STAGES):
        chosen, wake = parked.choose("post", wake, (), most)
        visits.append([entry.task_id for entry in chosen])
    return visits


def test_orders_that_were_parked_at_one_instant_are_woken_together() -> None:
    """The next visit goes on after the instant up to which all were woken."""
    lanes = Lanes(normal=[("a", 1), ("b", 2), ("c", 2), ("d", 2), ("e", 3)])
    assert woken(lanes, most=2) == [["a", "b", "c", "d"], ["e"]]


def test_urgent_orders_are_woken_before_normal_ones() -> None:
    lanes = Lanes(normal=[("a", 1), ("b", 2)], urgent=[("c", 3), ("d", 4)])
    assert woken(lanes, most=3) == [["c", "d", "a"], ["b"]]
