"""Resolves every intrinsic function and condition of a plain CloudFormation template.

A linter of policies reads ARNs and not `Fn::GetAtt`. What CloudFormation would know only after a
deployment, such as the id of a role, has a made-up value of the right form.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from roundsman_dev.template import Document, Json, mapping_of, part

ACCOUNT, REGION = "123456789012", "us-east-1"
PSEUDO: Mapping[str, str] = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": "roundsman",
    "AWS::URLSuffix": "amazonaws.com",
}
NO_VALUE: Json = {"Ref": "AWS::NoValue"}

_PLACEHOLDER = re.compile(r"\$\{(!?)([^}]*)\}")
# Type -> the ARN after `arn:aws:`; {} is the physical name.
_ARNS: Mapping[str, str] = {
    "AWS::DynamoDB::Table": f"dynamodb:{REGION}:{ACCOUNT}:table/{{}}",
    "AWS::IAM::ManagedPolicy": f"iam::{ACCOUNT}:policy/{{}}",
    "AWS::IAM::Role": f"iam::{ACCOUNT}:role/{{}}",
    "AWS::KMS::Key": f"kms:{REGION}:{ACCOUNT}:key/{{}}",
    "AWS::Lambda::Alias": f"lambda:{REGION}:{ACCOUNT}:function:{{}}:live",
    "AWS::Lambda::Function": f"lambda:{REGION}:{ACCOUNT}:function:{{}}",
    "AWS::Lambda::LayerVersion": f"lambda:{REGION}:{ACCOUNT}:layer:{{}}:1",
    "AWS::Lambda::Version": f"lambda:{REGION}:{ACCOUNT}:function:{{}}:1",
    "AWS::Logs::LogGroup": f"logs:{REGION}:{ACCOUNT}:log-group:{{}}:*",
    "AWS::S3::Bucket": "s3:::{}",
    "AWS::SNS::Topic": f"sns:{REGION}:{ACCOUNT}:{{}}",
    "AWS::SQS::Queue": f"sqs:{REGION}:{ACCOUNT}:{{}}",
}
_NAMES = {"AWS::SQS::Queue": "QueueName", "AWS::Logs::LogGroup": "LogGroupName"}
_REF_IS_ARN = {
    "AWS::IAM::ManagedPolicy",
    "AWS::Lambda::Alias",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::Version",
    "AWS::SNS::Topic",
}


class UnknownValue(Exception):
    """A template has a function or a reference that cannot be resolved. The message names it."""


@dataclass(frozen=True)
class PolicyText:
    """A policy document of a template, resolved."""

    resource: str
    """The logical id of the resource that has it."""
    kind: str
    """The type of that resource."""
    place: str
    """The name of the property that has it, such as `KeyPolicy`."""
    document: Document = field(repr=False)


def resolved(document: Document, values: Mapping[str, str]) -> Document:
    """Return the template with values in place of functions, and without what conditions leave out.

    `values` are the parameters. Raises UnknownValue for a function or a reference that is unknown.
    """
    scope = _Scope(document, values)
    resources: Document = {}
    for name, body in part(document, "Resources").items():
        resource = mapping_of(body)
        if scope.holds(resource.get("Condition")):
            plain = {key: value for key, value in resource.items() if key != "Condition"}
            resources[name] = scope.value(plain)
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}


def policies(document: Document) -> list[PolicyText]:
    """Every policy document of a resolved template, of all resources and properties."""
    found = []
    for name, body in part(document, "Resources").items():
        resource = mapping_of(body)
        kind = str(resource["Type"])
        for place, policy in _documents(resource.get("Properties"), ""):
            found.append(PolicyText(name, kind, place, policy))
    return found


def _documents(value: Json, place: str) -> Iterator[tuple[str, Document]]:
    if isinstance(value, list):
        for inner in value:
            yield from _documents(inner, place)
    elif isinstance(value, dict):
        if "Statement" in value:
            yield place, value
            return
        for key, inner in value.items():
            yield from _documents(inner, key)


class _Scope:
    def __init__(self, document: Document, values: Mapping[str, str]) -> None:
        self._resources = part(document, "Resources")
        self._conditions = part(document, "Conditions")
        self._mappings = part(document, "Mappings")
        self._values = values

    def holds(self, condition: Json) -> bool:  # noqa: PLR0911  # one case for each function
        """Whether a condition, by its name or written out, is true; None is true."""
        match condition:
            case None:
                return True
            case str(name) if name in self._conditions:
                return self.holds(self._conditions[name])
            case {"Condition": str(name)}:
                return self.holds(name)
            case {"Fn::Not": [inner]}:
                return not self.holds(inner)
            case {"Fn::And": list(every)}:
                return all(map(self.holds, every))
            case {"Fn::Or": list(some)}:
                return any(map(self.holds, some))
            case {"Fn::Equals": [one, other]}:
                return str(self.value(one)) == str(self.value(other))
            case _:
                raise UnknownValue(f"this condition is not known: {condition}")

    def value(self, value: Json) -> Json:  # noqa: PLR0911  # one case for each function
        """Resolve a value; what is AWS::NoValue is left out of the list or mapping that has it."""
        match value:
            case {"Ref": str(name)}:
                return self._ref(name)
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return self._attribute(name, attribute)
            case {"Fn::If": [str(name), yes, no]}:
                return self.value(yes if self.holds(name) else no)
            case dict() if any(key.startswith("Fn::") for key in value):
                return self._called(value)
            case dict():
                pairs = {key: self.value(one) for key, one in value.items()}
                return {key: one for key, one in pairs.items() if one != NO_VALUE}
            case list():
                return [one for one in map(self.value, value) if one != NO_VALUE]
            case _:
                return value

    def _called(self, function: Document) -> Json:
        """The result of a function of texts and lists."""
        match function:
            case {"Fn::Sub": str(text)}:
                return self._substituted(text, {})
            case {"Fn::Sub": [str(text), dict(more)]}:
                return self._substituted(text, {key: self.value(one) for key, one in more.items()})
            case {"Fn::Join": [str(between), parts]}:
                return between.join(map(str, self._list(parts)))
            case {"Fn::Split": [str(between), text]}:
                return list(str(self.value(text)).split(between))
            case {"Fn::Select": [index, parts]}:
                return self._list(parts)[int(str(self.value(index)))]
            case {"Fn::FindInMap": [str(table), key, str(column)]}:
                return self.value(part(part(self._mappings, table), str(self.value(key)))[column])
            case _:
                raise UnknownValue(f"this function is not known: {function}")

    def _list(self, value: Json) -> list[Json]:
        found = self.value(value)
        if not isinstance(found, list):
            raise UnknownValue(f"this should be a list: {value}")
        return found

    def _ref(self, name: str) -> Json:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in PSEUDO:
            return PSEUDO[name]
        if name in self._values:
            return self._values[name]
        kind = self._type(name)
        if kind in _REF_IS_ARN:
            return self._arn(name, kind)
        if kind == "AWS::SQS::Queue":
            return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{self._name(name, kind)}"
        return self._name(name, kind)

    def _attribute(self, name: str, attribute: str) -> str:
        kind = self._type(name)
        if attribute == "Arn":
            return self._arn(name, kind)
        if attribute.endswith("Name"):
            return self._name(name, kind)
        return f"{name}-{attribute}"

    def _arn(self, name: str, kind: str) -> str:
        if kind not in _ARNS:
            raise UnknownValue(f"the ARN of a resource of type {kind} is not known ({name})")
        return f"arn:aws:{_ARNS[kind].format(self._name(name, kind))}"

    def _name(self, name: str, kind: str) -> str:
        given = part(mapping_of(self._resources[name]), "Properties").get(_NAMES.get(kind, ""))
        return f"roundsman-{name}" if given is None else str(self.value(given))

    def _type(self, name: str) -> str:
        if name not in self._resources:
            raise UnknownValue(f"there is no parameter or resource {name}")
        return str(mapping_of(self._resources[name])["Type"])

    def _substituted(self, text: str, more: Mapping[str, Json]) -> str:
        def replace(found: re.Match[str]) -> str:
            literal, name = found[1], found[2]
            if literal:
                return f"${{{name}}}"
            if name in more:
                return str(more[name])
            resource, dot, attribute = name.partition(".")
            return str(self._attribute(resource, attribute) if dot else self._ref(name))

        return _PLACEHOLDER.sub(replace, text)
