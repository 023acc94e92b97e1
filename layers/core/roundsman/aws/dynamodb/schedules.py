"""The schedules of recurring orders, in three rows of ControlTable.

    schedules                  the pauses: one attribute a target
    schedule#<name>            what became of the runs of one schedule; it expires KEEP_FOR later
    bulk                       beside the bulk runs: `queue#<name>`, the version of a record with
                               orders that wait. Supervisors read this row anyway.

The mark is set after the record is stored, and removed only if it is as it was read before the
record was read. So a record with orders that wait has a mark, or its message comes again.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.bulk_list import INDEX, QUEUE
from roundsman.aws.dynamodb.codec import RecordTable, expiry, number, table_of, text
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.errors import UnreadableRecord
from roundsman.model.field_table import Field, FieldTable, Kind
from roundsman.model.instants import DAY
from roundsman.model.schedules import Pause, ScheduleRecord, SkippedRun

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

ID = "ControlId"
PAUSES = "schedules"
KEEP_FOR = 400 * DAY
IS_NEW = f"attribute_not_exists({ID}) OR NOT attribute_type(Version, :n)"
IS_AS_SEEN = "Version = :seen"
IS_AS_READ = "#mark = :version"

PAUSE = table_of(Pause, Pause, without=("target",))
SKIPPED = table_of(SkippedRun, SkippedRun)
SKIPPED_LIST: "Kind[ItemReader, Value, tuple[SkippedRun, ...]]" = Kind(
    "list of runs",
    lambda reader, name: tuple(SKIPPED.read(one) for one in reader.list_of_maps(name)),
    lambda runs: {"L": [{"M": SKIPPED.written(one)} for one in runs]},
)
RECORD: "RecordTable[ScheduleRecord]" = FieldTable(
    ScheduleRecord,
    *table_of(ScheduleRecord, ScheduleRecord, without=("name", "skipped")).fields,
    Field("Skipped", "skipped", SKIPPED_LIST, ()),
)


class DynamoSchedules:
    """ScheduleStore in ControlTable."""

    def __init__(self, client: "DynamoDBClient", *, control_table: str) -> None:
        self._client = client
        self._table = control_table

    def pauses(self) -> Sequence[Pause]:
        """Return all pauses. One that cannot be read is a pause without a known reason."""
        return [_pause(name, value) for name, value in self._row(PAUSES).items() if name != ID]

    def pause(self, pause: Pause) -> None:
        """Store a pause, in place of the one of its target."""
        self._update(
            PAUSES, "SET #mark = :pause", pause.target, {":pause": {"M": PAUSE.written(pause)}}
        )

    def resume(self, target: str) -> None:
        """Remove the pause of a target, if there is one."""
        self._update(PAUSES, "REMOVE #mark", target)

    def read(self, schedule: str) -> ScheduleRecord:
        """Return what is stored of a schedule, read consistently. Raises UnreadableRecord."""
        row = _row_id(schedule)
        item = self._row(row)
        if not item:
            return ScheduleRecord(schedule)
        return RECORD.make(name=schedule, **RECORD.values(ItemReader(item, row)))

    def write(self, record: ScheduleRecord, *, now: int) -> bool:
        """Store the record at `now` (epoch ms), if the stored version is the one before.

        False if it is not: another write came first, or the answer to this one was lost.
        """
        seen = record.version - 1
        condition, values = (
            (IS_AS_SEEN, {":seen": number(seen)}) if seen else (IS_NEW, {":n": text("N")})
        )
        try:
            with aws_errors(f"storing the runs of {record.name}"):
                self._client.put_item(
                    TableName=self._table,
                    Item={
                        ID: text(_row_id(record.name)),
                        **RECORD.written(record),
                        "ExpiresAt": expiry(now + KEEP_FOR),
                    },
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                )
        except ConditionFailed:
            return False
        return True

    def mark(self, record: ScheduleRecord) -> None:
        """Let the supervisor look at the orders of the schedule that wait."""
        version = {":version": number(record.version)}
        self._update(INDEX, "SET #mark = :version", QUEUE + record.name, version)

    def unmark(self, schedule: str, version: int) -> None:
        """Remove the mark of a schedule, if it has this version."""
        with suppress(ConditionFailed):
            self._update(
                INDEX, "REMOVE #mark", QUEUE + schedule, {":version": number(version)}, IS_AS_READ
            )

    def _row(self, key: str) -> "Mapping[str, Value]":
        with aws_errors("reading schedules"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(key)}, ConsistentRead=True
            )
        return found.get("Item", {})

    def _update(
        self,
        key: str,
        update: str,
        name: str,
        values: "Mapping[str, Value] | None" = None,
        condition: str = "",
    ) -> None:
        given = {"ExpressionAttributeValues": values, "ConditionExpression": condition}
        store: Callable[..., object] = self._client.update_item
        with aws_errors("storing schedules"):
            store(
                TableName=self._table,
                Key={ID: text(key)},
                UpdateExpression=update,
                ExpressionAttributeNames={"#mark": name},
                **{option: value for option, value in given.items() if value},
            )


def _row_id(schedule: str) -> str:
    return f"schedule#{schedule}"


def _pause(target: str, value: "Value") -> Pause:
    try:
        reader = ItemReader(value.get("M", {}), PAUSES, f"{target}.")
        return PAUSE.make(target=target, **PAUSE.values(reader))
    except UnreadableRecord:
        return Pause(target, 0, "somebody", "the pause cannot be read: resume it, or pause again")
