"""What a person means who edits a message that is shown with masked values."""

import json

import pytest

from roundsman.model.masked_values import MASK
from roundsman_console.acts.set_aside.edits import (
    DiffLine,
    difference,
    edited_body,
    laid_out,
    masked_changes,
)
from roundsman_console.base.errors import InvalidArgument

REAL = {"orderId": "o-1", "token": "tok_1", "lines": [{"sku": "A", "card": "c1"}, {"sku": "B"}]}
SHOWN = {**REAL, "token": MASK, "lines": [{"sku": "A", "card": MASK}, {"sku": "B"}]}


def edited(**changes: object) -> object:
    text = edited_body(json.dumps({**SHOWN, **changes}), json.dumps(SHOWN), json.dumps(REAL))
    return json.loads(text)


def test_a_message_that_is_not_edited_is_the_message_itself() -> None:
    real = json.dumps(REAL)
    sent_by_a_browser = laid_out(json.dumps(SHOWN)).replace("\n", "\r\n")
    assert edited_body(sent_by_a_browser, json.dumps(SHOWN), real) == real


def test_masked_values_keep_what_they_stand_for() -> None:
    assert edited(orderId="o-2") == {**REAL, "orderId": "o-2"}


def test_a_masked_value_may_be_replaced() -> None:
    assert edited(token="tok_2") == {**REAL, "token": "tok_2"}


def test_a_field_may_be_added_and_removed() -> None:
    assert edited(lines=[], colour="red") == {**REAL, "lines": [], "colour": "red"}


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"other": MASK}, "other is masked"),
        ({"lines": [{"sku": "A2", "card": MASK}, {"sku": "B"}]}, r"lines\[0\].card is masked"),
        ({"lines": [{"sku": "B"}, {"sku": "A", "card": MASK}]}, r"lines\[1\].card is masked"),
        ({"lines": [{"sku": "A", "card": MASK}]}, r"lines\[0\].card is masked"),
        ({"orderId": {"inner": [MASK]}}, r"orderId.inner\[0\] is masked"),
    ],
)
def test_a_mask_whose_value_would_be_a_guess_is_refused(
    changes: dict[str, object], where: str
) -> None:
    with pytest.raises(InvalidArgument, match=where):
        edited(**changes)


def test_text_that_is_not_json_is_replaced_as_a_whole() -> None:
    assert edited_body("{}\r\n", "{not", "{not") == "{}\n"
    assert edited_body("{not", "{not", "{not") == "{not"


def test_a_correction_that_is_not_json_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="is not JSON"):
        edited_body("{", json.dumps(SHOWN), json.dumps(REAL))


def test_control_characters_are_escaped_and_mean_the_same() -> None:
    body = json.dumps({"name": "a\x1b\u202eb"}, ensure_ascii=False)
    assert json.loads(laid_out(body)) == {"name": "a\x1b\u202eb"}
    assert "\x1b" not in laid_out(body)
    assert "\u202e" not in laid_out(body)
    assert laid_out("{not\x1b\n}") == "{not?\n}"


def test_a_difference_has_the_changed_lines_and_those_around_them() -> None:
    before = laid_out(json.dumps({f"f{n}": n for n in range(20)}))
    found = difference(before, before.replace('"f3": 3', '"f3": "x"').replace('"f18": 18', ""))
    assert DiffLine("removed", '  "f3": 3,') in found
    assert DiffLine("added", '  "f3": "x",') in found
    assert [one for one in found if one.kind == "cut"] == [DiffLine("cut", "…")]
    assert len(found) < 20
    assert difference(before, before) == []


def test_a_change_of_a_masked_value_is_a_change_without_a_difference() -> None:
    assert masked_changes([], "a", "b")
    assert not masked_changes([], "a", "a")
