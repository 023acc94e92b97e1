"""Pages while AWS hangs, refuses or lets credentials expire: they come, whole but for the holes."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.exceptions import ClientError
from starlette.testclient import TestClient

from roundsman.model.instants import EPOCH, milliseconds
from roundsman_console.aws import ping
from roundsman_console.base.errors import InspectorError, cause_of
from roundsman_console.base.unread import Unread, causes
from roundsman_console.faces.web import aws_reachable, deadlines, live
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.application import application
from roundsman_console.faces.web.deadlines import PageTimedOut, limit_calls, read_in_time
from tests.web.browsers import PORT, text_of
from tests.web.faulty_aws import EXPIRED, FINDS_NOTHING, HANGS, FaultyAws, faulty_aws, shop

EXPIRED_WORDS = "The AWS credentials have expired. Sign in again."
NO_SQS = "SQS did not answer within 0.3 s."

Pages = Callable[[], AbstractContextManager[TestClient]]


@pytest.fixture(autouse=True)
def limited(monkeypatch: pytest.MonkeyPatch, session_without_real_aws: None) -> None:
    """Calls have 0.3 s, and every client has their deadline. Pages have time."""
    monkeypatch.setattr(deadlines, "CALL_SECONDS", 0.3)
    monkeypatch.setattr(deadlines, "PAGE_SECONDS", 600.0)
    monkeypatch.setattr(ping, "PING_SECONDS", 0.3)
    monkeypatch.setattr(aws_reachable, "PING_SECONDS", 0.3)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    for name, value in (("ACCESS_KEY_ID", "AKID"), ("SECRET_ACCESS_KEY", "x")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    limit_calls()


@pytest.fixture
def browser() -> Iterator[TestClient]:
    """A browser with the console of a stack on that AWS."""
    session = BrowserSession(PORT)
    with TestClient(application(shop(), session), base_url=session.address) as client:
        client.get(session.link_to())
        yield client


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyAws]:
    """An AWS in which everything is refused until a test says something else."""
    with faulty_aws(other="AccessDenied") as (found, address):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        yield found


def read(browser: TestClient, address: str, status: int = 200) -> str:
    answer = browser.get(address)
    assert answer.status_code == status, text_of(answer.text)
    return text_of(answer.text)


@pytest.mark.exhaustive
def test_a_service_that_hangs_is_a_hole_in_a_whole_page_and_is_asked_once(
    aws: FaultyAws, browser: TestClient
) -> None:
    aws.does = {"other": "AccessDenied", "dynamodb": FINDS_NOTHING, "sqs": HANGS}
    page = read(browser, "/")
    assert page.count(NO_SQS) == 1, "one cause is said once"
    assert page.count("This was not read: the reason is on top of the page.") >= 1
    assert "No order is archived." in page, "what was read is shown"
    assert aws.asked["sqs"] <= 9, "one part counts all queues at the same time; then none is asked"
    assert aws.asked["dynamodb"] > 4


@pytest.mark.exhaustive
def test_what_could_not_be_read_may_need_attention(aws: FaultyAws, browser: TestClient) -> None:
    aws.does = {"other": "AccessDenied", "dynamodb": FINDS_NOTHING, "sqs": HANGS}
    page = read(browser, "/")
    assert "Nothing needs attention" not in page
    assert "More may need attention: not everything was read." in page
    assert "RejectedQueue" in page.partition(NO_SQS)[2], "the banner names what is missing"


@pytest.mark.exhaustive
def test_an_aws_that_does_not_answer_at_all_ends_in_a_sentence(
    aws: FaultyAws, browser: TestClient
) -> None:
    aws.does = {"other": HANGS}
    page = read(browser, "/orders/ord-1", 502)
    assert "DynamoDB did not answer within 0.3 s." in page
    assert aws.asked["dynamodb"] == 1


def test_a_page_asks_no_service_that_may_take_longer_than_its_time(
    aws: FaultyAws, browser: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.does = {"other": HANGS}
    instant = iter([0.0, *[9.8] * 10_000])
    monkeypatch.setattr(deadlines, "moment", lambda: next(instant))
    monkeypatch.setattr(deadlines, "PAGE_SECONDS", 10.0)
    page = read(browser, "/")
    assert "was not asked, because the page may take 10 s" in page
    assert not aws.asked.total()


def test_a_page_that_is_not_read_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "PAGE_SECONDS", 0.01)
    over = threading.Event()
    with pytest.raises(PageTimedOut, match=r"within 0\.01 s"):
        asyncio.run(_given_up(over))


async def _given_up(over: threading.Event) -> None:
    try:
        await read_in_time(over.wait)
    finally:
        over.set()  # the thread ends, and with it the loop


@pytest.mark.parametrize("address", ["/", "/doctor"])
def test_expired_credentials_are_said_once_on_a_page_of_many_parts(
    aws: FaultyAws, browser: TestClient, address: str
) -> None:
    aws.does = {"other": EXPIRED}
    page = read(browser, address)
    assert page.count(EXPIRED_WORDS) == 1
    assert "expired" not in page.replace(EXPIRED_WORDS, "")
    assert "Nothing is wrong" not in page
    assert "Nothing needs attention" not in page


def test_the_doctor_says_that_it_could_not_look(aws: FaultyAws, browser: TestClient) -> None:
    aws.does = {"other": EXPIRED}
    page = read(browser, "/doctor")
    assert "It is not known whether something is wrong: not everything could be checked." in page


@pytest.mark.parametrize(
    "address", ["/orders", "/orders/ord-1", "/groups", "/bulk", "/agents", "/workflows"]
)
def test_expired_credentials_are_said_on_every_other_page(
    aws: FaultyAws, browser: TestClient, address: str
) -> None:
    aws.does = {"other": EXPIRED}
    assert "The AWS credentials have expired. Sign in again" in read(browser, address, 502)


def test_a_live_page_that_cannot_be_read_goes_on_and_heals(
    aws: FaultyAws, browser: TestClient
) -> None:
    aws.does = {"other": EXPIRED}
    failed = browser.get("/groups")
    assert 'data-live data-unread data-every="15"' in failed.text
    assert "/groups" in failed.text
    reading = browser.get("/live?page=/groups")
    assert reading.status_code == 502
    assert "The AWS credentials have expired" in text_of(reading.text)
    aws.does = {"other": FINDS_NOTHING}
    healed = browser.get("/live?page=/groups")
    assert healed.status_code == 200
    assert "No failure group is open." in text_of(healed.text)
    assert "data-unread" not in healed.text


def test_a_stack_that_is_deleted_while_a_page_is_open_is_said_and_asked_for_again(
    aws: FaultyAws, browser: TestClient
) -> None:
    aws.does = {"other": "ResourceNotFoundException"}
    for address in ("/groups", "/orders", "/agents", "/"):
        reading = browser.get(f"/live?page={address}")
        words = text_of(reading.text)
        assert "ResourceNotFoundException" in words, address
        assert "Nothing needs attention" not in words
        assert "data-live" in reading.text, address
    aws.does = {"other": FINDS_NOTHING}
    assert browser.get("/live?page=/groups").status_code == 200


@pytest.mark.parametrize(
    ("does", "why"),
    [
        (HANGS, "DynamoDB did not answer within 0.3 s. Check the network and the way to AWS."),
        (EXPIRED, EXPIRED_WORDS),
        ("ThrottlingException", "AWS is throttling GetItem. Try again in a moment."),
        ("ResourceNotFoundException", "AWS has no table shop-Control in this account and region"),
        ("AccessDeniedException", "AWS refused GetItem with these credentials"),
        ("RequestTimeTooSkewed", "The clock of this machine differs from that of AWS. Set it"),
    ],
)
def test_every_open_page_is_told_why_aws_is_not_reached_and_when_it_is_again(
    aws: FaultyAws,
    browser: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    does: str,
    why: str,
) -> None:
    monkeypatch.setattr(live, "PING_EVERY", 0.0)
    aws.does = {"other": does}
    told = browser.get("/alive").json()
    assert why in told["why"]
    assert told["answeredAfter"] is None
    assert aws.asked.total() <= 1, "one try: the next ping is the retry"
    aws.does = {"other": FINDS_NOTHING}
    told = browser.get("/alive").json()
    assert told["why"] == ""
    assert told["answeredAfter"] >= 0


def test_an_aws_that_is_not_there_is_said(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        told = browser.get("/alive").json()
    assert "Could not connect to the endpoint URL" in told["why"]
    assert "Check the network and AWS_ENDPOINT_URL" in told["why"]


def test_no_credentials_are_said(browser: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.delenv(f"AWS_{name}")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    told = browser.get("/alive").json()
    assert told["why"] == "No AWS credentials are set. Sign in, or set AWS_PROFILE."


def test_all_open_pages_together_ask_aws_once_in_three_seconds(
    aws: FaultyAws, browser: TestClient
) -> None:
    aws.does = {"other": FINDS_NOTHING}
    assert not aws.asked.total(), "nobody has looked"
    told = [browser.get("/alive").json() for _ in range(9)]
    assert aws.asked == {"dynamodb": 1}
    assert all(0 < one["nextAfter"] <= 3000 for one in told)


@pytest.mark.parametrize("away", [timedelta(hours=1), timedelta(hours=-1), timedelta(0)])
def test_the_clock_of_this_machine_is_compared_with_each_answer(
    aws: FaultyAws, browser: TestClient, monkeypatch: pytest.MonkeyPatch, away: timedelta
) -> None:
    aws.does = {"other": FINDS_NOTHING}
    present = milliseconds(datetime.now(UTC) + away - EPOCH)
    monkeypatch.setattr(ping, "now", lambda: present)
    monkeypatch.setattr(aws_reachable, "now", lambda: present)
    said = " ".join(note["sentence"] for note in browser.get("/alive").json()["notes"])
    assert ("The clock of this machine is" in said) is bool(away)


def test_what_is_not_there_is_not_asked_for_again(aws: FaultyAws, browser: TestClient) -> None:
    aws.does = {"other": FINDS_NOTHING}
    answer = browser.get("/orders/ord-1")
    assert answer.status_code == 404
    assert "data-live" not in answer.text


@pytest.mark.exhaustive
def test_only_pages_have_deadlines(aws: FaultyAws) -> None:
    aws.does = {"other": HANGS}
    with pytest.raises(Exception, match="timeout") as raised:
        boto3.client("sqs").get_queue_url(QueueName="a")
    assert not isinstance(raised.value, InspectorError)
    assert aws.asked["sqs"] == deadlines.TRIES, "a command tries as often as ever"


def test_a_right_that_is_missing_on_many_resources_is_one_cause() -> None:
    def refused(queue: str) -> ClientError:
        message = (
            f"User: amy is not authorized to perform: sqs:x on resource: arn:aws:sqs:::{queue} "
            "because no identity-based policy allows it"
        )
        return ClientError({"Error": {"Code": "AccessDenied", "Message": message}}, "X")

    found = causes(Unread(queue, cause_of(refused(queue))) for queue in ("a", "b", "a"))
    [(cause, missing)] = found.items()
    assert missing == ["a", "b"]
    assert "sqs:x because no identity-based policy allows it" in cause
