"""A cold start handles a real first event, and AWS answers as it did when it was recorded."""

import json
from collections import defaultdict
from hashlib import md5

import boto3
from botocore.config import Config

from benchmarks.speed.first_events import Aws, FirstEvent, recorded

KEY = {"TaskId": {"S": "ord-1"}}


def test_each_function_of_an_order_has_its_first_event_and_what_dynamodb_answered() -> None:
    with recorded() as found:
        agents = {"InventoryFunction", "PaymentFunction", "ShippingFunction", "MailFunction"}
        assert found.events.keys() == {"SubmissionFunction", "SchedulerFunction", *agents}
        scheduler = found.events["SchedulerFunction"]
        [together] = [json.loads(each)["Responses"] for each in scheduler.answers["BatchGetItem"]]
        [[task], [order]] = [together[table] for table in sorted(together, reverse=True)]
        assert (task["TaskId"], order["OrderID"]) == ({"S": "ord-cold"}, {"S": "ord-cold"})
        assert scheduler.answers["PutItem"] == ["{}"]
        assert len(found.events["SubmissionFunction"].answers["TransactWriteItems"]) == 1


def test_calls_are_answered_in_the_recorded_order_and_then_with_nothing() -> None:
    item = json.dumps({"Item": {"Hash": {"B": "AAE="}}})
    first = FirstEvent({}, defaultdict(list, GetItem=[item]))
    with Aws() as aws:
        session = boto3.Session("id", "secret", region_name="us-east-1")
        config = Config(retries={"total_max_attempts": 1})
        client = session.client("dynamodb", endpoint_url=aws.endpoint, config=config)
        aws.begin(first)
        assert client.get_item(TableName="tasks", Key=KEY)["Item"] == {"Hash": {"B": b"\0\1"}}
        assert "Item" not in client.get_item(TableName="tasks", Key=KEY)
        aws.begin(first)
        assert "Item" in client.get_item(TableName="tasks", Key=KEY)
        aws.begin(None)
        assert "Item" not in client.get_item(TableName="tasks", Key=KEY)


def test_a_message_is_accepted_with_its_digest() -> None:
    with Aws() as aws:
        said = json.loads(aws.answer("AmazonSQS.SendMessage", b'{"MessageBody": "x"}'))
    assert said["MD5OfMessageBody"] == md5(b"x", usedforsecurity=False).hexdigest()
