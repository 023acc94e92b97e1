"""What is computed once is the same as what botocore and moto compute each time."""

import copy
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.hooks import EventAliaser, HierarchicalEmitter
from botocore.session import Session
from moto.core.model import StructureShape
from moto.core.serialize import (
    AttributePicker,
    AttributePickerContext,
    BaseJSONSerializer,
    JSONSerializer,
    XFormedAttributePicker,
)
from moto.core.utils import get_service_model

from roundsman_testing.stack import Stack, computed_once
from tests.moto.orders import order

SERVICES = ("cloudformation", "dynamodb", "events", "lambda", "s3", "scheduler", "sns", "sqs")
CALLS: dict[str, tuple[str, dict[str, object]]] = {
    "sqs": ("send_message", {"QueueUrl": "https://q.test/1/q", "MessageBody": "x"}),
    "dynamodb": ("get_item", {"TableName": "t", "Key": {"TaskId": {"S": "x"}}}),
    "sns": ("publish", {"TopicArn": "arn:aws:sns:us-east-1:123456789012:t", "Message": "x"}),
    "s3": ("head_object", {"Bucket": "b", "Key": "a/k"}),
}
PLAIN = computed_once.pick
"""What moto itself does."""


@pytest.fixture
def as_botocore_does(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Puts back what the tests of this session compute once."""

    def undo() -> None:
        for target, (original, _) in computed_once.REPLACED.items():
            monkeypatch.setattr(target, original)

    return undo


def signed(service: str) -> tuple[object, ...]:
    """What a new client has and sends, up to its signature."""
    client = Session().create_client(service, region_name="us-east-1")
    found: list[object] = [
        sorted(dir(client)),
        client.meta.endpoint_url,
        client.meta.service_model.operation_names,
        type(client).__name__,
    ]

    def note(request: AWSPreparedRequest, **_: object) -> None:
        found.append(
            (request.method, request.url, request.body, request.headers.get("X-Amz-Target"))
        )
        raise NotSent

    if service in CALLS:
        client.meta.events.register("before-send", note)
        operation, values = CALLS[service]
        with pytest.raises(NotSent):
            getattr(client, operation)(**values)
    return tuple(found)


class NotSent(Exception):
    """Raised in place of a request."""


@pytest.mark.parametrize("service", SERVICES)
def test_a_client_has_and_sends_the_same(
    service: str, as_botocore_does: Callable[[], None]
) -> None:
    first, second = signed(service), signed(service)
    as_botocore_does()
    assert first == second == signed(service)


def test_what_a_session_hooks_in_is_in_no_other(as_botocore_does: Callable[[], None]) -> None:
    hooked, other = Session(), Session()

    def add(class_attributes: dict[str, object], **_: object) -> None:
        class_attributes["send_twice"] = lambda self: None

    hooked.get_component("event_emitter").register("creating-client-class.sqs", add)
    assert hasattr(hooked.create_client("sqs", "us-east-1"), "send_twice")
    assert not hasattr(other.create_client("sqs", "us-east-1"), "send_twice")


def test_an_emitter_with_other_aliases_has_its_own_names() -> None:
    seen: list[str] = []
    usual, own = (
        EventAliaser(HierarchicalEmitter(), aliases) for aliases in (None, {"lambda": "mine"})
    )
    for emitter, name in ((usual, "usual"), (own, "own")):
        emitter.register("before-call.lambda.Invoke", lambda name=name, **_: seen.append(name))
        emitter.emit("before-call.lambda.Invoke")
    own.emit("before-call.mine.Invoke")
    usual.emit("before-call.mine.Invoke")
    assert seen == ["usual", "own", "own"]


def test_an_emitter_is_copied_with_its_handlers_and_shares_no_list_of_them(
    as_botocore_does: Callable[[], None],
) -> None:
    seen: list[str] = []

    def handler(name: str) -> Callable[..., None]:
        return lambda **_: seen.append(name)

    def heard(emitter: HierarchicalEmitter) -> list[str]:
        seen.clear()
        emitter.emit("before-call.sqs.SendMessage")
        return list(seen)

    original = HierarchicalEmitter()
    original.register_last("before-call", handler("last"))
    original.register("before-call.sqs", handler("service"))
    original.register_first("before-call.*.SendMessage", handler("first"))
    ours = copy.copy(original)
    original.register("before-call.sqs.SendMessage", handler("added to the original"))
    ours.register_first("before-call.sqs", handler("added to the copy"))
    after = heard(ours)
    as_botocore_does()
    theirs = copy.copy(ours)
    assert heard(theirs) == after
    assert sorted(after) == ["added to the copy", "first", "last", "service"]
    assert "added to the copy" not in heard(original)


def test_what_a_copy_of_an_emitter_no_longer_calls_the_original_still_calls() -> None:
    seen: list[str] = []
    original = HierarchicalEmitter()
    for name in ("one", "other"):
        original.register("before-call.sqs", partial(_note, seen, name), unique_id=name)
    ours = copy.copy(original)
    ours.unregister("before-call.sqs", unique_id="one")
    for emitter in (ours, original):
        emitter.emit("before-call.sqs.SendMessage")
    assert seen == ["other", "one", "other"]


def _note(seen: list[str], name: str, **_: object) -> None:
    seen.append(name)


@pytest.mark.exhaustive
def test_each_value_of_each_answer_to_an_orders_calls_is_the_one_that_moto_finds(
    roundsman_stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = 0

    def both(self: AttributePicker, context: AttributePickerContext) -> object:
        nonlocal compared
        compared += 1
        found = computed_once.picked(self, context)
        assert found == PLAIN(self, context), context
        return found

    monkeypatch.setattr(AttributePicker, "__call__", both)
    roundsman_stack.submit(order("ord-1"))
    roundsman_stack.run()
    roundsman_stack.pass_time(300)
    assert roundsman_stack.task("ord-1").state == "Completed"
    assert compared > 200


def test_each_structure_of_each_answer_is_the_one_that_moto_writes(
    roundsman_stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: Counter[str] = Counter()

    def both(
        self: BaseJSONSerializer,
        serialized: dict[str, object],
        value: object,
        shape: StructureShape,
        key: str,
    ) -> None:
        compared[shape.name] += 1
        plain = dict(serialized)
        computed_once.write_structure(self, plain, value, shape, key)
        computed_once.serialize_structure(self, serialized, value, shape, key)
        assert serialized == plain, value

    monkeypatch.setattr(BaseJSONSerializer, "_serialize_type_structure", both)
    roundsman_stack.submit(order("ord-1"))
    roundsman_stack.run()
    assert roundsman_stack.task("ord-1").state == "Completed"
    assert compared["AttributeValue"] > 100
    assert len(compared) > 3


ATTRIBUTES: list[dict[str, object]] = [
    {"S": ""},
    {"N": "1"},
    {"BOOL": False},
    {"NULL": True},
    {"M": {}},
    {"L": []},
    {"M": {"a": {"L": [{"S": "x"}, {"M": {"b": {"NULL": True}}}]}}},
    {"SS": ["a", "b"]},
    {"B": "eA=="},
    {"M": {"a": {"B": b"x"}}},
    {"L": [{"B": b"x"}]},
    {"N": 1},
    {"S": None},
    {"S": "x", "N": "1"},
    {"S": "x", "Other": "1"},
    {"Other": "1"},
    {},
]


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=str)
def test_an_attribute_of_any_form_is_the_one_that_moto_writes(attribute: dict[str, object]) -> None:
    operation = get_service_model("dynamodb").operation_model("GetItem")
    shape = operation.output_shape
    assert isinstance(shape, StructureShape)
    written: list[object] = []
    for write in (computed_once.write_structure, computed_once.serialize_structure):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BaseJSONSerializer, "_serialize_type_structure", write)
            serializer = JSONSerializer(
                operation_model=operation, value_picker=XFormedAttributePicker()
            )
            written.append(serializer.serialize({"Item": {"a": attribute}}))
    assert written[0] == written[1]


class _Named:
    MessageId = "m-1"


@pytest.mark.parametrize(
    ("obj", "transformers", "value"),
    [
        ({"MessageId": "m-1"}, {}, "m-1"),
        ({"message_id": "m-1"}, {}, "m-1"),
        ({"MessageId": None}, {}, None),
        ({}, {}, None),
        (_Named(), {}, "m-1"),
        ({"MessageId": "m-1"}, {"MessageId": str.upper}, "M-1"),
    ],
)
def test_a_value_is_found_under_each_of_its_names(
    obj: object, transformers: dict[str, Callable[[str], str]], value: str | None
) -> None:
    shape = get_service_model("sqs").operation_model("SendMessage").output_shape
    assert isinstance(shape, StructureShape)
    context = AttributePickerContext(obj=obj, key="MessageId", shape=shape.members["MessageId"])
    picker = XFormedAttributePicker(response_transformers=transformers)
    for _ in range(2):
        assert computed_once.picked(picker, context) == PLAIN(picker, context) == value
