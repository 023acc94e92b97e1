"""The notes on failure groups, and who looks at a group now, in ControlTable.

    notes                     when the last note on each group was written: one attribute a group
    notes#<group>             the notes on the group: one attribute a note
    notes#<group>#readers     when each person read the page of the group: one attribute a person

A write sets its own attribute only, so two persons never overwrite each other. Each row is read by
its key. DynamoDB's time to live removes the rows of a group KEEP_FOR after its last note.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from roundsman.aws.dynamodb.codec import NUMBER, TEXT, RecordTable, expiry, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader, OnUnreadable, ignore_unreadable
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.errors import UnreadableRecord
from roundsman.model.field_table import Field, FieldTable
from roundsman.model.instants import MINUTE
from roundsman.model.json import sha256
from roundsman.ports import Clock
from roundsman_console.base.constraints import GroupId
from roundsman_console.base.errors import InspectorError
from roundsman_console.base.result import EPOCH_MS, Shown

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

KEEP_FOR = 90 * 24 * 60 * MINUTE
"""For how long a note is kept, in ms: as long as a bulk run."""
MOST_BYTES = 64 * 1024
"""The size of the notes on one group. Each reading of its page reads them all."""
READ_EVERY = MINUTE
"""From one write that a person reads a group to the next one, in ms, at least."""
HERE_FOR = 3 * READ_EVERY
"""A person who has read a group within this time, in ms, looks at it now."""

INDEX = "notes"
_ID, _EXPIRES = "ControlId", "ExpiresAt"
_MOST_REMOVED = 100  # outdated entries that one write removes
_PERSON = "by "  # begins the attribute of a person, whose name may be that of another attribute
_WAS_NOT_WRITTEN = "attribute_not_exists(#person) OR #person <= :before"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNote:
    """A note of a person on a failure group."""

    at: Annotated[int, Shown("At", EPOCH_MS)]
    group: GroupId
    by: str
    """Who wrote it, as they say themselves."""
    text: Annotated[str, Shown("Note")]


NOTE: "RecordTable[GroupNote]" = FieldTable(
    GroupNote,
    Field("At", "at", NUMBER),
    Field("By", "by", TEXT),
    Field("Text", "text", TEXT),
)


class GroupNotes:
    """The notes on the failure groups of a stack."""

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        control_table: str,
        clock: Clock,
        on_unreadable: OnUnreadable = ignore_unreadable,
    ) -> None:
        self._client = client
        self._table = control_table
        self._clock = clock
        self._on_unreadable = on_unreadable

    def of(self, group: str) -> Sequence[GroupNote]:
        """Return the notes on a group, the newest first."""
        return self._kept(group, self._row(_notes_id(group)))

    def add(self, note: GroupNote) -> None:
        """Store a note. The same note once more within its minute is stored once.

        Raises InspectorError if the notes on the group would become larger than MOST_BYTES.
        """
        row = self._row(_notes_id(note.group))
        kept = self._kept(note.group, row)
        size = sum(len(f"{one.by}{one.text}".encode()) for one in (*kept, note))
        if size > MOST_BYTES:
            raise InspectorError(
                f"{note.group} has {len(kept)} notes, and {MOST_BYTES // 1024} KB of notes on one "
                "group is the most that is kept. Write this one where your team writes reports."
            )
        oldest, expires = note.at - KEEP_FOR, expiry(note.at + KEEP_FOR)
        noted = self._row(INDEX)
        self._set(
            INDEX,
            {note.group: number(note.at)},
            (name for name, value in noted.items() if 0 < _number(value) < oldest),
        )
        own = f"{note.at // MINUTE}-{sha256(note.by + ' ' + note.text)[:16]}"
        self._set(
            _notes_id(note.group),
            {own: {"M": NOTE.written(note)}, _EXPIRES: expires},
            (name for name, value in row.items() if 0 < _written_at(value) < oldest),
        )

    def noted_since(self, since: int) -> Sequence[str]:
        """Return the groups with a note since `since` (epoch ms), that of the newest first."""
        at = {name: _number(value) for name, value in self._row(INDEX).items()}
        found = [name for name, instant in at.items() if instant >= since]
        return sorted(found, key=lambda name: -at[name])

    def readers(self, group: str) -> Mapping[str, int]:
        """Return who looks at a group now: when each has read it (epoch ms), by their names."""
        least = self._clock() - HERE_FOR
        at = {name: _number(value) for name, value in self._row(_readers_id(group)).items()}
        return {
            name.removeprefix(_PERSON): instant
            for name, instant in at.items()
            if name.startswith(_PERSON) and instant > least
        }

    def reads(self, group: str, person: str) -> None:
        """Store that a person reads a group now, unless that was stored within READ_EVERY."""
        at = self._clock()
        try:
            with aws_errors(f"storing who reads {group}"):
                self._client.update_item(
                    TableName=self._table,
                    Key={_ID: text(_readers_id(group))},
                    UpdateExpression="SET #person = :at, #expires = :expires",
                    ConditionExpression=_WAS_NOT_WRITTEN,
                    ExpressionAttributeNames={"#person": _PERSON + person, "#expires": _EXPIRES},
                    ExpressionAttributeValues={
                        ":at": number(at),
                        ":expires": expiry(at + HERE_FOR),
                        ":before": number(at - READ_EVERY),
                    },
                )
        except ConditionFailed:
            return

    def _set(self, key: str, values: "Mapping[str, Value]", outdated: Iterable[str]) -> None:
        """Set these attributes of a row, and remove outdated ones."""
        removed = [*islice((name for name in outdated if name not in values), _MOST_REMOVED)]
        update = "SET " + ", ".join(f"#n{place} = :v{place}" for place in range(len(values)))
        if removed:
            update += " REMOVE " + ", ".join(f"#r{place}" for place in range(len(removed)))
        with aws_errors("storing a note"):
            self._client.update_item(
                TableName=self._table,
                Key={_ID: text(key)},
                UpdateExpression=update,
                ExpressionAttributeNames={
                    **{f"#n{place}": name for place, name in enumerate(values)},
                    **{f"#r{place}": name for place, name in enumerate(removed)},
                },
                ExpressionAttributeValues={
                    f":v{place}": value for place, value in enumerate(values.values())
                },
            )

    def _kept(self, group: str, row: "Mapping[str, Value]") -> Sequence[GroupNote]:
        least, found = self._clock() - KEEP_FOR, list[GroupNote]()
        for name, value in row.items():
            if "M" not in value:
                continue
            try:
                reader = ItemReader(value["M"], _notes_id(group), f"{name}.")
                found.append(NOTE.make(group=group, **NOTE.values(reader)))
            except UnreadableRecord as problem:
                self._on_unreadable(problem)
        return sorted((one for one in found if one.at > least), key=lambda one: -one.at)

    def _row(self, key: str) -> "Mapping[str, Value]":
        with aws_errors("reading the notes on failure groups"):
            found = self._client.get_item(
                TableName=self._table, Key={_ID: text(key)}, ConsistentRead=True
            )
        return {name: value for name, value in found.get("Item", {}).items() if name != _ID}


def _number(value: "Value") -> int:
    """Return a whole number; 0 for another value, which is of no time."""
    return int(found) if (found := value.get("N", "")).isdecimal() else 0


def _written_at(value: "Value") -> int:
    return _number(value.get("M", {}).get("At", {}))


def _notes_id(group: str) -> str:
    return f"{INDEX}#{group}"


def _readers_id(group: str) -> str:
    return f"{_notes_id(group)}#readers"
