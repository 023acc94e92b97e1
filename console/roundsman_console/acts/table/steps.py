"""The steps of a restore and of a deletion, in their order, each of which may be repeated."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import WaiterError

from roundsman.aws.errors import aws_errors
from roundsman.engine.due import Lane
from roundsman.model.instants import read_instant
from roundsman_console.acts.table.functions import (
    are_stopped,
    note_what_runs,
    start,
    start_supervisor,
    stop,
)
from roundsman_console.aws.deployment_failure import first_failure
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base import clock
from roundsman_console.base.errors import InspectorError
from roundsman_console.facts.orders.counts import count_tasks
from roundsman_console.facts.table.copies import (
    SETTLES,
    apply_settings,
    count_items,
    delete_table,
    exists,
    made_backup,
    note_settings,
    put_in_place,
    restored_copy,
    wait_for_backup,
    wait_until_active,
)
from roundsman_console.facts.table.record import Record, TableRecord

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import WaiterConfigTypeDef

_DELETION: "WaiterConfigTypeDef" = {"Delay": 15, "MaxAttempts": 480}  # two hours
_KEPT = ("SubmissionQueueUrl", "RejectedQueueUrl")
"""The queues whose messages are of use after a restore."""


@dataclass(frozen=True, slots=True)
class TableStep:
    """One step: what it is called, what it does in a sentence, and how."""

    name: str
    does: str
    run: Callable[[], None]


@dataclass(frozen=True)
class TableWork:
    """A restore or a deletion of the tables of one stack."""

    stack: DeployedStack
    record: Record
    path: Path
    """The file of the record."""

    @property
    def to_an_instant(self) -> bool:
        """Whether the tables go back to an instant, and not to other tables."""
        return not self.record.of.startswith("arn:") and "=" not in self.record.of

    def save(self) -> None:
        """Write the record. Raises InspectorError if it cannot be written."""
        self.record.write(self.path)

    def check_is_of(self, stack: DeployedStack) -> None:
        """Raise InspectorError if the record is of another stack that had this name."""
        if self.record.arn != stack.arn:
            raise InspectorError(f"{self.path} is of another stack: {self.record.arn}.")

    def each(self, do: Callable[[TableRecord], None]) -> Callable[[], None]:
        """Return a step that does this with each table, and keeps the record after each."""

        def run() -> None:
            for table in self.record.tables:
                do(table)
                self.save()

        return run

    # What a restore and a deletion have in common.

    def note(self) -> None:
        """Note what runs and how the tables are set up, before anything is changed."""
        note_what_runs(self.stack, self.record)
        for table in self.record.tables:
            note_settings(self.stack.dynamodb, table)

    def stop(self) -> None:
        """Stop every function, and wait until a backup has all that they have written."""
        stop(self.stack, self.record)
        clock.pause(SETTLES)

    def back_up(self, table: TableRecord) -> None:
        """Count the items of a table, to which nothing writes now, and back it up."""
        client = self.stack.dynamodb
        table.items = self._count(table.name)
        if table.backup is None:
            table.backup = made_backup(client, table.name, self._name(table, "before"))
        self.save()
        wait_for_backup(client, table.backup)

    def _name(self, table: TableRecord, which: str) -> str:
        table_name = table.output.removesuffix("Name")
        return f"{self.stack.name}-{which}-{table_name}-{self.record.begun}"

    def _count(self, table: str) -> int:
        return count_items(self.stack.dynamodb, table, self.record.lasting_until)

    # Of a restore.

    def list_commands(self) -> None:
        """Write what people did since the instant into a file, since the restored rows lack it."""
        since = read_instant(self.record.of)
        table = self.stack.output("HistoryTableName")
        lines = []
        with aws_errors("reading the commands of people"):
            pages = self.stack.dynamodb.get_paginator("scan").paginate(
                TableName=table,
                FilterExpression="attribute_exists(#by) AND #at > :since",
                ExpressionAttributeNames={"#by": "By", "#at": "At"},
                ExpressionAttributeValues={":since": {"N": str(since)}},
            )
            for page in pages:
                for item in page["Items"]:
                    row = {name: next(iter(value.values())) for name, value in item.items()}
                    shown = ("TaskId", "At", "Kind", "Step", "By", "Reason")
                    lines.append(json.dumps({name: row.get(name) for name in shown}))
        path = self.path.with_suffix(".commands.jsonl")
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def purge(self) -> None:
        """Empty the queues of requests, replies and commands, by the URLs of the outputs."""
        client = boto3.client("sqs")
        for output, url in sorted(self.stack.outputs.items()):
            if output.endswith("QueueUrl") and output not in _KEPT:
                with aws_errors(f"emptying {output}"):
                    try:
                        client.purge_queue(QueueUrl=url)
                    except client.exceptions.PurgeQueueInProgress:
                        continue  # it was emptied within the last minute, and nothing sends to it

    def name_sources(self) -> None:
        """Give each table the one whose items take the place of its own.

        That is what a deleted stack has left behind under the same logical id, or what is named.
        Raises InspectorError if there is none, or if it is this stack's own.
        """
        if self.record.of.startswith("arn:"):
            sources = self._left_by_stack()
        else:
            pairs = (one.partition("=") for one in self.record.of.split(","))
            sources = {output: table for output, _, table in pairs}
        for table in self.record.tables:
            name = sources.get(table.output)
            if not name:
                raise InspectorError(f"{self.record.of} has no table {table.output}.")
            if name in {each.name for each in self.record.tables}:
                raise InspectorError(f"{name} is the table of {self.stack.name} itself.")
            table.source = name

    def _left_by_stack(self) -> dict[str, str]:
        """The tables of a deleted stack, by the outputs that name such tables."""
        client: CloudFormationClient = boto3.client("cloudformation")
        with aws_errors("reading the resources of the deleted stack"):
            pages = client.get_paginator("list_stack_resources").paginate(StackName=self.record.of)
            return {
                f"{one['LogicalResourceId']}Name": one.get("PhysicalResourceId", "")
                for page in pages
                for one in page["StackResourceSummaries"]
                if one["ResourceType"] == "AWS::DynamoDB::Table"
            }

    def copy(self, table: TableRecord) -> None:
        """Restore a table to the instant as another table, and count its items."""
        client = self.stack.dynamodb
        if table.source is None:
            table.source = self._name(table, "restored")
            self.save()
        restored_copy(client, table.name, table.source, datetime.fromisoformat(self.record.of))
        table.source_items = self._count(table.source)

    def count_source(self, table: TableRecord) -> None:
        """Count the items of a table that another stack left behind."""
        wait_until_active(self.stack.dynamodb, str(table.source))
        table.source_items = self._count(str(table.source))

    def back_up_source(self, table: TableRecord) -> None:
        """Back up what takes the place of a table."""
        client = self.stack.dynamodb
        if table.source_backup is None:
            name = self._name(table, "then")
            table.source_backup = made_backup(client, str(table.source), name)
            self.save()
        wait_for_backup(client, table.source_backup)

    def replace(self, table: TableRecord) -> None:
        """Delete a table whose backups are AVAILABLE, and restore the other under its name."""
        if self._is_in_place(table):
            return
        wait_for_backup(self.stack.dynamodb, str(table.source_backup))
        self._delete(table)
        self.record.done.append(f"deleted {table.name}")
        self.save()
        self._put(table)

    def _is_in_place(self, table: TableRecord) -> bool:
        """Whether a command that was interrupted deleted the table; then it is restored here."""
        if f"replaced {table.name}" in self.record.done:
            return True
        if f"deleted {table.name}" not in self.record.done:
            return False
        self._put(table)
        return True

    def _put(self, table: TableRecord) -> None:
        put_in_place(self.stack.dynamodb, table, self.record.lasting_until)
        self.record.done.append(f"replaced {table.name}")
        self.save()

    def set_up(self, table: TableRecord) -> None:
        """Give a restored table the settings of the former one."""
        apply_settings(self.stack.dynamodb, table)

    def start_scheduler(self) -> None:
        """Let the scheduler read again, so that `roundsman reconcile` is carried out."""
        start(self.stack, self.record.scheduler)

    def start_rest(self) -> None:
        """Let every function run as before."""
        start(self.stack, self.record.mappings)
        start_supervisor(self.stack, self.record)

    def _delete(self, table: TableRecord) -> None:
        """Delete a table whose backup is AVAILABLE and has all of its items."""
        client = self.stack.dynamodb
        if exists(client, table.name) and (now := self._count(table.name)) != table.items:
            raise InspectorError(
                f"{table.name} is not deleted: it has {now} items, and had {table.items} when it "
                "was backed up. Somebody writes to it."
            )
        delete_table(client, table.name, table.backup)

    def check_stopped(self) -> None:
        """Raise InspectorError if a function runs that was stopped."""
        if not are_stopped(self.stack, self.record):
            raise InspectorError(
                f"A function of {self.stack.name} was started again since the backups were made. "
                f"Remove {self.path}, and begin anew."
            )

    # Of a deletion.

    def check_orders(self) -> None:
        """Raise InspectorError if orders are open: they would never end."""
        if open_orders := count_tasks(self.stack).lanes[Lane.OPEN].count:
            raise InspectorError(
                f"{open_orders} orders are open, and would never end. Let them end, or cancel them."
            )

    def delete_stack(self) -> None:
        """Delete the stack by its ARN, and return when it is gone."""
        began = "began to delete the stack"
        if began not in self.record.done:
            self.check_stopped()
            self.record.done.append(began)
            self.save()
        client: CloudFormationClient = boto3.client("cloudformation")
        with aws_errors(f"deleting the stack {self.stack.name}"):
            client.delete_stack(StackName=self.record.arn)
            try:
                waiter = client.get_waiter("stack_delete_complete")
                waiter.wait(StackName=self.record.arn, WaiterConfig=_DELETION)
            except WaiterError as error:
                reason = first_failure(client, self.record.arn) or str(error)
                raise InspectorError(f"{self.stack.name} is not deleted: {reason}") from error

    def delete(self, table: TableRecord) -> None:
        """Delete a table of a stack that is gone."""
        self._delete(table)


def prepare_steps(work: TableWork, *, of_old_tables: bool) -> list[TableStep]:
    """The steps before anything is deleted; with `of_old_tables`, the items come from a stack."""
    if of_old_tables:
        sources = [
            TableStep("count", "Count the items of the old tables", work.each(work.count_source))
        ]
    else:
        sources = [
            TableStep("list", "List what people did since the instant", work.list_commands),
            TableStep(
                "copy", "Restore each table to the instant as a new table", work.each(work.copy)
            ),
        ]
    return [
        TableStep("note", "Note what runs and how the tables are set up", work.note),
        TableStep("hold", "Stop the supervisor and every function that reads a queue", work.stop),
        TableStep("back up", "Count and back up each table as it is now", work.each(work.back_up)),
        *sources,
        TableStep(
            "back up the copies",
            "Back up what is to take its place",
            work.each(work.back_up_source),
        ),
    ]


def replace_steps(work: TableWork) -> list[TableStep]:
    """The steps that put the copies in the place of the tables."""
    return [
        TableStep("purge", "Empty the queues of requests, replies and commands", work.purge),
        TableStep(
            "replace",
            "Delete each table, and restore its copy under its name",
            work.each(work.replace),
        ),
        TableStep(
            "set up", "Set the time to live, recovery, protection and tags", work.each(work.set_up)
        ),
        TableStep("start the scheduler", "Let the scheduler read again", work.start_scheduler),
    ]


def deletion_steps(work: TableWork, *, with_tables: bool) -> list[TableStep]:
    """The steps that delete a stack, and its tables too if they are meant."""
    tables = [TableStep("delete the tables", "Delete each table", work.each(work.delete))]
    return [
        TableStep("check", "Check that no order is open", work.check_orders),
        TableStep("note", "Note what runs and how the tables are set up", work.note),
        TableStep("hold", "Stop the supervisor and every function that reads a queue", work.stop),
        TableStep("back up", "Count and back up each table", work.each(work.back_up)),
        TableStep("delete the stack", "Delete the stack", work.delete_stack),
        *(tables if with_tables else []),
    ]


def start_steps(work: TableWork) -> list[TableStep]:
    """The steps that let the stack run again."""
    return [TableStep("start", "Let every function run as before", work.start_rest)]


def carry_out(work: TableWork, steps: Sequence[TableStep], progress: Callable[[str], None]) -> None:
    """Carry out the steps that are left, and keep the record after each.

    Raises InspectorError, CallRefused or TryAgain if one cannot be done; the same call then goes on
    with it.
    """
    for step in steps:
        if step.name not in work.record.done:
            progress(step.does)
            step.run()
            work.record.done.append(step.name)
            work.save()


def require(work: TableWork, steps: Sequence[TableStep], command: str) -> None:
    """Raise InspectorError unless these steps are done; `command` does them."""
    left = [step.name for step in steps if step.name not in work.record.done]
    if left:
        raise InspectorError(f"First finish: {command}. It has not done yet: {', '.join(left)}.")
