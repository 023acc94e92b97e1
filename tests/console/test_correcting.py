"""Corrections of a message's text: field by field, or as a whole."""

import json
from collections.abc import Sequence

import pytest

from roundsman_console.acts.set_aside.correct import corrected
from roundsman_console.base.errors import UncorrectableMessage
from roundsman_console.inspector import InvalidArgument

BODY = json.dumps({"a": 1, "lines": [{"quantity": 2}, {"quantity": 3}], "name": "x"})


def changed(*sets: str, removes: Sequence[str] = ()) -> object:
    return json.loads(corrected(BODY, whole=None, sets=sets, removes=removes))


@pytest.mark.parametrize(
    ("correction", "path", "value"),
    [
        ("name=Amy B.", "name", "Amy B."),
        ("name=7", "name", "7"),
        ("a=7", "a", 7),
        ('name="7"', "name", "7"),
        ("name=a=b", "name", "a=b"),
        ("name=", "name", ""),
        ('name={"b": [1]}', "name", {"b": [1]}),
        ("new=null", "new", None),
    ],
)
def test_a_field_is_set_to_json_or_to_text(correction: str, path: str, value: object) -> None:
    assert changed(correction) == {**json.loads(BODY), path: value}


def test_a_path_is_written_as_problems_write_it() -> None:
    found = changed("lines[1].quantity=9", "lines[2]={}", "to.the.end=1", removes=["lines[0]"])
    assert found == {
        **json.loads(BODY),
        "lines": [{"quantity": 9}, {}],
        "to": {"the": {"end": 1}},
    }


@pytest.mark.parametrize(
    ("sets", "removes", "says"),
    [
        (["a"], [], "'a' has no value; write it as path=value"),
        (["=1"], [], "is not a path"),
        (["a..b=1"], [], "is not a path"),
        (["lines[x]=1"], [], "is not a path"),
        (["lines[4]=1"], [], "there is no field lines[4]"),
        (["a.b=1"], [], "there is no field a.b"),
        (["a[0]=1"], [], "there is no field a[0]"),
        ([], ["nothing"], "there is no field nothing"),
        ([], ["lines[2]"], "there is no field lines[2]"),
        ([], ["no.way"], "there is no field no.way"),
    ],
)
def test_a_correction_that_cannot_be_made_is_one_sentence(
    sets: list[str], removes: list[str], says: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        corrected(BODY, whole=None, sets=sets, removes=removes)
    assert says in str(caught.value)


@pytest.mark.parametrize("body", ["{not json", "[]", "7"])
def test_what_is_no_object_can_only_be_replaced(body: str) -> None:
    with pytest.raises(UncorrectableMessage):
        corrected(body, whole=None, sets=["a=1"], removes=[])
    assert corrected(body, whole="{}", sets=[], removes=[]) == "{}"
    assert corrected(body, whole=None, sets=[], removes=[]) == body


def test_the_whole_is_a_text_and_names_no_file() -> None:
    assert corrected(BODY, whole="@order.json", sets=[], removes=[]) == "@order.json"
    assert corrected(BODY, whole="@-", sets=[], removes=[]) == "@-"
    with pytest.raises(InvalidArgument, match="Replace the whole message, or change its fields"):
        corrected(BODY, whole="{}", sets=["a=1"], removes=[])
