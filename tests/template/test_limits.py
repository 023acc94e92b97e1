"""The limits of AWS on sizes, for the longest names and lists that the parameters accept.

Each is checked on what the templates become with the longest values: names of stacks, agents and
regions, lists of principals, ARNs of keys. An emulator knows none of these limits, and AWS reports
them when the deployment is half made.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TypeAlias

import pytest

from roundsman_dev.check.reading import at, items, of_type, parameters
from roundsman_dev.nested_stacks import copied
from roundsman_dev.template import Document, Json, Template, mapping_of, part, transformed
from tests.project import AGENTS, SERVICE_URLS, TEMPLATE, of_each_agent, translate
from tests.support.template_reading import NO_VALUE
from tests.template.conftest import nested_template

STACKS = ("engine.yaml", "agent.yaml", "schedule.yaml")

STACK = "s" * 26
"""The longest name of a stack (the pattern of the parameter Stack)."""
REGION = "ap-northeast-1"  # no region has a longer name
ACCOUNT = "123456789012"
PARTITION = "aws-us-gov"  # no partition has a longer name
SUFFIX = "X" * 13
"""What CloudFormation adds to the name of a resource, with a dash before it."""
URL = "https://" + "u" * 120
KEY = f"arn:{PARTITION}:kms:{REGION}:{ACCOUNT}:key/mrk-{'0' * 32}"

MANAGED_POLICY = 6_144
ROLE_POLICIES = 10_240
TRUST_POLICY = 2_048
"""Characters without white space (IAM and AWS STS quotas); the policies of a role together."""
QUEUE_POLICY = 8_192
"""Bytes (Amazon SQS policy quotas)."""
TOPIC_POLICY = 30_720
"""Bytes (Amazon SNS API permissions, policy quotas)."""
KEY_POLICY = 32_768
"""Bytes (AWS KMS API Reference, PutKeyPolicy)."""

POLICIES: Mapping[tuple[str, str], int] = {
    ("AWS::IAM::ManagedPolicy", "PolicyDocument"): MANAGED_POLICY,
    ("AWS::KMS::Key", "KeyPolicy"): KEY_POLICY,
    ("AWS::SNS::TopicPolicy", "PolicyDocument"): TOPIC_POLICY,
    ("AWS::SQS::QueuePolicy", "PolicyDocument"): QUEUE_POLICY,
}
"""The largest policy of each type."""

NAMES: Mapping[tuple[str, str], int] = {
    ("AWS::CloudWatch::Alarm", "AlarmName"): 255,
    ("AWS::CloudWatch::Dashboard", "DashboardName"): 255,
    ("AWS::DynamoDB::Table", "TableName"): 255,
    ("AWS::IAM::ManagedPolicy", "ManagedPolicyName"): 128,
    ("AWS::IAM::Policy", "PolicyName"): 128,
    ("AWS::IAM::Role", "RoleName"): 64,
    ("AWS::KMS::Alias", "AliasName"): 256,
    ("AWS::Lambda::Function", "FunctionName"): 64,
    ("AWS::Lambda::LayerVersion", "LayerName"): 140,
    ("AWS::Logs::LogGroup", "LogGroupName"): 512,
    ("AWS::Logs::MetricFilter", "FilterName"): 512,
    ("AWS::Logs::MetricFilter", "FilterPattern"): 1_024,
    ("AWS::SNS::Topic", "TopicName"): 256,
    ("AWS::SQS::Queue", "QueueName"): 80,
    ("AWS::Scheduler::Schedule", "Name"): 64,
}
"""The longest name that a resource may be given (the reference of each type)."""

DESCRIPTIONS: Mapping[tuple[str, str], int] = {
    ("AWS::CloudWatch::Alarm", "AlarmDescription"): 1_024,
    ("AWS::IAM::ManagedPolicy", "Description"): 1_000,
    ("AWS::IAM::Role", "Description"): 1_000,
    ("AWS::KMS::Key", "Description"): 8_192,
    ("AWS::Lambda::Alias", "Description"): 256,
    ("AWS::Lambda::Function", "Description"): 256,
    ("AWS::Lambda::LayerVersion", "Description"): 256,
    ("AWS::Lambda::Version", "Description"): 256,
    ("AWS::Scheduler::Schedule", "Description"): 512,
}
"""The longest description of each kind."""

ENVIRONMENT = 4_096
"""Bytes of all environment variables of a function (Lambda quotas)."""
TEMPLATE_BYTES, RESOURCES, PARAMETERS, OUTPUTS = 1_000_000, 500, 200, 200
TEMPLATE_DESCRIPTION, PARAMETER_DESCRIPTION, OUTPUT_DESCRIPTION = 1_024, 4_000, 1_024
PARAMETER_VALUE, OUTPUT_VALUE = 4_096, 4_096
"""CloudFormation quotas."""

_GENERATED = {"AWS::IAM::Role": 64, "AWS::Lambda::Function": 64, "AWS::SQS::Queue": 80}
"""The length to which CloudFormation shortens a name that it generates."""


def longest_list(longest: int, *, account: str = ACCOUNT) -> str:
    """As many principals as a list has room for: many short ones have the most quotes."""
    one = f"arn:aws:iam::{account}:role/a"
    return ",".join([one] * ((longest + 1) // (len(one) + 1)))


@cache
def longest_values() -> Mapping[str, str]:
    """The longest value of each parameter whose text reaches a policy, a name or a description."""
    engine, agent = (parameters(nested_template(name)) for name in STACKS[:2])
    lists = {
        name: longest_list(int(str(each["MaxLength"])))
        for name, each in engine.items()
        if "Principals" in name
    }
    answerers = longest_list(int(str(agent["AnswerPrincipals"]["MaxLength"])))
    sources = engine.get("SubmitterSources", {})
    if sources:
        one = f"arn:aws:s3:::{'b' * 3}"
        most = int(str(sources["MaxLength"]))
        lists["SubmitterSources"] = ",".join([one] * ((most + 1) // (len(one) + 1)))
    ids = ",".join(["AROA" + "A" * 17] * 5)
    return {
        **SERVICE_URLS,
        **dict.fromkeys(SERVICE_URLS, URL),
        **{f"Engine.{name}": value for name, value in lists.items()},
        "Engine.OperatorRoleIds": ids,
        "Engine.ConsoleRoleId": "AROA" + "A" * 17,
        "Engine.EncryptionKey": KEY,
        "Engine.FormerEncryptionKey": KEY,
        "Engine.TracingSamplePercent": "12.345",
        "Engine.SupervisorReserved": "10",
        "Engine.OldestMessageAlarmSeconds": "345600",
        "Engine.OrderRetentionDays": "36500",
        "Engine.Revision": "999",
        f"{AGENTS[0]}.Agent": "a" * 40,
        f"{AGENTS[0]}.Name": "N" * 27,
        **of_each_agent("AnswerPrincipals", answerers),
        **of_each_agent("Revision", "999"),
        **of_each_agent("CallsPerSecond", "1234.123"),
        **of_each_agent("TenantCallsPerSecond", "1234.123"),
        **of_each_agent("TimeoutSeconds", "900"),
        **of_each_agent("Memory", "10240"),
        **of_each_agent("Subnets", ",".join(["subnet-" + "0" * 17] * 16)),
        **of_each_agent("SecurityGroups", ",".join(["sg-" + "0" * 17] * 5)),
        **of_each_agent("CredentialKey", KEY),
        **of_each_agent(
            "Credential", f"arn:{PARTITION}:secretsmanager:{REGION}:{ACCOUNT}:secret:{'c' * 140}"
        ),
    }


@cache
def longest_template() -> Document:
    """The application with the longest values. Nobody may change it."""
    return translate(longest_values())


PSEUDO: Mapping[str, str] = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": PARTITION,
    "AWS::Region": REGION,
    "AWS::StackName": STACK,
    "AWS::URLSuffix": "amazonaws.com.cn",
    "AWS::StackId": f"arn:{PARTITION}:cloudformation:{REGION}:{ACCOUNT}:stack/{STACK}/{'0' * 36}",
}


class Longest:
    """Values of a template as AWS gets them, each with the longest names in it."""

    def __init__(self, template: Document, values: Mapping[str, str] | None = None) -> None:
        self._resources = part(template, "Resources")
        self._parameters = part(template, "Parameters")
        self._values = longest_values() if values is None else values

    def of(self, value: Json) -> Json:  # noqa: PLR0911  # one case for each function
        """Return a value without functions; the longer branch of a condition."""
        match value:
            case {"Ref": str(name)}:
                return self._reference(name)
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return self._attribute(name, attribute)
            case {"Fn::Sub": str(text)}:
                return self._filled(text, {})
            case {"Fn::Sub": [str(text), dict(more)]}:
                return self._filled(text, {name: str(self.of(one)) for name, one in more.items()})
            case {"Fn::Join": [str(between), list(parts)]}:
                return between.join(str(self.of(one)) for one in parts)
            case {"Fn::Split": [str(between), whole]}:
                return [*str(self.of(whole)).split(between)]
            case {"Fn::Select": [index, whole]}:
                return self._selected(int(str(index)), self.of(whole))
            case {"Fn::If": [_, yes, no]}:
                return max((self.of(yes), self.of(no)), key=lambda each: len(json.dumps(each)))
            case dict():
                found = {name: self.of(inner) for name, inner in value.items()}
                return {name: inner for name, inner in found.items() if inner != NO_VALUE}
            case list():
                return [one for one in map(self.of, value) if one not in (NO_VALUE, [])]
            case _:
                return value

    def name_of(self, logical: str) -> str:
        """Return the longest name that a resource may have."""
        resource = mapping_of(self._resources[logical])
        properties, kind = part(resource, "Properties"), str(resource["Type"])
        for (each, place), _ in NAMES.items():
            if each == kind and place in properties:
                return str(self.of(properties[place]))
        # CloudFormation: <stack>-<block>-<13 letters>-<logical id>-<13 letters>, cut at its end.
        generated = f"{STACK}-{'B' * 27}-{SUFFIX}-{logical}-{SUFFIX}"
        return generated[: _GENERATED.get(kind, 255)]

    def _reference(self, name: str) -> Json:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in PSEUDO:
            return PSEUDO[name]
        if name in self._parameters:
            return self._values.get(name, str(mapping_of(self._parameters[name]).get("Default")))
        logical = name.partition(".")[0]
        kind = str(mapping_of(self._resources.get(logical, {})).get("Type"))
        if kind == "AWS::SQS::Queue":
            return f"https://sqs.{REGION}.amazonaws.com.cn/{ACCOUNT}/{self.name_of(logical)}"
        if kind.startswith(("AWS::SNS", "AWS::Lambda::L", "AWS::Lambda::A", "AWS::IAM::M")):
            return self._attribute(logical, "Arn")
        return self.name_of(logical) if logical in self._resources else name

    def _attribute(self, logical: str, attribute: str) -> str:
        if logical not in self._resources or attribute.endswith("Name"):
            return self.name_of(logical) if logical in self._resources else logical
        if attribute == "Version":
            return "12345"
        kind = str(mapping_of(self._resources[logical])["Type"])
        service = kind.split("::")[1].lower()
        if kind == "AWS::KMS::Key":
            return KEY
        named = {
            "AWS::DynamoDB::Table": "table/",
            "AWS::IAM::Role": "role/",
            "AWS::IAM::ManagedPolicy": "policy/",
            "AWS::Lambda::Function": "function:",
            "AWS::Lambda::LayerVersion": "layer:",
            "AWS::Logs::LogGroup": "log-group:",
            "AWS::Lambda::Alias": "function:",
        }.get(kind, "")
        end = {"AWS::Logs::LogGroup": ":*", "AWS::Lambda::LayerVersion": ":12345"}.get(kind, "")
        end = ":live" if kind == "AWS::Lambda::Alias" else end
        return f"arn:{PARTITION}:{service}:{REGION}:{ACCOUNT}:{named}{self.name_of(logical)}{end}"

    def _filled(self, text: str, more: Mapping[str, str]) -> str:
        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name in more:
                return more[name]
            logical, dot, attribute = name.partition(".")
            return str(self._attribute(logical, attribute) if dot else self._reference(name))

        return re.sub(r"\$\{([^!][^}]*)\}", value, text)

    @staticmethod
    def _selected(index: int, whole: Json) -> Json:
        return whole[index] if isinstance(whole, list) and index < len(whole) else ""


def too_large(template: Document) -> Iterator[str]:
    """Yield a sentence for each policy, name, description and environment beyond its limit."""
    longest = Longest(template)
    for what, found, most in (
        *_policies(template, longest),
        *_texts(template, longest),
        *_environments(template, longest),
    ):
        if found > most:
            yield f"{what} may have {found}, and AWS takes {most}"


Judged: TypeAlias = Iterator[tuple[str, int, int]]
"""What has a size, its largest, and the most that AWS takes."""


def _policies(template: Document, longest: Longest) -> Judged:
    def size(policy: Json) -> int:
        return len(json.dumps(longest.of(policy), separators=(",", ":")).encode())

    of_roles = dict.fromkeys(of_type(template, "AWS::IAM::Role"), 0)
    for name, role in of_type(template, "AWS::IAM::Role").items():
        yield f"{name}: trust", size(role["AssumeRolePolicyDocument"]), TRUST_POLICY
        of_roles[name] += sum(
            size(at(one, "PolicyDocument")) for one in items(role.get("Policies"))
        )
    for policy in of_type(template, "AWS::IAM::Policy").values():
        for role_name in items(policy["Roles"]):
            of_roles[str(at(role_name, "Ref"))] += size(policy["PolicyDocument"])
    for name, found in of_roles.items():
        yield f"{name}: policies", found, ROLE_POLICIES
    for (kind, place), most in POLICIES.items():
        for name, each in of_type(template, kind).items():
            yield f"{name}: policy", size(each[place]), most


def _texts(template: Document, longest: Longest) -> Judged:
    for (kind, place), most in {**NAMES, **DESCRIPTIONS}.items():
        for name, each in of_type(template, kind).items():
            if place in each:
                yield f"{name}: {place}", len(str(longest.of(each[place])).encode()), most


def _environments(template: Document, longest: Longest) -> Judged:
    for name, function in of_type(template, "AWS::Lambda::Function").items():
        given = mapping_of(at(function, "Environment", "Variables") or {})
        text = "".join(f"{key}{longest.of(value)}" for key, value in given.items())
        yield f"{name}: environment", len(text.encode()), ENVIRONMENT


def test_no_policy_name_description_or_environment_is_beyond_the_limit_of_aws() -> None:
    assert list(too_large(longest_template())) == []


def long_text(place: str, length: int) -> Callable[[Document], None]:
    """A fault: a property has a text that is too long."""

    def make(template: Document) -> None:
        resource, _, name = place.partition("/")
        part(mapping_of(part(template, "Resources")[resource]), "Properties")[name] = "x" * length

    return make


def long_policy(resource: str, *path: str, sids: int) -> Callable[[Document], None]:
    """A fault: a policy has a statement with a long Sid more."""

    def make(template: Document) -> None:
        found: Json = part(mapping_of(part(template, "Resources")[resource]), "Properties")
        for step in path:
            found = found[int(step)] if isinstance(found, list) else mapping_of(found)[step]
        document = mapping_of(found)
        statements = document["Statement"]
        assert isinstance(statements, list)
        statements.append({"Sid": "s" * sids, "Effect": "Deny", "Action": "*", "Resource": "*"})

    return make


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        (long_policy("ViewerPolicy", "PolicyDocument", sids=6_000), "ViewerPolicy: policy"),
        (
            long_policy("SchedulerRole", "Policies", "0", "PolicyDocument", sids=9_000),
            "SchedulerRole: policies",
        ),
        (
            long_policy("SchedulerRole", "AssumeRolePolicyDocument", sids=2_000),
            "SchedulerRole: trust",
        ),
        (
            long_policy("SubmissionQueuePolicy", "PolicyDocument", sids=8_000),
            "SubmissionQueuePolicy: policy",
        ),
        (
            long_policy("AlertTopicPolicy", "PolicyDocument", sids=30_500),
            "AlertTopicPolicy: policy",
        ),
        (long_policy("AlertKey", "KeyPolicy", sids=32_500), "AlertKey: policy"),
        (long_text("SchedulerQueue/QueueName", 81), "SchedulerQueue: QueueName"),
        (long_text("ArchivedTasksAlarm/AlarmDescription", 1_025), "ArchivedTasksAlarm: AlarmDes"),
        (long_text("SchedulerFunction/Description", 257), "SchedulerFunction: Description"),
        (long_text("ViewerPolicy/Description", 1_001), "ViewerPolicy: Description"),
    ],
)
def test_what_is_beyond_a_limit_is_named(fault: Callable[[Document], None], named: str) -> None:
    template = mapping_of(copied(longest_template()))
    fault(template)
    assert any(one.startswith(named) for one in too_large(template))


def test_a_list_that_accepts_more_principals_would_not_fit_into_the_policy_of_a_queue() -> None:
    values = {**longest_values(), "Engine.SubmitterPrincipals": longest_list(8_192)}
    found = list(too_large(translate(values)))
    assert any(one.startswith("SubmissionQueuePolicy: policy") for one in found)


def template_of(name: str) -> Document:
    """One of our stacks in plain CloudFormation."""
    written = mapping_of(copied(nested_template(name)))
    for resource in map(mapping_of, part(written, "Resources").values()):
        properties = part(resource, "Properties")
        if "CodeUri" in properties:
            properties["CodeUri"] = "s3://bucket/" + "c" * 64
    values = {
        parameter: str(each.get("Default", "x" * 20))
        for parameter, each in parameters(written).items()
    }
    return transformed(written, values)


def sizes_of(template: Document) -> Mapping[str, tuple[int, int]]:
    """What a template has of what CloudFormation limits, and the most that it takes."""
    declared = parameters(template).values()
    outputs = [mapping_of(one) for one in part(template, "Outputs").values()]
    texts = [
        str(one.get(key, ""))
        for one in declared
        for key in ("Description", "ConstraintDescription")
    ]
    return {
        "bytes": (len(json.dumps(template).encode()), TEMPLATE_BYTES),
        "resources": (len(part(template, "Resources")), RESOURCES),
        "parameters": (len(declared), PARAMETERS),
        "outputs": (len(outputs), OUTPUTS),
        "description": (len(str(template.get("Description", "")).encode()), TEMPLATE_DESCRIPTION),
        "descriptions of parameters": (max(map(len, texts), default=0), PARAMETER_DESCRIPTION),
        "descriptions of outputs": (
            max((len(str(one.get("Description", ""))) for one in outputs), default=0),
            OUTPUT_DESCRIPTION,
        ),
        "values of parameters": (
            max((int(str(one.get("MaxLength", 0))) for one in declared), default=0),
            PARAMETER_VALUE,
        ),
    }


@pytest.mark.parametrize("name", STACKS)
def test_each_of_our_stacks_is_within_the_limits_of_cloudformation(name: str) -> None:
    beyond = {what: size for what, size in sizes_of(template_of(name)).items() if size[0] > size[1]}
    assert beyond == {}


def test_the_root_is_within_the_limits_with_all_the_agents_that_an_application_may_have() -> None:
    root = Template.read(TEMPLATE).written
    grown = {
        **root,
        "Resources": dict(part(root, "Resources")),
        "Outputs": dict(part(root, "Outputs")),
    }
    block, output = part(root, "Resources")[AGENTS[0]], part(root, "Outputs")[f"{AGENTS[0]}Agent"]
    for number in range(83 - len(AGENTS)):
        mapping_of(grown["Resources"])[f"Agent{number}"] = block
        mapping_of(grown["Outputs"])[f"Agent{number}Agent"] = output
    assert {what: s for what, s in sizes_of(grown).items() if s[0] > s[1]} == {}


def test_what_the_engine_hands_to_agents_is_a_value_that_cloudformation_takes() -> None:
    engine = nested_template("engine.yaml")
    values = {
        name.partition(".")[2]: value
        for name, value in longest_values().items()
        if name.startswith("Engine.")
    }
    longest = Longest(engine, values)
    for name, output in part(engine, "Outputs").items():
        text = str(longest.of(mapping_of(output)["Value"]))
        assert len(text.encode()) <= OUTPUT_VALUE, name


@pytest.mark.parametrize(
    ("section", "count", "what"),
    [
        ("Resources", 501, "resources"),
        ("Outputs", 201, "outputs"),
        ("Parameters", 201, "parameters"),
    ],
)
def test_a_stack_that_is_beyond_a_limit_is_found(section: str, count: int, what: str) -> None:
    template = mapping_of(copied(template_of("schedule.yaml")))
    template[section] = {f"N{number}": {"Type": "String"} for number in range(count)}
    found, most = sizes_of(template)[what]
    assert found > most
