"""A deployment under a key of one's own, and one without: what is stored, and who may use it.

moto gives log groups no key from a template; the rule `one_key` reads that they have it.
"""

import json
from collections.abc import Iterator
from typing import cast

import boto3
import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from roundsman_testing.stack import Clock, Services, Stack
from tests.moto.orders import ALL_EFFECTS, order
from tests.project import deployed_project
from tests.support.personal_rights import (
    ANSWERER,
    BULK,
    OPERATOR,
    SUBMITTER,
    VIEWER,
    documents_of,
)

LONGEST_POLICY = 6_144
"""Characters of a managed policy without white space (IAM and STS quotas)."""
KEY = "arn:aws:kms:us-east-1:123456789012:key/0d8f1c9a-1f2e-4a57-9d2b-5b1f0a3c6e7d"

FORMER = "arn:aws:kms:us-east-1:123456789012:key/7c1b5d2e-2a3f-4b68-8e3c-6c2a1b4d5f80"


@pytest.fixture
def keyed(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """A deployment under a key of one's own."""
    parameters = {
        "Engine.EncryptionKey": KEY,
        "Engine.FormerEncryptionKey": FORMER,
    }
    with deployed_project(roundsman_services, roundsman_clock, parameters) as made:
        yield made


def keys_of_queues(stack: Stack) -> dict[str, tuple[str | None, str | None, str | None]]:
    """Of each queue: its key, how long a data key is used, and whether it has SSE-SQS."""
    found = {}
    for url in stack.sqs.list_queues()["QueueUrls"]:
        read = stack.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        found[url.rpartition("/")[2]] = (
            read.get("KmsMasterKeyId"),
            read.get("KmsDataKeyReusePeriodSeconds"),
            read.get("SqsManagedSseEnabled"),
        )
    return found


def keys_of_tables() -> dict[str, str | None]:
    """Of each table: its key. Read from moto, which describes none from a template."""
    found = dynamodb_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].tables.values()
    return {table.name: (table.sse_specification or {}).get("KMSMasterKeyId") for table in found}


def key_of_alerts(stack: Stack) -> str:
    topics = boto3.client("sns")
    return topics.get_topic_attributes(TopicArn=stack.stack.outputs["AlertTopicArn"])["Attributes"][
        "KmsMasterKeyId"
    ]


def roles_with_the_key(key: str = KEY) -> set[str]:
    """The roles that have a policy which names the key."""
    iam = boto3.client("iam")
    return {
        role["RoleName"]
        for role in iam.list_roles()["Roles"]
        for name in iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]
        if key in json.dumps(iam.get_role_policy(RoleName=role["RoleName"], PolicyName=name))
    }


@pytest.mark.exhaustive
def test_everything_stored_is_under_the_key_and_an_order_completes(keyed: Stack) -> None:
    queues = keys_of_queues(keyed)
    assert len(queues) > 20
    assert {key for key, _, _ in queues.values()} == {KEY}
    assert {reuse for _, reuse, _ in queues.values()} == {"3600"}
    assert list(keys_of_tables().values()) == [KEY] * 4
    assert key_of_alerts(keyed) == KEY
    keyed.submit(order("ord-1"))
    keyed.run()
    assert keyed.effects("ord-1") == ALL_EFFECTS


def test_each_function_and_the_recurring_order_may_use_the_key(keyed: Stack) -> None:
    roles = {keyed.stack.resources[name] for name in keyed.stack.resources if name.endswith("Role")}
    others = {keyed.stack.resources["SupervisorScheduleRole"]}
    assert roles_with_the_key() == roles - others


def test_each_function_may_read_under_the_former_key_and_write_nothing(keyed: Stack) -> None:
    resources = keyed.stack.resources
    functions = {name for name in resources if name.endswith("Function")}
    roles = {resources[f"{name.removesuffix('Function')}Role"] for name in functions}
    assert len(roles) == 7
    assert roles_with_the_key(FORMER) == roles
    iam = boto3.client("iam")
    for role in roles:
        found = iam.get_role_policy(RoleName=role, PolicyName="FormerKey")["PolicyDocument"]
        [statement] = cast("dict[str, list[dict[str, object]]]", found)["Statement"]
        assert statement["Action"] == ["kms:Decrypt", "kms:DescribeKey"]
        assert statement["Resource"] == FORMER


def test_a_viewer_may_read_what_is_still_under_the_former_key(keyed: Stack) -> None:
    for name, document in documents_of(keyed.stack).items():
        statements = cast("list[dict[str, object]]", document["Statement"])
        of_former = [one["Action"] for one in statements if one["Resource"] == FORMER]
        assert of_former == ([["kms:Decrypt", "kms:DescribeKey"]] if name == VIEWER else [])


def test_people_and_applications_may_use_the_key_through_the_services_that_they_call(
    keyed: Stack,
) -> None:
    for name, document in documents_of(keyed.stack).items():
        statements = cast("list[dict[str, object]]", document["Statement"])
        of_key = [one for one in statements if one["Resource"] == KEY]
        if name == BULK:  # it adds to a policy that has the key
            assert of_key == []
            continue
        [statement] = of_key
        through = cast("dict[str, dict[str, object]]", statement["Condition"])["StringEquals"]
        services = {each.split(".")[0] for each in cast("list[str]", through["kms:ViaService"])}
        more = {OPERATOR: {"sns"}, SUBMITTER: {"s3"}, ANSWERER: {"s3"}}  # s3: of large data
        assert services == {"dynamodb", "sqs"} | more.get(name, set())
        assert ("kms:GenerateDataKey" in cast("list[str]", statement["Action"])) == (name != VIEWER)


def test_the_policies_for_people_fit_in_the_limit_of_iam(keyed: Stack) -> None:
    for name, document in documents_of(keyed.stack).items():
        written = json.dumps(document, separators=(",", ":"))
        # A stack on AWS may have 23 characters more in its name, and its nested stacks 20 more.
        assert len(written) + 43 * written.count("arn:") <= LONGEST_POLICY, name


def test_without_a_key_the_keys_of_aws_serve_as_ever(world: Stack) -> None:
    assert {(key, sse) for key, _, sse in keys_of_queues(world).values()} == {(None, "true")}
    assert KEY not in keys_of_tables().values()
    assert key_of_alerts(world).endswith(world.stack.resources["AlertKey"])
    assert roles_with_the_key() == set()
