"""The failure groups that are open: one row of ControlTable, `groups`, with an attribute for each.

An attribute is named by the group's id (`f-1a2b3c4d`). All of them are one read, so that a
supervisor's pass asks once whether there is anything to do, and a handler once in some seconds
whether a failure's group is open. `Open` counts them, and is a part of the condition under which
one more is opened: the row stays far below an item's 400 KB whatever fails, and however often.

An attribute that is no group silences no other, and is replaced when its group is opened again. An
`Open` that is no number is counted anew.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roundsman.alerts.group import room_for
from roundsman.aws.dynamodb.codec import number, text
from roundsman.aws.dynamodb.item_reader import ItemReader, OnUnreadable, ignore_unreadable
from roundsman.aws.errors import ConditionFailed, aws_errors, row_of
from roundsman.errors import TryAgain, UnreadableRecord
from roundsman.model.failure import Group

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
    """GroupStore over one row."""

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
        """All of them, the oldest first. What is no group is left out: it must not silence them."""
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
        """Store a group that is not there; the group as it stands; None: there is no room.

        An attribute of its name that is no group is replaced.
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
                raise TryAgain(f"{group.id}: how many groups are open had to be counted") from None
            if group.id not in row:
                return None
            found = _read(group.id, row[group.id])
            return self._replace(group) if found is None else found
        return group

    def _count_anew(self, row: "Mapping[str, Value]") -> None:
        """Nothing could be opened or removed while the number of groups is none."""
        attributes = len(row.keys() - {ID, OPEN})
        try:
            with aws_errors("counting the failure groups anew"):
                self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(GROUPS)},
                    UpdateExpression="SET #open = :open",
                    ConditionExpression=IS_NO_NUMBER,
                    ExpressionAttributeNames={"#open": OPEN},
                    ExpressionAttributeValues={":open": number(attributes), ":n": text("N")},
                )
        except ConditionFailed:
            return  # another has

    def _replace(self, group: Group) -> Group:
        with aws_errors(f"opening the failure group {group.id} anew"):
            self._client.update_item(
                TableName=self._table,
                Key={ID: text(GROUPS)},
                UpdateExpression="SET #group = :group",
                ExpressionAttributeNames={"#group": group.id},
                ExpressionAttributeValues={":group": _value(group)},
            )
        return group

    def change(self, group: Group, *, seen: int) -> bool:
        """Store it on the version that was seen; False where another write came first.

        One whose answer was lost finds itself, and counts as written.
        """
        return self._write(
            f"storing the failure group {group.id}",
            "SET #group = :group",
            group.id,
            {":group": _value(group), ":seen": number(seen)},
            wanted=group,
        )

    def remove(self, group: Group) -> bool:
        """Forget it, if it is still at that version. False may also mean this very write."""
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
                self._count_anew(row)  # what was to be removed is, at the next look
            found = row.get(name)
            return wanted is not None and found is not None and _read(name, found) == wanted
        return True


def _value(group: Group) -> "Value":
    """An empty text, a zero, a false and a None are left out: absent means so."""
    texts = {
        "Workflow": group.workflow,
        "Step": group.step,
        "How": group.how,
        "Type": group.error_type,
        "Message": group.message,
        "OpenedBy": group.opened_by,
        "Agent": group.agent,
    }
    numbers = {
        "Since": group.since,
        "TellingUntil": group.telling_until,
        "ToldCount": group.told_count,
        "Count": group.count,
        "LastAt": group.last_at,
        "LookedAt": group.looked_at,
        "ChangedAt": group.changed_at,
        "LookAt": group.look_at,
        "ToldAt": group.told_at,
        "ClearSince": group.clear_since,
        "ClosedAt": group.closed_at,
    }
    flags = {"More": group.more, "Overflow": group.overflow}
    found: dict[str, Value] = {name: text(said) for name, said in texts.items() if said}
    found |= {name: number(value) for name, value in numbers.items() if value}
    found |= {name: {"BOOL": True} for name, flag in flags.items() if flag}
    found |= {"OpenedAt": number(group.opened_at), "Version": number(group.version)}
    return {"M": found}


def _miscounted(row: "Mapping[str, Value]") -> bool:
    """Whether the number of open groups is none."""
    return "N" not in row.get(OPEN, {"N": "0"})


def _read(name: str, value: "Value") -> Group | None:
    """The group; None for an attribute that is none."""
    try:
        return _group(name, value)
    except UnreadableRecord:
        return None


def _group(name: str, value: "Value") -> Group:
    reader = ItemReader(value.get("M", {}), GROUPS, f"{name}.")
    return Group(
        id=name,
        workflow=reader.text("Workflow"),
        step=reader.text("Step", ""),
        how=reader.text("How"),
        error_type=reader.text("Type", ""),
        message=reader.text("Message", ""),
        opened_by=reader.text("OpenedBy", ""),
        opened_at=reader.number("OpenedAt"),
        since=reader.number("Since", 0),
        agent=reader.text("Agent", ""),
        version=reader.number("Version"),
        telling_until=reader.number("TellingUntil", 0),
        told_at=reader.optional_number("ToldAt"),
        told_count=reader.number("ToldCount", 0),
        count=reader.number("Count", 0),
        more=reader.flag("More"),
        last_at=reader.number("LastAt", 0),
        looked_at=reader.number("LookedAt", 0),
        changed_at=reader.number("ChangedAt", 0),
        look_at=reader.number("LookAt", 0),
        clear_since=reader.optional_number("ClearSince"),
        closed_at=reader.optional_number("ClosedAt"),
        overflow=reader.flag("Overflow"),
    )
