"""Storing bulk runs in ControlTable.

    bulk                          one attribute per run: who started it, and whether a supervisor
                                  has to look at it
    bulk-by#<principal>#<id>      the run as the principal planned it
    bulk-by#<principal>#<id>#<n>  a part of its orders, written before the run
    bulk-by#<principal>#<id>#request    the last request of the principal about the run, whoever
                                  started it
    bulk#<id>                     the progress and the state
    bulk#<id>#<n>                 a part of the orders that failed again or were refused

A person writes `bulk` and the rows with the own principal in their key, which is what IAM calls
`aws:userid`. IAM lets nobody write the key of another, so the key proves who started a run or asked
for something. The supervisor alone writes `bulk#...`. Each of its writes is conditional on the
version that was read, and increases it: if two supervisors carry out the same run, the write of the
second fails, so it sends nothing.

DynamoDB's time to live removes all rows of a run after KEEP_FOR.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from roundsman.aws.dynamodb.bulk_codec import (
    checked_text,
    notes_text,
    progress_text,
    read_notes,
    read_orders,
    read_progress,
    read_run,
    run_text,
)
from roundsman.aws.dynamodb.bulk_list import INDEX
from roundsman.aws.dynamodb.codec import Item, epoch_seconds, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader, OnUnreadable, ignore_unreadable
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.errors import UnreadableRecord
from roundsman.model.bulk_run import (
    BulkRecord,
    ListedRun,
    OrderNote,
    PlannedOrder,
    RequestAction,
    Run,
    RunRequest,
    RunState,
)
from roundsman.model.instants import SECOND
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

V = TypeVar("V")

ID = "ControlId"
KEEP_FOR = 90 * 24 * 3600 * SECOND
MOST_KEPT = 4
"""The number of plans, and of their parts, that an instance keeps in memory."""

NO_SUCH_ROW = f"attribute_not_exists({ID})"
VERSION_IS_AS_SEEN = "Version = :seen"
IS_LISTED = "attribute_exists(#run.#by)"
NOTHING_NEW_IS_ASKED = "#run.AskedAt = :asked"
NOTHING_IS_ASKED = "attribute_exists(#run.#by) AND attribute_not_exists(#run.AskedAt)"


class DynamoBulkRuns:
    """BulkRunStore in ControlTable. A plan never changes, so an instance keeps the last ones."""

    def __init__(self, client: "DynamoDBClient", *, control_table: str, clock: Clock) -> None:
        self._client = client
        self._table = control_table
        self._clock = clock
        self._runs: dict[str, Run] = {}
        self._parts: dict[str, list[PlannedOrder]] = {}

    # --- a person ----------------------------------------------------------------------------

    def begin(self, run: Run, orders: Sequence[PlannedOrder]) -> None:
        """Store the plan of a new run, and then add the run to the list of runs."""
        for first in range(0, len(orders), run.chunk):
            part = orders[first : first + run.chunk]
            item: Item = {
                ID: text(_part_id(run, first // run.chunk)),
                "Orders": text(" ".join(one.order for one in part)),
                "ExpiresAt": _expiry(run.started_at),
            }
            checked = checked_text(part)
            if checked is not None:
                item["Checked"] = text(checked)
            self._put(item, f"storing the plan of {run.id}")
        plan: Item = {
            ID: text(_plan_id(run.starter, run.id)),
            "Run": text(run_text(run)),
            "ExpiresAt": _expiry(run.started_at),
        }
        self._put(plan, f"storing the plan of {run.id}")
        self._list(run)

    def _put(self, item: Item, doing: str) -> None:
        with aws_errors(doing):
            self._client.put_item(TableName=self._table, Item=item)

    def _list(self, run: Run) -> None:
        """Add the run to the list of runs, and remove runs older than KEEP_FOR from it."""
        over = [one.run_id for one in self.listed() if one.started_at < run.started_at - KEEP_FOR]
        names = {f"#n{place}": name for place, name in enumerate([run.id, *over[:100]])}
        removed = ", ".join(list(names)[1:])
        entry: Item = {
            "At": number(run.started_at),
            "By": text(run.starter),
            "Open": {"BOOL": True},
        }
        with aws_errors(f"starting the bulk run {run.id}"):
            self._client.update_item(
                TableName=self._table,
                Key={ID: text(INDEX)},
                UpdateExpression="SET #n0 = :run" + (f" REMOVE {removed}" if removed else ""),
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={":run": {"M": entry}},
            )

    def ask(self, run_id: str, request: RunRequest, *, seen: int) -> bool:
        """Store a request, if nobody has asked for anything since `seen`.

        Without the condition, a stop could replace a later request that is carried out already, and
        be taken for an older one; or a request could replace a stop that is not carried out.
        """
        request = replace(request, at=max(request.at, seen + 1))
        item: Item = {
            ID: text(_request_id(request.sender, run_id)),
            "Action": text(request.action),
            "By": text(request.by),
            "Reason": text(request.reason),
            "At": number(request.at),
            "Anyway": {"BOOL": request.anyway},
            "ExpiresAt": _expiry(request.at),
        }
        self._put(item, f"asking to {request.action} the bulk run {run_id}")
        values: dict[str, Value] = {
            ":sender": text(request.sender),
            ":at": number(request.at),
            ":open": {"BOOL": True},
        }
        if seen:
            values[":asked"] = number(seen)
        try:
            with aws_errors(f"asking to {request.action} the bulk run {run_id}"):
                self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(INDEX)},
                    UpdateExpression=(
                        "SET #run.AskedBy = :sender, #run.AskedAt = :at, #run.#open = :open"
                    ),
                    ConditionExpression=_nothing_is_asked_since(seen),
                    ExpressionAttributeNames={"#run": run_id, "#by": "By", "#open": "Open"},
                    ExpressionAttributeValues=values,
                )
        except ConditionFailed:
            # This write may have succeeded, its response was lost, and the client repeated it.
            asked = (run_id, request.sender, request.at)
            return asked in ((one.run_id, one.asked_by, one.asked_at) for one in self.listed())
        return True

    def listed(self) -> list[ListedRun]:
        """Return all runs that are kept, the oldest first.

        An entry that cannot be read, or that a release before this one wrote, is left out.
        """
        with aws_errors("listing the bulk runs"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(INDEX)}, ConsistentRead=True
            )
        runs = []
        for name, value in found.get("Item", {}).items():
            with suppress(UnreadableRecord):
                if "M" in value:
                    runs.append(_entry(name, ItemReader(value["M"], INDEX, f"{name}.")))
        return sorted(runs, key=lambda one: (one.started_at, one.run_id))

    def newest(
        self, most: int, on_unreadable: OnUnreadable = ignore_unreadable
    ) -> list[BulkRecord]:
        """Return at most `most` runs, the newest first.

        Those that cannot be read are left out; `on_unreadable` is called for each of them.
        """
        found = list[BulkRecord]()
        for one in self.listed()[::-1][:most]:
            try:
                record = self.load(one.run_id, one.starter)
            except UnreadableRecord as problem:
                on_unreadable(problem)
                continue
            found += [] if record is None else [record]
        return found

    def find(self, run_id: str) -> tuple[BulkRecord, bool] | None:
        """Return the run, and whether a supervisor has to look at it; None if there is no such run.

        Raises UnreadableRecord.
        """
        known = next((one for one in self.listed() if one.run_id == run_id), None)
        record = None if known is None else self.load(run_id, known.starter)
        return None if known is None or record is None else (record, known.is_open)

    def notes(self, record: BulkRecord) -> list[OrderNote]:
        """Return the orders that failed again or were refused, in the order of these results."""
        found: list[OrderNote] = []
        for place in range(record.lists):
            row = _notes_id(record.run.id, place)
            reader = self._row(row, f"reading the results of {record.run.id}")
            if reader is not None:
                found += read_notes(reader.text("Notes"), row)
        return found

    # --- a supervisor ------------------------------------------------------------------------

    def open_runs(self) -> list[ListedRun]:
        """Return the runs that a supervisor has to look at, the oldest first."""
        return [one for one in self.listed() if one.is_open]

    def load(self, run_id: str, starter: str) -> BulkRecord | None:
        """Return the run; None if this starter has planned no such run. Raises UnreadableRecord."""
        run = self._runs.get(f"{starter}#{run_id}") or self._plan(run_id, starter)
        if run is None:
            return None
        record = _run_id(run_id)
        reader = self._row(record, f"reading the bulk run {run_id}")
        return BulkRecord(run) if reader is None else _read(reader, run, record)

    def _plan(self, run_id: str, starter: str) -> Run | None:
        row = _plan_id(starter, run_id)
        reader = self._row(row, f"reading the plan of {run_id}")
        if reader is None:
            return None
        run = read_run(reader.text("Run"), row, run_id, starter)
        _keep(self._runs, f"{starter}#{run_id}", run)
        return run

    def orders(self, run: Run, first: int, most: int) -> list[PlannedOrder]:
        """Return at most `most` orders of the plan, from index `first` on.

        The result ends at the end of a part, so it may be shorter. Raises UnreadableRecord if the
        part is missing or has another number of orders.
        """
        place = first // run.chunk
        row = _part_id(run, place)
        part = self._parts.get(row)
        if part is None:
            reader = self._row(row, f"reading the plan of {run.id}")
            if reader is None:
                raise UnreadableRecord(row, "Orders", "is missing")
            part = read_orders(reader.text("Orders").split(" "), reader.text("Checked", ""), row)
            if len(part) != min(run.chunk, run.selected - place * run.chunk):
                raise UnreadableRecord(row, "Orders", "has another number of orders than the plan")
            _keep(self._parts, row, part)
        start = first - place * run.chunk
        return part[start : start + most]

    def request(self, run: ListedRun) -> RunRequest | None:
        """Return the last request about a run; None if there is none. Raises UnreadableRecord."""
        if run.asked_by is None:
            return None
        row = _request_id(run.asked_by, run.run_id)
        reader = self._row(row, f"reading a request about {run.run_id}")
        if reader is None:
            return None
        return RunRequest(
            action=reader.one_of(RequestAction, "Action"),
            by=reader.text("By"),
            sender=run.asked_by,
            reason=reader.text("Reason"),
            at=reader.number("At"),
            anyway=reader.flag("Anyway"),
        )

    def save(self, record: BulkRecord, notes: Sequence[OrderNote] = ()) -> BulkRecord | None:
        """Store the progress and `notes` in one transaction, if the version is unchanged."""
        run_id = record.run.id
        wanted = replace(
            record,
            version=record.version + 1,
            saved_at=self._clock(),
            lists=record.lists + bool(notes),
        )
        expires = _expiry(record.run.started_at)
        write: TransactWriteItemTypeDef = {
            "Put": {
                "TableName": self._table,
                "Item": {**_item(wanted), "ExpiresAt": expires},
                "ConditionExpression": NO_SUCH_ROW,
            }
        }
        if record.version:
            write["Put"]["ConditionExpression"] = VERSION_IS_AS_SEEN
            write["Put"]["ExpressionAttributeValues"] = {":seen": number(record.version)}
        try:
            with aws_errors(f"storing the bulk run {run_id}"):
                if notes:
                    row: Item = {
                        ID: text(_notes_id(run_id, record.lists)),
                        "Notes": text(notes_text(notes)),
                        "ExpiresAt": expires,
                    }
                    put: TransactWriteItemTypeDef = {"Put": {"TableName": self._table, "Item": row}}
                    self._client.transact_write_items(TransactItems=[write, put])
                else:
                    self._client.put_item(**write["Put"])
        except ConditionFailed:
            # This write may have succeeded, its response was lost, and the client repeated it.
            return wanted if self._is_stored(wanted) else None
        return wanted

    def _is_stored(self, wanted: BulkRecord) -> bool:
        found = self.load(wanted.run.id, wanted.run.starter)
        return found is not None and _writer(found) == _writer(wanted)

    def close(self, run: ListedRun) -> None:
        """Remove the run from `open_runs`, unless there is a newer request."""
        values: dict[str, Value] = {":open": {"BOOL": False}}
        if run.asked_at:
            values[":asked"] = number(run.asked_at)
        try:
            with aws_errors(f"ending the bulk run {run.run_id}"):
                self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(INDEX)},
                    UpdateExpression="SET #run.#open = :open",
                    ConditionExpression=_nothing_is_asked_since(run.asked_at),
                    ExpressionAttributeNames={"#run": run.run_id, "#by": "By", "#open": "Open"},
                    ExpressionAttributeValues=values,
                )
        except ConditionFailed:
            return  # somebody asked for something meanwhile

    def _row(self, row: str, doing: str) -> ItemReader | None:
        with aws_errors(doing):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(row)}, ConsistentRead=True
            )
        return ItemReader(found["Item"], row) if "Item" in found else None


def _nothing_is_asked_since(seen: int) -> str:
    return f"{IS_LISTED} AND {NOTHING_NEW_IS_ASKED}" if seen else NOTHING_IS_ASKED


def _entry(run_id: str, reader: ItemReader) -> ListedRun:
    return ListedRun(
        run_id,
        reader.text("By"),
        reader.number("At"),
        reader.text("AskedBy", "") or None,
        reader.number("AskedAt", 0),
        is_open=reader.flag("Open"),
    )


def _writer(record: BulkRecord) -> tuple[int, str, int]:
    return record.version, record.carrier, record.saved_at


def _item(record: BulkRecord) -> Item:
    item: Item = {
        ID: text(_run_id(record.run.id)),
        "Version": number(record.version),
        "State": text(record.state),
        "SavedAt": number(record.saved_at),
        "Progress": text(progress_text(record.progress)),
        "Carrier": text(record.carrier),
        "CarriedUntil": number(record.carried_until),
        "AskedAt": number(record.asked_at),
        "Lists": number(record.lists),
    }
    if record.requests:
        item["Requests"] = {"L": [text(one) for one in record.requests]}
    if record.why:
        item["Why"] = text(record.why)
    if record.on_hold:
        item["OnHold"] = {"BOOL": True}
    if record.anyway:
        item["Anyway"] = {"BOOL": True}
    return item


def _read(reader: ItemReader, run: Run, record: str) -> BulkRecord:
    return BulkRecord(
        run=run,
        progress=read_progress(reader.text("Progress"), record),
        state=reader.one_of(RunState, "State"),
        version=reader.number("Version"),
        saved_at=reader.number("SavedAt"),
        why=reader.text("Why", ""),
        on_hold=reader.flag("OnHold"),
        carrier=reader.text("Carrier", ""),
        carried_until=reader.number("CarriedUntil", 0),
        requests=reader.texts("Requests"),
        asked_at=reader.number("AskedAt", 0),
        anyway=reader.flag("Anyway"),
        lists=reader.number("Lists", 0),
    )


def _keep(kept: dict[str, V], key: str, value: V) -> None:
    """Keep a value, and forget the oldest if there are more than MOST_KEPT."""
    kept[key] = value
    if len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]


def _expiry(at: int) -> "Value":
    return number(epoch_seconds(at + KEEP_FOR))


def _run_id(run_id: str) -> str:
    return f"bulk#{run_id}"


def _notes_id(run_id: str, place: int) -> str:
    return f"bulk#{run_id}#{place}"


def _plan_id(principal: str, run_id: str) -> str:
    return f"bulk-by#{principal}#{run_id}"


def _part_id(run: Run, place: int) -> str:
    return f"{_plan_id(run.starter, run.id)}#{place}"


def _request_id(principal: str, run_id: str) -> str:
    return f"{_plan_id(principal, run_id)}#request"
