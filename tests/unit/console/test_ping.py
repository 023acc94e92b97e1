"""The cheapest read of AWS: what its answer tells of both clocks, and of a table that is gone."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Literal, cast

import boto3
import pytest
from botocore.config import Config

from roundsman.errors import RoundsmanError
from roundsman_console.aws import ping
from roundsman_console.aws.ping import Ping, StackPing, ahead_of
from roundsman_console.base.errors import InspectorError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DATE, AT = "Fri, 15 Jan 2027 08:00:00 GMT", 1_800_000_000_000
Answer = Callable[[Mapping[str, object], str, int], None]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Let DynamoDB answer so."""
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.Session(region_name="eu-west-1"))
    monkeypatch.setattr(ping, "now", lambda: AT)

    def answer(row: Mapping[str, object], date: str, status: int) -> None:
        headers = {"date": date}
        body = {**row, "ResponseMetadata": {"HTTPHeaders": headers, "HTTPStatusCode": status}}
        assert boto3.DEFAULT_SESSION is not None
        boto3.DEFAULT_SESSION.events.register(
            "before-call.dynamodb",
            cast(
                "Callable[..., None]",
                lambda **_: (SimpleNamespace(status_code=status, headers=headers), body),
            ),
        )

    return answer


@pytest.mark.parametrize(
    ("date", "ahead"),
    [(DATE, 0), ("Fri, 15 Jan 2027 07:00:00 GMT", 3_600_000), ("", None), ("soon", None)],
)
def test_the_clocks_are_compared_by_the_date_of_the_answer(
    answers: Answer, date: str, ahead: int | None
) -> None:
    assert ahead_of(date, AT) == ahead
    answers({}, date, 200)
    read = StackPing("control", compares_clocks=True)
    assert read.aws_time(AT) == AT, "not known yet"
    assert read.read() == Ping(None, ahead)
    assert read.aws_time(AT) == AT - (ahead or 0)


def test_the_clock_of_an_aws_on_this_machine_is_not_compared(answers: Answer) -> None:
    answers({}, DATE, 200)
    assert StackPing("control", compares_clocks=False).read().clock_ahead is None


def test_a_table_that_is_gone_is_said(answers: Answer) -> None:
    answers({"Error": {"Code": "ResourceNotFoundException", "Message": "x"}}, DATE, 400)
    with pytest.raises(InspectorError, match="AWS has no table control in this account"):
        StackPing("control", compares_clocks=True).read()


def test_another_refusal_is_none_of_a_table(answers: Answer) -> None:
    answers({"Error": {"Code": "AccessDeniedException", "Message": "x"}}, DATE, 400)
    with pytest.raises(RoundsmanError) as refused:
        StackPing("control", compares_clocks=True).read()
    assert not isinstance(refused.value, InspectorError)


def test_a_ping_is_given_up_after_two_seconds_and_not_tried_again(
    answers: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[Config]()
    make = boto3.client

    def client(name: Literal["dynamodb"], config: Config) -> "DynamoDBClient":
        made.append(config)
        return make(name, config=config)

    monkeypatch.setattr(boto3, "client", client)
    StackPing("control", compares_clocks=True)
    (config,) = map(vars, made)
    assert (config["connect_timeout"], config["read_timeout"]) == (2, 2)
    assert config["retries"]["total_max_attempts"] == 1
