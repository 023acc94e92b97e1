"""Corrections by path: what a change makes of a value, and which changes lead to another value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman.model.corrections import (
    Change,
    changes_json,
    corrected,
    differences,
    parse_path,
    path_text,
    read_changes,
    read_corrections,
    value_at,
)
from roundsman.model.json import Json, canonical_json

ORDER: Json = {"note": None, "lines": [{"sku": "a"}, {"sku": "b"}]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(("note",), "x"), {"note": "x", "lines": [{"sku": "a"}, {"sku": "b"}]}),
        (Change(("note",), removed=True), {"lines": [{"sku": "a"}, {"sku": "b"}]}),
        (Change(("lines", 1, "sku"), "c"), {"note": None, "lines": [{"sku": "a"}, {"sku": "c"}]}),
        (Change(("lines", 0), removed=True), {"note": None, "lines": [{"sku": "b"}]}),
        (
            Change(("lines", 2), "c"),
            {"note": None, "lines": [{"sku": "a"}, {"sku": "b"}, "c"]},
        ),
        (
            Change(("payer", "name"), "x"),
            {"note": None, "lines": [{"sku": "a"}, {"sku": "b"}], "payer": {"name": "x"}},
        ),
        (
            Change(("lines", 0, "sku"), removed=True),
            {"note": None, "lines": [{}, {"sku": "b"}]},
        ),
    ],
)
def test_a_change_sets_or_removes_the_value_at_its_path(change: Change, expected: Json) -> None:
    before = canonical_json(ORDER)
    assert corrected(ORDER, [(change,)]) == expected
    assert canonical_json(ORDER) == before, "the value itself is not changed"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (Change(("lines", 3), "c"), "lines[3]"),
        (Change(("lines", 2, "sku"), "c"), "lines[2].sku"),
        (Change(("lines", 2), removed=True), "lines[2]"),
        (Change(("lines", "sku"), "c"), "lines.sku"),
        (Change(("payer", "name"), removed=True), "payer.name"),
        (Change(("note", 0), "c"), "note[0]"),
        (Change(("note", "text"), "c"), "note.text"),
        (Change(("lines", 1, "size"), removed=True), "lines[1].size"),
    ],
)
def test_a_path_that_leads_nowhere_is_named(change: Change, path: str) -> None:
    with pytest.raises(ValueError, match="there is no field") as raised:
        corrected(ORDER, [(change,)])
    assert str(raised.value) == f"there is no field {path}"


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", 1.0]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b.c"]), inner)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from(["a", "b.c", "d"]), values)


@given(objects, objects)
def test_the_differences_lead_from_one_value_to_the_other(before: Json, after: Json) -> None:
    changes = tuple(differences(before, after))
    assert canonical_json(corrected(before, [changes])) == canonical_json(after)
    assert bool(changes) == (canonical_json(before) != canonical_json(after))
    assert read_changes(changes_json(changes)) == changes
    assert read_corrections([changes_json(changes)]) == (changes,)
    for change in changes:
        assert value_at(after, change.path) == (not change.removed, change.value)


def test_only_what_differs_is_changed() -> None:
    after: Json = {"lines": [{"sku": "a"}, {"sku": "c"}], "new": 1}
    assert [(path_text(change.path), change.removed) for change in differences(ORDER, after)] == [
        ("lines[1].sku", False),
        ("new", False),
        ("note", True),
    ]
    shorter: Json = {"note": None, "lines": [{"sku": "b"}]}
    assert list(differences(ORDER, shorter)) == [Change(("lines",), [{"sku": "b"}])]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("total", ("total",)),
        ("lines[0].sku", ("lines", 0, "sku")),
        ("a.b[1][2]", ("a", "b", 1, 2)),
    ],
)
def test_the_text_of_a_path(text: str, path: tuple[str | int, ...]) -> None:
    assert parse_path(text) == path
    assert path_text(path) == text


@pytest.mark.parametrize("text", ["", ".a", "a.", "[0]", "a[x]", "a=b", "a[0", "a..b"])
def test_what_is_not_the_text_of_a_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a path; write a path as in lines\[0\]"):
        parse_path(text)


def test_an_unusual_name_is_quoted_and_cut() -> None:
    assert path_text(("a b", 0)) == '"a b"[0]'
    assert len(path_text(("x" * 500,))) < 80


@pytest.mark.parametrize("value", [{}, "x", None, [{}]])
def test_what_is_not_a_list_of_corrections_is_refused(value: Json) -> None:
    with pytest.raises(ValueError, match="must be a list"):
        read_corrections(value)


@pytest.mark.parametrize("path", [("missing",), ("lines", 5), ("lines", "sku"), ("note", "text")])
def test_there_is_no_value_where_a_path_leads_nowhere(path: tuple[str | int, ...]) -> None:
    assert value_at(ORDER, path) == (False, None)
