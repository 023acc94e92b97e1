"""What failed its last delivery is put with the dead letters, and says why."""

import base64
import json
from dataclasses import replace
from typing import cast

import pytest

from roundsman.aws.sqs.dead_letters import RedrivePolicy, read_redrive_policy
from roundsman.errors import InvalidMessage, Problem, TryAgain, UnreadableRecord
from roundsman.wire.dead_letters import ATTRIBUTE, LONGEST_REASON, DeadLetter, read_dead_letter
from roundsman_testing.faults import Crash, Fault
from tests.support.batch_world import (
    CANARY,
    MAX_RECEIVES,
    QUEUE,
    SENT_AT,
    URL,
    Batch,
    Queue,
    letters,
    raising,
)

LETTER = DeadLetter(
    queue=QUEUE,
    message_id="id-0",
    reason="throttled",
    error_type="TryAgain",
    error_at=("app.py:1 f",),
    receives=5,
    sent_at=SENT_AT,
    died_at=SENT_AT + 1,
    function="scheduler",
)


def failing(problem: BaseException, *, messages: int = 1, at: str = "id-0") -> Batch:
    """A batch of which one message fails each time, before its last delivery."""
    batch = Batch(raising(problem, at=at), Queue(letters(messages)))
    batch.queue.receives = dict.fromkeys(batch.queue.bodies, MAX_RECEIVES - 1)
    return batch


def only_letter(batch: Batch) -> DeadLetter:
    [sent] = batch.queue.letters
    attributes = cast("dict[str, dict[str, str]]", sent["MessageAttributes"])
    letter = read_dead_letter(attributes[ATTRIBUTE]["StringValue"])
    assert letter is not None
    return letter


def test_the_last_failure_puts_the_message_with_the_dead_letters_and_acknowledges_it() -> None:
    batch = failing(TryAgain("storing the task ord-1: ThrottlingException"))
    body = batch.queue.bodies["id-0"]
    assert batch.invoke() == []
    [sent] = batch.queue.letters
    assert sent["MessageBody"] == body
    letter = only_letter(batch)
    assert letter.reason == "storing the task ord-1: ThrottlingException"
    assert (letter.queue, letter.message_id, letter.receives) == (QUEUE, "id-0", MAX_RECEIVES)
    assert (letter.sent_at, letter.died_at) == (SENT_AT, SENT_AT + 300_000)
    assert (letter.function, letter.log_group) == ("scheduler", "/the/log")
    assert letter.error_type == "TryAgain"
    assert "batch_world.py" in letter.error_at[-1]


def test_every_earlier_failure_only_comes_again() -> None:
    batch = Batch(raising(TryAgain("throttled"), at="id-0"), Queue(letters(1)))
    for _ in range(MAX_RECEIVES - 1):
        assert batch.invoke() == ["id-0"]
    assert batch.queue.letters == []
    assert batch.invoke() == []
    assert len(batch.queue.letters) == 1


def test_a_first_failure_asks_nothing_and_an_outage_asks_once_a_minute() -> None:
    batch = Batch(raising(TryAgain("throttled"), at="id-0"), Queue(letters(1)))
    batch.invoke()
    assert batch.queue.asked == 0
    batch.invoke()
    batch.invoke()
    assert batch.queue.asked == 1
    batch.now += 60_000
    batch.invoke()
    assert batch.queue.asked == 2


def test_one_failure_of_a_batch_leaves_its_neighbours_alone() -> None:
    batch = failing(TryAgain("throttled"), messages=3, at="id-1")
    assert batch.invoke() == []
    assert [sent["MessageBody"] for sent in batch.queue.letters] == [f"body 1 {CANARY}"]
    assert set(batch.queue.deleted) == {"id-0", "id-1", "id-2"}
    assert batch.queue.bodies == {}


def test_what_cannot_be_put_there_is_left_for_sqs_to_move() -> None:
    batch = failing(TryAgain("throttled"))
    batch.queue.broken = True
    assert batch.invoke() == ["id-0"]
    assert (batch.queue.bodies, batch.queue.letters) == (letters(1), [])
    batch.invoke()
    assert batch.queue.dead == ["id-0"]


def test_a_death_between_the_two_leaves_a_second_letter_of_the_same_message() -> None:
    batch = failing(TryAgain("throttled"))
    ids = list(batch.queue.bodies)
    batch.handle_event(ids)  # and the process dies: nothing is acknowledged
    assert set(batch.queue.bodies) == {"id-0"}
    batch.invoke()
    assert batch.queue.dead == ["id-0"]
    assert only_letter(batch).message_id == "id-0"


def test_what_kills_the_process_says_nothing() -> None:
    batch = failing(Crash())
    with pytest.raises(Crash):
        batch.invoke()
    assert batch.queue.letters == []


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (ValueError(f"no {CANARY}"), "unexpected ValueError"),
        (UnreadableRecord("ord-1", "State", "is missing"), "the record ord-1 cannot be read"),
        (TryAgain(""), "TryAgain"),
    ],
)
def test_a_reason_quotes_nothing_of_the_message(problem: Exception, reason: str) -> None:
    batch = failing(problem)
    batch.invoke()
    letter = only_letter(batch)
    assert letter.reason.startswith(reason)
    assert CANARY not in letter.text()


def test_a_malformed_message_that_could_not_be_put_aside_says_so() -> None:
    batch = failing(InvalidMessage([Problem(CANARY, CANARY), Problem("", CANARY)]))
    batch.faults.on("reject", Fault.REFUSED)
    assert batch.invoke() == []
    letter = only_letter(batch)
    assert letter.reason.startswith(
        "the message has 2 problems and was not sent to the RejectedQueue: "
    )
    assert CANARY not in letter.text()


def test_attributes_and_the_group_of_a_message_go_with_it() -> None:
    batch = failing(TryAgain("throttled"))
    batch.queue.groups["id-0"] = "tenant-7"
    batch.queue.attributes = {
        "trace": {"stringValue": "abc", "dataType": "String"},
        "weight": {"stringValue": "3", "dataType": "Number.int"},
        "seal": {"binaryValue": base64.b64encode(b"\x00\xff").decode(), "dataType": "Binary"},
    }
    batch.invoke()
    [sent] = batch.queue.letters
    attributes = cast("dict[str, object]", sent["MessageAttributes"])
    assert sent["MessageGroupId"] == "tenant-7"
    assert attributes.pop(ATTRIBUTE)
    assert attributes == {
        "trace": {"DataType": "String", "StringValue": "abc"},
        "weight": {"DataType": "Number.int", "StringValue": "3"},
        "seal": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }


def test_the_log_reports_it_without_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    failing(TryAgain("throttled")).invoke()
    written = capsys.readouterr().out
    assert CANARY not in written
    lines = [json.loads(line) for line in written.splitlines()]
    [line] = [line for line in lines if line["message"] == "message sent to the dead-letter queue"]
    assert (line["level"], line["queue"], line["message_id"]) == ("ERROR", QUEUE, "id-0")


@pytest.mark.parametrize("policy", [None, "", "{", "[]", "7", '{"maxReceiveCount": 5}'])
def test_a_queue_without_a_policy_never_moves_a_message(policy: str | None) -> None:
    assert read_redrive_policy(policy, URL) == RedrivePolicy(None)


def test_a_letter_reads_back_as_it_was_written() -> None:
    assert read_dead_letter(LETTER.text()) == LETTER
    with_log = replace(LETTER, log_group="/g", log_stream="s")
    assert read_dead_letter(with_log.text()) == with_log


def test_a_long_reason_is_cut() -> None:
    letter = read_dead_letter(replace(LETTER, reason="x" * 5_000).text())
    assert letter is not None
    assert len(letter.reason) == LONGEST_REASON


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"reason": 7}'])
def test_what_no_function_wrote_is_no_letter(text: str) -> None:
    assert read_dead_letter(text) is None
