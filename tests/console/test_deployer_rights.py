"""The rights that the deployer must have are those of AWS's own handlers of each resource type.

The schemas of the resource types, with the permissions of their handlers, come with cfn-lint.
"""

import re

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

from tests.console.deployer_rights import RIGHTS, Right, merged, rights_of

UNUSED = {
    r"cloudformation:(SetStackPolicy|UpdateTerminationProtection)": "sam deploy sets neither",
    r"codedeploy:|lambda:(Put|Delete)Provisioned": "an alias moves at once, without instances kept",
    r"dynamodb:.*(Item|Import\w*|Kinesis\w*|Replica|ResourcePolicy|Query|Scan)$": (
        "tables have no replicas, imports, streams to Kinesis nor policies of their own"
    ),
    r"ec2:|elasticfilesystem:|s3files:": "functions are in no VPC and mount nothing",
    r"firehose:|kinesis:": "nothing is delivered elsewhere",
    r"iam:(Attach|Detach)(Group|Role|User)Policy": "the stack gives its policies to nobody",
    r"iam:CreateServiceLinkedRole": "tables do not scale their capacity",
    r"iam:(Get|Put|Delete)(Group|User)Policy": "policies are of roles only",
    r"iam:(Put|Delete)RolePermissionsBoundary": "roles have no boundary",
    r"kms:": "tables, functions and mappings have no key of the customer",
    r"lambda:(AssociateRuntimeAlias|PassCapacityProvider|PutFunctionScalingConfig)": "not used",
    r"lambda:\w*CodeSigningConfig": "code is not signed",
    r"lambda:PutRuntimeManagementConfig": "versions take the runtime of their function",
    r"logs:": "log groups have no delivery, index, protection nor policy of their own",
    r"s3:|s3tables:": "nothing is imported from S3, and a bucket has no tables of its metadata",
    r"sns:PutDataProtectionPolicy": "the topic has no policy for data protection",
    r"sns:(Subscribe|Unsubscribe)": "subscriptions are resources of their own",
}
"""Actions that a handler needs for features that no template uses, each with the reason."""

PASSES = {"AWS::Lambda::Function", "AWS::Scheduler::Schedule"}
"""The types whose handler is given a role."""


def handlers(kind: str) -> set[str]:
    """What the handlers of a type may call to create, update and delete a resource."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    found = schema["handlers"]
    return {
        action
        for name in ("create", "update", "delete")
        for action in found.get(name, {}).get("permissions", ())
    }


@pytest.mark.parametrize("kind", RIGHTS)
def test_a_type_has_the_rights_of_its_handlers_but_for_what_no_template_uses(kind: str) -> None:
    listed = {action for right in RIGHTS[kind] for action in right.actions}
    lacking = {
        action
        for action in handlers(kind) - listed
        if not any(re.match(pattern, action) for pattern in UNUSED)
        and not (action in ("iam:PassRole", "iam:GetRole") and kind not in PASSES)
    }
    assert lacking == set()


def test_rights_on_one_resource_are_one() -> None:
    one, two = Right("r", ("a:B", "a:A")), Right("r", ("a:C", "a:A"))
    passed = Right("r", ("iam:PassRole",), "x")
    assert merged([one, two, passed]) == [Right("r", ("a:A", "a:B", "a:C")), passed]


def test_a_type_that_is_not_listed_has_no_rights() -> None:
    assert rights_of(["AWS::X::Y"]) == []
