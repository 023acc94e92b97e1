"""What no submission takes, a world puts aside as well, with the reason."""

import pytest

from roundsman import Json
from roundsman.errors import Problem
from roundsman_testing import TaskState, World
from tests.unit.testing.samples import SHOP

ODD_IDS = ("a/b", "a#1", "a b", "\xe9", "x" * 129, "\ud800", "", "a\n", "a+b")
OF_IDS = "must be 1 to 128 letters, digits or any of . _ ~ -"


def problems(world: World) -> list[Problem]:
    return [problem for aside in world.post.put_aside for problem in aside.problems]


def nested(levels: int) -> Json:
    found: Json = "deep"
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize("order_id", ODD_IDS)
def test_an_order_whose_id_no_submission_takes_is_put_aside_once(order_id: str) -> None:
    world = World(SHOP)
    assert world.submit({"orderId": order_id, "total": "1"}) == order_id
    world.run()
    assert Problem("orderId", OF_IDS) in problems(world)
    assert len(world.post.put_aside) == 1
    assert world.processes.watch.tasks == {}
    with pytest.raises(LookupError, match=r"was never taken; rejected: .* orderId: must be 1 to"):
        world.task(order_id)


@pytest.mark.parametrize("order_id", ["a", "x" * 128, "Ord-1.2_3~4"])
def test_an_order_with_any_other_id_is_taken(order_id: str) -> None:
    world = World(SHOP)
    world.submit({"orderId": order_id})
    assert world.run().task(order_id).state is TaskState.COMPLETED


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"note": "\ud800 half"}, "a text or a name has half of a surrogate pair"),
        ({"\udfff": 1}, "a text or a name has half of a surrogate pair"),
        ({"note": "\ud800 half", "n": 10**400}, "a text or a name has half of a surrogate pair"),
        ({"deep": nested(24)}, "nested deeper than 24 levels"),
        ({"deep": nested(20)}, "nested 21 levels; at most 20 are allowed"),
        ({"note": "x" * 200 * 1024}, "at most 204800 are allowed"),
        ({"note": "\xe9" * 103 * 1024}, "at most 204800 are allowed"),
    ],
)
def test_an_order_that_no_submission_reads_is_put_aside(content: dict[str, Json], why: str) -> None:
    world = World(SHOP)
    order_id = world.submit(content)
    world.run()
    assert why in str(problems(world)[0])
    with pytest.raises(LookupError, match=why):
        world.task(order_id)


@pytest.mark.parametrize(
    "content",
    [
        {"n": 10**400},  # Python reads and writes it, and so do the functions
        {"deep": nested(19)},
        {"note": "x" * 199 * 1024},
        {"note": "\U0001f600 \x00 \uffff"},
    ],
)
def test_an_order_that_submission_reads_is_taken(content: dict[str, Json]) -> None:
    world = World(SHOP)
    order_id = world.submit(content)
    assert world.run().task(order_id).state is TaskState.COMPLETED


def test_all_that_is_wrong_is_reported_at_once_and_each_time_it_is_sent() -> None:
    world = World(SHOP)
    for _ in range(2):
        world.submit({"orderId": "a b", "note": "\ud800"})
    world.run()
    assert [len(aside.problems) for aside in world.post.put_aside] == [2, 2]
