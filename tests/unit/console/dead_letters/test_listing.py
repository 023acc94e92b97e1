"""The reason of a dead letter is that of its last death."""

from typing import TYPE_CHECKING

import boto3
from botocore.stub import Stubber

from roundsman.wire.dead_letters import ATTRIBUTE, DeadLetter
from roundsman_console.facts.set_aside.messages import NO_REASON, dead_letter, dead_letters
from roundsman_console.facts.set_aside.peek import Letter, QueuePeek
from roundsman_console.facts.set_aside.queues import Source

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

URL = "https://sqs.test/1/SchedulerDeadLetterQueue"
LETTER = DeadLetter(
    queue="SchedulerQueue",
    message_id="m-1",
    reason="the record ord-1 cannot be read",
    error_type="UnreadableRecord",
    error_at=(),
    receives=5,
    sent_at=1,
    died_at=2,
    function="scheduler",
)


def reason_of(system: dict[str, str]) -> str:
    """The reason of a letter with the attribute of an earlier death, as SQS would return it."""
    sqs: SQSClient = boto3.client(
        "sqs", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    attribute = {"DataType": "String", "StringValue": LETTER.text()}
    with Stubber(sqs) as stub:
        message = {
            "MessageId": "m-2",
            "ReceiptHandle": "r",
            "Body": "{}",
            "Attributes": {"SentTimestamp": "3", **system},
            "MessageAttributes": {ATTRIBUTE: attribute},
        }
        stub.add_response("receive_message", {"Messages": [message]})
        [letter] = QueuePeek(sqs, URL).letters(1)
    [dead] = dead_letters(Source("SchedulerQueue", URL, sqs), [letter])
    return dead.reason


def test_the_reason_is_what_the_function_gave_as_it_sent_the_letter() -> None:
    assert reason_of({}) == LETTER.reason


def test_a_letter_that_sqs_moved_has_no_reason_of_its_last_death() -> None:
    arn = "arn:aws:sqs:us-east-1:1:SchedulerQueue"
    assert reason_of({"DeadLetterQueueSourceArn": arn}) == NO_REASON


def test_a_signal_is_sent_back_with_the_id_of_its_first_message() -> None:
    body = '{"orderId": "ord-1", "signal": {"name": "paid"}}'
    letter = Letter("m-2", "r", body, 3, 1, {})
    sqs: SQSClient = boto3.client("sqs", region_name="us-east-1")
    orders = Source("SubmissionQueue", URL, sqs)
    assert '"id":"m-1"' in dead_letter(orders, letter, LETTER).with_id(body)
    assert '"id":"m-2"' in dead_letter(orders, letter, None).with_id(body)
    commands = Source("SchedulerQueue", URL, sqs)
    assert dead_letter(commands, letter, LETTER).with_id(body) == body
