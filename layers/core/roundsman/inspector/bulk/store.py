"""Storing bulk runs in ControlTable.

    bulk              one attribute per run with the time of its start, to list runs without a scan
    bulk#<id>         the run, its progress and the process that holds it
    bulk#<id>#<n>     a part of the plan with CHUNK orders, written once, before the run

Each write of a run is conditional on the version that was read, and increases it. If two processes
perform the same run, the write of the second fails, so it sends nothing. Only `ask_stop` does not
change the version; the holder's next write returns the stop request.

DynamoDB's time to live removes the run and its plan after KEEP_FOR.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import boto3

from roundsman.aws.clock import now
from roundsman.aws.dynamodb.codec import Item, epoch_seconds, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.errors import UnreadableRecord
from roundsman.inspector.bulk.codec import progress_text, read_progress, read_run, run_text
from roundsman.inspector.bulk.run import Run, RunProgress, RunState
from roundsman.inspector.read.stack import DeployedStack
from roundsman.model.instants import SECOND
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

ID = "ControlId"
INDEX = "bulk"
CHUNK = 500  # orders; an item has at most 65 KB
KEEP_FOR = 90 * 24 * 3600 * SECOND
HELD_FOR = 60 * SECOND
"""The time in ms for which a write holds a run. The holder writes more often. After this time
without a write, another process may take over the run."""

NO_SUCH_ROW = f"attribute_not_exists({ID})"
VERSION_IS_AS_SEEN = "Version = :seen"
IS_RUNNING = "#state = :running"


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that performs a run."""

    token: str
    """Distinguishes processes with the same `by` and `host`."""
    by: str
    """The name of the operator."""
    host: str
    until: int = 0
    """Until when no other process may take over the run, in epoch ms."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as stored."""

    run: Run
    progress: RunProgress
    state: RunState
    version: int
    saved_at: int
    """When the record was last written, in epoch ms."""
    why: str = ""
    """Why the run was stopped or interrupted; empty if it was not."""
    on_hold: bool = False
    """Whether it was stopped because its next orders would wait for an agent that is held. With the
    term `anyway`, a run is not stopped for that."""
    holder: Holder | None = None
    """The process that performs the run; None if the run is not running."""
    carried_on: tuple[str, ...] = ()
    """One sentence for each resume: who, from which machine, when and why."""
    stop_asked: str = ""
    """The reason of a stop request; empty if there is none."""


class DynamoBulks:
    """The store of a stack's bulk runs."""

    def __init__(self, client: "DynamoDBClient", *, control_table: str, clock: Clock) -> None:
        self._client = client
        self._table = control_table
        self._clock = clock

    def begin(self, run: Run, orders: Sequence[str], holder: Holder) -> StoredRun:
        """Store a new run and its plan, before anything is sent."""
        record = StoredRun(run, RunProgress(), RunState.RUNNING, 1, self._clock(), holder=holder)
        for first in range(0, len(orders), CHUNK):
            chunk: Item = {
                ID: text(_chunk_id(run.id, first // CHUNK)),
                "Orders": text(" ".join(orders[first : first + CHUNK])),
                "ExpiresAt": _expiry(run),
            }
            with aws_errors(f"storing the plan of {run.id}"):
                self._client.put_item(TableName=self._table, Item=chunk)
        self._list(run)
        item: Item = {
            ID: text(_run_id(run.id)),
            "Run": text(run_text(run)),
            **_changing(record),
            "ExpiresAt": _expiry(run),
        }
        with aws_errors(f"storing the bulk run {run.id}"):
            self._client.put_item(TableName=self._table, Item=item, ConditionExpression=NO_SUCH_ROW)
        return record

    def _list(self, run: Run) -> None:
        """Add the run to the list of runs, and remove runs older than KEEP_FOR from it."""
        over = [name for name, began in self._listed().items() if began < run.started_at - KEEP_FOR]
        names = {f"#n{place}": name for place, name in enumerate([run.id, *over[:100]])}
        removed = ", ".join(list(names)[1:])
        with aws_errors("listing the bulk run"):
            self._client.update_item(
                TableName=self._table,
                Key={ID: text(INDEX)},
                UpdateExpression="SET #n0 = :at" + (f" REMOVE {removed}" if removed else ""),
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={":at": number(run.started_at)},
            )

    def _listed(self) -> dict[str, int]:
        with aws_errors("listing the bulk runs"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(INDEX)}, ConsistentRead=True
            )
        item = found.get("Item", {})
        reader = ItemReader(item, INDEX)
        return {name: reader.number(name) for name in item if name != ID}

    def newest(self, most: int) -> list[StoredRun]:
        """Return at most `most` runs, the newest first. Raises UnreadableRecord."""
        listed = sorted(self._listed().items(), key=lambda each: each[1], reverse=True)
        found = (self.load(name) for name, _ in listed[:most])
        return [record for record in found if record is not None]

    def load(self, run_id: str) -> StoredRun | None:
        """Return the run; None if it does not exist or was removed. Raises UnreadableRecord."""
        with aws_errors(f"reading the bulk run {run_id}"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(_run_id(run_id))}, ConsistentRead=True
            )
        if "Item" not in found:
            return None
        return _read(ItemReader(found["Item"], _run_id(run_id)), run_id)

    def orders(self, run: Run, first: int, most: int) -> list[str]:
        """Return at most `most` orders of the plan, from index `first` on.

        The result ends at the end of a chunk, so it may be shorter. Raises UnreadableRecord if the
        chunk is missing.
        """
        place = first // CHUNK
        record = _chunk_id(run.id, place)
        with aws_errors(f"reading the plan of {run.id}"):
            found = self._client.get_item(TableName=self._table, Key={ID: text(record)})
        if "Item" not in found:
            raise UnreadableRecord(record, "Orders", "is missing")
        orders = ItemReader(found["Item"], record).text("Orders").split(" ")
        start = first - place * CHUNK
        return orders[start : start + most]

    def save(self, record: StoredRun, *, fresh: bool = False) -> StoredRun | None:
        """Store the run if its version is still the one that was read; None if it is not.

        The record that is returned has the new version and the stop request, if there is one.
        `fresh` removes a stop request to the previous holder.
        """
        wanted = replace(record, version=record.version + 1, saved_at=self._clock())
        changing = _changing(wanted)
        removed = [name for name in ("Holder", "OnHold", "Why") if name not in changing]
        if fresh or record.state is not RunState.RUNNING:
            removed.append("StopAsked")
        names = {f"#{name}": name for name in (*changing, *removed)}
        update = "SET " + ", ".join(f"#{name} = :{name}" for name in changing)
        if removed:
            update += " REMOVE " + ", ".join(f"#{name}" for name in removed)
        try:
            with aws_errors(f"storing the bulk run {record.run.id}"):
                found = self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(_run_id(record.run.id))},
                    UpdateExpression=update,
                    ConditionExpression=VERSION_IS_AS_SEEN,
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues={
                        **{f":{name}": value for name, value in changing.items()},
                        ":seen": number(record.version),
                    },
                    ReturnValues="ALL_NEW",
                )
        except ConditionFailed:
            return self._saved_before(wanted)
        reader = ItemReader(found.get("Attributes", {}), _run_id(record.run.id))
        return replace(wanted, stop_asked=reader.text("StopAsked", ""))

    def _saved_before(self, wanted: StoredRun) -> StoredRun | None:
        """Return the run if this write succeeded, but its response was lost and it was retried."""
        stored = self.load(wanted.run.id)
        if stored is None or stored.version != wanted.version or stored.holder != wanted.holder:
            return None
        return replace(wanted, stop_asked=stored.stop_asked)

    def ask_stop(self, run_id: str, said: str) -> bool:
        """Store a stop request with the reason `said`. Returns False if the run is not running."""
        try:
            with aws_errors(f"stopping the bulk run {run_id}"):
                self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(_run_id(run_id))},
                    UpdateExpression="SET StopAsked = :said",
                    ConditionExpression=IS_RUNNING,
                    ExpressionAttributeNames={"#state": "State"},
                    ExpressionAttributeValues={
                        ":said": text(said),
                        ":running": text(RunState.RUNNING),
                    },
                )
        except ConditionFailed:
            return False
        return True


def _changing(record: StoredRun) -> Item:
    """Return the attributes that change during a run."""
    item: Item = {
        "Version": number(record.version),
        "State": text(record.state),
        "SavedAt": number(record.saved_at),
        "Progress": text(progress_text(record.progress)),
    }
    if record.carried_on:
        item["CarriedOn"] = {"L": [text(one) for one in record.carried_on]}
    if record.why:
        item["Why"] = text(record.why)
    if record.on_hold:
        item["OnHold"] = {"BOOL": True}
    if record.holder:
        holder = record.holder
        item["Holder"] = {
            "M": {
                "Token": text(holder.token),
                "By": text(holder.by),
                "Host": text(holder.host),
                "Until": number(holder.until),
            }
        }
    return item


def _read(reader: ItemReader, run_id: str) -> StoredRun:
    return StoredRun(
        run=read_run(reader.text("Run"), run_id),
        progress=read_progress(reader.text("Progress"), run_id),
        state=reader.one_of(RunState, "State"),
        version=reader.number("Version"),
        saved_at=reader.number("SavedAt"),
        why=reader.text("Why", ""),
        on_hold=reader.flag("OnHold"),
        holder=_holder(reader.optional_map("Holder")),
        carried_on=reader.texts("CarriedOn"),
        stop_asked=reader.text("StopAsked", ""),
    )


def _holder(reader: ItemReader | None) -> Holder | None:
    if reader is None:
        return None
    return Holder(
        token=reader.text("Token"),
        by=reader.text("By"),
        host=reader.text("Host"),
        until=reader.number("Until"),
    )


def _expiry(run: Run) -> "Value":
    return number(epoch_seconds(run.started_at + KEEP_FOR))


def _run_id(run_id: str) -> str:
    return f"bulk#{run_id}"


def _chunk_id(run_id: str, place: int) -> str:
    return f"bulk#{run_id}#{place}"


def bulks_of(stack: DeployedStack, clock: Clock = now) -> DynamoBulks:
    """Return the store of the stack's bulk runs. `clock` says when a record is written."""
    return DynamoBulks(
        boto3.client("dynamodb"), control_table=stack.output("ControlTableName"), clock=clock
    )
