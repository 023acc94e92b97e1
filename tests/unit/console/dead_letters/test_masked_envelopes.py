"""The masked values of an event are not shown in the envelope of the service that sent it."""

import json
from datetime import timedelta

import pytest

from roundsman import From, Step, Workflow
from roundsman.submission.events import EventReader
from roundsman_console.acts.set_aside.edits import edited_body, laid_out
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.set_aside.masked import masked_body
from roundsman_testing import eventbridge_event, s3_notification, sns_notification

EVENT = {"number": 7, "card": "tok_secret", "buyer": {"card": "tok_other"}}
BUS = {"source": "shop", "detail_type": "OrderPlaced"}


def stack(*events: From, masked: tuple[str, ...] = ("card",)) -> DeployedStack:
    step = Step(name="look", agent="eyes", complete_within=timedelta(seconds=30))
    workflow = Workflow(
        name="w",
        steps=(step,),
        complete_within=timedelta(hours=1),
        masked=masked,
        events=events,
    )
    return DeployedStack("shop", {}, {}, EventReader({"w": workflow}))


def test_a_masked_field_is_masked_where_it_is_and_a_message_of_a_topic_as_a_whole() -> None:
    known = stack(From(source="shop", id="number"))
    shown = json.loads(masked_body(known, eventbridge_event(EVENT, **BUS)))
    assert shown["detail"] == {**EVENT, "card": "(masked)"}
    assert shown["source"] == "shop"
    body = sns_notification(EVENT, topic="orders")
    shown = json.loads(masked_body(known, body))
    assert shown == {**json.loads(body), "Message": "(masked)"}
    inner = sns_notification(eventbridge_event(EVENT, **BUS), topic="orders")
    assert json.loads(masked_body(known, inner))["Message"] == "(masked)"


def test_all_of_an_event_is_masked_if_an_expression_moves_its_values_or_none_are_known() -> None:
    moved = stack(From(source="shop", id="number", input="{card: buyer.card}"))
    unknown = DeployedStack("shop", {}, {})
    for known in (moved, unknown):
        shown = json.loads(masked_body(known, eventbridge_event(EVENT, **BUS)))
        assert shown["detail"] == "(masked)"
        shown = json.loads(masked_body(known, s3_notification("a", "b", bucket="uploads")))
        assert shown == {"Records": ["(masked)", "(masked)"]}


@pytest.mark.parametrize(
    "body",
    [
        eventbridge_event(EVENT, **BUS),
        sns_notification(EVENT, topic="orders"),
        s3_notification("a", bucket="uploads"),
    ],
)
def test_an_envelope_without_a_masked_value_is_shown_as_it_is(body: str) -> None:
    assert masked_body(stack(From(topic="*", input="buyer"), masked=()), body) == body


def test_what_is_masked_in_an_envelope_is_kept_when_the_rest_is_corrected() -> None:
    real = sns_notification(EVENT, topic="orders")
    shown = masked_body(stack(), real)
    edited = laid_out(shown).replace(":orders", ":placed")
    found = json.loads(edited_body(edited, shown, real))
    assert found["TopicArn"].endswith(":placed")
    assert json.loads(found["Message"]) == EVENT
