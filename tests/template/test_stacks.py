"""What some parameters make of our stacks: principals, protection of tables, SnapStart."""

import json
import re
from collections.abc import Mapping

import pytest

from roundsman.model.json import Json
from roundsman_dev.check.reading import (
    at,
    chosen,
    functions,
    items,
    of_type,
    parameters,
)
from roundsman_dev.template import Template, mapping_of
from tests.project import AGENTS, SERVICE_URLS, TEMPLATE
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
    written = items(at(policies["SubmissionQueuePolicy"], "PolicyDocument", "Statement"))
    allowed = chosen(document, written[2])
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


@pytest.mark.parametrize(("value", "reserved"), [("0", {"Ref": "AWS::NoValue"}), ("2", 2)])
def test_the_supervisor_alone_may_have_instances_of_its_own(value: str, reserved: Json) -> None:
    """So that other functions of the account cannot keep it from starting."""
    document = Template.read(TEMPLATE, {"Engine.SupervisorReserved": value}).translate(SERVICE_URLS)
    found = {
        name: chosen(document, at(function, "ReservedConcurrentExecutions"))
        for name, function in functions(document).items()
        if "ReservedConcurrentExecutions" in function
    }
    assert found == {"SupervisorFunction": reserved}


ENGINE = {"SubmissionFunction", "SchedulerFunction"}
"""Of the engine's functions those whose start an order waits for: not the supervisor."""
OF_AGENTS = {f"{agent}Function" for agent in AGENTS}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, set()),
        ({"Engine.SnapStart": "true"}, ENGINE | OF_AGENTS),
        (
            {"Engine.SnapStart": "true", "Mail.SnapStart": "false"},
            ENGINE | OF_AGENTS - {"MailFunction"},
        ),
        ({"Mail.SnapStart": "true"}, {"MailFunction"}),
        ({"Engine.SnapStart": "false", "Mail.SnapStart": "true"}, {"MailFunction"}),
    ],
)
def test_snapstart_is_off_until_the_engine_or_an_agent_turns_it_on(
    settings: Mapping[str, str], expected: set[str]
) -> None:
    document = Template.read(TEMPLATE, settings).translate(SERVICE_URLS)
    applied = {
        name: chosen(document, at(function, "SnapStart", "ApplyOn"))
        for name, function in functions(document).items()
    }
    assert {name for name, value in applied.items() if value == "PublishedVersions"} == expected
    assert {value for name, value in applied.items() if name not in expected} <= {"None", None}


@pytest.mark.parametrize("stack", ["engine.yaml", "agent.yaml"])
def test_snapstart_with_a_python_that_has_none_is_refused_with_a_sentence(stack: str) -> None:
    """SnapStart knows Python from 3.12 on."""
    template = nested_template(stack)
    rule = at(template, "Rules", "SnapStartHasARuntime")
    assert at(rule, "RuleCondition") == {"Fn::Equals": [{"Ref": "SnapStart"}, "true"]}
    [assertion] = items(at(rule, "Assertions"))
    refused = {"Fn::Equals": [{"Ref": "PythonRuntime"}, "python3.11"]}
    assert at(assertion, "Assert") == {"Fn::Not": [refused]}
    assert str(at(assertion, "AssertDescription")).startswith("SnapStart needs python3.12 or newer")
    runtimes = items(at(parameters(template)["PythonRuntime"], "AllowedValues"))
    assert [one for one in runtimes if int(str(one).rpartition(".")[2]) < 12] == ["python3.11"]


def test_without_submitters_nobody_is_allowed_by_a_queue_itself() -> None:
    document = Template.read(TEMPLATE).translate(SERVICE_URLS)
    for policy in of_type(document, "AWS::SQS::QueuePolicy").values():
        for statement in items(at(policy, "PolicyDocument", "Statement")):
            assert at(chosen(document, statement), "Effect") != "Allow"


def literals(value: Json) -> list[Json]:
    """What a value is as written, in each branch of its conditions; nothing of a reference."""
    match value:
        case {"Fn::If": [_, yes, no]}:
            return [*literals(yes), *literals(no)]
        case dict():
            return []
        case _:
            return [value]


@pytest.mark.parametrize("stack", ["engine.yaml", "agent.yaml"])
def test_a_variable_of_a_function_is_written_as_text(stack: str) -> None:
    """CloudFormation makes a text of a number. A local AWS does not, and starts no function."""
    values = [
        value
        for function in of_type(nested_template(stack), "AWS::Serverless::Function").values()
        for value in mapping_of(at(function, "Environment", "Variables")).values()
    ]
    assert values
    found = [each for value in values for each in literals(value)]
    assert [each for each in found if not isinstance(each, str)] == []
