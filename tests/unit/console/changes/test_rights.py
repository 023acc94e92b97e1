"""Which rights grow: compared with what each policy allows, action by action."""

from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman_dev.changes.rights import Right, grown, rights_of
from roundsman_dev.nested_stacks import Document


def role(*statements: object) -> dict[str, Document]:
    policy: Any = {"PolicyName": "p", "PolicyDocument": {"Statement": list(statements)}}
    return {"R": {"Type": "AWS::IAM::Role", "Properties": {"Policies": [policy]}}}


def allow(action: object, resource: object = "*", **more: object) -> dict[str, object]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: object, resource: object = "*", **more: object) -> dict[str, object]:
    return {"Effect": "Deny", "Action": action, "Resource": resource, **more}


def growth(before: dict[str, Document], after: dict[str, Document]) -> list[Right]:
    return grown(rights_of(before), rights_of(after))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([allow("sqs:*")], [allow("sqs:SendMessage", "arn:q")], []),
        ([allow("SQS:sendmessage")], [allow("sqs:SendMessage")], []),
        ([allow("sqs:SendMessage")], [allow("sqs:*")], ["sqs:*"]),
        ([allow("a:b", "arn:x-*")], [allow("a:b", "arn:x-1")], []),
        ([allow("a:b", "arn:x-1")], [allow("a:b", "arn:x-*")], ["a:b"]),
        ([allow("a:b", "arn:x-?")], [allow("a:b", "arn:x-*")], ["a:b"]),
        ([allow("a:b", Condition={"C": 1})], [allow("a:b")], ["a:b"]),
        ([allow("a:b")], [allow("a:b", Condition={"C": 1})], []),
        ([deny("a:b")], [], ["a:b"]),
        ([deny("a:b")], [deny("a:*")], []),
        ([], [{"Effect": "Allow", "NotAction": "a:b", "Resource": "*"}], ["all but a:b"]),
        # Of a condition that is not known, each branch may hold.
        (
            [{"Fn::If": ["X", allow("a:b"), {"Ref": "AWS::NoValue"}]}],
            [allow("a:b"), allow("c:d")],
            ["c:d"],
        ),
        ([], [{"Fn::If": ["X", {"Ref": "AWS::NoValue"}, allow("a:b")]}], ["a:b"]),
        # Who may do all but a:* may do less than who may do all but a:b.
        (
            [{"Effect": "Allow", "NotAction": "a:*", "Resource": "*"}],
            [{"Effect": "Allow", "NotAction": "a:b", "Resource": "*"}],
            ["all but a:b"],
        ),
    ],
)
def test_a_right_has_grown_if_nothing_before_allowed_it(
    before: list[object], after: list[object], expected: list[str]
) -> None:
    assert [one.action for one in growth(role(*before), role(*after))] == expected


def test_the_trust_of_a_role_and_its_managed_policies_are_rights() -> None:
    def trusting(service: str, *policies: str) -> dict[str, Document]:
        trust: Any = {
            "Statement": {
                "Effect": "Allow",
                "Principal": {"Service": service},
                "Action": "sts:AssumeRole",
            }
        }
        properties: Any = {"AssumeRolePolicyDocument": trust, "ManagedPolicyArns": list(policies)}
        return {"R": {"Type": "AWS::IAM::Role", "Properties": properties}}

    found = growth(trusting("lambda.amazonaws.com"), trusting("ec2.amazonaws.com", "arn:admin"))
    assert [(one.principal, one.action, one.resource) for one in found] == [
        ("", "all of the managed policy", "arn:admin"),
        ("Service ec2.amazonaws.com", "sts:AssumeRole", "*"),
    ]


def test_a_policy_that_is_attached_to_another_role_is_a_right_of_that_role() -> None:
    def attached(*roles: str) -> dict[str, Document]:
        properties: Any = {
            "Roles": [{"Ref": name} for name in roles],
            "PolicyDocument": {"Statement": [allow("a:b")]},
        }
        return {"P": {"Type": "AWS::IAM::Policy", "Properties": properties}}

    assert [one.holder for one in growth(attached("A"), attached("A", "B"))] == ["B"]


def test_a_queue_that_refuses_fewer_senders_is_a_right_that_grows() -> None:
    def queue(*statements: object) -> dict[str, Document]:
        properties: Any = {
            "Queues": [{"Ref": "Q"}],
            "PolicyDocument": {"Statement": list(statements)},
        }
        return {"P": {"Type": "AWS::SQS::QueuePolicy", "Properties": properties}}

    refuses = deny("sqs:SendMessage", Principal="*")
    found = growth(queue(refuses), queue(allow("sqs:*", Principal={"AWS": "*"})))
    assert [(one.holder, one.principal, one.effect) for one in found] == [
        ("Q", "*", "Allow"),
        ("Q", "*", "Deny"),
    ]


def test_a_permission_to_invoke_a_function_is_a_right() -> None:
    def permission(source: str) -> dict[str, Document]:
        properties: Document = {
            "FunctionName": {"Ref": "F"},
            "Action": "lambda:InvokeFunction",
            "Principal": "sns.amazonaws.com",
            "SourceArn": source,
        }
        return {"P": {"Type": "AWS::Lambda::Permission", "Properties": properties}}

    assert growth(permission("arn:a"), permission("arn:a")) == []
    [one] = growth(permission("arn:a"), permission("arn:b"))
    assert (one.holder, one.principal) == ("F", "sns.amazonaws.com")


PATTERNS = st.text("ab*?", min_size=1, max_size=3)
STATEMENTS = st.builds(
    lambda effect, actions, resource: {"Effect": effect, "Action": actions, "Resource": resource},
    st.sampled_from(["Allow", "Deny"]),
    st.lists(PATTERNS, min_size=1, max_size=2),
    PATTERNS,
)
WORDS = [a + b + c for a in ("a", "b") for b in ("a", "b", "") for c in ("a", "b", "")]


def allowed(statements: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """What the statements allow, asked for each action and resource as IAM does."""

    def matches(statement: dict[str, Any], action: str, resource: str) -> bool:
        return fnmatchcase(resource, statement["Resource"]) and any(
            fnmatchcase(action, each) for each in statement["Action"]
        )

    return {
        (action, resource)
        for action in WORDS
        for resource in WORDS
        if any(s["Effect"] == "Allow" and matches(s, action, resource) for s in statements)
        if not any(s["Effect"] == "Deny" and matches(s, action, resource) for s in statements)
    }


@given(st.lists(STATEMENTS, max_size=3), st.lists(STATEMENTS, max_size=3))
def test_whatever_is_allowed_now_and_was_not_is_a_right_that_grows(
    before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    if allowed(after) - allowed(before):
        assert growth(role(*before), role(*after))


@given(st.lists(STATEMENTS, max_size=3))
def test_the_same_policy_grows_by_nothing(statements: list[dict[str, Any]]) -> None:
    assert growth(role(*statements), role(*reversed(statements))) == []
