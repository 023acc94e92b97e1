"""The faults of the stack, as one record."""

from dataclasses import replace

from roundsman.aws.dynamodb.stack_faults import DynamoStackFaults
from roundsman.errors import UnreadableRecord
from roundsman.model.stack_faults import StackFault, StackFaults
from tests.contract.samples import NOW
from tests.contract.test_races import together
from tests.contract.worlds import World

FAULT = StackFault("dead_letters", "SchedulerQueue", NOW, 3, NOW + 1, NOW + 2, NOW + 3)
FIRST = StackFaults(1, {"dead_letters/SchedulerQueue": FAULT})


def faults_of(world: World) -> DynamoStackFaults:
    return DynamoStackFaults(world.client, control_table=world.tables.control)


def test_faults_are_read_back_as_they_were_written(world: World) -> None:
    store = faults_of(world)
    assert store.read() == StackFaults()
    assert store.write(FIRST, seen=0)
    assert store.read() == FIRST
    second = StackFaults(
        2, {"backlog/MailRequestQueue": StackFault("backlog", "MailRequestQueue", NOW, 1)}
    )
    assert store.write(second, seen=1)
    assert store.read() == second


def test_faults_that_another_wrote_meanwhile_are_not_overwritten(world: World) -> None:
    store = faults_of(world)
    store.write(FIRST, seen=0)
    for seen in (0, 2):
        assert not store.write(replace(FIRST, version=seen + 1, by_key={}), seen=seen)
    assert store.read() == FIRST


def test_of_eight_writers_on_one_version_exactly_one_is_stored(atomic_world: World) -> None:
    store = faults_of(atomic_world)
    calls = [lambda: store.write(FIRST, seen=0) for _ in range(8)]
    assert sorted(map(bool, together(calls))) == [False] * 7 + [True]


def test_a_fault_that_cannot_be_read_is_reported_and_hides_no_other(world: World) -> None:
    problems: list[UnreadableRecord] = []
    store = DynamoStackFaults(
        world.client, control_table=world.tables.control, on_unreadable=problems.append
    )
    unknown = replace(FAULT, kind="of newer code")
    store.write(replace(FIRST, by_key={**FIRST.by_key, "x": unknown}), seen=0)
    assert store.read() == FIRST
    assert len(problems) == 1
