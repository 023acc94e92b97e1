"""How a client waits for the end of an order, on a clock of the test, and sends a signal."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from roundsman.client import (
    Client,
    InvalidCall,
    OrderEnded,
    OrderOpen,
    OrderRejected,
    OrderRemoved,
    OrderStatus,
    OrderUnknown,
    WaitResult,
)
from roundsman.errors import Problem, TryAgain
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

    from roundsman.aws.dynamodb.tasks import DynamoStore

Read = OrderStatus | None | TryAgain


def status(state: TaskState, version: int = 1, **steps: ProcessState) -> OrderStatus:
    ended = state in (TaskState.COMPLETED, TaskState.UNDONE)
    return OrderStatus(
        order_id="ord-1",
        workflow="story",
        state=state,
        reason=None,
        steps=steps,
        submitted_at=1,
        complete_by=2,
        ended_at=2 if ended else None,
        version=version,
    )


PENDING, ACTIVE = status(TaskState.PENDING), status(TaskState.ACTIVE, 2)
DONE = status(TaskState.COMPLETED, 3)


@dataclass
class Waiting:
    """A client whose reads are given, the last one for ever, and a clock that only sleep moves."""

    reads: list[Read]
    now: float = 0.0
    slept: list[float] = field(default_factory=list)
    changes: list[OrderStatus] = field(default_factory=list)
    rejected: OrderRejected | None = None
    """The rejection that is kept."""
    stored: bool = False
    """Whether the order itself is stored."""
    asked: list[str | None] = field(default_factory=list)
    """The messages whose rejection was asked for."""

    def __post_init__(self) -> None:
        self._next = self._read()

    def _read(self) -> Iterator[Read]:
        yield from self.reads
        while True:
            yield self.reads[-1]

    def status(self, order_id: str) -> OrderStatus | None:
        assert order_id == "ord-1"
        found = next(self._next)
        if isinstance(found, TryAgain):
            raise found
        return found

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def _rejection(self, order_id: str, message_id: str | None) -> OrderRejected | None:
        assert order_id == "ord-1"
        self.asked.append(message_id)
        return self.rejected

    def has_order(self, order_id: str) -> bool:
        assert order_id == "ord-1"
        return self.stored

    def ends(self, timeout: float) -> WaitResult:
        client = Client({"OrdersTableName": "orders"})
        client.status = self.status  # type: ignore[method-assign]  # the reads are the test's
        client._rejection = self._rejection  # type: ignore[method-assign]  # as above
        client._store = lambda: cast("DynamoStore", self)  # type: ignore[method-assign]  # as above
        return client.wait(
            "ord-1",
            timeout=timedelta(seconds=timeout),
            on_change=self.changes.append,
            sleep=self.sleep,
            moment=lambda: self.now,
        )


def test_it_waits_until_the_order_has_ended_and_tells_each_change() -> None:
    waiting = Waiting([None, PENDING, PENDING, ACTIVE, DONE])
    assert waiting.ends(60) == OrderEnded(DONE)
    assert waiting.changes == [PENDING, ACTIVE, DONE]
    assert waiting.slept == [0.25, 0.375, 0.5625, 0.84375]


def test_its_looks_become_rarer_up_to_a_quarter_of_a_minute() -> None:
    waiting = Waiting([PENDING])
    assert waiting.ends(600) == OrderOpen(PENDING)
    assert waiting.slept[11:15] == [15.0] * 4
    assert waiting.now == 600
    assert len(waiting.slept) < 60


def test_a_time_that_is_over_gives_the_state_that_was_read_last() -> None:
    waiting = Waiting([PENDING, ACTIVE])
    assert waiting.ends(1) == OrderOpen(ACTIVE)
    assert waiting.now == 1


def test_an_order_that_has_ended_is_looked_at_once() -> None:
    waiting = Waiting([DONE])
    assert waiting.ends(0) == OrderEnded(DONE)
    assert waiting.slept == []


def test_an_order_that_is_never_known_is_waited_for_to_the_end() -> None:
    waiting = Waiting([None])
    assert waiting.ends(2) == OrderUnknown("ord-1")
    assert waiting.now == 2


def test_a_task_that_is_gone_has_ended() -> None:
    waiting = Waiting([PENDING, None])
    assert waiting.ends(600) == OrderRemoved("ord-1")
    assert waiting.slept == [0.25]
    assert waiting.changes == [PENDING]


def test_an_order_whose_task_was_removed_before_the_first_look_has_ended() -> None:
    waiting = Waiting([None], stored=True)
    assert waiting.ends(600) == OrderRemoved("ord-1")
    assert waiting.slept == []


def test_an_order_that_is_stored_between_two_reads_has_not_ended() -> None:
    waiting = Waiting([None, PENDING, DONE], stored=True)
    assert waiting.ends(600) == OrderEnded(DONE)
    assert waiting.changes == [PENDING, DONE]


REJECTED = OrderRejected("ord-1", (Problem("currency", "is unknown"),), 1)


def test_a_rejection_is_said_at_once() -> None:
    waiting = Waiting([None], rejected=REJECTED)
    assert waiting.ends(600) is REJECTED
    assert waiting.slept == []


def test_a_client_remembers_the_messages_that_it_sent_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rejection of an order that it has forgotten is that of any event of the order."""
    monkeypatch.setattr("roundsman.client.MOST_SENT", 2)
    asked = dict[str, str | None]()
    messages = count(1)
    client = Client({"OrdersTableName": "orders"})
    found = SimpleNamespace(has_order=lambda _: False)
    monkeypatch.setattr(client, "submit_text", lambda _: f"m-{next(messages)}")
    monkeypatch.setattr(client, "status", lambda _: None)
    monkeypatch.setattr(client, "_rejection", asked.__setitem__)
    monkeypatch.setattr(client, "_store", lambda: found)
    for order in ("ord-1", "ord-2", "ord-1", "ord-3"):
        client.submit({"orderId": order})
    for order in ("ord-1", "ord-2", "ord-3"):
        client.wait(order, timeout=timedelta())
    assert asked == {"ord-1": "m-3", "ord-2": None, "ord-3": "m-4"}


def test_an_order_counts_before_a_rejection_of_another_event_with_its_id() -> None:
    assert Waiting([DONE], rejected=REJECTED).ends(600) == OrderEnded(DONE)
    assert Waiting([None], rejected=REJECTED, stored=True).ends(600) == OrderRemoved("ord-1")
    assert Waiting([None, PENDING, DONE], rejected=REJECTED, stored=True).ends(600) == OrderEnded(
        DONE
    )


def test_a_read_that_fails_for_now_is_made_again() -> None:
    waiting = Waiting([TryAgain("throttled"), PENDING, TryAgain("throttled"), DONE])
    assert waiting.ends(60) == OrderEnded(DONE)
    assert waiting.changes == [PENDING, DONE]


def test_a_read_that_fails_to_the_end_is_raised() -> None:
    waiting = Waiting([PENDING, TryAgain("throttled")])
    with pytest.raises(TryAgain, match="throttled"):
        waiting.ends(5)
    assert waiting.now == 5


@pytest.mark.parametrize(
    ("wait", "error"),
    [
        (lambda: Client({}).wait("ord-1", timeout=5), TypeError),  # type: ignore[arg-type]  # meant
        (lambda: Client({}).wait("ord-1", timeout=timedelta(seconds=-1)), ValueError),
    ],
)
def test_a_wrong_time_is_refused(wait: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error, match="timeout must"):
        wait()


# --- signals --------------------------------------------------------------------------------------


class Queue:
    """Stands for SQS: keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Json]] = []

    def send_message(
        self, *, QueueUrl: str, MessageBody: str
    ) -> dict[str, str]:  # the names of boto3
        self.sent.append((QueueUrl, json.loads(MessageBody)))
        return {"MessageId": "m-1"}


def client_of(queue: Queue) -> Client:
    return Client({"SubmissionQueueUrl": "orders"}, sqs=cast("SQSClient", queue))


def test_a_signal_goes_to_the_queue_of_the_orders() -> None:
    queue = Queue()
    client = client_of(queue)
    assert client.signal("ord-1", "paid", {"amount": 40}, signal_id="pay-7") == "pay-7"
    new = [client.signal("ord-1", "paid") for _ in range(2)]
    assert new[0] != new[1]  # two equal payments are two
    assert queue.sent == [
        (
            "orders",
            {"orderId": "ord-1", "signal": {"name": "paid", "data": {"amount": 40}, "id": "pay-7"}},
        ),
        *(
            ("orders", {"orderId": "ord-1", "signal": {"name": "paid", "data": None, "id": one}})
            for one in new
        ),
    ]


@pytest.mark.parametrize(
    ("order_id", "name", "data", "signal_id", "why"),
    [
        ("no spaces", "paid", None, None, "orderId must be 1 to 128"),
        ("ord-1", "Paid", None, None, "The name of a signal must be 1 to 40 characters"),
        ("ord-1", "paid", None, "a b", "The id of a signal must be 1 to 64 ASCII"),
        ("ord-1", "paid", None, "x" * 65, "The id of a signal must be 1 to 64 ASCII"),
        ("ord-1", "paid", "x" * 4_095, None, "has 4097 bytes; it may have at most 4096"),
        ("ord-1", "paid", {1, 2}, None, "The data of the signal to ord-1 is not JSON"),
        ("ord-1", "paid", float("nan"), None, "The data of the signal to ord-1 is not JSON"),
    ],
)
def test_a_wrong_signal_is_refused_before_it_is_sent(
    order_id: str, name: str, data: object, signal_id: str | None, why: str
) -> None:
    queue = Queue()
    with pytest.raises(InvalidCall, match=why):
        client_of(queue).signal(order_id, name, cast("Json", data), signal_id=signal_id)
    assert not queue.sent
