"""Which events of AWS's services become orders of a workflow, as a workflow declares it."""

from datetime import timedelta

import pytest

from roundsman import DefinitionError, From, Step, Workflow
from roundsman.definition.plan import plan_of
from roundsman.definition.service_events import is_like

STEP = Step(name="look", agent="eyes", complete_within=timedelta(seconds=30))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "must have topic, bucket or source: it has none of them"),
        ({"topic": "a", "bucket": "b"}, "it has topic and bucket"),
        ({"topic": ""}, "topic must be a text, not ''"),
        ({"bucket": 7}, "bucket must be a text, not 7"),
        ({"topic": "a", "detail_type": "b"}, "detail_type is only for events with a source"),
        ({"source": "shop", "detail_type": ""}, "detail_type must be a text, not ''"),
        ({"topic": "arn:aws:sns:us-east-1:123456789012:a"}, "write the name alone"),
        ({"bucket": "arn:aws:s3:::a"}, "write the name alone"),
        ({"topic": "a", "id": "number ="}, "id is not valid JMESPath"),
        ({"topic": "a", "input": "made_up(@)"}, "there is no function made_up()"),
        ({"topic": "a", "id": 7}, "id must be a JMESPath expression, not 7"),
    ],
)
def test_a_declaration_that_can_never_apply_is_refused_with_a_sentence(
    given: dict[str, str], sentence: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        From(**given)
    assert sentence in str(refused.value)


def test_a_workflow_takes_declarations_alone() -> None:
    with pytest.raises(DefinitionError, match="events must be a tuple of declarations"):
        Workflow(
            name="x",
            steps=(STEP,),
            complete_within=timedelta(hours=1),
            events=From(topic="orders"),  # type: ignore[arg-type]  # the comma is missing
        )


def test_the_events_are_no_part_of_the_plan() -> None:
    """Plans that are stored keep their hash, and an order goes on whatever declares new ones."""
    plain = Workflow(name="x", steps=(STEP,), complete_within=timedelta(hours=1))
    declared = Workflow(
        name="x",
        steps=(STEP,),
        complete_within=timedelta(hours=1),
        events=(From(topic="orders", id="number"),),
    )
    assert plan_of(declared).hash == plan_of(plain).hash


@pytest.mark.parametrize(
    ("declared", "taken"),
    [
        (From(topic="orders-*"), {("topic", "orders-eu", "")}),
        (From(bucket="uploads"), {("bucket", "uploads", "")}),
        (
            From(source="shop"),
            {("source", "shop", "OrderPlaced"), ("source", "shop", "OrderPaid")},
        ),
        (From(source="shop", detail_type="*Placed"), {("source", "shop", "OrderPlaced")}),
    ],
)
def test_a_declaration_takes_the_events_that_it_names(
    declared: From, taken: set[tuple[str, str, str]]
) -> None:
    every = {
        ("topic", "orders-eu", ""),
        ("topic", "uploads", ""),
        ("bucket", "uploads", ""),
        ("bucket", "orders-eu", ""),
        ("source", "shop", "OrderPlaced"),
        ("source", "shop", "OrderPaid"),
        ("source", "shop.eu", "OrderPlaced"),
    }
    assert {origin for origin in every if declared.takes(*origin)} == taken


def test_a_pattern_knows_two_signs_and_takes_all_others_as_they_are() -> None:
    assert is_like("a.[b]?*", "a.[b]xyz")
    assert not is_like("a.[b]?*", "a.[b]")
    assert not is_like("a.b", "axb")
    assert not is_like("ab", "abc")


def test_a_declaration_is_written_as_in_the_code_without_its_expressions() -> None:
    declared = From(source="shop", detail_type="OrderPlaced", id="number")
    assert str(declared) == "From(source='shop', detail_type='OrderPlaced')"
