"""Eight instances of the real scheduler race over many tasks on DynamoDB's own engine.

Each message is given to all of them at the same moment, so nearly every claim is contended.
What wins is left to chance; what comes out is not.
"""

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest

from roundsman.aws.clock import now
from roundsman.model.events import Outcome
from roundsman.model.task import Task
from roundsman.wire.messages import AgentRequest, Reply
from tests.race.instances import Fleet, fleet, queue_of, start_of

pytestmark = pytest.mark.engine

INSTANCES = 8
FEW, TASKS = 60, 200

numbers = itertools.count(1)


@pytest.fixture
def racers(dynamodb_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    with fleet(monkeypatch, dynamodb_endpoint, f"race{next(numbers)}", INSTANCES) as made:
        yield made


def message_of_its_own(instance: int, body: int) -> str:
    """As if the same thing had been sent once for each instance."""
    return f"message-{instance}-{body}"


def same_message(instance: int, body: int) -> str:
    """As if one message had been delivered to each instance."""
    return f"message-{body}"


def tasks(racers: Fleet, ids: list[str]) -> list[Task]:
    found = [racers.store.load(task_id, now()) for task_id in ids]
    return [task for task in found if task is not None]


def locks(requests: list[AgentRequest]) -> dict[str, str]:
    """The lock token in each task's request."""
    return {request.task_id: request.lock for request in requests}


def reply_to(request: AgentRequest) -> str:
    return Reply(
        task_id=request.task_id,
        step=request.step,
        operation=request.operation,
        lock=request.lock,
        idempotency_key=request.idempotency_key,
        outcome=Outcome.SUCCEEDED,
        agent="inventory",
        finished_at=now(),
        result={"reservationId": "r-1"},
    ).body()


def assert_claimed_once(racers: Fleet, ids: list[str], step: str, agent: str, version: int) -> None:
    """Each task made exactly one more decision, which claimed the step, and sent one request."""
    stored = tasks(racers, ids)
    assert len(stored) == len(ids)
    assert Counter(task.version for task in stored) == {version: len(ids)}
    assert {task.step(step).process_state for task in stored} == {"Processing"}
    requests = racers.sent.requests(agent)
    assert Counter(r.task_id for r in requests) == Counter(ids), "one request each"
    assert locks(requests) == {task.task_id: task.step(step).locked_by for task in stored}


def winners(racers: Fleet, ids: list[str], step: str) -> set[str]:
    """The instances that won a claim."""
    return {str(task.step(step).locked_by).partition("-")[0] for task in tasks(racers, ids)}


@pytest.mark.parametrize("count", [FEW, pytest.param(TASKS, marks=pytest.mark.verify)])
def test_each_task_is_claimed_once_and_each_step_is_asked_for_once_also_by_repeated_replies(
    racers: Fleet, count: int
) -> None:
    ids = racers.seed(count, now())

    racers.race("race-SchedulerQueue", [start_of(task_id) for task_id in ids], message_of_its_own)
    assert_claimed_once(racers, ids, "reserve_stock", "inventory", version=2)
    assert len(winners(racers, ids, "reserve_stock")) > 1, "it was a race"

    replies = [reply_to(request) for request in racers.sent.requests("inventory")]
    racers.race("race_InventoryReplyQueue", replies, message_of_its_own)
    assert_claimed_once(racers, ids, "charge_card", "payment", version=3)
    assert {t.step("reserve_stock").process_state for t in tasks(racers, ids)} == {"Processed"}
    assert set(racers.sent.by_queue) == {queue_of("inventory"), queue_of("payment")}


def test_one_message_delivered_to_all_claims_once_and_repeats_only_its_own_request(
    racers: Fleet,
) -> None:
    ids = racers.seed(TASKS // 4, now())
    racers.race("race-SchedulerQueue", [start_of(task_id) for task_id in ids], same_message)
    stored = tasks(racers, ids)
    assert Counter(task.version for task in stored) == {2: len(ids)}
    claimed = {(t.task_id, t.step("reserve_stock").locked_by) for t in stored}
    requests = racers.sent.requests("inventory")
    assert {(r.task_id, r.lock) for r in requests} == claimed
    assert len({r.idempotency_key for r in requests}) == len(ids)
