"""Batches of messages: each handled by itself, and none taking its neighbours with it."""

import json
from typing import cast

import pytest

from roundsman.aws.sqs.batch import Message, handle_batch, one_by_one
from roundsman.aws.sqs.dead_letters import DeadLetters
from roundsman.aws.sqs.send_buffer import SendBuffer
from roundsman.errors import InvalidMessage, Problem, TryAgain
from roundsman_testing.faults import Crash, Fault
from roundsman_testing.recording import RecordingOutbox, SentRejection
from tests.support.batch_world import (
    BESIDE,
    CANARY,
    MAX_RECEIVES,
    QUEUE,
    SENT_AT,
    THREE_HOURS,
    Batch,
    Queue,
    letters,
    raising,
)


def test_a_message_is_handed_on_with_its_id_and_the_name_of_its_queue() -> None:
    seen: list[Message] = []
    batch = Batch(seen.append, Queue({"id-0": "text"}))
    assert batch.invoke() == []
    assert seen == [Message("text", "id-0", QUEUE, sent_at=SENT_AT)]


@pytest.mark.parametrize(
    ("attributes", "sender"),
    [
        ({"SenderId": "AROAOPS:ann"}, "AROAOPS:ann"),
        ({"SenderId": ""}, None),
        ({"SenderId": 5}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_message_is_handed_on_with_the_sender_that_sqs_authenticated(
    attributes: object, sender: str | None
) -> None:
    seen: list[Message] = []
    batch = Batch(seen.append, Queue({"id-0": '{"sender": "AROAFORGED:x"}'}))
    event = batch.queue.event(["id-0"])
    records = cast("list[dict[str, object]]", event["Records"])
    records[0]["attributes"] = attributes
    batch.handle_these(event)
    assert [message.sender for message in seen] == [sender]


def test_a_message_that_comes_again_says_so() -> None:
    seen: list[Message] = []
    batch = Batch(raising(KeyError("x"), at="id-0"), Queue({"id-0": "text"}))
    assert batch.invoke() == ["id-0"]
    batch.handle = seen.append
    batch.invoke()
    assert seen == [Message("text", "id-0", QUEUE, redelivered=True, sent_at=SENT_AT)]


@pytest.mark.parametrize("event", [{"Records": []}, {}, {"Records": None}])
def test_an_event_without_messages_is_answered_and_logged(
    event: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    answer = handle_batch(
        event,
        handle=one_by_one(raising(AssertionError(), at="")),
        outbox=RecordingOutbox(),
        send_buffer=SendBuffer(Queue({}).client),
        queue_url_beside=BESIDE,
        dead_letters=DeadLetters(Queue({}).client),
    )
    assert answer == {"batchItemFailures": []}
    assert "the event has no messages" in capsys.readouterr().out


def test_a_malformed_message_is_put_aside_with_its_reason_and_acknowledged() -> None:
    problems = [Problem("taskId", "missing"), Problem("kind", "must be one of start, inspect")]
    batch = Batch(raising(InvalidMessage(problems), at="id-1"), Queue(letters(4)))
    body = batch.queue.bodies["id-1"]
    assert batch.invoke() == []
    assert batch.rejected() == [SentRejection(QUEUE, body, tuple(problems))]
    assert batch.handled == ["id-0", "id-2", "id-3"]


def test_a_malformed_message_that_cannot_be_put_aside_comes_again_and_alone() -> None:
    for fault in (Fault.NOT_DONE, Fault.REFUSED, Fault.UNKNOWN):
        problem = InvalidMessage([Problem("", "not JSON")])
        batch = Batch(raising(problem, at="id-1"), Queue(letters(4)))
        batch.faults.on("reject", fault)
        assert batch.invoke() == ["id-1"]
        assert batch.handled == ["id-0", "id-2", "id-3"]


@pytest.mark.parametrize("problem", [TryAgain("throttled"), KeyError("x"), RecursionError()])
def test_what_may_succeed_later_comes_again_and_alone(problem: Exception) -> None:
    batch = Batch(raising(problem, at="id-1"), Queue(letters(4)))
    assert batch.invoke() == ["id-1"]
    assert batch.handled == ["id-0", "id-2", "id-3"]
    assert batch.outbox.sent == []


def test_a_batch_of_which_everything_fails_is_answered_and_raises_nothing() -> None:
    def fail(message: Message) -> None:
        raise TryAgain("throttled")

    batch = Batch(fail, Queue(letters(3)))
    assert batch.invoke() == ["id-0", "id-1", "id-2"]


# --- Logs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem",
    [
        ValueError(f"could not read {CANARY}"),
        TryAgain("ord-1: throttled"),
        InvalidMessage([Problem("lines[0].quantity", f"{CANARY} is not a number")]),
        InvalidMessage([Problem(f"lines[0].{CANARY}", "unknown field")]),
    ],
)
def test_no_log_line_holds_the_contents_of_a_message(
    problem: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = Batch(raising(problem, at="id-0"), Queue(letters(1)))
    batch.invoke()
    written = capsys.readouterr()
    assert CANARY not in written.out + written.err
    [line] = [json.loads(text) for text in written.out.splitlines()]
    assert line["level"] in ("WARNING", "ERROR")
    assert (line["queue"], line["message_id"]) == (QUEUE, "id-0")


def test_an_unexpected_error_is_logged_by_its_type_and_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    batch = Batch(raising(ZeroDivisionError(CANARY), at="id-0"), Queue(letters(1)))
    batch.invoke()
    line = json.loads(capsys.readouterr().out)
    assert line["level"] == "ERROR"
    assert line["error_type"] == "ZeroDivisionError"
    assert any("batch_world.py" in frame for frame in line["error_at"])


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.REFUSED])
def test_a_message_that_cannot_be_put_aside_is_logged(
    fault: Fault, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = Batch(raising(InvalidMessage([Problem("", "no")]), at="id-0"), Queue(letters(1)))
    batch.faults.on("reject", fault)
    batch.invoke()
    written = capsys.readouterr().out
    assert written, "it comes again and may end in the dead-letter queue: someone must see why"
    assert CANARY not in written


# --- A message that kills the process --------------------------------------------------------


def deliver_until_quiet(batch: Batch, poison: str) -> int:
    """Redeliver what is left until only the poison is; how often it was received by then."""
    for _ in range(MAX_RECEIVES):
        try:
            batch.invoke()
        except Crash:
            if set(batch.queue.bodies) == {poison}:
                return batch.queue.receives[poison]
    raise AssertionError(f"left: {batch.queue.bodies}")


@pytest.mark.parametrize("position", range(10))
def test_a_message_that_kills_the_process_takes_no_innocent_along(position: int) -> None:
    poison = f"id-{position}"
    batch = Batch(raising(Crash("out of memory"), at=poison), Queue(letters(10)))
    assert deliver_until_quiet(batch, poison) <= 3
    assert set(batch.handled) == set(letters(10)) - {poison}
    assert batch.queue.dead == []


def test_the_poison_ends_in_its_dead_letter_queue_alone() -> None:
    batch = Batch(raising(Crash(), at="id-4"), Queue(letters(10), max_receives=THREE_HOURS))
    for _ in range(THREE_HOURS + 1):
        try:
            batch.invoke()
        except Crash:
            continue
    assert batch.queue.dead == ["id-4"]
    assert batch.queue.bodies == {}


def test_newcomers_in_the_poisons_batch_are_safe_as_well() -> None:
    batch = Batch(raising(Crash(), at="m-poison"), Queue({"m-poison": "body"}))
    for round_ in range(MAX_RECEIVES + 4):
        for n in range(4):
            batch.queue.bodies[f"{'az'[n % 2]}-{round_}-{n}"] = "body"
        try:
            batch.invoke()
        except Crash:
            continue
    assert batch.queue.dead == ["m-poison"]
    assert batch.queue.bodies == {}


def test_a_first_delivery_deletes_nothing_by_itself() -> None:
    batch = Batch(lambda message: None, Queue(letters(10)))
    assert batch.invoke() == []
    assert batch.queue.deleted == [], "the answer of the batch acknowledges; that costs nothing"


def test_what_failed_in_a_redelivered_batch_is_not_deleted() -> None:
    batch = Batch(raising(TryAgain("throttled"), at="id-1"), Queue(letters(3)))
    batch.queue.receives = dict.fromkeys(batch.queue.bodies, 1)
    assert batch.invoke() == ["id-1"]
    assert set(batch.queue.deleted) == {"id-0", "id-2"}
    assert set(batch.queue.bodies) == {"id-1"}


def test_a_malformed_message_in_a_redelivered_batch_is_put_aside_and_deleted() -> None:
    problem = InvalidMessage([Problem("", "no")])
    batch = Batch(raising(problem, at="id-1"), Queue(letters(3)))
    batch.queue.receives = dict.fromkeys(batch.queue.bodies, 1)
    assert batch.invoke() == []
    assert len(batch.rejected()) == 1
    assert batch.queue.bodies == {}


def test_a_deletion_that_fails_acknowledges_the_message_in_the_batchs_answer() -> None:
    batch = Batch(lambda message: None, Queue(letters(3), broken=True))
    batch.queue.receives = dict.fromkeys(batch.queue.bodies, 1)
    assert batch.invoke() == [], "it was handled; deleting it early was for its safety alone"
