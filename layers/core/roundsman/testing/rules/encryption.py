"""Encryption under a key of one's own: everything stored follows one parameter, with its rights.

The parameter is `EncryptionKey` of the engine. Empty, its default, everything is encrypted under
keys of AWS, and no role has a right on any other key.
"""

from roundsman.testing.rules.application import Application, Rule
from roundsman.testing.rules.reading import (
    ENGINE_TABLES,
    added_policies,
    at,
    dead_letters_of,
    event_sources,
    former_key,
    function_role,
    functions,
    items,
    of_type,
    own_key,
    queues,
    roles,
    services_granted,
    statements,
    tables,
    texts,
)
from roundsman.testing.stack.template import Document, Json, mapping_of

ABSENT: Json = {"Ref": "AWS::NoValue"}
REUSED_FOR = 3600
"""Seconds that SQS uses a data key: docs/how-to/use-your-own-key.md says what that saves."""

LOGS = "AWS::Logs::LogGroup"
USES = ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"]
STORING = {"dynamodb", "sns", "sqs"}
VIA = [f"{service}.${{AWS::Region}}.amazonaws.com" for service in sorted(STORING)]

READS = ["kms:Decrypt", "kms:DescribeKey"]
READ_VIA = [f"{service}.${{AWS::Region}}.amazonaws.com" for service in ("dynamodb", "sqs")]


def one_key(application: Application) -> list[str]:
    """Every table, queue, log group and topic of the engine and its agents is under the one key.

    Each of their properties depends on whether the parameter is empty.
    """
    template = application.template
    key = own_key(template)
    own = _conditions(template, key)
    stored = {
        **{name: tables(template).get(name) for name in ENGINE_TABLES},
        **{name: queues(template).get(name) for name in _own_queues(template)},
        **{name: of_type(template, LOGS).get(name) for name in _own_logs(template)},
        "AlertTopic": of_type(template, "AWS::SNS::Topic").get("AlertTopic"),
    }
    return [
        f"{name}: {'.'.join(place)} must follow the parameter EncryptionKey"
        for name, properties in stored.items()
        for place, (with_key, without) in _expected(name, key).items()
        if at(properties, *place) not in [_either(one, with_key, without) for one in own]
    ]


def key_rights(application: Application) -> list[str]:
    """Every role that uses a queue, a table or the topic may use the key of one's own.

    The right is in a policy with the condition that there is such a key, and holds through
    DynamoDB, SQS and SNS only.
    """
    template = application.template
    key = own_key(template)
    resources = mapping_of(template.get("Resources"))
    own = _conditions(template, key)
    problems = []
    for role in roles(template):
        if not services_granted(template, role) & STORING:
            continue
        named = [
            name
            for name, policy in added_policies(template, role).items()
            if any(_is_use_of(one, key) for one in statements(at(policy, "PolicyDocument")))
        ]
        if not named:
            uses = ", ".join(USES)
            problems.append(f"{role}: a policy must be added that allows {uses} on EncryptionKey")
        problems += [
            f"{name}: its condition must be that EncryptionKey is not empty"
            for name in named
            if not _implies(template, at(resources.get(name), "Condition"), own)
        ]
    return problems


def former_key_rights(application: Application) -> list[str]:
    """Every function may decrypt with the key that the stack had before, if one is named.

    The right is in a policy with the condition that there is such a key, is to read alone, and
    holds through DynamoDB and SQS only. Without it, a message that was sent before the key was
    changed could not be read any more.
    """
    template = application.template
    key = former_key(template)
    conditions = _conditions(template, key)
    resources = mapping_of(template.get("Resources"))
    problems = []
    for role in sorted(map(function_role, functions(template))):
        named = [
            name
            for name, policy in added_policies(template, role).items()
            if any(_is_reading_under(one, key) for one in statements(at(policy, "PolicyDocument")))
            and at(resources.get(name), "Condition") in conditions
        ]
        if not named:
            reads = ", ".join(READS)
            problems.append(
                f"{role}: a policy must be added that allows {reads} on FormerEncryptionKey, "
                "if that is not empty"
            )
    return problems


def _is_reading_under(statement: Document, key: Json) -> bool:
    via = at(statement, "Condition", "StringEquals", "kms:ViaService")
    return (
        at(statement, "Effect") == "Allow"
        and sorted(texts(at(statement, "Action"))) == READS
        and items(at(statement, "Resource")) == [key]
        and sorted(str(at(each, "Fn::Sub")) for each in items(via)) == READ_VIA
    )


def _conditions(template: Document, key: Json) -> list[str]:
    """The conditions that are true if the parameter is not empty; each nested stack has its own."""
    wanted: Json = {"Fn::Not": [{"Fn::Equals": [key, ""]}]}
    found = mapping_of(template.get("Conditions") or {})
    return [name for name, condition in found.items() if condition == wanted]


def _implies(template: Document, name: Json, own: list[str]) -> bool:
    """Whether a condition is one of `own`, or says it together with others."""
    condition = at(template, "Conditions", str(name))
    both = items(at(condition, "Fn::And"))
    return name in own or any({"Condition": each} in both for each in own)


def _either(condition: str, with_key: Json, without: Json) -> Json:
    return {"Fn::If": [condition, with_key, without]}


def _expected(name: str, key: Json) -> dict[tuple[str, ...], tuple[Json, Json]]:
    """The values of the properties of a resource, with a key of one's own and without."""
    if name in ENGINE_TABLES:
        return {("SSESpecification", "KMSMasterKeyId"): (key, ABSENT)}
    if name == "AlertTopic":
        return {("KmsMasterKeyId",): (key, {"Fn::GetAtt": ["AlertKey", "Arn"]})}
    if name.endswith("Logs"):
        return {("KmsKeyId",): (key, ABSENT)}
    return {
        ("SqsManagedSseEnabled",): (ABSENT, True),
        ("KmsMasterKeyId",): (key, ABSENT),
        ("KmsDataKeyReusePeriodSeconds",): (REUSED_FOR, ABSENT),
    }


def _own_queues(template: Document) -> set[str]:
    """The queues that functions read, their dead-letter queues, and RejectedQueue."""
    read = {queue for queue, _, _ in event_sources(template)}
    return read | {dead_letters_of(template, queue) for queue in read} | {"RejectedQueue"}


def _own_logs(template: Document) -> list[str]:
    return [f"{function.removesuffix('Function')}Logs" for function in functions(template)]


def _is_use_of(statement: Document, key: Json) -> bool:
    via = at(statement, "Condition", "StringEquals", "kms:ViaService")
    services = sorted(str(at(each, "Fn::Sub")) for each in items(via))
    return (
        at(statement, "Effect") == "Allow"
        and sorted(texts(at(statement, "Action"))) == USES
        and items(at(statement, "Resource")) == [key]
        and bool(services)
        and set(services) <= set(VIA)
    )


RULES: tuple[Rule, ...] = (one_key, key_rights, former_key_rights)
