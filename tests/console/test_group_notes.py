"""`roundsman groups note`: a note on a failure group, and where it is shown."""

import pytest

from roundsman.errors import CallRefused
from roundsman.model.instants import second
from roundsman_console.acts.note import read_note
from roundsman_console.aws.group_notes import KEEP_FOR, GroupNote, GroupNotes
from roundsman_console.aws.stack import find_stack
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.base.limits import LONGEST_NOTE
from roundsman_console.facts.shift import reading
from tests.console.bulk_stories import archived
from tests.console.operators import DECLINED, Operator
from tests.console.schemas import assert_schema
from tests.moto.orders import order

TEXT = "The bank is told, and calls back at 09:00 UTC."
HOSTILE = "</td><script>alert(1)</script>\x1b]0;owned\x07\x1b[31m \u202e[red]x[/red] {{ 7 * 7 }}"


@pytest.fixture
def group(operator: Operator) -> str:
    """The group of two orders."""
    return archived(operator, 2)


def writes(operator: Operator, group: str, text: str, by: str = "amy") -> None:
    result = operator.types("groups", "note", group, text, "--as", by)
    assert result.exit_code == 0, result.output
    assert f"Done: the note on {group} is stored for 90 days." in result.stdout


def test_a_note_is_shown_with_its_group_and_in_the_shift_the_newest_first(
    operator: Operator, group: str
) -> None:
    assert operator.reads("groups", "show", group)["notes"] == []
    assert "Notes" not in operator.types("groups", "show", group).stdout
    writes(operator, group, TEXT)
    first = second(operator.world.clock())
    operator.world.pass_time(60)
    writes(operator, group, "It called back:\n\n  the rule is right.", by="ben")
    lines = operator.types("groups", "show", group).stdout.splitlines()
    place = lines.index("Notes:")
    assert lines[place + 1].endswith(" ben: It called back: the rule is right.")
    assert lines[place + 2] == f"{first} amy: {TEXT}"
    notes = operator.reads("groups", "show", group)["notes"]
    assert isinstance(notes, list)
    assert [(one["by"], one["group"]) for one in notes] == [("ben", group), ("amy", group)]
    assert (notes[1]["text"], notes[1]["at"][:19]) == (TEXT, first[:19])
    shift = operator.reads("shift", "--since", "1h")["notes"]
    in_lines = [{**one, "text": " ".join(one["text"].split())} for one in notes[::-1]]
    assert shift == in_lines, "as all of a shift, in the order of time, each in one line"
    assert "ben" in operator.types("shift").stdout
    operator.world.pass_time(5)
    assert "No note was written" in operator.types("shift", "--since", "1s").stdout


def test_a_note_is_printed_as_one_json_object(operator: Operator, group: str) -> None:
    result = operator.reads("groups", "note", group, TEXT, "--as", "amy")
    assert_schema("groups-note", result)
    note = result["note"]
    assert isinstance(note, dict)
    assert (note["group"], note["by"], note["text"]) == (group, "amy", TEXT)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("f-1", TEXT, "its id is f- and eight of 0-9 and a-f"),
        ("f-1a2b3c4dx", TEXT, "its id is f- and eight of 0-9 and a-f"),
        ("f-1a2b3c4d", " \n ", "The note is empty."),
        ("f-1a2b3c4d", "x" * 2_001, "The note has 2,001 characters; at most 2,000."),
        ("f-1a2b3c4d", "x" * 100_000, "The note has 100,000 characters; at most 2,000."),
    ],
)
def test_a_wrong_note_is_refused_in_words(
    operator: Operator, name: str, text: str, words: str
) -> None:
    result = operator.types("groups", "note", name, text)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())


def test_a_note_may_have_as_many_characters_as_the_help_says() -> None:
    assert len(read_note("ä" * LONGEST_NOTE)) == LONGEST_NOTE
    with pytest.raises(InvalidArgument):
        read_note("x" * (LONGEST_NOTE + 1))
    assert read_note(" a\r\n\tb  c\u2028d ") == "a\nb c\nd"
    assert read_note("\ud800") == "\\ud800", "what no file can have"


def test_a_hostile_note_and_name_are_inert(operator: Operator, group: str) -> None:
    writes(operator, group, HOSTILE, by="am\x1by")
    for words in (("groups", "show", group), ("shift",)):
        shown = operator.types(*words).stdout
        assert "<script>alert(1)</script>" in shown, words
        assert not {"\x1b", "\x07", "\u202e"} & {*shown}, words
        assert "[red]x[/red]" in shown, words


def test_a_masked_value_is_not_stored(operator: Operator) -> None:
    world = operator.world
    world.submit({**order("ord-1"), **DECLINED})
    world.run()
    group = str(world.task("ord-1").failure)
    token = DECLINED["paymentToken"]
    result = operator.types("groups", "note", group, f"The token {token} is right", "--json")
    assert token not in result.stdout
    assert "The token (masked) is right" in operator.types("groups", "show", group).stdout
    table = world.stack.outputs["ControlTableName"]
    assert token not in repr(world.dynamodb.scan(TableName=table)["Items"])


def test_the_notes_of_a_group_that_is_over_stay_until_they_expire(
    operator: Operator, group: str
) -> None:
    writes(operator, group, TEXT)
    for name in ("ord-1", "ord-2"):
        assert operator.asks("resubmit", name).exit_code == 0
    operator.world.pass_time(900)
    shown = operator.types("groups", "show", group)
    assert shown.exit_code == 0
    assert f"{group} is over: no order is in it now." in shown.stdout
    assert f"amy: {TEXT}" in shown.stdout
    over = operator.reads("groups", "show", group)
    assert_schema("groups-show", over)
    assert (over["group"], over["standing"]) == (group, "over")
    writes(operator, group, "It was the bank.")
    operator.world.clock.now += KEEP_FOR + 1
    assert "has no failure group" in operator.types("groups", "show", group).output


def test_a_shift_reads_the_notes_of_few_groups_whatever_their_number(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_NOTED", 2)
    table, client = operator.world.stack.outputs["ControlTableName"], operator.world.dynamodb
    many = {f"f-{place:08x}": {"N": "1"} for place in range(1_000)}
    client.put_item(TableName=table, Item={"ControlId": {"S": "notes"}, **many})
    for place in range(3):
        writes(operator, f"f-0000000{place}", TEXT)
        operator.world.clock.now += 1_000
    asked: list[str] = []

    def ask(params: dict[str, dict[str, dict[str, str]]], **_: object) -> None:
        asked.append(params["Key"]["ControlId"]["S"])

    stack = find_stack(None)
    stack.dynamodb.meta.events.register("provide-client-params.dynamodb.GetItem", ask)
    shift = reading.read_shift(stack, operator.world.clock() - 60_000)
    assert [one.group for one in shift.notes] == ["f-00000001", "f-00000002"]
    assert sum(key.startswith("notes") for key in asked) == 3
    assert "Of 3 failure groups with a note, the 2 with the newest were read." in shift.left_out


def test_notes_that_cannot_be_read_are_said_and_the_rest_of_the_shift_is_read(
    operator: Operator, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> list[GroupNote]:
        raise CallRefused("reading the notes: AccessDenied")

    monkeypatch.setattr(GroupNotes, "noted_since", refused)
    result = operator.types("shift")
    assert result.exit_code == 1
    assert "Not everything could be read. Notes" in " ".join(result.output.split())
    assert group in result.stdout
