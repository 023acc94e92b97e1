"""Backups and copies of tables: made, waited for, counted and put in place.

Each function may be repeated. It raises CallRefused or TryAgain if AWS refuses a call, beside what
it says itself. The facts are those of DynamoDB's reference: CreateBackup, DescribeBackup,
RestoreTableFromBackup, RestoreTableToPointInTime, DeleteTable.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from roundsman.aws.errors import aws_errors
from roundsman_console.base import clock
from roundsman_console.base.errors import InspectorError
from roundsman_console.facts.table.record import TableRecord

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import RestoreTableFromBackupInputTypeDef, TagTypeDef

BETWEEN_LOOKS = 10.0
SETTLES = 120.0
"""Seconds after the last write until a backup is sure to have it; AWS says one minute."""
_AVAILABLE = "AVAILABLE"


def note_settings(client: "DynamoDBClient", table: TableRecord) -> None:
    """Note the settings that a restored table does not have."""
    with aws_errors(f"reading the settings of {table.name}"):
        found = client.describe_table(TableName=table.name)["Table"]
        table.recovery = recovery_is_on(client, table.name)
        tags = client.list_tags_of_resource(ResourceArn=found["TableArn"])["Tags"]
    table.protected = bool(found.get("DeletionProtectionEnabled"))
    table.key = found.get("SSEDescription", {}).get("KMSMasterKeyArn")
    table.tags = {one["Key"]: one["Value"] for one in tags if not one["Key"].startswith("aws:")}


def recovery_is_on(client: "DynamoDBClient", table: str) -> bool:
    """Whether a table has point-in-time recovery. Raises the errors of boto3."""
    found = client.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    points = found.get("PointInTimeRecoveryDescription", {})
    return points.get("PointInTimeRecoveryStatus") == "ENABLED"


def ttl_is_on(client: "DynamoDBClient", table: str) -> bool:
    """Whether DynamoDB removes the expired items of a table. Raises the errors of boto3."""
    found = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    return found.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")


def count_items(client: "DynamoDBClient", table: str, lasting_until: int) -> int:
    """Return the number of items that no time to live removes before an instant (epoch seconds).

    So a count stays the same as long as nobody writes. All items are read.
    """
    with aws_errors(f"counting the items of {table}"):
        pages = client.get_paginator("scan").paginate(
            TableName=table,
            Select="COUNT",
            ConsistentRead=True,
            FilterExpression="attribute_not_exists(ExpiresAt) OR ExpiresAt > :until",
            ExpressionAttributeValues={":until": {"N": str(lasting_until)}},
        )
        return sum(page["Count"] for page in pages)


def exists(client: "DynamoDBClient", table: str) -> bool:
    """Whether there is a table of this name, in whatever state."""
    with aws_errors(f"looking for {table}"):
        try:
            client.describe_table(TableName=table)
        except client.exceptions.ResourceNotFoundException:
            return False
    return True


def made_backup(client: "DynamoDBClient", table: str, name: str) -> str:
    """Return the ARN of the backup of a table with this name, which is made if there is none."""
    with aws_errors(f"backing up {table}"):
        for page in client.get_paginator("list_backups").paginate(TableName=table):
            for one in page["BackupSummaries"]:
                if one.get("BackupName") == name and one.get("BackupStatus") != "DELETED":
                    return one["BackupArn"]
        return client.create_backup(TableName=table, BackupName=name)["BackupDetails"]["BackupArn"]


def wait_for_backup(client: "DynamoDBClient", backup: str) -> None:
    """Return when a backup is AVAILABLE. Raises InspectorError if it never will be."""
    while (status := backup_status(client, backup)) != _AVAILABLE:
        if status != "CREATING":
            raise InspectorError(f"The backup {backup} is {status}.")
        clock.pause(BETWEEN_LOOKS)


def backup_status(client: "DynamoDBClient", backup: str) -> str:
    """Return the status of a backup. Raises InspectorError, also if there is none."""
    with aws_errors(f"reading the backup {backup}"):
        found = client.describe_backup(BackupArn=backup)["BackupDescription"]
    return found["BackupDetails"]["BackupStatus"]


def restored_copy(client: "DynamoDBClient", table: str, copy: str, to: datetime) -> None:
    """Restore a table to an instant as a new table, and return when it can be read."""
    if not exists(client, copy):
        with aws_errors(f"restoring {table} to {copy}"):
            client.restore_table_to_point_in_time(
                SourceTableName=table, TargetTableName=copy, RestoreDateTime=to
            )
    wait_until_active(client, copy)


def wait_until_active(client: "DynamoDBClient", table: str) -> None:
    """Return when a table is ACTIVE. Raises InspectorError if it is gone."""
    while True:
        with aws_errors(f"waiting for {table}"):
            status = client.describe_table(TableName=table)["Table"].get("TableStatus")
        if status == "ACTIVE":
            return
        clock.pause(BETWEEN_LOOKS)


def delete_table(client: "DynamoDBClient", table: str, backup: str | None) -> None:
    """Delete a table of which there is a backup, and return when it is gone.

    Raises InspectorError, before anything is changed, if the backup is not AVAILABLE.
    """
    if backup is None or (status := backup_status(client, backup)) != _AVAILABLE:
        why = "there is none" if backup is None else f"it is {status}"
        raise InspectorError(f"{table} is not deleted: its backup is not available, {why}.")
    with aws_errors(f"deleting {table}"):
        if exists(client, table) and not _is_being_deleted(client, table):
            client.update_table(TableName=table, DeletionProtectionEnabled=False)
            wait_until_active(client, table)
            client.delete_table(TableName=table)
    while exists(client, table):
        clock.pause(BETWEEN_LOOKS)


def _is_being_deleted(client: "DynamoDBClient", table: str) -> bool:
    return client.describe_table(TableName=table)["Table"].get("TableStatus") == "DELETING"


def put_in_place(client: "DynamoDBClient", table: TableRecord, lasting_until: int) -> None:
    """Restore the backup of the source under the name of the table, and compare the items.

    The table must be gone or be restored already. Raises InspectorError if it has another number of
    items than the source had.
    """
    if not exists(client, table.name):
        asked: RestoreTableFromBackupInputTypeDef = {
            "BackupArn": str(table.source_backup),
            "TargetTableName": table.name,
        }
        if table.key is not None:
            asked["SSESpecificationOverride"] = {
                "Enabled": True,
                "SSEType": "KMS",
                "KMSMasterKeyId": table.key,
            }
        with aws_errors(f"restoring {table.name}"):
            client.restore_table_from_backup(**asked)
    wait_until_active(client, table.name)
    found = count_items(client, table.name, lasting_until)
    if found != table.source_items:
        raise InspectorError(
            f"{table.name} has {found} items, and {table.source} had {table.source_items}. Its "
            f"backup is {table.source_backup}, and that of the table before is {table.backup}."
        )


def apply_settings(client: "DynamoDBClient", table: TableRecord) -> None:
    """Give a restored table the settings that it had."""
    with aws_errors(f"setting up {table.name}"):
        arn = client.describe_table(TableName=table.name)["Table"]["TableArn"]
        if not ttl_is_on(client, table.name):
            client.update_time_to_live(
                TableName=table.name,
                TimeToLiveSpecification={"Enabled": True, "AttributeName": "ExpiresAt"},
            )
        client.update_continuous_backups(
            TableName=table.name,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": table.recovery},
        )
        if table.tags:
            tags: list[TagTypeDef] = [
                {"Key": key, "Value": value} for key, value in table.tags.items()
            ]
            client.tag_resource(ResourceArn=arn, Tags=tags)
        client.update_table(TableName=table.name, DeletionProtectionEnabled=table.protected)
        wait_until_active(client, table.name)
