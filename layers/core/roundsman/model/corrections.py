"""Corrections: changes of a task's input, by path.

The order row stays as it was submitted. A task has the list of its corrections, and each correction
is a list of changes. The input of a task is the order with the changes applied in their order.

The text of a path is that of the problems of a rejected message: `lines[0].quantity`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from roundsman.model.checks import quoted_name
from roundsman.model.json import Json, canonical_json, parse_json, size_in_bytes

LARGEST_INPUT = 200 * 1024  # bytes of JSON
DEEPEST_INPUT = 20  # levels; a request contains the input some levels deep

Path: TypeAlias = tuple[str | int, ...]
"""The names of fields and the indices of list items that lead to a value."""

_PATH = re.compile(r"[^.\[\]=]+(?:\[\d{1,6}\])*(?:\.[^.\[\]=]+(?:\[\d{1,6}\])*)*")
_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the input: a new value at a path, or the removal of the value."""

    path: Path
    value: Json = None
    """The new value; None also for a removal."""
    removed: bool = False
    """Whether the value is removed."""
    typed: str | None = field(default=None, compare=False, repr=False)
    """The text that a person typed for the value; None if it was given as JSON. It is not stored:
    `submission.corrections.as_meant` reads it before a correction is sent."""


Correction: TypeAlias = tuple[Change, ...]


def parse_path(text: str) -> Path:
    """Return the path with this text. Raises ValueError if it is not the text of a path."""
    if not _PATH.fullmatch(text):
        raise ValueError(f"{text!r} is not a path; write a path as in lines[0].quantity")
    return tuple(name or int(place) for name, place in _PART.findall(text))


def typed_change(text: str) -> Change:
    """Return the change that a person types as `path=value`: JSON, or else a text.

    Raises ValueError if the text has no value, or a path that is not one.
    """
    path, given, typed = text.partition("=")
    if not given:
        raise ValueError(f"{path!r} has no value; write it as path=value")
    try:
        value = parse_json(typed)
    except ValueError:
        value = typed  # so that a text needs no quotes
    return Change(parse_path(path), value, typed=typed)


def changes_of(sets: Mapping[str, Json], removes: Iterable[str]) -> Correction:
    """Return the changes that set the values at these paths and remove the others.

    Raises ValueError for a text that is not a path.
    """
    return (
        *(Change(parse_path(path), value) for path, value in sets.items()),
        *(Change(parse_path(path), removed=True) for path in removes),
    )


def path_text(path: Path) -> str:
    """Return the text of a path; names of fields are quoted and cut if they are unusual."""
    parts = (f"[{key}]" if isinstance(key, int) else f".{quoted_name(key)}" for key in path)
    return "".join(parts).removeprefix(".")


def corrected(value: Json, corrections: Iterable[Correction]) -> Json:
    """Return the value with the corrections; the value itself if there are none.

    Objects that lead to a new field are created, and a list may get one more item at its end.
    Raises ValueError if a path leads nowhere.
    """
    for correction in corrections:
        for change in correction:
            value = _changed(value, change.path, change)
    return value


def _changed(value: Json, path: Path, change: Change) -> Json:
    if not path:
        return change.value
    key, rest = path[0], path[1:]
    ends = change.removed and not rest
    if isinstance(value, Mapping) and isinstance(key, str) and (key in value or not change.removed):
        if ends:
            return {name: inner for name, inner in value.items() if name != key}
        return {**value, key: _changed(value.get(key, {}), rest, change)}
    if isinstance(value, list) and isinstance(key, int):
        if ends and key < len(value):
            return [*value[:key], *value[key + 1 :]]
        if key < len(value) or (key == len(value) and not change.removed and not rest):
            inner = _changed(value[key] if rest else None, rest, change)
            return [*value[:key], inner, *value[key + 1 :]]
    raise ValueError(f"there is no field {path_text(change.path)}")


def differences(before: Json, after: Json, path: Path = ()) -> Iterator[Change]:
    """Yield the changes that lead from one value to the other, ordered by path.

    A list with another number of items is changed as a whole.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() | after.keys()):
            here = (*path, name)
            if name not in after:
                yield Change(here, removed=True)
            elif name not in before:
                yield Change(here, after[name])
            else:
                yield from differences(before[name], after[name], here)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, (*path, index))
    elif canonical_json(before) != canonical_json(after):  # true is not 1
        yield Change(path, after)


def value_at(value: Json, path: Path) -> tuple[bool, Json]:
    """Return whether there is a value at the path, and the value."""
    for key in path:
        in_object = isinstance(value, Mapping) and isinstance(key, str) and key in value
        in_list = isinstance(value, list) and isinstance(key, int) and key < len(value)
        if not in_object and not in_list:
            return False, None
        value = cast("Mapping[str | int, Json]", value)[key]
    return True, value


def corrections_size(corrections: Sequence[Correction]) -> int:
    """Return the size of the corrections as they are stored, in bytes of JSON; 0 for none."""
    if not corrections:
        return 0
    return size_in_bytes([changes_json(one) for one in corrections])


def names_of(path: Path) -> tuple[str, ...]:
    """Return the names of fields in the path: those of `lines[0].sku` are `lines` and `sku`."""
    return tuple(key for key in path if isinstance(key, str))


def changes_json(correction: Correction) -> Json:
    """Return the changes as JSON. A change without `value` is a removal."""
    return [
        {"path": list(change.path)} | ({} if change.removed else {"value": change.value})
        for change in correction
    ]


def read_changes(value: Json) -> Correction:
    """Read changes from JSON. Raises ValueError if it is not a list of changes."""
    if not isinstance(value, list):
        raise ValueError("must be a list of changes")
    return tuple(_read_change(one) for one in value)


def _read_change(value: Json) -> Change:
    if not isinstance(value, Mapping) or not {"path"} <= value.keys() <= {"path", "value"}:
        raise ValueError("each change must be an object with path, and value unless it is removed")
    path = value["path"]
    if not isinstance(path, list) or not path or not isinstance(path[0], str):
        raise ValueError("each path must be a list that begins with the name of a field")
    return Change(
        tuple(_read_key(key) for key in path), value.get("value"), removed="value" not in value
    )


def _read_key(value: Json) -> str | int:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError("each path must consist of names and of indices from 0")


def read_corrections(value: Json) -> tuple[Correction, ...]:
    """Read a list of corrections from JSON. Raises ValueError if it is none."""
    if not isinstance(value, list):
        raise ValueError("must be a list of corrections")
    return tuple(read_changes(one) for one in value)
