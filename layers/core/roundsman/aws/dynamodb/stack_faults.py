"""The faults of the stack: the row `faults` of ControlTable.

Each write replaces the whole row, on the version that was read. A stack without faults has no row,
and a look at it costs one read.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import NUMBER, TEXT, Item, RecordTable, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader, OnUnreadable, ignore_unreadable
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.errors import UnreadableRecord
from roundsman.model.field_table import Field, FieldTable
from roundsman.model.stack_faults import FaultKind, StackFault, StackFaults, fault_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

ID = "ControlId"
FAULTS = "faults"
IS_NEW = f"attribute_not_exists({ID}) OR NOT attribute_type(Version, :n)"
IS_AS_SEEN = "Version = :seen"

FAULT: "RecordTable[StackFault]" = FieldTable(
    StackFault,
    Field("Kind", "kind", TEXT),
    Field("About", "about", TEXT),
    Field("Since", "since", NUMBER),
    Field("Amount", "amount", NUMBER, 0),
    Field("AlertingUntil", "alerting_until", NUMBER, 0),
    Field("AlertedAt", "alerted_at", NUMBER, None),
    Field("ClearSince", "clear_since", NUMBER, None),
)


class DynamoStackFaults:
    """StackFaultStore in one row of ControlTable."""

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        control_table: str,
        on_unreadable: OnUnreadable = ignore_unreadable,
    ) -> None:
        self._client = client
        self._table = control_table
        self._on_unreadable = on_unreadable

    def read(self) -> StackFaults:
        """The faults; none, with version 0, if there is no row.

        A part that cannot be read counts as absent, and the next write removes it: what is wrong is
        seen again.
        """
        with aws_errors("reading the faults of the stack"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(FAULTS)}, ConsistentRead=True
            )
        if "Item" not in found:
            return StackFaults()
        by_key = dict[str, StackFault]()
        for value in found["Item"].get("Faults", {}).get("M", {}).values():
            fault = self._fault(value)
            if fault is not None:
                by_key[fault_key(fault.kind, fault.about)] = fault
        return StackFaults(self._version(found["Item"]), by_key)

    def _version(self, row: "Mapping[str, Value]") -> int:
        try:
            return ItemReader(row, FAULTS).number("Version")
        except UnreadableRecord as problem:
            self._on_unreadable(problem)
            return 0

    def _fault(self, value: "Value") -> StackFault | None:
        try:
            fault = FAULT.read(ItemReader(value.get("M", {}), FAULTS, "Faults."))
            if fault.kind not in list(FaultKind):
                raise UnreadableRecord(FAULTS, "Faults.Kind", "is not a kind of fault")
        except UnreadableRecord as problem:
            self._on_unreadable(problem)
            return None
        return fault

    def write(self, faults: StackFaults, *, seen: int) -> bool:
        """Store the faults if the stored version is `seen`; False if another write came first.

        False may also mean that this write succeeded and its answer was lost. Its alerts are then
        sent when their lease is over.
        """
        stored: Item = {key: {"M": FAULT.written(each)} for key, each in faults.by_key.items()}
        condition, values = (
            (IS_AS_SEEN, {":seen": number(seen)}) if seen else (IS_NEW, {":n": text("N")})
        )
        try:
            with aws_errors("storing the faults of the stack"):
                self._client.put_item(
                    TableName=self._table,
                    Item={
                        ID: text(FAULTS),
                        "Version": number(faults.version),
                        "Faults": {"M": stored},
                    },
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                )
        except ConditionFailed:
            return False
        return True
