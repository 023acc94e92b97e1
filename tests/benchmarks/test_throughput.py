"""What is counted around the timing of orders: who is under way and when all is warm."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from benchmarks.harness import processor
from benchmarks.harness.shop import PATIENCE, Shop, spread, warm_up
from benchmarks.speed.step_functions import RESOURCES, definition
from benchmarks.speed.throughput import Found, report


@dataclass
class World:
    """Orders end in the order in which they were sent, so many at each look, a second apart."""

    at_once: int = 1
    now: float = 0.0
    most: int = 0
    waiting: list[str] = field(default_factory=list)

    def send(self, order_id: str) -> None:
        self.waiting.append(order_id)
        self.most = max(self.most, len(self.waiting))

    def hear(self) -> list[str]:
        self.now += 1.0
        given, self.waiting = self.waiting[: self.at_once], self.waiting[self.at_once :]
        return given

    def shop(self) -> Shop:
        return Shop(self.send, self.hear, clock=lambda: self.now)


def test_so_many_orders_are_under_way_and_no_more() -> None:
    world = World()
    rate, took = world.shop().carry(10, 4)
    assert (world.most, len(took), rate) == (4, 10, 1.0)
    assert took == [1.0, 2.0, 3.0] + [4.0] * 7
    assert world.waiting == []


def test_an_end_that_arrives_twice_or_of_another_is_not_counted() -> None:
    world = World()
    shop = world.shop()
    shop.top_up(1)
    [order_id] = world.waiting
    world.waiting = [order_id, "another"]
    world.at_once = 2
    assert list(shop.ended()) == [1.0]
    world.waiting = [order_id]
    assert list(shop.ended()) == []


def test_orders_that_do_not_end_are_an_error() -> None:
    world = World(at_once=0)
    with pytest.raises(TimeoutError, match="4 orders did not come to their end"):
        world.shop().carry(10, 4)
    assert world.now == PATIENCE + 1


def test_it_is_warm_once_no_worker_was_started_twice_in_a_row() -> None:
    seen: list[Sequence[int]] = [(1, 2), (1, 2, 3), (1, 2, 3), (1, 3, 4), (1, 3), (1, 3), (9,)]
    left = iter(seen)
    assert warm_up(World(at_once=20).shop(), 20, lambda: next(left)) == 6 * 40
    assert list(left) == [(9,)], "one that ended is no start"


def test_it_is_given_up_where_workers_never_stop_starting() -> None:
    numbers = iter(range(1000))
    assert warm_up(World(at_once=20).shop(), 20, lambda: [next(numbers)]) == 20 * 40


def test_percentiles_are_in_ms() -> None:
    assert spread([number / 1000 for number in range(101)]) == {"p50": 50, "p95": 95, "p99": 99}


def test_processor_time_is_read_whatever_a_process_is_called() -> None:
    head = "7 (a ) b (c) S 1 2 3 4 5 6 7 8 9 10"
    assert processor.ticks(f"{head} 300 45 0 0 20 0 1 0 99") == 345


def test_processor_time_is_that_of_all_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "PROC", tmp_path)
    monkeypatch.setattr(processor, "TICK", 10.0)
    for pid, user in ((11, 3), (12, 4)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (python) S{' 0' * 10} {user} 1 0")
    assert processor.processor_ms([11, 12, 13]) == 90, "the third has ended"


def test_the_state_machine_makes_the_four_calls_and_answers_the_application() -> None:
    made = definition({name: f"arn:{name}" for name in RESOURCES}, "http://queue")
    states = cast("dict[str, dict[str, object]]", made["States"])
    name, path = str(made["StartAt"]), []
    while "Next" in states[name]:
        path.append(name)
        name = str(states[name]["Next"])
    assert path == ["reservations", "charges", "shipments", "messages"]
    assert name == "completed"
    assert states[name]["End"] is True


def test_the_tables_have_ours_and_theirs_side_by_side() -> None:
    ours = Found(40, [0.1, 0.2], [0.3, 0.4], 5.0, 10.0, 30.0, 10.0)
    theirs = Found(80, [0.1, 0.1], [0.1, 0.1], 50.0, 1.0, 2.0, 1.0)
    made = report({"Roundsman": ours, "Step Functions": theirs}).text().splitlines()
    [idle] = [line for line in made if line.startswith("Roundsman, one at a time")]
    assert idle.split()[-3:] == ["150", "195", "199"]
    [busiest] = [line for line in made if line.startswith("Roundsman  ")]
    assert busiest.split()[1:6] == ["5", "10", "30", "10", "50"]
    [other] = [line for line in made if line.startswith("Step Functions  ")]
    assert other.split()[2] == "50"
