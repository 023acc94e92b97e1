"""Encryption in our stacks: all that is stored follows one parameter, with the rights for it.

The parameter is `EncryptionKey` of the engine. Empty, its default, everything is encrypted under
keys of AWS, and no role has a right on any other key.
"""

from roundsman_dev.check.reading import (
    at,
    functions,
    items,
    of_type,
    queues,
)
from roundsman_dev.template import Document, Json, part
from tests.support.template_reading import (
    NO_VALUE,
    added_policies,
    former_key,
    function_role,
    own_key,
    roles,
    services_granted,
    statements,
    tables,
    texts,
)
from tests.template.example.services import OWN_KEYS
from tests.template.faults import (
    arn,
    drop,
    fails_with,
    in_statement,
    put,
    ref,
    remove,
    with_services,
)

REUSED_FOR = 3600
"""Seconds that SQS uses a data key: docs/how-to/use-your-own-key.md says what that saves."""
USES = ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"]
READS = ["kms:Decrypt", "kms:DescribeKey"]
STORING = {"dynamodb", "sns", "sqs"}
OWN = OWN_KEYS["Engine.EncryptionKey"]
ANOTHER_KEY = "arn:aws:kms:eu-west-1:123456789012:key/1"
UNDER_IT, UNDER_THE_FORMER = (
    "ReadsAndWritesUnderTheKeyOfItsOwner",
    "ReadsWhatIsStillUnderTheFormerKey",
)


def _via(*services: str) -> list[str]:
    return [f"{service}.${{AWS::Region}}.amazonaws.com" for service in services]


@fails_with(
    drop("HistoryTable/SSESpecification/KMSMasterKeyId"),
    drop("GiftWrapReplyQueue/KmsMasterKeyId"),
    drop("GiftWrapRequestQueue/SqsManagedSseEnabled"),
    put("GiftWrapReplyQueue/SqsManagedSseEnabled", True),
    put("SchedulerDeadLetterQueue/KmsMasterKeyId", {"Fn::If": ["OwnKey", ANOTHER_KEY, NO_VALUE]}),
    drop("RejectedQueue/KmsDataKeyReusePeriodSeconds"),
    drop("GiftWrapLogs/KmsKeyId"),
    put("AlertTopic/KmsMasterKeyId", arn("AlertKey")),
    put("GiftWrapLogs/KmsKeyId", {"Fn::If": ["Tracing", "", NO_VALUE]}),
    with_services(put("OrdersTable/SSESpecification/KMSMasterKeyId", ANOTHER_KEY)),
    with_services(put("PaymentLogs/KmsKeyId/Fn::If", ["PaymentHasNetwork", OWN, NO_VALUE])),
)
def test_every_table_queue_log_group_and_topic_is_under_the_one_key(template: Document) -> None:
    """Each of their properties depends on whether the parameter is empty. Without a key of one's
    own, a queue is under that of SQS, and the topic, but in `lean`, under that of the stack."""
    key, own = own_key(template), _conditions(template, own_key(template))
    expected: dict[str, dict[str, tuple[Json, Json]]] = {
        "AWS::DynamoDB::Table": {"SSESpecification/KMSMasterKeyId": (key, NO_VALUE)},
        "AWS::Logs::LogGroup": {"KmsKeyId": (key, NO_VALUE)},
        "AWS::SNS::Topic": {"KmsMasterKeyId": (key, arn("AlertKey"))},
        "AWS::SQS::Queue": {
            "SqsManagedSseEnabled": (NO_VALUE, True),
            "KmsMasterKeyId": (key, NO_VALUE),
            "KmsDataKeyReusePeriodSeconds": (REUSED_FOR, NO_VALUE),
        },
    }
    for kind, places in expected.items():
        for name, properties in of_type(template, kind).items():
            for place, (with_key, without) in places.items():
                allowed = [{"Fn::If": [one, with_key, without]} for one in own]
                found = _not_lean(at(properties, *place.split("/")))
                assert found in allowed, f"{name}: {place}"
    assert all((tables(template), queues(template), of_type(template, "AWS::Logs::LogGroup")))


@fails_with(
    remove("GiftWrapKeyRights/Roles", ref("GiftWrapRole")),
    drop("Resources/KeyRights/Condition"),
    put("Resources/GiftWrapKeyRights/Condition", "Tracing"),
    in_statement("GiftWrapRole", UNDER_IT, "Condition", None),
    in_statement("SchedulerRole", UNDER_IT, "Action", [*USES, "kms:ScheduleKeyDeletion"]),
    drop("Resources/RecurringOrderKeyRights"),
    drop("Resources/AlertHeartbeatKeyRights"),
)
def test_every_role_that_uses_a_queue_a_table_or_the_topic_may_use_the_key(
    template: Document,
) -> None:
    """The right is in a policy with the condition that there is such a key, and holds through
    DynamoDB, SQS and SNS only."""
    key = own_key(template)
    own = _conditions(template, key)
    for role in roles(template):
        if services_granted(template, role) & STORING:
            named = [
                name
                for name, policy in added_policies(template, role).items()
                if any(_is_use_of(one, key) for one in statements(at(policy, "PolicyDocument")))
            ]
            assert named, role
            conditions = [at(template, "Resources", name, "Condition") for name in named]
            assert all(_implies(template, each, own) for each in conditions), role


@fails_with(
    drop("Resources/GiftWrapRightsToFormerKey"),
    in_statement("SchedulerRole", UNDER_THE_FORMER, "Action", [*USES]),
    in_statement("GiftWrapRole", UNDER_THE_FORMER, "Condition", None),
    drop("Resources/RightsToFormerKey/Condition"),
)
def test_every_function_may_decrypt_with_the_key_that_the_stack_had_before(
    template: Document,
) -> None:
    """If one is named. The right is to read alone, and holds through DynamoDB and SQS only. Without
    it, a message that was sent before the key was changed could not be read any more."""
    key = former_key(template)
    conditions = _conditions(template, key)
    for role in map(function_role, functions(template)):
        named = [
            name
            for name, policy in added_policies(template, role).items()
            for one in statements(at(policy, "PolicyDocument"))
            if _is_right(one, READS, key) and _services(one) == _via("dynamodb", "sqs")
        ]
        assert named, role
        assert all(at(template, "Resources", name, "Condition") in conditions for name in named)


def _is_right(statement: Document, actions: list[str], key: Json) -> bool:
    return (
        at(statement, "Effect") == "Allow"
        and sorted(texts(at(statement, "Action"))) == actions
        and items(at(statement, "Resource")) == [key]
    )


def _is_use_of(statement: Document, key: Json) -> bool:
    services = set(_services(statement))
    return _is_right(statement, USES, key) and bool(services) and services <= {*_via(*STORING)}


def _services(statement: Document) -> list[str]:
    via = at(statement, "Condition", "StringEquals", "kms:ViaService")
    return sorted(str(at(each, "Fn::Sub")) for each in items(via))


def _conditions(template: Document, key: Json) -> list[str]:
    """The conditions that are true if the parameter is not empty; each nested stack has its own."""
    wanted: Json = {"Fn::Not": [{"Fn::Equals": [key, ""]}]}
    return [name for name, each in part(template, "Conditions").items() if each == wanted]


def _implies(template: Document, name: Json, own: list[str]) -> bool:
    """Whether a condition is one of `own`, or one of several that all hold."""
    both = items(at(template, "Conditions", str(name), "Fn::And"))
    return name in own or any({"Condition": each} in both for each in own)


def _not_lean(value: Json) -> Json:
    """A property as it is in the profiles with a key for alerts."""
    match value:
        case {"Fn::If": ["HasTopicKey", with_key, _]}:
            return with_key
        case _:
            return value
