"""The nested templates: their parameters, and the faults that each rule for them finds."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman.testing.rules.reading import (
    at,
    chosen,
    items,
    of_type,
)
from roundsman.testing.stack.template import Document, Json, Template, mapping_of
from tests.project import SERVICE_URLS, TEMPLATE
from tests.support.template_reading import THIS_ACCOUNT, excepted, statements
from tests.template import parameter_rules
from tests.template.parameter_rules import RULES, ParameterRule

STACKS = Path(__file__).parents[2] / "stacks"


@cache
def parsed(name: str) -> Document:
    return mapping_of(yaml_parse((STACKS / name).read_text(encoding="utf-8")))


def read(name: str) -> Document:
    """A copy of its own, which a test may change."""
    return deepcopy(parsed(name))


@pytest.mark.parametrize("name", ["engine.yaml", "agent.yaml"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_nested_template_keeps_the_rule(rule: ParameterRule, name: str) -> None:
    assert rule(read(name)) == []


def put(*path: str, value: Json) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        found = document
        for key in path[:-1]:
            found = mapping_of(found[key])
        if value is None:
            del found[path[-1]]
        else:
            found[path[-1]] = value

    return change


NAME: Json = {"Fn::Sub": "of ${Concurrency}"}
CHOSEN: Json = {"Fn::If": ["HasAlertEmail", "yes", "no"]}
OF_THE_ENGINE: Json = {"Fn::Select": [14, {"Fn::Split": [",", {"Ref": "Engine"}]}]}

AGENT = "agent.yaml"
ENGINE = "engine.yaml"


@dataclass(frozen=True)
class Fault:
    """A fault of one nested template, and what the rule's sentences must name."""

    rule: ParameterRule
    fault: str
    template: str
    change: Callable[[Document], None]
    named: str


FAULTS = (
    Fault(
        parameter_rules.parameter_bounds,
        "a number without a limit",
        AGENT,
        put("Parameters", "TimeoutSeconds", "MaxValue", value=None),
        "TimeoutSeconds needs AllowedValues",
    ),
    Fault(
        parameter_rules.parameter_bounds,
        "no description",
        AGENT,
        put("Parameters", "TimeoutSeconds", "Description", value=None),
        "TimeoutSeconds needs a Description",
    ),
    Fault(
        parameter_rules.parameter_bounds,
        "no sentence for a wrong value",
        AGENT,
        put("Parameters", "Memory", "ConstraintDescription", value="wrong"),
        "Memory: ConstraintDescription",
    ),
    Fault(
        parameter_rules.defaults,
        "a default below its bounds",
        AGENT,
        put("Parameters", "TimeoutSeconds", "Default", value=1),
        "TimeoutSeconds: its default",
    ),
    Fault(
        parameter_rules.defaults,
        "a default that is not listed",
        AGENT,
        put("Parameters", "Concurrency", "Default", value=11),
        "Concurrency: its default",
    ),
    Fault(
        parameter_rules.defaults,
        "a default that its pattern refuses",
        AGENT,
        put("Parameters", "CallsPerSecond", "Default", value="many"),
        "CallsPerSecond: its default",
    ),
    Fault(
        parameter_rules.defaults,
        "a size that every block must give",
        AGENT,
        put("Parameters", "Memory", "Default", value=None),
        "Memory: its default",
    ),
    Fault(
        parameter_rules.address_patterns,
        "an address with a slash at its end",
        AGENT,
        put("Parameters", "ServiceUrl", "AllowedPattern", value=r"^$|https?://[^\s?#]+"),
        "AllowedPattern must not accept 'https://example.com/'",
    ),
    Fault(
        parameter_rules.address_patterns,
        "no address without TLS",
        AGENT,
        put("Parameters", "ServiceUrl", "AllowedPattern", value=r"^$|https://[^\s?#]+[^/\s]"),
        "AllowedPattern must accept 'http://127.0.0.1:8080'",
    ),
    Fault(
        parameter_rules.lookups,
        "an allowed value without a row",
        AGENT,
        put("Mappings", "Instances", "7", value=None),
        "the rows of Instances must be the AllowedValues of Concurrency",
    ),
    Fault(
        parameter_rules.lookups,
        "a row of no allowed value",
        ENGINE,
        put("Mappings", "SupervisorRounds", "7", value={"Rate": "rate(1 minute)", "Seconds": 60}),
        "the rows of SupervisorRounds",
    ),
    Fault(
        parameter_rules.instance_rows,
        "a row with a text",
        AGENT,
        put("Mappings", "Instances", "20", "Most", value="20"),
        "Instances: 20",
    ),
    Fault(
        parameter_rules.instance_rows,
        "a wrong row for one value",
        ENGINE,
        put("Mappings", "Instances", "20", "Most", value=2),
        "Instances: 20",
    ),
    Fault(
        parameter_rules.visibility_bounds,
        "a message that can come back too early",
        ENGINE,
        put("Parameters", "SubmissionVisibilitySeconds", "MinValue", value=15),
        "SubmissionQueue: its messages can be hidden for 15 s",
    ),
    Fault(
        parameter_rules.visibility_bounds,
        "a message that can come back at the timeout",
        ENGINE,
        put("Parameters", "SchedulerVisibilitySeconds", "MinValue", value=20),
        "SchedulerQueue: its messages can be hidden for 20 s",
    ),
    Fault(
        parameter_rules.visibility_bounds,
        "less than six times the timeout by default",
        AGENT,
        put("Parameters", "VisibilitySeconds", "Default", value=200),
        "UrgentRequestQueue: its messages are hidden for 200 s",
    ),
    Fault(
        parameter_rules.visibility_bounds,
        "a function with the default timeout of Lambda",
        AGENT,
        put("Resources", "Function", "Properties", "Timeout", value=None),
        "UrgentRequestQueue, Function: their times",
    ),
    Fault(
        parameter_rules.alarm_age_bounds,
        "an alarm on a message that is delayed on purpose",
        ENGINE,
        put("Parameters", "OldestMessageAlarmSeconds", "MinValue", value=900),
        "OldestMessageAlarmSeconds: MinValue must be more than 900",
    ),
    Fault(
        parameter_rules.supervisor_interval,
        "a slower rate for one interval",
        ENGINE,
        put("Mappings", "SupervisorRounds", "300", "Rate", value="rate(50 minutes)"),
        "a rate of 300 s",
    ),
    Fault(
        parameter_rules.supervisor_interval,
        "a rate of one minutes",
        ENGINE,
        put("Mappings", "SupervisorRounds", "60", "Rate", value="rate(1 minutes)"),
        "a rate of 60 s",
    ),
    Fault(
        parameter_rules.supervisor_interval,
        "an alarm between two rounds",
        ENGINE,
        put("Mappings", "SupervisorRounds", "3600", "Seconds", value=60),
        "Period must be 3600",
    ),
    Fault(
        parameter_rules.supervisor_interval,
        "an alarm with one period for all intervals",
        ENGINE,
        put("Resources", "SupervisorHasNotRunAlarm", "Properties", "Period", value=60),
        "Period must be 120",
    ),
    Fault(
        parameter_rules.supervisor_interval,
        "an alarm on orders that no supervisor could have counted",
        ENGINE,
        put("Mappings", "SupervisorRounds", "120", "BehindMs", value=300000),
        "SchedulerBehindAlarm: Threshold must be 360000 at 120",
    ),
    Fault(
        parameter_rules.published_settings,
        "a setting of an agent that publishes no version",
        AGENT,
        put("Resources", "Function", "Properties", "Environment", "Variables", "MORE", value=NAME),
        "Function: VersionDescription needs Concurrency",
    ),
    Fault(
        parameter_rules.published_settings,
        "a setting of every function that publishes no version",
        ENGINE,
        put("Globals", "Function", "Environment", "Variables", "MORE", value=CHOSEN),
        "SchedulerFunction: VersionDescription needs AlertEmail",
    ),
    Fault(
        parameter_rules.published_settings,
        "a setting of the engine that publishes no version of an agent",
        AGENT,
        put("Globals", "Function", "Environment", "Variables", "MORE", value=OF_THE_ENGINE),
        "Function: VersionDescription needs SchedulerVisibilitySeconds",
    ),
    Fault(
        parameter_rules.published_settings,
        "a version without the layer",
        AGENT,
        put("Resources", "Function", "Properties", "VersionDescription", value={"Ref": "Memory"}),
        "Function: VersionDescription needs WorkflowsLayer",
    ),
    Fault(
        parameter_rules.published_settings,
        "a version for a parameter of something else",
        ENGINE,
        put(
            *("Resources", "SchedulerFunction", "Properties", "VersionDescription"),
            value={"Fn::Sub": "${OldestMessageAlarmSeconds}"},
        ),
        "the function does not depend on ['OldestMessageAlarmSeconds']",
    ),
    Fault(
        parameter_rules.description_lengths,
        "an address that does not fit",
        AGENT,
        put("Parameters", "ServiceUrl", "MaxLength", value=200),
        "Function: VersionDescription may have",
    ),
    Fault(
        parameter_rules.description_lengths,
        "a parameter without a greatest length",
        AGENT,
        put("Parameters", "CallsPerSecond", "MaxLength", value=None),
        "Function: VersionDescription may have",
    ),
    Fault(
        parameter_rules.description_lengths,
        "a text of unknown length",
        ENGINE,
        put(
            *("Resources", "SchedulerFunction", "Properties", "VersionDescription"),
            value={"Fn::Sub": "${AlertEmail}"},
        ),
        "SchedulerFunction: VersionDescription may have",
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule.__name__}: {fault.fault}")
def test_a_rule_finds_the_fault(fault: Fault) -> None:
    document = read(fault.template)
    fault.change(document)
    assert any(fault.named in problem for problem in fault.rule(document))


def test_every_rule_has_a_fault_that_it_finds() -> None:
    assert {fault.rule for fault in FAULTS} == set(RULES)


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
    pattern = str(at(read(stack), "Parameters", parameter, "AllowedPattern"))
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
    assert at(read("engine.yaml"), "Parameters", "DeletionProtection", "Default") == "later"
    document = Template.read(TEMPLATE, {"Engine.DeletionProtection": value}).translate(SERVICE_URLS)
    for table in of_type(document, "AWS::DynamoDB::Table").values():
        assert chosen(document, at(table, "DeletionProtectionEnabled")) is protected


def test_without_submitters_nobody_is_allowed_by_a_queue_itself() -> None:
    document = Template.read(TEMPLATE).translate(SERVICE_URLS)
    for policy in of_type(document, "AWS::SQS::QueuePolicy").values():
        for statement in items(at(policy, "PolicyDocument", "Statement")):
            assert at(chosen(document, statement), "Effect") != "Allow"
