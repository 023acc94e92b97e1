"""Removes all that a proof has made, by exact names, and says what it could not remove.

What is made is noted in a file before it is made, so that another command can remove it too.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from roundsman_console.aws.deployment_failure import first_failure
from roundsman_console.aws.resources import stack_resources
from roundsman_console.base import clock
from roundsman_console.base.errors import ConsoleError, sentence_of
from roundsman_dev.prove.deployment import TAG

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackTypeDef
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

RECORD = "record.json"
RUN = re.compile(r"prove-[0-9a-f]{6}")
"""What `fullmatch`es the name of a proof's stack."""

SAM_BUCKET_STACK = "aws-sam-cli-managed-default"
_GONE = "DELETE_COMPLETE"
_TRIES = 2
_BETWEEN_LOOKS = 10.0  # seconds
_LOOKS = 180
"""Half an hour; after that the deletion says why it is refused."""


@dataclass(slots=True)
class ProofRecord:
    """What a proof has made."""

    run: str
    """The name of its stack."""
    account: str
    region: str
    tables: list[str] = field(default_factory=list)
    """The tables, which stay when the stack is deleted."""
    arn: str = ""
    """The ARN of the stack; empty before it is known."""

    def write(self, folder: Path) -> None:
        """Write it into the folder of the proof. Raises ConsoleError."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(asdict(self), indent=2) + "\n"
            (folder / RECORD).write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConsoleError(f"{folder} cannot be written: {error.strerror}.") from error


def read_record(path: Path) -> ProofRecord:
    """Read the record of a proof. Raises ConsoleError if it is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        record = ProofRecord(**found)
        texts = [record.run, record.account, record.region, record.arn, *record.tables]
        if not all(isinstance(one, str) for one in texts) or not RUN.fullmatch(record.run):
            raise TypeError("it names no proof")
        if not all(one.startswith(f"{record.run}-") for one in record.tables):
            raise TypeError("it names a table of something else")
    except (OSError, TypeError, ValueError) as error:
        raise ConsoleError(f"{path} is not the record of a proof: {error}.") from error
    return record


def note_resources(record: ProofRecord) -> None:
    """Note the ARN and the tables of the stack, if there is one. Raises the errors of boto3."""
    client: CloudFormationClient = boto3.client("cloudformation", region_name=record.region)
    found = _described(client, record.arn or record.run)
    if found is None:
        return
    record.arn = found["StackId"]
    for one in stack_resources(client, record.arn):
        is_new = one.physical_id not in record.tables
        own = one.physical_id.startswith(f"{record.run}-")
        if one.kind == "AWS::DynamoDB::Table" and own and is_new:
            record.tables.append(one.physical_id)


@dataclass(frozen=True)
class _Removal:
    record: ProofRecord
    progress: Callable[[str], None]

    def run(self) -> Iterator[str]:
        """Remove everything, and yield what is left, each with its reason."""
        client: CloudFormationClient = boto3.client(
            "cloudformation", region_name=self.record.region
        )
        try:
            note_resources(self.record)
        except (ClientError, BotoCoreError) as error:
            yield f"what the stack {self.record.run} has is not known: {sentence_of(error)}"
        self.progress(f"Deleting the stack {self.record.run}")
        yield from self._stack(client)
        dynamodb: DynamoDBClient = boto3.client("dynamodb", region_name=self.record.region)
        for table in self.record.tables:
            yield from self._table(dynamodb, table)
        yield from self._artifacts(client)

    def _stack(self, client: "CloudFormationClient") -> Iterator[str]:
        for left in reversed(range(_TRIES)):
            try:
                found = _described(client, self.record.arn or self.record.run)
                if found is None:
                    return
                if not _is_of_a_proof(found):
                    yield f"the stack {self.record.run}: it does not have the tag of a proof"
                    return
                arn = found["StackId"]
                wait_for_update(client, arn)
                client.delete_stack(StackName=arn)
                client.get_waiter("stack_delete_complete").wait(
                    StackName=arn, WaiterConfig={"Delay": 5, "MaxAttempts": 360}
                )
                return
            except WaiterError as error:
                reason = first_failure(client, self.record.arn) or str(error)
                if not left:
                    yield f"the stack {self.record.run}: {reason}"
            except (ClientError, BotoCoreError) as error:
                if not left:
                    yield f"the stack {self.record.run}: {sentence_of(error)}"

    def _table(self, client: "DynamoDBClient", table: str) -> Iterator[str]:
        try:
            client.delete_table(TableName=table)
            client.get_waiter("table_not_exists").wait(TableName=table)
        except client.exceptions.ResourceNotFoundException:
            return  # the stack has removed it
        except (ClientError, BotoCoreError) as error:
            yield f"the table {table}: {sentence_of(error)}"

    def _artifacts(self, client: "CloudFormationClient") -> Iterator[str]:
        """Remove what SAM has uploaded for this stack. Its bucket is SAM's own, and stays."""
        try:
            bucket = _sam_bucket(client)
            if bucket is None:
                return
            s3: S3Client = boto3.client("s3", region_name=self.record.region)
            pages = s3.get_paginator("list_object_versions").paginate(
                Bucket=bucket, Prefix=f"{self.record.run}/"
            )
            for page in pages:
                for one in (*page.get("Versions", []), *page.get("DeleteMarkers", [])):
                    s3.delete_object(Bucket=bucket, Key=one["Key"], VersionId=one["VersionId"])
        except (ClientError, BotoCoreError) as error:
            yield f"the uploads of {self.record.run} in SAM's bucket: {sentence_of(error)}"


def remove(record: ProofRecord, progress: Callable[[str], None]) -> list[str]:
    """Remove all that a proof has made, and return what is left, each with the reason.

    May be repeated. Raises nothing that AWS answers.
    """
    return list(_Removal(record, progress).run())


def wait_for_update(client: "CloudFormationClient", arn: str) -> None:
    """End an update of the stack that is under way: CloudFormation deletes no stack meanwhile.

    Raises the errors of boto3.
    """
    for _ in range(_LOOKS):
        found = _described(client, arn)
        status = "" if found is None else found["StackStatus"]
        if not (status.startswith("UPDATE_") and status.endswith("_IN_PROGRESS")):
            return
        if status == "UPDATE_IN_PROGRESS":
            with suppress(ClientError):  # it has just ended, or is cancelled already
                client.cancel_update_stack(StackName=arn)
        clock.pause(_BETWEEN_LOOKS)


def proofs_left(folder: Path, account: str, region: str) -> list[tuple[ProofRecord, Path | None]]:
    """Return the proofs of which something may be left in this account and region.

    They are those with a record in a folder of `folder`, which is returned too, and those whose
    stack has the tag of a proof. Raises ConsoleError and the errors of boto3.
    """
    found: dict[str, tuple[ProofRecord, Path | None]] = {}
    for path in sorted(folder.glob(f"*/{RECORD}")):
        record = read_record(path)
        if (record.account, record.region) == (account, region):
            found[record.run] = record, path.parent
    client: CloudFormationClient = boto3.client("cloudformation", region_name=region)
    for page in client.get_paginator("describe_stacks").paginate():
        for stack in page["Stacks"]:
            name = stack["StackName"]
            if _is_of_a_proof(stack) and name not in found:
                found[name] = ProofRecord(name, account, region, arn=stack["StackId"]), None
    return list(found.values())


def forget(folder: Path) -> None:
    """Remove the record of a proof of which nothing is left."""
    (folder / RECORD).unlink(missing_ok=True)


def _described(client: "CloudFormationClient", stack: str) -> "StackTypeDef | None":
    """The stack; None if there is none, or not any more."""
    try:
        [found] = client.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    return None if found["StackStatus"] == _GONE else found


def _is_of_a_proof(stack: "StackTypeDef") -> bool:
    """Whether it is the root of a proof. A nested stack has the tag too, with the root's name."""
    tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", [])}
    name = stack["StackName"]
    return tags.get(TAG) == name and RUN.fullmatch(name) is not None


def _sam_bucket(client: "CloudFormationClient") -> str | None:
    found = _described(client, SAM_BUCKET_STACK)
    for one in [] if found is None else found.get("Outputs", []):
        if one.get("OutputKey") == "SourceBucket":
            return one.get("OutputValue")
    return None
