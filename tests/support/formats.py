"""What the code wrote and reported for samples of every message and record, kept in files.

A sample is a value of a type. Its format is the document that the writer returns, and what the
reader reports for each fault in that document: each field left out, and each field with each of
the bad values. For a fault that is accepted, it is what is then written for the field.

A test compares the format with the recorded one. With RECORD_FORMATS=1 in the environment it
records the format of the present code instead.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from roundsman.model.json import Json

ABSENT = "(absent)"
Document = Mapping[str, Json]
Report = Callable[[Document], Json]
"""Reads a document. Returns its problems as a list of texts, or the document as written again."""


def compare(file: Path, name: str, found: Mapping[str, Json]) -> None:
    """Fail if the recorded value of this name differs from `found`; record it if asked to."""
    if os.environ.get("RECORD_FORMATS"):
        recorded = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        file.write_text(_lines({**recorded, name: found}), encoding="utf-8")
    assert json.loads(file.read_text(encoding="utf-8"))[name] == found


def _lines(value: Mapping[str, Mapping[str, Json]]) -> str:
    """Return the values as JSON with one line for each value of the second level."""

    def line(value: Json) -> str:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)

    def block(inner: Mapping[str, Json]) -> str:
        return ",\n".join(f"  {line(name)}: {line(each)}" for name, each in inner.items())

    blocks = (f"{line(name)}: {{\n{block(value[name])}\n}}" for name in sorted(value))
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def faults(
    document: Document,
    fields: Iterable[tuple[str, ...]],
    bad_values: Sequence[Json],
    report: Report,
) -> dict[str, Json]:
    """Return, for the path of each of the fields, the bad values by what is reported for them."""
    found: dict[str, Json] = {}
    for path in fields:
        outcomes: dict[str, list[Json]] = {}
        for bad in bad_values:
            problems = report(changed(document, path, bad))
            if not isinstance(problems, list):
                written = at(problems, path)
                problems = ["unchanged" if written == bad else f"written: {json.dumps(written)}"]
            outcomes.setdefault("; ".join(map(str, problems)), []).append(bad)
        found[".".join(path)] = outcomes
    return found


def paths(value: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every field in a document, outermost first."""
    inner: Mapping[str, Json] = {}
    if isinstance(value, Mapping):
        inner = value
    elif isinstance(value, list):
        inner = {str(index): each for index, each in enumerate(value)}
    for name, each in inner.items():
        yield (*path, name)
        yield from paths(each, (*path, name))


def at(value: Json, path: Sequence[str]) -> Json:
    """Return what is at this path; ABSENT if there is nothing."""
    for name in path:
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return ABSENT
    return value


def changed(document: Document, path: Sequence[str], bad: Json) -> Document:
    """Return a copy of the document with the bad value at this path, or without the field."""
    copy: Document = json.loads(json.dumps(document))
    parent = at(copy, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = bad
        if bad is ABSENT:
            del parent[path[-1]]
    elif isinstance(parent, list):
        parent[int(path[-1])] = bad
        if bad is ABSENT:
            del parent[int(path[-1])]
    return copy
