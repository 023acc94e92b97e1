"""The open failure groups: the row `groups` of ControlTable, with one attribute per group.

The attribute's name is the group's id (`f-1a2b3c4d`). One read returns all groups: a supervisor's
pass reads them once to find whether there is anything to do, and a handler reads them once every
few seconds to find whether a failure's group is open. `Open` is the number of open groups. The
write that opens a group checks it in its condition, so the row stays far below the 400 KB limit of
an item, whatever fails and however often.

An attribute that is not a valid group does not affect the other groups, and is replaced when its
group is opened again. An `Open` that is not a number is recounted.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roundsman.alerts.group import room_for
from roundsman.aws.dynamodb.codec import FLAG, NUMBER, TEXT, RecordTable, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader, OnUnreadable, ignore_unreadable
from roundsman.aws.errors import ConditionFailed, aws_errors, row_of
from roundsman.errors import TryAgain, UnreadableRecord
from roundsman.model.failure import Group
from roundsman.model.field_table import Field, FieldTable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

ID = "ControlId"
GROUPS = "groups"
OPEN = "Open"
IS_NOT_OPEN = "attribute_not_exists(#group)"
THERE_IS_ROOM = "(attribute_not_exists(#open) OR (attribute_type(#open, :n) AND #open < :room))"
IS_AS_SEEN = "#group.#version = :seen"
IS_NO_NUMBER = "attribute_exists(#open) AND NOT attribute_type(#open, :n)"
NO_LIMIT = 1_000_000


class DynamoGroups:
    """GroupStore in one row of ControlTable."""

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

    def groups(self) -> list[Group]:
        """All open groups, the oldest first.

        An attribute that is not a valid group is reported and left out, so that the other groups
        still alert.
        """
        with aws_errors("reading the failure groups"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(GROUPS)}, ConsistentRead=True
            )
        row = found.get("Item", {})
        if _miscounted(row):
            self._on_unreadable(UnreadableRecord(GROUPS, OPEN, "is not a whole number"))
        read: list[Group] = []
        for name, value in row.items():
            if name in (ID, OPEN):
                continue
            try:
                read.append(_group(name, value))
            except UnreadableRecord as problem:
                self._on_unreadable(problem)
        return sorted(read, key=lambda group: (group.opened_at, group.id))

    def open(self, group: Group) -> Group | None:
        """Store the group if its id is not open yet, and return the group that is stored now.

        Returns None if there is no room. An attribute of that name that is not a valid group is
        replaced. Raises TryAgain after it has recounted an invalid `Open`.
        """
        room = room_for(group)
        try:
            with aws_errors(f"opening the failure group {group.id}"):
                self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(GROUPS)},
                    UpdateExpression="SET #group = :group ADD #open :one",
                    ConditionExpression=f"{IS_NOT_OPEN} AND {THERE_IS_ROOM}",
                    ExpressionAttributeNames={"#group": group.id, "#open": OPEN},
                    ExpressionAttributeValues={
                        ":group": _value(group),
                        ":one": number(1),
                        ":n": text("N"),
                        ":room": number(NO_LIMIT if room is None else room),
                    },
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ConditionFailed as refused:
            row = row_of(refused)
            if _miscounted(row):
                self._count_anew(row)
                raise TryAgain(
                    f"{group.id}: the invalid number of open groups was recounted"
                ) from None
            if group.id not in row:
                return None
            found = _read(group.id, row[group.id])
            return self._replace(group) if found is None else found
        return group

    def _count_anew(self, row: "Mapping[str, Value]") -> None:
        """Recount `Open`: while it is not a number, no group can be opened or removed."""
        attributes = len(row.keys() - {ID, OPEN})
        try:
            with aws_errors("recounting the failure groups"):
                self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(GROUPS)},
                    UpdateExpression="SET #open = :open",
                    ConditionExpression=IS_NO_NUMBER,
                    ExpressionAttributeNames={"#open": OPEN},
                    ExpressionAttributeValues={":open": number(attributes), ":n": text("N")},
                )
        except ConditionFailed:
            return  # another caller has recounted

    def _replace(self, group: Group) -> Group:
        with aws_errors(f"replacing the failure group {group.id}"):
            self._client.update_item(
                TableName=self._table,
                Key={ID: text(GROUPS)},
                UpdateExpression="SET #group = :group",
                ExpressionAttributeNames={"#group": group.id},
                ExpressionAttributeValues={":group": _value(group)},
            )
        return group

    def change(self, group: Group, *, seen: int) -> bool:
        """Store the group if its stored version is `seen`; False if another write came first.

        If the answer was lost and the client repeats the write, the repeat finds this group
        stored, and this returns True.
        """
        return self._write(
            f"storing the failure group {group.id}",
            "SET #group = :group",
            group.id,
            {":group": _value(group), ":seen": number(seen)},
            wanted=group,
        )

    def remove(self, group: Group) -> bool:
        """Remove the group if its stored version is still the given one. Returns False if not.

        False may also mean that this call removed the group and the answer was lost.
        """
        return self._write(
            f"removing the failure group {group.id}",
            "REMOVE #group ADD #open :less",
            group.id,
            {":seen": number(group.version), ":less": number(-1), ":n": text("N")},
            names={"#open": OPEN},
            condition=f"{IS_AS_SEEN} AND NOT ({IS_NO_NUMBER})",
        )

    def _write(
        self,
        doing: str,
        update: str,
        name: str,
        values: "dict[str, Value]",
        *,
        names: Mapping[str, str] | None = None,
        condition: str = IS_AS_SEEN,
        wanted: Group | None = None,
    ) -> bool:
        known = {"#group": name, "#version": "Version", **(names or {})}
        try:
            with aws_errors(doing):
                self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(GROUPS)},
                    UpdateExpression=update,
                    ConditionExpression=condition,
                    ExpressionAttributeNames=known,
                    ExpressionAttributeValues=values,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ConditionFailed as refused:
            row = row_of(refused)
            if OPEN in known.values() and _miscounted(row):
                self._count_anew(row)  # so that the next try can remove it
            found = row.get(name)
            return wanted is not None and found is not None and _read(name, found) == wanted
        return True


GROUP: "RecordTable[Group]" = FieldTable(
    Group,
    Field("Workflow", "workflow", TEXT),
    Field("Step", "step", TEXT, ""),
    Field("How", "how", TEXT),
    Field("Type", "error_type", TEXT, ""),
    Field("Message", "message", TEXT, ""),
    Field("OpenedBy", "opened_by", TEXT, ""),
    Field("OpenedAt", "opened_at", NUMBER),
    Field("Since", "since", NUMBER, 0),
    Field("Agent", "agent", TEXT, ""),
    Field("Version", "version", NUMBER),
    Field("TellingUntil", "alerting_until", NUMBER, 0),
    Field("ToldAt", "alerted_at", NUMBER, None),
    Field("ToldCount", "alerted_count", NUMBER, 0),
    Field("Count", "count", NUMBER, 0),
    Field("More", "more", FLAG, default=False),
    Field("LastAt", "last_at", NUMBER, 0),
    Field("LookedAt", "looked_at", NUMBER, 0),
    Field("ChangedAt", "changed_at", NUMBER, 0),
    Field("LookAt", "look_at", NUMBER, 0),
    Field("ClearSince", "clear_since", NUMBER, None),
    Field("ClosedAt", "closed_at", NUMBER, None),
    Field("Overflow", "overflow", FLAG, default=False),
)
"""The id is the attribute's name."""


def _value(group: Group) -> "Value":
    return {"M": GROUP.written(group)}


def _miscounted(row: "Mapping[str, Value]") -> bool:
    """Whether `Open` is not a number."""
    return "N" not in row.get(OPEN, {"N": "0"})


def _read(name: str, value: "Value") -> Group | None:
    """The group; None if the attribute is not a valid group."""
    try:
        return _group(name, value)
    except UnreadableRecord:
        return None


def _group(name: str, value: "Value") -> Group:
    reader = ItemReader(value.get("M", {}), GROUPS, f"{name}.")
    return GROUP.make(id=name, **GROUP.values(reader))
