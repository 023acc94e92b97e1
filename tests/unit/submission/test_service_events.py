"""What SNS, S3 and EventBridge deliver becomes orders, cancellations and signals, or nothing."""

import json
from datetime import timedelta

import pytest

from roundsman import From, Step, Workflow
from roundsman.errors import RejectedOrder
from roundsman.model.json import canonical_json, sha256
from roundsman.submission.events import Asked, EventReader
from roundsman.submission.service_events import ListedSources
from roundsman.submission.submission import CancelAsked, SignalSent, ValidOrder
from roundsman_testing import (
    eventbridge_event,
    s3_notification,
    s3_test_event,
    sns_notification,
)

NOW = 1_796_115_600_000
TOPIC, BUCKET = "arn:aws:sns:us-east-1:123456789012:orders", "arn:aws:s3:::uploads"
RULE = "arn:aws:events:us-east-1:123456789012:rule/orders"
ALL = ListedSources((TOPIC, BUCKET, RULE))

STEP = Step(name="look", agent="eyes", complete_within=timedelta(seconds=30))


def workflow(name: str, *events: From) -> Workflow:
    return Workflow(name=name, steps=(STEP,), complete_within=timedelta(hours=1), events=events)


FIRST = workflow("first")
FROM_TOPIC = From(topic="orders", id="number")


def read(body: str, *events: From, sources: ListedSources = ALL) -> list[Asked | RejectedOrder]:
    """What a message is read as by an application whose second workflow declares these events."""
    reader = EventReader({"first": FIRST, "second": workflow("second", *events)})
    return reader.read_message(body, NOW, lambda _: None, lambda: sources)


def order(body: str, *events: From, sources: ListedSources = ALL) -> ValidOrder:
    [found] = read(body, *events, sources=sources)
    if isinstance(found, RejectedOrder):
        raise found
    assert isinstance(found, ValidOrder)
    return found


def why(body: str, *events: From, sources: ListedSources = ALL) -> str:
    with pytest.raises(RejectedOrder) as rejected:
        order(body, *events, sources=sources)
    return str(rejected.value)


# --- which order ---------------------------------------------------------------------------------


def test_an_event_of_a_declared_topic_is_an_order_of_the_workflow_that_declares_it() -> None:
    found = order(sns_notification({"number": "A-7", "total": 12}, topic="orders"), FROM_TOPIC)
    assert (found.order_id, found.plan.workflow) == ("A-7", "second")
    assert found.content == {"number": "A-7", "total": 12, "orderId": "A-7"}


def test_each_record_of_a_bucket_is_an_order() -> None:
    declared = From(bucket="uploads", id="s3.object.key")
    found = read(s3_notification("one.csv", "two.csv", bucket="uploads"), declared)
    assert [one.order_id for one in found if isinstance(one, ValidOrder)] == ["one.csv", "two.csv"]
    first = found[0]
    assert isinstance(first, ValidOrder)
    assert isinstance(first.content, dict)
    assert first.content["eventName"] == "ObjectCreated:Put"


def test_the_order_of_an_event_of_a_bus_is_its_detail() -> None:
    body = eventbridge_event({"number": 7}, source="shop", detail_type="OrderPlaced")
    found = order(body, From(source="shop", detail_type="OrderPlaced", id="number"))
    assert found.content == {"number": 7, "orderId": "7"}


def test_raw_delivery_and_an_input_path_send_what_an_application_sends() -> None:
    found = order('{"orderId": "ord-1", "total": 3}', FROM_TOPIC)
    assert (found.order_id, found.plan.workflow) == ("ord-1", "first")


@pytest.mark.parametrize(
    "body",
    [
        sns_notification({"orderId": "ord-1", "total": 3}, topic="orders"),
        eventbridge_event({"orderId": "ord-1", "total": 3}, source="shop", detail_type="x"),
    ],
)
def test_an_order_event_in_an_envelope_is_the_order_that_it_is_without(body: str) -> None:
    plain = order('{"orderId": "ord-1", "total": 3}')
    assert order(body) == plain


def test_what_is_published_to_a_topic_may_be_an_envelope_itself() -> None:
    of_bucket, of_bus = From(bucket="uploads", id="s3.object.key"), From(source="shop")
    inner = s3_notification("one.csv", bucket="uploads")
    only_topic = ListedSources((TOPIC,))
    found = order(sns_notification(inner, topic="orders"), of_bucket, sources=only_topic)
    assert found.order_id == "one.csv"
    by_topic = order(sns_notification(inner, topic="orders"), From(topic="orders", id="eventName"))
    assert by_topic.order_id == sha256("ObjectCreated:Put")
    event = eventbridge_event({"x": 1}, source="shop", detail_type="y", event_id="e-1")
    assert order(sns_notification(event, topic="orders"), of_bus).order_id == "e-1"
    assert read(sns_notification(s3_test_event("uploads"), topic="orders")) == []


def test_the_first_workflow_that_declares_an_event_takes_it() -> None:
    reader = EventReader(
        {one.name: one for one in (workflow("a", From(topic="*")), workflow("b", FROM_TOPIC))}
    )
    [found] = reader.read_message(
        sns_notification({"number": 1}, topic="orders"), NOW, lambda _: None, lambda: ALL
    )
    assert isinstance(found, ValidOrder)
    assert found.plan.workflow == "a"


# --- its id, its input and its hash --------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"number": 1234567890123456789}, "1234567890123456789"),
        ({"number": "a/b c"}, sha256("a/b c")),
        ({"number": "ü" * 200}, sha256("ü" * 200)),
        ({"number": "x" * 128}, "x" * 128),
        ({"number": "x" * 129}, sha256("x" * 129)),
    ],
)
def test_the_id_is_what_the_expression_gives_hashed_where_it_does_not_fit(
    message: dict[str, object], expected: str
) -> None:
    assert order(sns_notification(message, topic="orders"), FROM_TOPIC).order_id == expected


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ({}, "nothing"),
        ({"number": ""}, "an empty text"),
        ({"number": True}, "a boolean"),
        ({"number": 1.5}, "a number"),
        ({"number": ["a"]}, "a list"),
    ],
)
def test_an_event_without_an_id_is_rejected_with_what_the_expression_gives(
    message: dict[str, object], wrong: str
) -> None:
    sentence = f"Message: id 'number' must give a text or a whole number, not {wrong}"
    assert why(sns_notification(message, topic="orders"), FROM_TOPIC) == sentence


def test_an_expression_that_fails_on_an_event_quotes_nothing_of_it() -> None:
    declared = From(topic="orders", id="join('-', number)")
    found = why(sns_notification({"number": "secret"}, topic="orders"), declared)
    assert found.startswith("Message: id \"join('-', number)\" cannot be evaluated: join() takes")
    assert "secret" not in found


def test_without_an_expression_the_id_is_that_of_the_event_itself() -> None:
    by_topic, by_bucket, by_bus = From(topic="orders"), From(bucket="uploads"), From(source="shop")
    own = sns_notification({"orderId": "A-7"}, topic="orders")
    assert order(own, by_topic).order_id == "A-7"
    plain = sns_notification({"x": 1}, topic="orders", message_id="m-1")
    assert order(plain, by_topic).order_id == "m-1"
    event = eventbridge_event({"x": 1}, source="shop", detail_type="y", event_id="e-1")
    assert order(event, by_bus).order_id == "e-1"
    record = s3_notification("one.csv", bucket="uploads")
    assert order(record, by_bucket).order_id == sha256(
        canonical_json(json.loads(record)["Records"][0])
    )


def test_the_hash_is_that_of_the_event_and_not_of_its_envelope() -> None:
    first = sns_notification({"number": "A-7"}, topic="orders", message_id="m-1")
    again = sns_notification('{"number":   "A-7"}', topic="orders", message_id="m-2")
    other = sns_notification({"number": "A-7", "more": 1}, topic="orders", message_id="m-3")
    hashes = [order(body, FROM_TOPIC).content_hash for body in (first, again, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert hashes[0] == sha256(canonical_json({"number": "A-7", "orderId": "A-7"}))


def test_the_input_is_what_its_expression_gives_and_the_hash_stays_that_of_the_event() -> None:
    message = {"number": "A-7", "buyer": {"id": "c-1"}, "items": [1]}
    body = sns_notification(message, topic="orders")
    made = From(topic="orders", id="number", input="{customer: buyer.id, lines: items}")
    found = order(body, made)
    assert found.content == {"customer": "c-1", "lines": [1], "orderId": "A-7"}
    assert found.content_hash == order(body, FROM_TOPIC).content_hash
    wrong = From(topic="orders", id="number", input="items")
    assert why(body, wrong) == "Message: input 'items' must give an object, not a list"


@pytest.mark.parametrize("made", ["{total: to_number(total)}", "{total: &total}"])
def test_an_event_of_which_an_expression_makes_what_json_does_not_have_is_rejected(
    made: str,
) -> None:
    body = sns_notification({"number": "A-7", "total": "NaN"}, topic="orders")
    found = why(body, From(topic="orders", id="number", input=made))
    assert found == f"Message: input {made!r} gives what JSON does not have, such as NaN"


def test_an_event_with_another_id_of_its_own_is_another_event() -> None:
    declared = From(topic="orders", id="customer")
    first, other = (
        order(sns_notification({"orderId": own, "customer": "c-1"}, topic="orders"), declared)
        for own in ("A-7", "A-8")
    )
    assert first.order_id == other.order_id == "c-1"
    assert first.content_hash != other.content_hash


def test_an_event_may_have_options_of_its_own_and_its_workflow_stays_that_of_the_declaration() -> (
    None
):
    message = {"number": "A-7", "processing": {"tenant": "shop-1", "workflow": "first"}}
    found = order(sns_notification(message, topic="orders"), FROM_TOPIC)
    assert (found.options.tenant, found.plan.workflow) == ("shop-1", "second")
    other = {"number": "A-7", "processing": "fast"}
    assert why(sns_notification(other, topic="orders"), FROM_TOPIC) == (
        "Message.processing: must be an object"
    )


# --- cancellations and signals -------------------------------------------------------------------


@pytest.mark.parametrize("declared", [(), (FROM_TOPIC,)])
def test_a_cancellation_and_a_signal_come_by_an_envelope_too(declared: tuple[From, ...]) -> None:
    cancel = sns_notification({"orderId": "A-7", "cancel": {"undo": False}}, topic="orders")
    assert read(cancel, *declared) == [CancelAsked("A-7", False, "")]
    paid = {"orderId": "A-7", "signal": {"name": "paid", "data": 3}}
    signal = sns_notification(paid, topic="orders", message_id="m-1")
    assert read(signal, *declared) == [SignalSent("A-7", "paid", 3, "m-1")]


def test_a_signal_in_an_envelope_always_has_an_id_and_keeps_its_own() -> None:
    paid = {"orderId": "A-7", "signal": {"name": "paid"}}
    event = eventbridge_event(paid, source="shop", detail_type="Paid", event_id="e-1")
    assert read(event) == [SignalSent("A-7", "paid", None, "e-1")]
    own = {"orderId": "A-7", "signal": {"name": "paid", "id": "pay-7"}}
    event = eventbridge_event(own, source="shop", detail_type="Paid", event_id="e-1")
    assert read(event) == [SignalSent("A-7", "paid", None, "pay-7")]


# --- what is rejected ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "listed", "sentence"),
    [
        (
            sns_notification({"orderId": "x"}, topic="other"),
            (TOPIC, BUCKET, RULE),
            "TopicArn: is a topic of SNS that SubmitterSources does not list",
        ),
        (
            sns_notification({"orderId": "x"}, topic="orders", account="111122223333"),
            (TOPIC,),
            "TopicArn: is a topic of SNS that SubmitterSources does not list",
        ),
        (
            s3_notification("k", bucket="other"),
            (TOPIC, BUCKET, RULE),
            "Records[0].s3.bucket.arn: is a bucket of S3 that SubmitterSources does not list",
        ),
        (
            s3_test_event("other"),
            (TOPIC, BUCKET, RULE),
            "Bucket: is a bucket of S3 that SubmitterSources does not list",
        ),
        (
            eventbridge_event({"orderId": "x"}, source="shop", detail_type="y"),
            (TOPIC, BUCKET),
            "detail-type: is an event of EventBridge, and SubmitterSources lists no rule",
        ),
        (sns_notification({"orderId": "x"}, topic="orders"), (), "TopicArn: is a topic"),
    ],
)
def test_an_envelope_of_a_source_that_is_not_listed_is_rejected_whole(
    body: str, listed: tuple[str, ...], sentence: str
) -> None:
    declared = From(topic="*"), From(bucket="*"), From(source="*")
    with pytest.raises(RejectedOrder) as rejected:
        read(body, *declared, sources=ListedSources(listed))
    assert str(rejected.value).startswith(sentence)
    assert "send the order itself" in str(rejected.value)


class Unlisting:
    """A list of no source that counts how often it is asked."""

    asked = 0

    def lists(self, service: str, arn: str | None) -> bool:
        self.asked += 1
        return (service, arn) == ("", None)


def test_an_envelope_of_many_records_is_refused_after_one_look_at_the_list() -> None:
    listed = Unlisting()
    body = s3_notification(*map(str, range(1_000)), bucket="other")
    with pytest.raises(RejectedOrder):
        EventReader({"first": FIRST}).read_message(body, NOW, lambda _: None, lambda: listed)
    assert listed.asked == 1


def test_a_source_may_be_listed_by_a_pattern_that_does_not_cross_the_parts_of_an_arn() -> None:
    lists = ListedSources(
        ("arn:aws:sns:us-east-1:123456789012:shop-*", "arn:aws:s3:::up?oads")
    ).lists
    assert lists("sns", "arn:aws:sns:us-east-1:123456789012:shop-orders")
    assert not lists("sns", "arn:aws:sns:us-east-1:999999999999:shop-orders")
    assert not lists("sns", "arn:aws:sns:eu-west-1:123456789012:shop-orders")
    assert lists("s3", "arn:aws-cn:s3:::uploads")
    assert not lists("s3", "arn:aws:sns:::uploads")
    assert not lists("events", None)
    assert not lists("sns", "orders")
    assert not ListedSources(("*",)).lists("sns", None)


def test_an_event_that_no_workflow_declares_is_rejected_with_what_to_write() -> None:
    assert why(sns_notification({"number": 1}, topic="orders")) == (
        "Message: has no orderId, and no workflow takes the events of this topic; declare it in "
        "events of a workflow, as From(topic=...), or publish order events"
    )
    event = eventbridge_event({"x": 1}, source="shop", detail_type="y")
    assert "as From(source=..., detail_type=...)" in why(
        event, From(source="shop", detail_type="z")
    )
    assert "as From(bucket=...)" in why(s3_notification("k", bucket="uploads"), FROM_TOPIC)


def test_a_message_that_is_no_object_is_rejected() -> None:
    assert why(sns_notification("Hello", topic="orders")) == "Message: must be a JSON object"
    assert why(sns_notification("[1]", topic="orders")) == "Message: must be a JSON object"
    twice = sns_notification('{"number": 1, "number": 2}', topic="orders")
    assert why(twice).startswith("Message: not JSON: the key 'number' appears twice")


def test_a_problem_of_an_order_is_named_by_its_place_in_the_envelope() -> None:
    message = {"orderId": "A 7", "processing": {"priority": "soon"}}
    [found] = read(sns_notification(message, topic="orders"))
    assert isinstance(found, RejectedOrder)
    assert [one.path for one in found.problems] == [
        "Message.orderId",
        "Message.processing.priority",
    ]
    assert found.is_order


def test_one_record_that_is_rejected_does_not_hold_up_the_others() -> None:
    declared = From(bucket="uploads", id="s3.object.missing || null")
    body = json.loads(s3_notification("one.csv", "two.csv", bucket="uploads"))
    body["Records"][1]["s3"]["object"]["missing"] = "two"
    first, second = read(json.dumps(body), declared)
    assert isinstance(first, RejectedOrder)
    assert str(first).startswith("Records[0]: id ")
    assert isinstance(second, ValidOrder)
    assert second.order_id == "two"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (
            sns_notification('{"number": 1, "big": 12345678901234567.89}', topic="orders"),
            "Message.big",
        ),
        (
            eventbridge_event({}, source="shop", detail_type="y").replace(
                '"detail":{}', '"detail":{"number":1,"big":12345678901234567.89}'
            ),
            "detail.big",
        ),
    ],
)
def test_a_number_that_would_lose_digits_is_rejected_in_an_envelope_too(
    body: str, path: str
) -> None:
    declared = FROM_TOPIC, From(source="shop", id="number")
    with pytest.raises(RejectedOrder) as rejected:
        order(body, *declared)
    assert [one.path for one in rejected.value.problems] == [path]


@pytest.mark.parametrize(
    "body",
    [
        '{"orderId": "ord-1", "TopicArn": "x", "Type": "Notification", "MessageId": "m", '
        '"Message": "{}"}',
        '{"orderId": "ord-1", "Records": [{"eventSource": "aws:s3"}]}',
        '{"orderId": "ord-1", "detail-type": "x", "source": "y", "id": "z", "detail": {}}',
    ],
)
def test_an_order_may_look_like_an_envelope_if_it_has_an_order_id(body: str) -> None:
    assert order(body, sources=ListedSources(())).order_id == "ord-1"


@pytest.mark.parametrize(
    "body",
    [
        '{"Records": []}',
        '{"Records": [{"eventSource": "aws:s3"}]}',
        '{"Records": [{"eventSource": "aws:ses", "s3": {"bucket": {"arn": "arn:aws:s3:::uploads"}}'
        "}]}",
        '{"Records": ["x"]}',
        '{"TopicArn": "x", "Message": "y"}',
        '{"detail-type": "x", "detail": {}}',
        '{"Records": ',
    ],
)
def test_what_is_no_envelope_is_read_as_an_event(body: str) -> None:
    with pytest.raises(RejectedOrder) as rejected:
        read(body)
    assert "orderId: missing" in str(rejected.value) or "not JSON" in str(rejected.value)


def test_a_test_event_of_a_listed_bucket_has_no_orders() -> None:
    assert read(s3_test_event("uploads")) == []
