"""What differs between two versions of a stack: pure, from the project's own templates."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman_dev.changes.compare import Action, Changes, ResourceChange, compare
from roundsman_dev.nested_stacks import Document, Json
from roundsman_dev.template import part
from tests.unit.console.changes.templates import packaged, resources

AGENTS = ("Inventory", "Mail", "Payment", "Shipping")
FUNCTIONS = sorted([*AGENTS, "Scheduler", "Submission", "Supervisor"])


@cache
def deployed() -> dict[str, Document]:
    return resources(packaged())


def by_name(changes: tuple[ResourceChange, ...]) -> dict[str, ResourceChange]:
    return {one.name: one for one in changes}


def table(**properties: Json) -> Document:
    return {"Type": "AWS::DynamoDB::Table", "Properties": properties}


def test_nothing_differs_from_itself() -> None:
    assert compare(deployed(), resources(packaged())) == Changes()


def test_everything_is_added_to_a_stack_that_does_not_exist() -> None:
    found = compare({}, deployed())
    assert {one.action for one in found.own} == {Action.ADD}
    assert len(found.own) == len(deployed())
    assert found.stopped() == []


def test_another_layer_is_one_change_and_the_functions_that_use_it_are_shown_apart() -> None:
    found = compare(deployed(), resources(packaged(layers="2")))
    assert [(one.name, one.action) for one in found.own] == [
        ("CoreLayer", Action.NEW_VERSION),
        ("WorkflowsLayer", Action.NEW_VERSION),
    ]
    passed_on = by_name(found.passed_on)
    assert sorted(passed_on) == sorted(
        f"{name}Function{what}" for name in FUNCTIONS for what in ("", "Version", "Aliaslive")
    )
    assert passed_on["PaymentFunction"].action == Action.CHANGE
    assert passed_on["PaymentFunctionVersion"].action == Action.NEW_VERSION
    assert (found.rights, found.stopped()) == ((), [])


def test_other_code_publishes_a_version_of_each_function_and_moves_its_alias() -> None:
    found = compare(deployed(), resources(packaged(code="2")))
    own = by_name(found.own)
    assert own["PaymentFunction"] == ResourceChange(
        "PaymentFunction", "AWS::Lambda::Function", Action.CHANGE, ("Code",)
    )
    assert own["PaymentFunctionVersion"].action == Action.NEW_VERSION
    assert sorted(by_name(found.passed_on)) == [f"{name}FunctionAliaslive" for name in FUNCTIONS]


def test_a_value_that_takes_the_protection_of_tables_away_stops_the_deployment() -> None:
    """`later` is what a first deployment stores, and a later one may pass it on."""
    found = compare(deployed(), resources(packaged(), DeletionProtection="later"))
    assert {one.name: one.properties for one in found.own} == dict.fromkeys(
        ("ControlTable", "HistoryTable", "OrdersTable", "TasksTable"),
        ("DeletionProtectionEnabled",),
    )
    assert {one.action for one in found.own} == {Action.UNPROTECT}
    assert [one.name for one in found.stopped()] == sorted(one.name for one in found.own)
    protects = compare(resources(packaged(), DeletionProtection="later"), deployed())
    assert {one.action for one in protects.own} == {Action.CHANGE}
    assert not protects.stopped()


def with_search(fields: int) -> dict[str, Document]:
    """The stack with so many fields by which orders are found."""

    def edit(engine: Document) -> None:
        part(part(engine, "Parameters"), "SearchFields")["Default"] = fields

    return resources(packaged({"Engine": edit}))


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [(0, 1, ()), (1, 2, ()), (3, 2, ()), (0, 2, ("OrdersTable",)), (3, 1, ("OrdersTable",))],
)
def test_more_than_one_index_at_once_is_said_and_one_is_not(
    before: int, after: int, refused: tuple[str, ...]
) -> None:
    found = compare(with_search(before), with_search(after))
    assert found.many_indexes == refused
    [orders] = [one for one in found.own if one.name == "OrdersTable"]
    assert (orders.action, "GlobalSecondaryIndexes" in orders.properties) == (Action.CHANGE, True)
    assert found.joined(Changes()).many_indexes == Changes().joined(found).many_indexes == refused
    assert compare({}, with_search(after)).many_indexes == (), "a new table has all of them"


def test_another_name_of_a_queue_replaces_it_and_stops_the_deployment() -> None:
    def rename(engine: dict[str, Any]) -> None:
        engine["Resources"]["RequestQueue"]["Properties"]["QueueName"] = {"Fn::Sub": "${Stack}_x"}

    found = compare(deployed(), resources(packaged({"Payment": rename})))
    assert [(one.name, one.action) for one in found.own] == [
        ("PaymentRequestQueue", Action.REPLACE)
    ]
    assert [one.name for one in found.stopped()] == ["PaymentRequestQueue"]
    assert found.stopped(["PaymentRequestQueue"]) == []
    assert [one.name for one in found.stopped(["PaymentRequest"])] == ["PaymentRequestQueue"]
    # Its mapping names it by a property that cannot be changed.
    assert by_name(found.passed_on)["PaymentFunctionRequests"].action == Action.MAY_REPLACE


def test_another_key_of_a_table_may_replace_it_and_stops_the_deployment() -> None:
    def edit(engine: dict[str, Any]) -> None:
        properties = engine["Resources"]["OrdersTable"]["Properties"]
        properties["KeySchema"] = [{"AttributeName": "Other", "KeyType": "HASH"}]

    found = compare(deployed(), resources(packaged({"Engine": edit})))
    assert [(one.name, one.action) for one in found.stopped()] == [
        ("OrdersTable", Action.MAY_REPLACE)
    ]


def test_an_agent_that_goes_takes_its_queues_and_stops_the_deployment() -> None:
    def remove(root: dict[str, Any]) -> None:
        del root["Resources"]["Mail"]
        del root["Outputs"]["MailAgent"]

    stopped = compare(deployed(), resources(packaged({"": remove}))).stopped()
    assert {one.action for one in stopped} == {Action.REMOVE}
    assert len(stopped) == 6
    assert all(one.name.startswith("Mail") for one in stopped)


def test_a_table_that_the_stack_leaves_behind_stops_the_deployment() -> None:
    after = {name: body for name, body in deployed().items() if name != "HistoryTable"}
    assert [(one.name, one.action) for one in compare(deployed(), after).stopped()] == [
        ("HistoryTable", Action.LEAVE)
    ]


def test_a_right_of_a_role_that_grows_is_named_and_one_that_shrinks_is_not() -> None:
    def edit(engine: dict[str, Any]) -> None:
        policy = engine["Resources"]["SchedulerRole"]["Properties"]["Policies"][0]
        statements = policy["PolicyDocument"]["Statement"]
        statements[0]["Action"] = ["sqs:ReceiveMessage"]
        statements.append({"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"})

    found = compare(deployed(), resources(packaged({"Engine": edit})))
    assert [(one.holder, one.action, one.resource) for one in found.rights] == [
        ("SchedulerRole", "s3:GetObject", "*")
    ]


KEY: Document = {"AttributeName": "Id", "AttributeType": "S"}


@pytest.mark.parametrize(
    ("definitions", "action"),
    [
        ([KEY, {"AttributeName": "Other", "AttributeType": "S"}], Action.CHANGE),
        ([{"AttributeName": "Id", "AttributeType": "N"}], Action.MAY_REPLACE),
    ],
)
def test_an_edited_attribute_may_replace_a_table_and_a_new_one_does_not(
    definitions: list[Json], action: Action
) -> None:
    before = {"T": table(AttributeDefinitions=[KEY])}
    after = {"T": table(AttributeDefinitions=definitions)}
    assert [one.action for one in compare(before, after).own] == [action]


def test_another_type_under_the_same_name_replaces_the_resource() -> None:
    found = compare({"T": table()}, {"T": {"Type": "AWS::SQS::Queue", "Properties": {}}})
    assert found.own == (ResourceChange("T", "AWS::SQS::Queue", Action.REPLACE, ("Type",)),)


def test_two_versions_with_the_same_stem_keep_their_names() -> None:
    version = {"Type": "AWS::Lambda::LayerVersion", "Properties": {}}
    both: Mapping[str, Document] = {"L0123456789": version, "Labcdef0123": version}  # type: ignore[dict-item]
    assert compare(both, both) == Changes()


def test_of_two_answers_about_a_resource_the_more_serious_one_counts() -> None:
    def one(action: Action, *properties: str) -> Changes:
        return Changes(own=(ResourceChange("Q", "AWS::SQS::Queue", action, properties),))

    found = one(Action.CHANGE, "A").joined(one(Action.REPLACE, "B")).own
    assert found == (ResourceChange("Q", "AWS::SQS::Queue", Action.REPLACE, ("A", "B")),)
    passed = Changes(passed_on=one(Action.MAY_REPLACE).own)
    both = one(Action.CHANGE).joined(passed)
    assert ([each.action for each in both.own], both.passed_on) == ([Action.MAY_REPLACE], ())


NAMES = st.sampled_from(["A", "B", "C"])
SMALL = st.recursive(
    st.sampled_from(["x", "y"]) | NAMES.map(lambda name: {"Ref": name}),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)
BODIES = st.fixed_dictionaries(
    {
        "Type": st.sampled_from(["AWS::SQS::Queue", "AWS::DynamoDB::Table", "AWS::SNS::Topic"]),
        "Properties": st.dictionaries(
            st.sampled_from(["QueueName", "TableName", "TopicName", "Tags"]), SMALL, max_size=3
        ),
    }
)
STACKS = st.dictionaries(NAMES, BODIES, max_size=3)


@given(STACKS, STACKS)
def test_each_resource_that_differs_is_in_the_changes_once(
    before: dict[str, Document], after: dict[str, Document]
) -> None:
    found = compare(before, after)
    own, passed_on = by_name(found.own), by_name(found.passed_on)
    assert len(own) == len(found.own)
    assert not own.keys() & passed_on.keys()
    differing = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert differing <= own.keys()
    assert (own.keys() | passed_on.keys()) <= {*before, *after}
    back = by_name(compare(after, before).own)
    assert {name for name, one in own.items() if one.action == Action.ADD} == {
        name for name, one in back.items() if one.action in (Action.REMOVE, Action.LEAVE)
    }


def test_a_new_resource_that_names_a_replaced_one_is_added_and_not_replaced() -> None:
    def queue(name: Json) -> Document:
        return {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": name}}

    found = compare({"A": queue("x")}, {"A": queue("y"), "B": queue({"Ref": "A"})})
    assert [one.action for one in found.own] == [Action.REPLACE, Action.ADD]


@given(STACKS)
def test_a_stack_that_is_deployed_again_changes_nothing(stack: dict[str, Document]) -> None:
    assert compare(stack, stack) == Changes()
