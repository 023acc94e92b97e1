"""Supervisors over the real stores: threads that overlap, and what a pass costs."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from roundsman.aws.dynamodb.codec import task_item
from roundsman.aws.dynamodb.control import DynamoAgentBoard, DynamoLeases, DynamoPlans
from roundsman.aws.dynamodb.groups import DynamoGroups
from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.engine.due import Lane, lane_key
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.task import Task
from roundsman.supervisor.supervisor import PassReport, Supervisor, SupervisorConfig
from roundsman_testing.dynamodb.schemas import Tables, create_tables
from roundsman_testing.faults import Faults, FaultyOutbox
from roundsman_testing.recording import RecordingOutbox, SentCommand
from tests.contract.samples import NOW, PLAN, SHARDS, born, claimed, completed, order_row
from tests.contract.test_races import together
from tests.contract.worlds import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import WriteRequestTypeDef

OVERDUE = 100
LATER = NOW + 31 * SECOND
DAY = 24 * 60 * MINUTE


# --- Threads -----------------------------------------------------------------------------------


def supervisor_in(
    world: World, outbox: RecordingOutbox, name: str, skew: int, shards: int
) -> Supervisor:
    def clock() -> int:
        return LATER + 7 * SECOND + skew

    return Supervisor(
        tasks=world.store,
        plans=world.plans(),
        board=world.board(clock)[0],
        groups=world.groups(),
        outbox=outbox,
        clock=clock,
        jitter=lambda: 0.0,
        config=SupervisorConfig(world.leases(), name, shards, MINUTE),
        on_trouble=lambda _, problem: pytest.fail(str(problem)),
    )


@pytest.mark.parametrize("shards", [1, SHARDS])
def test_supervisors_that_overlap_recover_each_task_once_whatever_their_clocks(
    atomic_world: World, shards: int
) -> None:
    names = [f"ord-{n}" for n in range(40)]
    atomic_world.plans().put_plan(PLAN)
    for name in names:
        task = (
            replace(born(name), shard=0, lane=lane_key(Lane.OPEN, 0)) if shards == 1 else born(name)
        )
        atomic_world.store.create(order_row(name), task)
        atomic_world.store.save(claimed(task), seen=1)
    outbox = RecordingOutbox()
    passes = [
        supervisor_in(atomic_world, outbox, f"u{n}", skew, shards).make_pass
        for n, skew in enumerate((-5 * SECOND, 0, 5 * SECOND))
    ]
    reports = together([partial(each, stop_at=LATER + DAY) for each in passes])
    assert sum(r.recovered for r in reports if isinstance(r, PassReport)) == len(names)
    for name in names:
        found = atomic_world.store.load(name, NOW)
        assert found is not None
        step = found.step("reserve_stock")
        assert (step.failure_count, step.uncounted_timeouts) == (0, 1), "its queue was never read"
        assert [row.kind for row in atomic_world.store.history(name)] == ["requeued"]
    starts = [s.task_id for s in outbox.sent if isinstance(s, SentCommand) and s.kind == "start"]
    assert sorted(starts) == sorted(names)


# --- What a pass costs -------------------------------------------------------------------------


def kept(number: int) -> Task:
    """A task that is over, that needs a person, or that is not due for a day."""
    task = born(f"kept-{number}")
    if number % 4 == 0:
        return replace(task, due_at=NOW + DAY, complete_by=NOW + DAY)
    if number % 4 == 1:
        return replace(task, lane=lane_key(Lane.ARCHIVED, task.shard))
    return completed(task, retain_for=DAY)


def fill(client: "DynamoDBClient", table: str, tasks: list[Task]) -> None:
    for first in range(0, len(tasks), 25):
        puts: list[WriteRequestTypeDef] = [
            {"PutRequest": {"Item": task_item(task)}} for task in tasks[first : first + 25]
        ]
        answer = client.batch_write_item(RequestItems={table: puts})
        assert not answer.get("UnprocessedItems")


@contextmanager
def counted(client: "DynamoDBClient") -> Iterator[Counter[str]]:
    """Counts the requests on the wire, by operation."""
    found: Counter[str] = Counter()

    def count(event_name: str, **_: object) -> None:
        found[event_name.rpartition(".")[2]] += 1

    client.meta.events.register("before-send.dynamodb", count)
    try:
        yield found
    finally:
        client.meta.events.unregister("before-send.dynamodb", count)


def cost_of_a_pass(client: "DynamoDBClient", tables: Tables, stored: int) -> Counter[str]:
    overdue = [claimed(born(f"late-{n}")) for n in range(OVERDUE)]
    fill(client, tables.tasks, [*overdue, *map(kept, range(stored - OVERDUE))])
    plans = DynamoPlans(client, control_table=tables.control, clock=lambda: NOW)
    plans.put_plan(PLAN)
    sends = Faults()
    supervisor = Supervisor(
        tasks=DynamoStore(
            client,
            orders_table=tables.orders,
            tasks_table=tables.tasks,
            history_table=tables.history,
        ),
        plans=plans,
        board=DynamoAgentBoard(client, control_table=tables.control, clock=lambda: LATER),
        groups=DynamoGroups(client, control_table=tables.control),
        outbox=FaultyOutbox(RecordingOutbox(), sends),
        clock=lambda: LATER,
        jitter=lambda: 0.5,
        config=SupervisorConfig(
            DynamoLeases(client, control_table=tables.control), "u1", SHARDS, MINUTE
        ),
        on_trouble=lambda _, problem: pytest.fail(str(problem)),
    )
    with counted(client) as found:
        report = supervisor.make_pass(stop_at=LATER + DAY)
    assert (report.recovered, report.finished) == (OVERDUE, True)
    return found + Counter(sends.calls)


def costs(world: World, name: str, stored: int) -> Counter[str]:
    return cost_of_a_pass(world.client, create_tables(world.client, name), stored)


@pytest.mark.parametrize("stored", [2_000, pytest.param(20_000, marks=pytest.mark.verify)])
def test_a_pass_makes_the_same_requests_over_a_thousand_tasks_as_over_many(
    local_world: World, stored: int
) -> None:
    few = costs(local_world, f"few{stored}", 1_000)
    many = costs(local_world, f"many{stored}", stored)
    assert few == many
    assert few == {
        "Query": SHARDS,
        "GetItem": 4 + OVERDUE,  # leases, failure groups, the agents' marks and holds, each task
        "PutItem": 5,  # the leases
        "TransactWriteItems": OVERDUE,  # each decision with its line of history
        "send_start": OVERDUE,
        "send_inspects": few["send_inspects"],
    }
    assert few["send_inspects"] <= SHARDS, "what was requeued is looked at again in half a minute"
