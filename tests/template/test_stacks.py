"""What the values of some parameters make of our stacks: principals, and protection of tables."""

import json
import re

import pytest

from roundsman_console.check.reading import (
    at,
    chosen,
    items,
    of_type,
    parameters,
)
from roundsman_console.template import Template
from tests.project import SERVICE_URLS, TEMPLATE
from tests.support.template_reading import THIS_ACCOUNT, excepted, statements
from tests.template.conftest import nested_template


def test_principals_that_are_named_replace_the_account_and_submitters_are_allowed() -> None:
    operator, submitter = "arn:aws:iam::123456789012:role/ops", "arn:aws:iam::111122223333:role/*"
    settings = {
        "Engine.OperatorPrincipals": operator,
        "Engine.SubmitterPrincipals": submitter,
        "Inventory.AnswerPrincipals": "arn:aws:iam::123456789012:role/approvals",
    }
    document = Template.read(TEMPLATE, settings).translate(SERVICE_URLS)
    policies = of_type(document, "AWS::SQS::QueuePolicy")
    account = THIS_ACCOUNT[0]
    principals = {
        name: [
            chosen(document, one)
            for statement in statements(at(policies[f"{name}Policy"], "PolicyDocument"))
            for one in excepted(statement)
        ]
        for name in ("SubmissionQueue", "SchedulerQueue", "InventoryReplyQueue", "MailReplyQueue")
    }
    assert {operator, submitter} <= set(map(str, principals["SubmissionQueue"]))
    assert operator in principals["SchedulerQueue"]
    assert submitter not in principals["SchedulerQueue"]
    assert "arn:aws:iam::123456789012:role/approvals" in principals["InventoryReplyQueue"]
    assert account in principals["MailReplyQueue"]
    for name in ("SubmissionQueue", "SchedulerQueue", "InventoryReplyQueue"):
        assert account not in principals[name]
    [*_, last] = items(at(policies["SubmissionQueuePolicy"], "PolicyDocument", "Statement"))
    allowed = chosen(document, last)
    assert (at(allowed, "Effect"), at(allowed, "Principal")) == ("Allow", "*")
    assert submitter in json.dumps(at(allowed, "Condition", "ArnLike", "aws:PrincipalArn"))


@pytest.mark.parametrize(
    ("stack", "parameter"),
    [
        ("engine.yaml", "OperatorPrincipals"),
        ("engine.yaml", "SubmitterPrincipals"),
        ("agent.yaml", "AnswerPrincipals"),
    ],
)
def test_only_principals_that_a_queue_policy_can_know_are_accepted(
    stack: str, parameter: str
) -> None:
    """`aws:PrincipalArn` of a session is its role's ARN, and of an account no ARN that ends so."""
    pattern = str(at(nested_template(stack), "Parameters", parameter, "AllowedPattern"))
    role, user = "arn:aws:iam::123456789012:role/ops", "arn:aws-us-gov:iam::123456789012:user/*"
    for good in ("", role, f"{role},{user}"):
        assert re.fullmatch(pattern, good), good
    session = "arn:aws:sts::123456789012:assumed-role/ops/jane"
    for bad in (session, f"{role},{session}", "arn:aws:iam::123456789012:root", f"{role}, {user}"):
        assert not re.fullmatch(pattern, bad), bad


@pytest.mark.parametrize(
    ("value", "protected"), [("later", False), ("true", True), ("false", False)]
)
def test_tables_are_protected_only_when_the_parameter_is_true(value: str, protected: bool) -> None:
    """And so not in a new stack, of which a creation that fails removes its tables."""
    declared = parameters(nested_template("engine.yaml"))["DeletionProtection"]
    assert declared["Default"] == "later"
    document = Template.read(TEMPLATE, {"Engine.DeletionProtection": value}).translate(SERVICE_URLS)
    for table in of_type(document, "AWS::DynamoDB::Table").values():
        assert chosen(document, at(table, "DeletionProtectionEnabled")) is protected


def test_without_submitters_nobody_is_allowed_by_a_queue_itself() -> None:
    document = Template.read(TEMPLATE).translate(SERVICE_URLS)
    for policy in of_type(document, "AWS::SQS::QueuePolicy").values():
        for statement in items(at(policy, "PolicyDocument", "Statement")):
            assert at(chosen(document, statement), "Effect") != "Allow"
