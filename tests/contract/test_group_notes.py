"""Notes on failure groups as stored, and who looks at a group: two persons lose nothing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pytest

from roundsman.errors import UnreadableRecord
from roundsman.model.instants import MINUTE
from roundsman_console.aws.group_notes import (
    HERE_FOR,
    KEEP_FOR,
    MOST_BYTES,
    READ_EVERY,
    GroupNote,
    GroupNotes,
)
from roundsman_console.base.errors import InspectorError
from tests.contract.samples import NOW
from tests.contract.test_races import together
from tests.contract.worlds import World

GROUP, OTHER = "f-1a2b3c4d", "f-00000000"
TOLD = GroupNote(at=NOW, group=GROUP, by="amy", text="The bank is told.")


@dataclass
class Clock:
    now: int = NOW

    def __call__(self) -> int:
        return self.now


def notes_of(
    world: World, clock: Callable[[], int], problems: list[UnreadableRecord] | None = None
) -> GroupNotes:
    told = [] if problems is None else problems
    return GroupNotes(
        world.client,
        control_table=world.tables.control,
        clock=clock,
        on_unreadable=told.append,
    )


def row(world: World, key: str) -> dict[str, object]:
    found = world.client.get_item(
        TableName=world.tables.control, Key={"ControlId": {"S": key}}, ConsistentRead=True
    )
    return dict(found.get("Item", {}))


def test_notes_are_read_back_the_newest_first_and_of_their_group_only(world: World) -> None:
    notes = notes_of(world, Clock())
    assert notes.of(GROUP) == []
    later = replace(TOLD, at=NOW + 1, by="ben", text="<b>\x1b[31m It calls back.")
    for one in (TOLD, later, replace(TOLD, group=OTHER)):
        notes.add(one)
    assert notes.of(GROUP) == [later, TOLD]
    assert notes.of(OTHER) == [replace(TOLD, group=OTHER)]


def test_of_two_persons_who_write_at_once_both_notes_are_kept(atomic_world: World) -> None:
    notes = notes_of(atomic_world, Clock())
    wanted = [replace(TOLD, by=f"person {place}") for place in range(8)]
    together([partial(notes.add, one) for one in wanted])
    assert {one.by for one in notes.of(GROUP)} == {one.by for one in wanted}


def test_a_note_that_is_sent_twice_is_stored_once_and_later_again(world: World) -> None:
    notes = notes_of(world, Clock())
    notes.add(TOLD)
    notes.add(TOLD)
    assert notes.of(GROUP) == [TOLD]
    notes.add(replace(TOLD, by="ben"))
    notes.add(replace(TOLD, at=NOW + MINUTE))
    assert len(notes.of(GROUP)) == 3


def test_a_note_is_kept_for_90_days_and_the_next_write_removes_it(world: World) -> None:
    clock = Clock()
    notes = notes_of(world, clock)
    notes.add(TOLD)
    notes.add(replace(TOLD, group=OTHER))
    clock.now = NOW + KEEP_FOR - 1
    assert notes.of(GROUP) == [TOLD]
    clock.now = NOW + KEEP_FOR + 1
    assert notes.of(GROUP) == [], "DynamoDB removes a row with a delay"
    last = replace(TOLD, at=clock.now)
    notes.add(last)
    assert notes.of(GROUP) == [last]
    stored = row(world, f"notes#{GROUP}")
    assert len(stored) == 3, "its key, its expiry and one note"
    assert stored["ExpiresAt"] == {"N": str(-(-(clock.now + KEEP_FOR) // 1000))}
    assert {*row(world, "notes")} == {"ControlId", GROUP}


def test_the_groups_with_a_note_since_a_time_are_known_by_one_row(world: World) -> None:
    notes = notes_of(world, Clock())
    assert notes.noted_since(0) == []
    notes.add(TOLD)
    notes.add(replace(TOLD, group=OTHER, at=NOW + 5))
    assert notes.noted_since(NOW) == [OTHER, GROUP]
    assert notes.noted_since(NOW + 1) == [OTHER]


def test_more_notes_than_a_page_can_read_are_refused_and_none_is_lost(world: World) -> None:
    notes = notes_of(world, Clock())
    most = replace(TOLD, text="x" * 16_000)
    for place in range(4):
        notes.add(replace(most, at=NOW + place * MINUTE))
    with pytest.raises(InspectorError, match="has 4 notes, and 64 KB of notes on one group"):
        notes.add(replace(most, at=NOW + 4 * MINUTE))
    assert MOST_BYTES == 65_536
    notes.add(replace(TOLD, at=NOW + 5 * MINUTE))
    assert len(notes.of(GROUP)) == 5


def test_a_note_that_cannot_be_read_hides_no_other(world: World) -> None:
    problems: list[UnreadableRecord] = []
    notes = notes_of(world, Clock(), problems)
    notes.add(TOLD)
    world.client.update_item(
        TableName=world.tables.control,
        Key={"ControlId": {"S": f"notes#{GROUP}"}},
        UpdateExpression="SET #bad = :bad",
        ExpressionAttributeNames={"#bad": "1-bad"},
        ExpressionAttributeValues={":bad": {"M": {"At": {"S": "x"}}}},
    )
    assert notes.of(GROUP) == [TOLD]
    assert [str(one) for one in problems] == [
        f"the record notes#{GROUP} cannot be read: 1-bad.At is not a whole number"
    ]


def test_who_reads_a_group_is_known_for_minutes_and_written_once_a_minute(world: World) -> None:
    clock = Clock()
    notes = notes_of(world, clock)
    assert notes.readers(GROUP) == {}
    notes.reads(GROUP, "amy")
    notes.reads(GROUP, "ControlId")  # a person may be called so
    assert notes.readers(GROUP) == {"amy": NOW, "ControlId": NOW}
    assert notes.readers(OTHER) == {}
    clock.now = NOW + READ_EVERY - 1
    notes.reads(GROUP, "amy")
    assert notes.readers(GROUP)["amy"] == NOW
    clock.now = NOW + READ_EVERY
    notes.reads(GROUP, "amy")
    assert notes.readers(GROUP)["amy"] == clock.now
    clock.now = NOW + HERE_FOR
    assert notes.readers(GROUP) == {"amy": NOW + READ_EVERY}
    stored = row(world, f"notes#{GROUP}#readers")
    assert stored["ExpiresAt"] == {"N": str(-(-(NOW + READ_EVERY + HERE_FOR) // 1000))}
