"""Submission reads in the policy of its queue which sources are listed."""

import json
from typing import TYPE_CHECKING, cast

import pytest
from botocore.exceptions import EndpointConnectionError

from roundsman.aws.sqs.event_sources import SourcesOfQueue, sources_in
from roundsman.errors import TryAgain

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/shop-SubmissionQueue"
ONE, TWO = "arn:aws:sns:us-east-1:123456789012:one", "arn:aws:sns:us-east-1:123456789012:two"


class Queue:
    """SQS, as far as it is asked here."""

    def __init__(self, *arns: str) -> None:
        self.arns = arns
        self.asked: list[tuple[str, list[str]]] = []
        self.is_down = False

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: list[str]) -> object:
        self.asked.append((QueueUrl, AttributeNames))
        if self.is_down:
            raise EndpointConnectionError(endpoint_url=URL)
        return {"Attributes": {"Policy": policy(*self.arns)}} if self.arns else {}


def policy(*arns: str) -> str:
    admits = {
        "Sid": "TakesEventsOfSources",
        "Effect": "Allow",
        "Condition": {"ArnLike": {"aws:SourceArn": arns[0] if len(arns) == 1 else list(arns)}},
    }
    return json.dumps({"Statement": [{"Sid": "RefusesWhatComesWithoutTls"}, admits]})


def sources(queue: Queue) -> SourcesOfQueue:
    return SourcesOfQueue(cast("SQSClient", queue), URL)


def test_the_policy_is_read_once_for_all_events_of_listed_sources() -> None:
    queue = Queue(ONE, TWO)
    read = sources(queue)
    assert queue.asked == []
    assert all(read.lists("sns", arn) for arn in (ONE, TWO, ONE))
    assert queue.asked == [(URL, ["Policy"])]


def test_it_is_read_again_before_an_event_is_refused() -> None:
    queue = Queue(ONE)
    read = sources(queue)
    assert not read.lists("sns", TWO)
    queue.arns = (ONE, TWO)
    assert read.lists("sns", TWO)


@pytest.mark.parametrize("text", [None, "", "{}", '{"Statement": {"Sid": "x"}}', "[]"])
def test_a_queue_without_such_a_statement_lists_nothing(text: str | None) -> None:
    assert sources_in(text) == ()
    assert not sources(Queue()).lists("events", None)


def test_a_policy_that_cannot_be_read_is_no_reason_to_reject() -> None:
    queue = Queue(ONE)
    queue.is_down = True
    with pytest.raises(TryAgain):
        sources(queue).lists("sns", ONE)
