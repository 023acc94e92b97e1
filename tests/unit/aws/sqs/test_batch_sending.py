"""What the messages of one batch send: together, and each done once its own was accepted."""

import json
from collections.abc import Callable
from typing import cast

import pytest

from roundsman.aws.sqs.batch import LONGEST_WAIT, Message
from roundsman.aws.sqs.outbox import AwsOutbox
from roundsman.aws.sqs.outgoing import OutgoingMessage
from roundsman.aws.sqs.send_buffer import SendBuffer
from roundsman.errors import InvalidMessage, Problem, TryAgain
from roundsman.wire.messages import AgentRequest
from roundsman_testing.faults import Crash
from tests.support.batch_world import BESIDE, MAX_RECEIVES, SENT_AT, Batch, Queue

OUT = f"{BESIDE.rpartition('/')[0]}/out"


def batch_of(count: int) -> Batch:
    """Each message sends `<its id>`, but for those whose body says otherwise."""
    batch = Batch(lambda message: None, Queue({f"id-{n}": f"body {n}" for n in range(count)}))

    def handle(message: Message) -> None:
        assert batch.send_buffer.send(OUT, [OutgoingMessage(message.message_id)]) == []

    batch.handle = handle
    return batch


def ids(count: int) -> list[str]:
    return [f"id-{n}" for n in range(count)]


@pytest.mark.parametrize("count", [2, 5, 10])
def test_what_a_batch_sends_to_a_queue_is_one_request(count: int) -> None:
    batch = batch_of(count)
    assert batch.invoke() == []
    assert batch.queue.did == [("out", *ids(count))]
    assert batch.queue.bodies == {}


def test_each_queue_has_its_own_request() -> None:
    batch = batch_of(4)

    def handle(message: Message) -> None:
        batch.send_buffer.send(
            f"{OUT}-{int(message.message_id[-1]) % 2}", [OutgoingMessage("a"), OutgoingMessage("b")]
        )

    batch.handle = handle
    batch.invoke()
    assert batch.queue.did == [("out-0", "a", "b", "a", "b"), ("out-1", "a", "b", "a", "b")]


def test_outside_of_a_batch_nothing_waits() -> None:
    queue = Queue({}, refused={"no": "InvalidMessageContents"})
    send_buffer = SendBuffer(queue.client)
    assert send_buffer.send(OUT, [OutgoingMessage("a")]) == []
    assert queue.did == [("out", "a")]
    assert len(send_buffer.send(OUT, [OutgoingMessage("no")])) == 1


@pytest.mark.parametrize(
    ("code", "level"), [("RequestThrottled", "WARNING"), ("InvalidMessageContents", "ERROR")]
)
def test_of_a_request_accepted_in_part_only_what_was_not_comes_again(
    code: str, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = batch_of(5)
    batch.queue.refused = {"id-3": code}
    assert batch.invoke() == ["id-3"]
    assert batch.queue.did == [("out", "id-0", "id-1", "id-2", "id-4")]
    assert set(batch.queue.bodies) == {"id-3"}
    [line] = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert (line["level"], line["message_id"]) == (level, "id-3")
    batch.queue.refused = {}
    assert batch.invoke() == []
    assert batch.queue.did[1:] == [("out", "id-3")]


def test_where_nothing_is_accepted_only_those_that_sent_nothing_are_done() -> None:
    batch = batch_of(3)
    send = batch.handle
    batch.handle = lambda message: None if message.message_id == "id-1" else send(message)
    batch.queue.broken = True
    assert batch.invoke() == ["id-0", "id-2"]


def test_what_fails_keeps_back_nothing_that_it_or_another_had_to_send() -> None:
    batch = batch_of(3)
    send = batch.handle

    def fail_after(message: Message) -> None:
        send(message)
        if message.message_id == "id-1":
            raise TryAgain("its status")

    batch.handle = fail_after
    assert batch.invoke() == ["id-1"]
    assert batch.queue.did == [("out", *ids(3))]


def test_poison_in_a_batch_is_put_aside_and_the_others_are_sent_for() -> None:
    batch = batch_of(4)
    send = batch.handle

    def poisoned(message: Message) -> None:
        if message.message_id == "id-2":
            raise InvalidMessage([Problem("", "not JSON")])
        send(message)

    batch.handle = poisoned
    assert batch.invoke() == []
    assert batch.queue.did == [("out", "id-0", "id-1", "id-3")]
    assert len(batch.rejected()) == 1


# --- Where the process dies ------------------------------------------------------------------


def dying_at(batch: Batch, message_id: str) -> Callable[[Message], None]:
    send = batch.handle

    def handle(message: Message) -> None:
        if message.message_id == message_id:
            raise Crash(message_id)
        send(message)

    return handle


def test_what_was_not_sent_when_the_process_died_is_sent_with_the_redelivery() -> None:
    batch = batch_of(3)
    send = batch.handle
    batch.handle = dying_at(batch, "id-2")
    with pytest.raises(Crash):
        batch.invoke()
    assert batch.queue.did == []
    batch.handle = send
    assert batch.invoke() == []
    assert sorted(sent for where, *sent in batch.queue.did if where == "out") == [
        [each] for each in ids(3)
    ]


def test_what_a_dead_batch_left_is_not_the_next_ones_to_send() -> None:
    batch = batch_of(4)
    send = batch.handle
    batch.handle = dying_at(batch, "id-1")
    with pytest.raises(Crash):
        batch.invoke(["id-0", "id-1"])
    batch.handle = send
    assert batch.invoke(["id-2", "id-3"]) == []
    assert batch.queue.did == [("out", "id-2", "id-3")]


def test_in_a_batch_that_came_back_each_is_deleted_after_its_own_was_sent() -> None:
    batch = batch_of(3)
    batch.queue.receives = dict.fromkeys(batch.queue.bodies, 1)
    assert batch.invoke() == []
    assert batch.queue.did == [(what, each) for each in ids(3) for what in ("out", "delete")]


def test_in_a_batch_that_came_back_what_was_not_accepted_is_not_deleted() -> None:
    batch = batch_of(3)
    batch.queue.receives = dict.fromkeys(batch.queue.bodies, 1)
    batch.queue.refused = {"id-1": "RequestThrottled"}
    assert batch.invoke() == ["id-1"]
    assert batch.queue.deleted == ["id-0", "id-2"]


def test_what_is_never_accepted_is_a_dead_letter_after_its_last_delivery() -> None:
    batch = batch_of(2)
    batch.queue.refused = {"id-1": "RequestThrottled"}
    for _ in range(MAX_RECEIVES):
        assert batch.queue.letters == []
        batch.invoke()
    [letter] = batch.queue.letters
    assert "sending a message to out: RequestThrottled" in str(letter)
    assert batch.queue.bodies == {}


# --- Waiting, and the order of sending -------------------------------------------------------


def test_nothing_waits_for_a_neighbour_for_longer_than_a_second() -> None:
    batch = batch_of(3)
    send = batch.handle

    def slowly(message: Message) -> None:
        send(message)
        batch.now += LONGEST_WAIT // 2

    batch.handle = slowly
    assert batch.invoke() == []
    assert batch.queue.did == [("out", "id-0", "id-1"), ("out", "id-2")]


def test_requests_go_before_a_status_and_starts_need_not() -> None:
    queue = Queue({})
    outbox = AwsOutbox(
        queue.client,
        scheduler_queue=f"{OUT}-SchedulerQueue",
        reply_prefix="out-reply-",
    )
    with outbox.send_buffer.opened():
        outbox.send_requests([("mail", "normal", request())])
        assert [where for where, _ in queue.did] == ["out_MailRequestQueue"]  # the first, at once
        queue.did.clear()
        outbox.send_requests([("mail", "normal", request())])
        outbox.send_start("ord-1")
        assert queue.did == []
        assert outbox.send_status(f"{OUT}-reply-web", "{}")
        assert [where for where, _ in queue.did] == ["out_MailRequestQueue", "out-reply-web"]
        outbox.send_buffer.flush()
    assert [where for where, _ in queue.did][2:] == ["out-SchedulerQueue"]


def of_requests_and_statuses(batch: Batch) -> None:
    """The first message has a request sent, each other one a status.

    The request is not the instance's first to its queue, so it waits in the batch's buffer.
    """
    outbox = AwsOutbox(
        batch.queue.client,
        scheduler_queue=f"{OUT}-SchedulerQueue",
        reply_prefix="out-reply-",
    )
    batch.send_buffer = outbox.send_buffer
    outbox.send_requests([("mail", "normal", request())])
    batch.queue.did.clear()

    def handle(message: Message) -> None:
        if message.message_id == "id-0":
            outbox.send_requests([("mail", "normal", request())])
        else:
            outbox.send_status(f"{OUT}-reply-web", message.message_id)

    batch.handle = handle


def test_what_a_status_pushed_out_and_was_not_accepted_is_its_own_messages_failure() -> None:
    batch = batch_of(3)
    of_requests_and_statuses(batch)
    batch.queue.refused = {request().body(): "RequestThrottled"}

    assert batch.invoke() == ["id-0"]
    assert batch.queue.did == [("out-reply-web", "id-1"), ("out-reply-web", "id-2")]


def test_what_a_status_could_not_push_out_for_a_reason_nobody_foresaw_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = batch_of(2)
    of_requests_and_statuses(batch)
    send, odd = batch.queue.send_message, iter([ZeroDivisionError()])

    def once_odd(**sent: object) -> None:
        for each in odd:
            raise each
        send(**sent)

    monkeypatch.setattr(batch.queue, "send_message", once_odd)

    assert batch.invoke() == ["id-1"]
    assert batch.queue.did == [("out_MailRequestQueue", request().body())], (
        "the first one's, which is done"
    )


def request() -> AgentRequest:
    return AgentRequest(
        task_id="ord-1",
        workflow="order_fulfilment",
        step="mail",
        operation="perform",
        lock="7f3a-0c1d2e3f4a.1",
        idempotency_key="ord-1/mail/perform",
        attempt=1,
        complete_by=SENT_AT + 60_000,
        input={},
        results={},
        sent_at=SENT_AT,
    )


# --- What SQS never made ---------------------------------------------------------------------


def test_what_is_no_message_takes_no_message_with_it() -> None:
    batch = batch_of(1)
    event = batch.queue.event(["id-0"])
    records = cast("list[object]", event["Records"])
    event["Records"] = [None, "text", {}, {"messageId": "id-7", "body": 7}, *records]
    assert batch.handle_these(event) == ["id-7"]
    assert batch.queue.did == [("out", "id-0")]


@pytest.mark.parametrize("attributes", [None, [], {"ApproximateReceiveCount": "often"}])
def test_what_sqs_says_of_a_message_may_be_missing(attributes: object) -> None:
    batch = batch_of(1)
    event = batch.queue.event(["id-0"])
    [record] = cast("list[dict[str, object]]", event["Records"])
    record["attributes"] = attributes
    assert batch.handle_these(event) == []
