"""The commands that empty and delete the bucket that a deleted stack leaves, on moto."""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import boto3
import jmespath
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from roundsman_console.facts.table.left_bucket import commands_for

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import DeleteTypeDef

BUCKET = "shop-payloads"


@pytest.fixture
def s3() -> Iterator["S3Client"]:
    """A bucket with versions, two of one object and one of another that was deleted."""
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        for key in ("ord-1/a", "ord-1/a", "ord-2/b"):
            client.put_object(Bucket=BUCKET, Key=key, Body=b"a page")
        client.delete_object(Bucket=BUCKET, Key="ord-2/b")
        yield client


def test_the_first_command_removes_all_versions_and_then_the_second_is_not_refused(
    s3: "S3Client",
) -> None:
    empties, deletes = (shlex.split(one) for one in commands_for(BUCKET))
    assert deletes == ["aws", "s3api", "delete-bucket", "--bucket", BUCKET]
    with pytest.raises(ClientError, match="BucketNotEmpty"):
        s3.delete_bucket(Bucket=BUCKET)
    assert empties[:-1] == ["aws", "s3api", "delete-objects", "--bucket", BUCKET, "--delete"]
    asked = shlex.split(empties[-1].removeprefix("$(").removesuffix(")"))
    assert asked[:5] == ["aws", "s3api", "list-object-versions", "--bucket", BUCKET]
    found = jmespath.search(
        asked[asked.index("--query") + 1], s3.list_object_versions(Bucket=BUCKET)
    )
    assert len(found["Objects"]) == 4
    s3.delete_objects(Bucket=BUCKET, Delete=cast("DeleteTypeDef", found))
    s3.delete_bucket(Bucket=BUCKET)
