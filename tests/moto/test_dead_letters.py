"""Dead letters in a deployment: with their reason, what came with them, and never lost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import pytest

from roundsman.wire.commands import START, Command
from roundsman.wire.dead_letters import ATTRIBUTE, DeadLetter, read_dead_letter
from roundsman_testing.stack import AwsFault, Stack
from tests.moto.orders import ALL_EFFECTS, order

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageTypeDef

THREE_HOURS = 180
"""The receives after which SQS moves a command to the dead letters by itself."""
SPOILED = Command(START, "spoiled").body()


def spoil(world: Stack) -> None:
    """An order whose record no code can read; the command that starts it is not sent yet."""
    world.submit(order("spoiled"))
    world.run_one_batch("SubmissionQueue")
    world.bodies(world.url("SchedulerQueue"))
    world.dynamodb.update_item(
        TableName=world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": "spoiled"}},
        UpdateExpression="REMOVE CompleteBy",
    )


def redeliver(world: Stack, times: int = 7) -> None:
    """Let the queues alone work; the supervisor would send commands of its own."""
    for _ in range(times):
        world.run()
        world.clock.now += 61_000


def dead(world: Stack) -> list["MessageTypeDef"]:
    return world.sqs.receive_message(
        QueueUrl=world.url("SchedulerDeadLetterQueue"),
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
    ).get("Messages", [])


def reason(message: "MessageTypeDef") -> DeadLetter | None:
    found = cast("Mapping[str, Mapping[str, str]]", message.get("MessageAttributes", {}))
    return read_dead_letter(found[ATTRIBUTE]["StringValue"]) if ATTRIBUTE in found else None


def test_a_dead_letter_says_why_and_keeps_what_its_sender_gave_it(world: Stack) -> None:
    spoil(world)
    sent = world.sqs.send_message(
        QueueUrl=world.url("SchedulerQueue"),
        MessageBody=SPOILED,
        MessageAttributes={
            "trace": {"DataType": "String", "StringValue": "abc"},
            "seal": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
        },
    )
    redeliver(world)
    [letter] = dead(world)
    assert letter["Body"] == SPOILED
    found = reason(letter)
    assert found is not None
    assert found.reason == "the record spoiled cannot be read: CompleteBy is missing"
    assert (found.message_id, found.receives) == (sent["MessageId"], 5)
    assert found.function == "scheduler"
    assert letter["MessageAttributes"]["trace"]["StringValue"] == "abc"
    assert letter["MessageAttributes"]["seal"]["BinaryValue"] == b"\x00\xff"
    assert world.waiting("SchedulerQueue") == 0


@pytest.mark.exhaustive
def test_a_death_on_the_way_to_the_dead_letters_loses_nothing(world: Stack) -> None:
    for operation in ("GetQueueAttributes", "SendMessage"):
        for done in (False, True):
            world.start_over()
            spoil(world)
            only_id = world.sqs.send_message(
                QueueUrl=world.url("SchedulerQueue"), MessageBody=SPOILED
            )["MessageId"]
            world.kill("SchedulerFunction", at=operation, done=done)
            redeliver(world)
            found = dead(world)
            assert {letter["Body"] for letter in found} == {SPOILED}
            reasons = [letter for letter in map(reason, found) if letter is not None]
            by_sqs = [letter["MessageId"] for letter in found if reason(letter) is None]
            assert {*by_sqs, *(letter.message_id for letter in reasons)} == {only_id}
            sent_and_not_deleted = operation == "SendMessage" and done
            assert len(found) == (2 if sent_and_not_deleted else 1)
            assert world.waiting("SchedulerQueue") == 0


@pytest.mark.exhaustive
def test_where_sqs_refuses_the_letter_it_moves_the_message_itself(world: Stack) -> None:
    for operation in ("GetQueueAttributes", "SendMessage"):
        world.start_over()
        spoil(world)
        world.send("SchedulerQueue", SPOILED)
        for _ in range(THREE_HOURS - 1):  # asked for at every receive but the first
            world.fail("SchedulerFunction", at=operation)
        redeliver(world, THREE_HOURS + 2)
        [letter] = dead(world)
        assert (letter["Body"], reason(letter)) == (SPOILED, None)


def moved_by_sqs(world: Stack) -> None:
    """Move the dead letters as StartMessageMoveTask does: the body and all attributes stay."""
    for letter in dead(world):
        world.sqs.send_message(
            QueueUrl=world.url("SchedulerQueue"),
            MessageBody=letter["Body"],
            MessageAttributes=letter["MessageAttributes"],
        )
        world.sqs.delete_message(
            QueueUrl=world.url("SchedulerDeadLetterQueue"), ReceiptHandle=letter["ReceiptHandle"]
        )


def mend(world: Stack) -> None:
    world.dynamodb.update_item(
        TableName=world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": "spoiled"}},
        UpdateExpression="SET CompleteBy = :by",
        ExpressionAttributeValues={":by": {"N": str(world.clock() + 3_600_000)}},
    )


def test_a_letter_that_sqs_moves_back_acts_as_the_message_did(world: Stack) -> None:
    spoil(world)
    world.send("SchedulerQueue", SPOILED)
    redeliver(world)
    mend(world)
    moved_by_sqs(world)
    world.run()
    assert world.task("spoiled").state == "Completed"
    assert world.effects("spoiled") == ALL_EFFECTS
    assert dead(world) == []


def test_a_letter_that_sqs_moves_back_and_that_fails_again_says_its_new_reason(
    world: Stack,
) -> None:
    spoil(world)
    world.send("SchedulerQueue", SPOILED)
    redeliver(world)
    world.dynamodb.update_item(
        TableName=world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": "spoiled"}},
        UpdateExpression="REMOVE CreatedAt SET CompleteBy = :by",
        ExpressionAttributeValues={":by": {"N": "1"}},
    )
    moved_by_sqs(world)
    redeliver(world)
    [letter] = dead(world)
    found = reason(letter)
    assert found is not None
    assert found.reason == "the record spoiled cannot be read: CreatedAt is missing"
    assert found.receives == 5


@pytest.mark.parametrize(
    ("function", "operations"),
    [
        ("SubmissionFunction", ("TransactWriteItems",)),
        ("SchedulerFunction", ("GetItem",)),
    ],
)
def test_what_is_throttled_more_often_than_a_message_may_fail_is_no_dead_letter(
    world: Stack, function: str, operations: tuple[str, ...]
) -> None:
    """From its second delivery on it is hidden for longer than its queue would: a minute."""
    world.submit(order("ord-1"))
    if function == "SchedulerFunction":
        world.run_one_batch("SubmissionQueue")
    came_after = []
    for _ in range(8):
        for operation in operations:
            world.fail(function, at=operation, how=AwsFault.THROTTLED)
        world.run()
        comes_at = world.next_message_at()
        assert comes_at is not None
        came_after.append(comes_at - world.clock.now)
        world.clock.now = comes_at + 1
    assert came_after[0] <= 60_000
    assert all(60_000 <= wait < 120_000 for wait in came_after[1:])
    assert max(came_after) > 60_000
    world.pass_time_until(lambda: world.task("ord-1").ended, within=600)
    assert world.task("ord-1").state == "Completed"
    world.assert_nothing_is_stuck()
