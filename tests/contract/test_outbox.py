"""What Outbox promises, over queues and a topic on moto, and in memory."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber
from moto import mock_aws

from roundsman.aws.sqs.outbox import AwsOutbox
from roundsman.aws.sqs.outgoing import OutgoingMessage as Sent
from roundsman.aws.sqs.outgoing import batches, send_messages
from roundsman.errors import CallRefused, Problem, Throttled, TryAgain, UnknownAgent
from roundsman.model.events import Cancel, CommandSource
from roundsman.model.instants import MINUTE, SECOND
from roundsman.wire.alert import Alert
from roundsman.wire.commands import command_of
from roundsman.wire.limits import MESSAGE_LIMIT, wire_text
from roundsman.wire.messages import AgentRequest
from tests.contract.outboxes import MotoPost, Post, RecordingPost, moto_post
from tests.contract.samples import NOW

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

ALERT = Alert("Roundsman: ord-1 archived", '{"alert":"task_archived"}', {"severity": "error"})


@pytest.fixture(params=["memory", "moto"])
def post(request: pytest.FixtureRequest) -> Iterator[Post]:
    if request.param == "memory":
        yield RecordingPost()
    else:
        with mock_aws():
            yield moto_post()


@pytest.fixture
def moto() -> Iterator[MotoPost]:
    with mock_aws():
        yield moto_post()


def request_to(step: str, note: str = "") -> AgentRequest:
    return AgentRequest(
        task_id="ord-1",
        workflow="order_fulfilment",
        step=step,
        operation="perform",
        lock="7f3a-0c1d2e3f4a.1",
        idempotency_key=f"ord-1/{step}/perform",
        attempt=1,
        complete_by=NOW + MINUTE,
        input={"note": note},
        results={},
        sent_at=NOW,
    )


# --- what every outbox does ----------------------------------------------------------------


def test_each_request_goes_to_the_queue_of_its_agent_and_priority(post: Post) -> None:
    pay, urgent, mail = request_to("pay"), request_to("urgent"), request_to("mail")
    post.outbox.send_requests(
        [("payment", "normal", pay), ("payment", "urgent", urgent), ("mail", "normal", mail)]
    )
    assert post.requests("payment", "normal") == [pay.body()]
    assert post.requests("payment", "urgent") == [urgent.body()]
    assert post.requests("mail", "normal") == [mail.body()]
    assert post.requests("mail", "urgent") == []


def test_any_number_of_requests_arrives(post: Post) -> None:
    requests = [request_to(f"s{n}") for n in range(25)]
    post.outbox.send_requests([("mail", "normal", request) for request in requests])
    assert sorted(post.requests("mail", "normal")) == sorted(r.body() for r in requests)
    post.outbox.send_requests([])
    assert post.requests("payment", "normal") == []


def test_a_tenants_requests_are_in_a_group_and_others_in_none(post: Post) -> None:
    tenants = ["shop-1", "shop-2", None, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"]
    requests = [replace(request_to(f"s{n}"), tenant=each) for n, each in enumerate(tenants)]
    post.outbox.send_requests([("mail", "normal", request) for request in requests])
    assert sorted(post.groups("mail", "normal"), key=str) == sorted(tenants, key=str)


def test_a_tenant_is_in_the_requests_text(post: Post) -> None:
    asked = replace(request_to("a"), tenant="shop-1")
    post.outbox.send_requests([("mail", "normal", asked)])
    assert post.requests("mail", "normal") == [asked.body()]
    assert '"tenant":"shop-1"' in asked.body()


def test_an_agent_without_a_queue_is_named_and_keeps_no_other_request_back(
    post: Post,
) -> None:
    with pytest.raises(UnknownAgent, match="no normal request queue for the agent 'drone'"):
        post.outbox.send_requests(
            [("drone", "normal", request_to("fly")), ("mail", "normal", request_to("mail"))]
        )
    assert post.requests("mail", "normal") == [request_to("mail").body()]


def test_the_scheduler_gets_its_commands(post: Post) -> None:
    post.outbox.send_start("ord-1")
    post.outbox.send_inspect("ord-2", delay=0)
    assert sorted(post.commands()) == [("inspect", "ord-2"), ("start", "ord-1")]


def test_any_number_of_inspects_is_sent_at_once(post: Post) -> None:
    names = [f"ord-{n:02}" for n in range(23)]
    post.outbox.send_inspects([(name, 0) for name in names])
    assert sorted(post.commands()) == [("inspect", name) for name in names]


def test_no_inspects_are_no_request(post: Post) -> None:
    post.outbox.send_inspects([])
    assert post.commands() == []


def test_what_somebody_asks_of_a_task_is_passed_on(post: Post) -> None:
    post.outbox.send_command(command_of("ord-1", Cancel(CommandSource("m-1", "application"))))
    assert post.commands() == [("cancel", "ord-1")]


def test_a_status_arrives(post: Post) -> None:
    assert post.outbox.send_status(post.reply_queue, '{"status":"completed"}') is True
    assert post.statuses() == ['{"status":"completed"}']


def test_a_status_to_a_queue_that_is_gone_can_never_succeed(post: Post) -> None:
    assert post.outbox.send_status(post.gone, "{}") is False


def test_an_alert_arrives_with_its_subject_and_attributes(post: Post) -> None:
    post.outbox.publish(ALERT)
    assert post.alerts() == [ALERT]


def test_what_is_rejected_is_kept_with_its_problems(post: Post) -> None:
    post.outbox.reject("SubmissionQueue", "not \x00 JSON \uffff", [Problem("orderId", "missing")])
    (kept,) = (json.loads(body) for body in post.rejected())
    assert kept == {
        "queue": "SubmissionQueue",
        "reason": "orderId: missing",
        "problems": [{"path": "orderId", "message": "missing"}],
        "body": "not \x00 JSON \uffff",
    }


# --- what only the wire shows --------------------------------------------------------------


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (15 * MINUTE, 900), (60 * MINUTE, 900), (-5, 0)],
)
def test_delays_are_rounded_up_to_seconds_and_kept_within_what_sqs_takes(
    moto: MotoPost, delay: int, seconds: int
) -> None:
    asked: list[int] = []

    def look(params: Mapping[str, int], **_: object) -> None:
        asked.append(params["DelaySeconds"])

    moto.sqs.meta.events.register("provide-client-params.sqs.SendMessage", look)
    moto.outbox.send_start("ord-1", delay=delay)
    moto.outbox.send_inspect("ord-1", delay=delay)
    assert asked == [seconds, seconds]


def test_inspects_go_ten_a_request_each_with_its_own_delay(moto: MotoPost) -> None:
    asked: list[list[int]] = []

    def look(params: Mapping[str, list[dict[str, int]]], **_: object) -> None:
        asked.append([entry["DelaySeconds"] for entry in params["Entries"]])

    moto.sqs.meta.events.register("provide-client-params.sqs.SendMessageBatch", look)
    moto.outbox.send_inspects([(f"ord-{n}", n * SECOND + 1) for n in range(12)])
    assert asked == [list(range(1, 11)), [11, 12]]


@pytest.mark.parametrize(
    "url",
    [
        "https://sqs.us-east-1.amazonaws.com/999999999999/shop-reply-web",
        "https://sqs.us-east-1.amazonaws.com/123456789012/shop-SchedulerQueue",
    ],
)
def test_nothing_is_sent_to_a_queue_that_is_no_reply_queue(moto: MotoPost, url: str) -> None:
    assert moto.outbox.send_status(url, '{"status":"completed"}') is False
    assert moto.bodies("shop-SchedulerQueue") == []


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("AWS.SimpleQueueService.NonExistentQueue", 400),
        ("QueueDoesNotExist", 400),
        ("AccessDenied", 403),
        ("InvalidAddress", 404),
        ("InvalidMessageContents", 400),
    ],
)
def test_a_status_that_sqs_refuses_can_never_succeed(
    moto: MotoPost, code: str, status: int
) -> None:
    with Stubber(moto.sqs) as stub:
        stub.add_client_error("send_message", code, http_status_code=status)
        assert moto.outbox.send_status(moto.reply_queue, "{}") is False


@pytest.mark.parametrize(("code", "status"), [("RequestThrottled", 400), ("Odd", 503)])
def test_a_status_that_fails_for_now_is_tried_again(moto: MotoPost, code: str, status: int) -> None:
    with Stubber(moto.sqs) as stub:
        stub.add_client_error("send_message", code, http_status_code=status)
        with pytest.raises(TryAgain, match="shop-reply-web"):
            moto.outbox.send_status(moto.reply_queue, "{}")


def failed(index: int, code: str, *, sender: bool) -> dict[str, object]:
    return {"Id": str(index), "Code": code, "SenderFault": sender}


def successful(*indexes: int) -> list[dict[str, str]]:
    return [
        {"Id": str(index), "MessageId": f"m-{index}", "MD5OfMessageBody": ""} for index in indexes
    ]


@pytest.mark.parametrize(
    ("codes", "raised"),
    [
        ({1: "InternalError"}, TryAgain),
        ({1: "RequestThrottled"}, TryAgain),
        ({0: "InvalidMessageContents"}, CallRefused),
        ({0: "InvalidMessageContents", 1: "InternalError"}, TryAgain),
    ],
)
def test_a_batch_accepted_in_part_is_not_a_batch_that_was_sent(
    moto: MotoPost, codes: dict[int, str], raised: type[Exception]
) -> None:
    requests = [("mail", "normal", request_to("a")), ("mail", "normal", request_to("b"))]
    failures = [failed(index, code, sender=True) for index, code in codes.items()]
    taken = successful(*(index for index in range(2) if index not in codes))
    with Stubber(moto.sqs) as stub:
        stub.add_response("send_message_batch", {"Successful": taken, "Failed": failures})
        for code in codes.values():
            stub.add_client_error("send_message", code, http_status_code=400)
        with pytest.raises(raised, match="message to shop_MailRequestQueue"):
            moto.outbox.send_requests(requests)


ANY_MESSAGE = {"QueueUrl": ANY, "MessageBody": ANY}


@pytest.mark.parametrize("cut_off", [False, True])
def test_what_a_batch_does_not_report_as_taken_is_sent_once_more_by_itself(
    moto: MotoPost, cut_off: bool
) -> None:
    requests = [("mail", "normal", request_to("a")), ("mail", "normal", request_to("b"))]
    # Half of an answer is read as an empty one: it says nothing of the first either.
    accepted = [] if cut_off else successful(0)
    failures = [] if cut_off else [failed(1, "InternalError", sender=False)]
    with Stubber(moto.sqs) as stub:
        stub.add_response("send_message_batch", {"Successful": accepted, "Failed": failures})
        if cut_off:
            stub.add_response("send_message", {}, ANY_MESSAGE)
        body = wire_text(request_to("b").body())
        asked = {"QueueUrl": moto.urls["shop_MailRequestQueue"], "MessageBody": body}
        stub.add_response("send_message", {}, asked)
        moto.outbox.send_requests(requests)
        stub.assert_no_pending_responses()


def test_one_that_has_its_whole_batch_refused_keeps_no_other_back(moto: MotoPost) -> None:
    posts = [Sent("a"), Sent("b", group="no group"), Sent("c")]
    with Stubber(moto.sqs) as stub:
        stub.add_client_error("send_message_batch", "InvalidParameterValue", http_status_code=400)
        stub.add_response("send_message", {})
        stub.add_client_error("send_message", "InvalidParameterValue", http_status_code=400)
        stub.add_response("send_message", {})
        outcomes = send_messages(moto.sqs, moto.urls["shop_MailRequestQueue"], posts)
    assert [type(each) for each in outcomes] == [type(None), CallRefused, type(None)]


def test_a_batch_that_fails_for_now_is_not_asked_for_one_by_one(moto: MotoPost) -> None:
    with Stubber(moto.sqs) as stub:
        stub.add_client_error("send_message_batch", "RequestThrottled", http_status_code=403)
        outcomes = send_messages(
            moto.sqs, moto.urls["shop_MailRequestQueue"], [Sent("a"), Sent("b")]
        )
    assert [type(each) for each in outcomes] == [Throttled, Throttled]


def test_each_post_of_a_batch_has_its_own_group_and_delay(moto: MotoPost) -> None:
    asked: list[dict[str, object]] = []

    def look(params: Mapping[str, list[dict[str, object]]], **_: object) -> None:
        asked.extend(params.get("Entries", [dict(params)]))

    moto.sqs.meta.events.register("provide-client-params.sqs.*", look)
    url = moto.urls["shop_MailRequestQueue"]
    send_messages(moto.sqs, url, [Sent("a", group="g"), Sent("b", delay=3)])
    send_messages(moto.sqs, url, [Sent("c", group="h", delay=4)])
    assert asked == [
        {"Id": "0", "MessageBody": "a", "MessageGroupId": "g"},
        {"Id": "1", "MessageBody": "b", "DelaySeconds": 3},
        {"QueueUrl": url, "MessageBody": "c", "MessageGroupId": "h", "DelaySeconds": 4},
    ]


def test_one_queue_that_fails_keeps_no_request_of_another_back(moto: MotoPost) -> None:
    url = moto.urls["shop_PaymentRequestQueue"]
    moto.sqs.delete_queue(QueueUrl=url)
    with pytest.raises(UnknownAgent, match="no normal request queue for the agent 'payment'"):
        moto.outbox.send_requests(
            [("payment", "normal", request_to("pay")), ("mail", "normal", request_to("mail"))]
        )
    assert len(moto.requests("mail", "normal")) == 1


def test_what_may_pass_is_raised_before_what_will_not(moto: MotoPost) -> None:
    with Stubber(moto.sqs) as stub:
        stub.add_client_error("send_message", "QueueDoesNotExist", http_status_code=400)
        stub.add_client_error("send_message", "RequestThrottled", http_status_code=403)
        with pytest.raises(TryAgain):
            moto.outbox.send_requests(
                [("drone", "normal", request_to("fly")), ("mail", "normal", request_to("mail"))]
            )
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("bodies", "sizes"),
    [
        ([], []),
        (["x"] * 10, [10]),
        (["x"] * 11, [10, 1]),
        (["x" * (MESSAGE_LIMIT // 2)] * 3, [2, 1]),
        (["é" * (MESSAGE_LIMIT // 4), "x" * (MESSAGE_LIMIT // 2), "x"], [2, 1]),
        (["x" * MESSAGE_LIMIT, "x"], [1, 1]),
    ],
)
def test_a_batch_is_within_what_sqs_takes(bodies: list[str], sizes: list[int]) -> None:
    found = list(batches([Sent(body) for body in bodies]))
    assert [len(batch) for batch in found] == sizes
    assert [sent.body for batch in found for sent in batch] == bodies


def test_a_request_goes_out_in_characters_that_sqs_takes(moto: MotoPost) -> None:
    request = request_to("a", note="\uffff \ud800 \x00")
    moto.outbox.send_requests([("mail", "normal", request)])
    (body,) = moto.requests("mail", "normal")
    assert body.isprintable()
    assert json.loads(body)["input"] == {"note": "\uffff \ud800 \x00"}


def test_a_message_too_long_to_be_kept_whole_is_rejected_all_the_same(moto: MotoPost) -> None:
    moto.outbox.reject("SubmissionQueue", '"' * MESSAGE_LIMIT, [Problem("", "not JSON")])
    (kept,) = (json.loads(body) for body in moto.rejected())
    assert len(kept["body"]) > 500_000


def test_an_alert_too_long_for_sns_is_published_all_the_same(moto: MotoPost) -> None:
    long = Alert("Roundsman", json.dumps({"reason": "x" * 300_000}), {"kind": "a", "empty": ""})
    moto.outbox.publish(long)
    (alert,) = moto.alerts()
    assert len(alert.body) < 3_000
    assert alert.attributes == {"kind": "a"}


@pytest.mark.parametrize(("code", "kind"), [("Throttled", TryAgain), ("NotFound", CallRefused)])
def test_an_alert_that_fails_says_whether_it_may_pass(
    moto: MotoPost, code: str, kind: type[Exception]
) -> None:
    with Stubber(moto.sns) as stub:
        stub.add_client_error("publish", code, http_status_code=400)
        with pytest.raises(kind, match="publishing an alert") as raised:
            moto.outbox.publish(ALERT)
    assert not isinstance(raised.value, ClientError)


def test_a_part_that_was_given_no_place_to_send_to_says_so(moto: MotoPost) -> None:
    sqs: SQSClient = moto.sqs
    bare = AwsOutbox(
        sqs, scheduler_queue=moto.urls["shop-SchedulerQueue"], reply_prefix="shop-reply-"
    )
    with pytest.raises(ValueError, match="no alert topic"):
        bare.publish(ALERT)
    with pytest.raises(ValueError, match="no rejected queue"):
        bare.reject("SubmissionQueue", "{}", [])


def test_a_start_that_sqs_does_not_take_now_is_tried_again(moto: MotoPost) -> None:
    with Stubber(moto.sqs) as stub:
        stub.add_client_error("send_message", "RequestThrottled", http_status_code=403)
        with pytest.raises(TryAgain, match="message to shop-SchedulerQueue"):
            moto.outbox.send_start("ord-1", delay=SECOND)
