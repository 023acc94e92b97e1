"""What the parameter PayloadBucket makes: a bucket that is closed to others, and few rights."""

from functools import cache

from roundsman.aws.settings import AgentSettings
from roundsman_dev.check.reading import at, chosen, items, of_type, parameters
from roundsman_dev.template import Document, Json, Template
from tests.project import AGENTS, SERVICE_URLS, TEMPLATE
from tests.support.template_reading import environment, every_statement, texts
from tests.template.conftest import nested_template

LONGEST_ORDER, RESTORED = 366, 35  # days: processing.completeWithin, and point-in-time recovery
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1"


@cache
def stack(**settings: str) -> Document:
    """The example's stack with these parameters of the engine."""
    given = {f"Engine.{name}": value for name, value in settings.items()}
    return Template.read(TEMPLATE, given).translate(SERVICE_URLS)


def bucket(document: Document) -> Document:
    [(name, found)] = of_type(document, "AWS::S3::Bucket").items()
    assert at(document, "Resources", name, "Condition") == "HasPayloads"
    return found


def test_there_is_no_bucket_unless_it_is_asked_for() -> None:
    assert parameters(nested_template("engine.yaml"))["PayloadBucket"]["Default"] == "false"
    condition = at(stack(), "Conditions", "HasPayloads")
    assert condition == at(stack(PayloadBucket="false"), "Conditions", "HasPayloads")
    assert condition != at(stack(PayloadBucket="true"), "Conditions", "HasPayloads")


def test_the_bucket_is_closed_encrypted_and_versioned_and_outlives_its_stack() -> None:
    document = stack(PayloadBucket="true")
    found = bucket(document)
    closed = at(found, "PublicAccessBlockConfiguration")
    assert closed == dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
    )
    assert at(found, "VersioningConfiguration", "Status") == "Enabled"
    assert at(document, "Resources", "Payloads", "DeletionPolicy") == "RetainExceptOnCreate"
    assert at(document, "Resources", "Payloads", "UpdateReplacePolicy") == "Retain"
    assert "BucketName" not in found
    [policy] = of_type(document, "AWS::S3::BucketPolicy").values()
    [statement] = items(at(policy, "PolicyDocument", "Statement"))
    assert at(statement, "Effect") == "Deny"
    assert at(statement, "Condition") == {"Bool": {"aws:SecureTransport": "false"}}


def encryption(document: Document) -> list[Json]:
    [rule] = items(at(bucket(document), "BucketEncryption", "ServerSideEncryptionConfiguration"))
    by_default = at(rule, "ServerSideEncryptionByDefault")
    each = [at(by_default, "SSEAlgorithm"), at(by_default, "KMSMasterKeyID")]
    return [chosen(document, one) for one in (*each, at(rule, "BucketKeyEnabled"))]


def test_the_bucket_is_under_the_key_of_its_owner_if_there_is_one() -> None:
    assert encryption(stack(PayloadBucket="true")) == ["AES256", {"Ref": "AWS::NoValue"}, False]
    found = encryption(stack(PayloadBucket="true", EncryptionKey=KEY))
    assert found[0] == "aws:kms"
    assert found[2] is True


def test_what_is_in_the_bucket_stays_as_long_as_an_order_and_its_restore_need_it() -> None:
    declared = parameters(nested_template("engine.yaml"))["PayloadDays"]
    assert declared["Default"] == LONGEST_ORDER + RESTORED
    rules = items(at(bucket(stack(PayloadBucket="true")), "LifecycleConfiguration", "Rules"))
    assert [at(rule, "Status") for rule in rules] == ["Enabled", "Enabled"]
    assert at(rules[0], "NoncurrentVersionExpiration", "NoncurrentDays") == RESTORED
    assert at(rules[0], "AbortIncompleteMultipartUpload", "DaysAfterInitiation") == 1
    assert at(rules[1], "ExpiredObjectDeleteMarker") is True


def rights(document: Document) -> dict[str, list[str]]:
    """Who may do what with S3."""
    found: dict[str, list[str]] = {}
    for owner, statement in every_statement(document):
        actions = [one for one in texts(at(statement, "Action")) if one.startswith("s3:")]
        if actions and at(statement, "Effect") == "Allow":
            found[owner] = found.get(owner, []) + actions
    return found


def test_with_the_bucket_agents_read_applications_store_and_no_person_reads() -> None:
    with_it, without = (rights(stack(PayloadBucket=value)) for value in ("true", "false"))
    assert with_it["SubmitterPolicy"] == with_it["AnswererPolicy"] == ["s3:PutObject"]
    for agent in AGENTS:
        assert with_it[f"{agent}Role"] == ["s3:GetObject", "s3:PutObject"]
        assert f"{agent}Role" not in without
    assert with_it["SchedulerRole"] == ["s3:ListBucketVersions", "s3:DeleteObjectVersion"]
    document = stack(PayloadBucket="true")
    assert at(document, "Resources", "PayloadRights", "Condition") == "HasPayloads"
    [resource] = [
        at(one, "Resource")
        for owner, one in every_statement(document)
        if owner == "MailRole" and at(one, "Sid") == "ReadsAndStoresPayloads"
    ]
    parts = [chosen(document, one) for one in items(items(at(resource, "Fn::Join"))[1])]
    assert parts == [{"Fn::Sub": "arn:${AWS::Partition}:s3:::"}, {"Ref": "Payloads"}, "/*"]
    assert not {"ViewerPolicy", "OperatorPolicy", "BulkOperatorPolicy"} & set(with_it)
    assert not {"SubmitterPolicy", "AnswererPolicy"} & set(without)


def test_the_functions_that_use_the_bucket_get_its_name() -> None:
    found = environment(stack(PayloadBucket="true"), "SchedulerFunction")
    assert found["PAYLOAD_BUCKET"] == "Payloads"
    assert environment(stack(), "SubmissionFunction")["PAYLOAD_BUCKET"] == ""
    assert "PAYLOAD_BUCKET" not in environment(stack(), "SupervisorFunction")
    assert "payload_bucket" in AgentSettings.__dataclass_fields__
    agent = environment(stack(PayloadBucket="true"), "PaymentFunction")
    assert agent["PAYLOAD_BUCKET"] == "Payloads"
