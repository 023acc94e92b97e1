"""The rows of a task's history say who sent a command, by its own word and by AWS's."""

from roundsman.engine.history import refusal
from roundsman.model.events import Cancel, CommandSource
from tests.support.machine_world import begun, step

ASKED = CommandSource("c-1", "ann", "late", sender="AROAOPS:ann", forwarded_for="AROAFORGED:x")


def test_the_row_of_a_command_names_its_sender_and_no_other_row_does() -> None:
    world = begun(step("a"))
    rows = world.apply(Cancel(ASKED)).history
    [row] = [row for row in rows if row.kind == "cancel"]
    assert (row.by, row.command_id, row.sender) == ("ann", "c-1", "AROAOPS:ann")
    assert [one.sender for one in rows if one is not row] == [None] * (len(rows) - 1)


def test_the_row_of_a_refusal_names_the_sender_and_the_same_row_comes_again() -> None:
    row = refusal("cancel", ASKED, "it has ended", 3, 1_000)
    assert (row.kind, row.by, row.command_id) == ("refused", "ann", "c-1")
    assert row.sender == "AROAOPS:ann"
    assert (row.step, row.attempt, row.at) == (None, None, 1_000)
    assert row == refusal("cancel", ASKED, "it has ended", 3, 1_000)
