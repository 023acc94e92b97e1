"""Reading the translated template: its resources by type, and every policy statement in it."""

import re
from collections.abc import Iterator

from roundsman.testing.stack.template import Document, Json, mapping_of


def of_type(document: Document, kind: str) -> dict[str, Document]:
    """The properties of every resource of one type, by logical id."""
    return {
        name: mapping_of(mapping_of(resource)["Properties"])
        for name, resource in mapping_of(document["Resources"]).items()
        if mapping_of(resource)["Type"] == kind
    }


def items(value: Json) -> list[Json]:
    """`value` as a list: a policy may say one thing as itself."""
    return value if isinstance(value, list) else [value]


def texts(value: Json) -> list[str]:
    """The strings in `value`, which must hold nothing else."""
    return [item for item in items(value) if isinstance(item, str)]


def referred(value: Json) -> str:
    """The logical id that a Ref or a Fn::GetAtt names."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), _]}:
            return name
        case _:
            raise AssertionError(f"not a reference: {value}")


def allowed_to(document: Document, role: str) -> Iterator[Document]:
    """Every statement of a role's own policies."""
    for policy in items(of_type(document, "AWS::IAM::Role")[role]["Policies"]):
        yield from statements(mapping_of(policy)["PolicyDocument"])


def statements(policy: Json) -> list[Document]:
    """The statements of one policy document."""
    return [mapping_of(statement) for statement in items(mapping_of(policy)["Statement"])]


def every_policy(document: Document) -> Iterator[tuple[str, Document]]:
    """Each policy statement of the template, with the logical id of what it belongs to."""
    for role in of_type(document, "AWS::IAM::Role"):
        for statement in allowed_to(document, role):
            yield role, statement
    for kind, place in (
        ("AWS::SQS::QueuePolicy", "PolicyDocument"),
        ("AWS::SNS::TopicPolicy", "PolicyDocument"),
        ("AWS::KMS::Key", "KeyPolicy"),
    ):
        for name, properties in of_type(document, kind).items():
            for statement in statements(properties[place]):
                yield name, statement


def work_queues(document: Document) -> dict[str, Document]:
    """The queues that functions read: all that are neither dead-letter queues nor RejectedQueue."""
    return {
        name: properties
        for name, properties in of_type(document, "AWS::SQS::Queue").items()
        if not name.endswith("DeadLetterQueue") and name != "RejectedQueue"
    }


def dead_letter_queues(document: Document) -> dict[str, Document]:
    return {
        name: properties
        for name, properties in of_type(document, "AWS::SQS::Queue").items()
        if name.endswith("DeadLetterQueue")
    }


def target(resource: Json) -> str:
    """What a statement is about, by logical id; an index as `TasksTable/index/due`."""
    match resource:
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{(\w+)\.Arn\}", r"\1", text)
        case _:
            return referred(resource)


def granted(document: Document, role: str, service: str) -> dict[str, set[str]]:
    """The actions of one service that a role is allowed, by what it may do them to."""
    found: dict[str, set[str]] = {}
    for statement in allowed_to(document, role):
        for action in texts(statement["Action"]):
            prefix, _, name = action.partition(":")
            if prefix == service:
                for resource in items(statement["Resource"]):
                    found.setdefault(target(resource), set()).add(name)
    return found


def keys_granted(document: Document, role: str, action: str, table: str) -> set[str] | None:
    """The keys of a table's rows that a role is allowed to do one action to; None for all.

    A key that ends in `*` stands for all that begin so.
    """
    found: set[str] = set()
    for statement in allowed_to(document, role):
        about = {target(resource) for resource in items(statement["Resource"])}
        if f"dynamodb:{action}" not in texts(statement["Action"]) or table not in about:
            continue
        match statement.get("Condition"):
            case {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": list(keys)}}:
                assert not any(set("*?") & set(key) for key in texts(keys))
                found.update(texts(keys))
            case {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(keys)}}:
                assert all(re.fullmatch(r"[^*?]+#\*", key) for key in texts(keys))
                found.update(texts(keys))
            case _:
                return None
    return found


def among(key: str, granted_keys: set[str]) -> bool:
    """Whether a row's key is one of those that were granted."""
    return any(
        key.startswith(each[:-1]) if each.endswith("*") else key == each for each in granted_keys
    )
