"""Reading a translated template: its roles and their rights, its tables, its queues by purpose.

The functions return an empty value for what is missing, so that a test fails by an assertion.
"""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from roundsman_dev.check.application import ANY_ADDRESS
from roundsman_dev.check.reading import (
    STACK,
    at,
    chosen,
    event_sources,
    is_made,
    items,
    mappings_in,
    of_type,
    one_of_type,
    parameters,
    queues,
    reference,
    variables,
)
from roundsman_dev.template import Document, Json

ENGINE_TABLES = ("OrdersTable", "TasksTable", "ControlTable", "HistoryTable")
PERSONAL_POLICIES = (
    "ViewerPolicy",
    "OperatorPolicy",
    "BulkOperatorPolicy",
    "SubmitterPolicy",
    "AnswererPolicy",
)
"""The managed policies for people and applications that use the stack."""
QUEUE_ARN = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:"
THIS_ACCOUNT: tuple[Json, ...] = (
    {"Fn::Sub": "arn:${AWS::Partition}:*::${AWS::AccountId}:*"},
    {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"},
)
"""Every principal of this account, and its root user."""
POWERTOOLS = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_LOG_LEVEL"}
"""The variables that Powertools for AWS Lambda reads by itself."""
RATE = re.compile(
    r"rate\((?:1 (?P<one>minute|hour)|(?P<number>[2-9]|[1-9]\d+) (?P<many>minutes|hours))\)"
)
SECONDS = {"minute": 60, "minutes": 60, "hour": 3600, "hours": 3600}
NO_VALUE: Json = {"Ref": "AWS::NoValue"}
METRICS_NAMESPACE: Json = {"Fn::Sub": f"Roundsman/{STACK}"}
"""The namespace of the functions' metrics."""


def texts(value: Json) -> list[str]:
    """The strings in `items(value)`."""
    return [item for item in items(value) if isinstance(item, str)]


def target(resource: Json) -> str:
    """The logical id that a statement names, an index as `TasksTable/index/due`, or the text."""
    match resource:
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{(\w+)\.Arn\}", r"\1", text)
        case {"Fn::If": [_, named, ""]}:
            return target(named)  # a statement with an empty resource is left out too
        case str(text):
            return text
        case _:
            return reference(resource) or json.dumps(resource)


def tables(template: Document) -> dict[str, Document]:
    """The properties of every table, by logical id."""
    return of_type(template, "AWS::DynamoDB::Table")


def roles(template: Document) -> dict[str, Document]:
    """The properties of every role, by logical id."""
    return of_type(template, "AWS::IAM::Role")


def function_role(function: str) -> str:
    """The logical id of a function's role."""
    return function.removesuffix("Function") + "Role"


def aliases(template: Document) -> dict[str, str]:
    """The function of each alias, by the logical ids of both."""
    return {
        name: reference(at(alias, "FunctionName"))
        for name, alias in of_type(template, "AWS::Lambda::Alias").items()
    }


def queues_read_by(template: Document, function: str) -> set[str]:
    """The queues whose messages invoke a function."""
    return {queue for queue, reader, _ in event_sources(template) if reader == function}


def dead_letter_queues(template: Document) -> dict[str, Document]:
    """The properties of every dead-letter queue, by logical id."""
    return {
        name: properties
        for name, properties in queues(template).items()
        if name.endswith("DeadLetterQueue")
    }


def work_queues(template: Document) -> dict[str, Document]:
    """The queues that functions read: neither dead-letter queues nor RejectedQueue."""
    return {
        name: properties
        for name, properties in queues(template).items()
        if not name.endswith("DeadLetterQueue") and name != "RejectedQueue"
    }


def dead_letters_of(template: Document, queue: str) -> str:
    """The dead-letter queue of a queue; empty if it has none."""
    properties = one_of_type(template, "AWS::SQS::Queue", queue)
    return reference(at(properties, "RedrivePolicy", "deadLetterTargetArn"))


class Environment(dict[str, str]):
    """The environment variables of a function. A variable that is missing is an empty string."""

    def __missing__(self, name: str) -> str:
        return ""


def environment(template: Document, function: str) -> Environment:
    """The environment variables of a function as text.

    A parameter is its default, or an address if it has none. A resource is its logical id.
    """
    return Environment(
        (name, _text(template, value)) for name, value in variables(template, function).items()
    )


def _text(template: Document, value: Json) -> str:
    match value:
        case {"Fn::If": _}:
            return _text(template, chosen(template, value))
        case {"Ref": str(name)}:
            return _named(template, name)
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{([\w:.]+)\}", lambda found: _named(template, found[1]), text)
        case str() | int() | float():
            return str(value)
        case _:
            return reference(value)


def _named(template: Document, name: str) -> str:
    parameter = parameters(template).get(name)
    return name if parameter is None else str(parameter.get("Default", ANY_ADDRESS))


def own_key(template: Document) -> Json:
    """The value of the parameter EncryptionKey, as the table of orders has it; None without."""
    match at(tables(template).get("OrdersTable"), "SSESpecification", "KMSMasterKeyId"):
        case {"Fn::If": [_, key, _]}:
            return key
        case _:
            return None


def former_key(template: Document) -> Json:
    """The value of the parameter FormerEncryptionKey, as the policy of the engine's functions has
    it; None without that policy."""
    policy = of_type(template, "AWS::IAM::Policy").get("RightsToFormerKey")
    found = statements(at(policy, "PolicyDocument"))
    return at(found[0], "Resource") if found else None


def statements(policy: Json) -> list[Document]:
    """The statements of one policy document, also those that depend on a condition."""
    found: list[Document] = []
    for statement in mappings_in(at(policy, "Statement")):
        match statement:
            case {"Fn::If": [str(), *branches]}:
                found += [one for one in mappings_in(branches) if "Effect" in one]
            case _:
                found.append(statement)
    return found


def allowed_to(template: Document, role: str) -> Iterator[Document]:
    """Every statement of a role's own policies, and of the policies that are added to it.

    Without those that a condition leaves out.
    """
    properties = one_of_type(template, "AWS::IAM::Role", role)
    own = [at(policy, "PolicyDocument") for policy in items(at(properties, "Policies"))]
    added = added_policies(template, role).values()
    for document in (*own, *(at(policy, "PolicyDocument") for policy in added)):
        yield from _in_force(template, document)


def _in_force(template: Document, document: Json) -> Iterator[Document]:
    """The statements of a policy document, without those that a condition leaves out."""
    for statement in items(at(document, "Statement")):
        found = chosen(template, statement)
        if isinstance(found, dict) and found != NO_VALUE:
            yield found


def personal_policies(template: Document) -> dict[str, Json]:
    """The documents of the policies for people and applications, by logical id."""
    found = of_type(template, "AWS::IAM::ManagedPolicy")
    return {name: at(found[name], "PolicyDocument") for name in PERSONAL_POLICIES if name in found}


def added_policies(template: Document, role: str) -> dict[str, Document]:
    """The properties of each policy that is a resource of its own and is added to the role."""
    return {
        name: policy
        for name, policy in of_type(template, "AWS::IAM::Policy").items()
        if {"Ref": role} in items(at(policy, "Roles"))
    }


def every_statement(template: Document) -> Iterator[tuple[str, Document]]:
    """Each policy statement of the template, with the logical id of the resource that has it."""
    for role in roles(template):
        for statement in allowed_to(template, role):
            yield role, statement
    for name, policy in personal_policies(template).items():
        for statement in _in_force(template, policy):
            yield name, statement
    for kind, place in (
        ("AWS::SQS::QueuePolicy", "PolicyDocument"),
        ("AWS::SNS::TopicPolicy", "PolicyDocument"),
        ("AWS::KMS::Key", "KeyPolicy"),
    ):
        for name, properties in of_type(template, kind).items():
            for statement in statements(at(properties, place)):
                yield name, statement


def granted(template: Document, role: str, service: str) -> dict[str, set[str]]:
    """The actions of one service that a role is allowed, by the resource."""
    found: dict[str, set[str]] = {}
    for statement in allowed_to(template, role):
        if at(statement, "Effect") != "Allow":
            continue
        for action in texts(at(statement, "Action")):
            prefix, _, name = action.partition(":")
            if prefix == service:
                for resource in items(at(statement, "Resource")):
                    for each in _named_by(template, target(resource)):
                        found.setdefault(each, set()).add(name)
    return found


def _named_by(template: Document, resource: str) -> list[str]:
    """The queues of the template that a pattern of names stands for; else the resource itself."""
    _, account, pattern = resource.partition("${AWS::AccountId}:")
    if not account or "*" not in pattern:
        return [resource]
    found = [
        name
        for name, queue in queues(template).items()
        if fnmatchcase(str(at(queue, "QueueName", "Fn::Sub")), pattern.replace("[", "[[]"))
    ]
    return found or [resource]


def services_granted(template: Document, role: str) -> set[str]:
    """The services of which a role is allowed any action."""
    found = (texts(at(statement, "Action")) for statement in allowed_to(template, role))
    return {action.partition(":")[0] for actions in found for action in actions}


def keys_granted(template: Document, role: str, action: str, table: str) -> set[str] | None:
    """The keys of a table's rows that a role is allowed one action on; None for all.

    A key that ends in `*` stands for all keys with that beginning. A key that its condition does
    not match in this way begins with the condition's operator.
    """
    found: set[str] = set()
    for statement in allowed_to(template, role):
        about = {target(resource) for resource in items(at(statement, "Resource"))}
        allows = at(statement, "Effect") == "Allow" and table in about
        if not allows or f"dynamodb:{action}" not in texts(at(statement, "Action")):
            continue
        match statement.get("Condition"):
            case {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": list(keys)}}:
                found |= {_marked("StringEquals", r"[^*?]+", key) for key in texts(keys)}
            case {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(keys)}}:
                found |= {_marked("StringLike", r"[^*?]+#\*", key) for key in texts(keys)}
            case _:
                return None
    return found


def _marked(operator: str, pattern: str, key: str) -> str:
    """The key; after its operator if that does not match it as the pattern says."""
    return key if re.fullmatch(pattern, key) else f"{operator} {key}"


def among(key: str, granted_keys: set[str]) -> bool:
    """Whether a row's key is one of the granted keys."""
    return any(
        key.startswith(each[:-1]) if each.endswith("*") else key == each for each in granted_keys
    )


def alarms(template: Document) -> dict[str, Document]:
    """The properties of every alarm that the stack has, by logical id."""
    return {
        name: alarm
        for name, alarm in of_type(template, "AWS::CloudWatch::Alarm").items()
        if is_made(template, name)
    }


def excepted(denied: Document) -> list[Json]:
    """The principals that a statement excepts; empty if it does not list them."""
    match at(denied, "Condition", "ArnNotLike", "aws:PrincipalArn"):
        case {"Fn::Split": [",", {"Fn::Join": [",", list(found)]}]}:
            return found
        case _:
            return []


def rate_in_seconds(expression: Json) -> int | None:
    """The seconds of a rate of EventBridge Scheduler; None if the expression is not one."""
    found = RATE.fullmatch(str(expression))
    if found is None:
        return None
    return int(found["number"] or 1) * SECONDS[found["one"] or found["many"]]
