"""Corrections of a message that is shown with masked values. Pure.

A masked value that a person leaves as it is keeps its real value, which the browser never has.
"""

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from roundsman.model.json import Json, parse_json
from roundsman.model.masked_values import MASK
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.base.sanitize import inert

CONTEXT = 3
"""The number of unchanged lines around a change."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a difference between two texts."""

    kind: str
    """`added`, `removed` or `same`; `cut` where lines are left out."""
    text: str


def laid_out(body: str) -> str:
    """Return JSON as indented lines, and other text as it is; control characters are harmless.

    In JSON they are escaped, so that the text still means the same.
    """
    try:
        text = json.dumps(parse_json(body), indent=2, ensure_ascii=False)
    except ValueError:
        return "\n".join(inert(line) for line in body.splitlines())
    return "".join(one if one == "\n" or inert(one) == one else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]


def difference(before: str, after: str) -> list[DiffLine]:
    """Return what changes from one text to the other, with some lines around each change."""
    found: list[DiffLine] = []
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=CONTEXT)
    for line in list(lines)[2:]:  # the first two name the texts
        if line.startswith("@@"):
            found += [DiffLine("cut", "…")] if found else []
        else:
            kind = {"+": "added", "-": "removed"}.get(line[0], "same")
            found.append(DiffLine(kind, line[1:]))
    return found


def edited_body(edited: str, shown: str, real: str) -> str:
    """Return the message that a person means who edited the `shown` form of the `real` one.

    `shown` has MASK for masked values. Raises InvalidArgument if the edited text is not JSON
    although the shown one was, or if a masked value was moved.
    """
    text = edited.replace("\r\n", "\n")  # as browsers send the lines of a form
    if text.strip() == laid_out(shown).strip():
        return real
    try:
        original, hidden = parse_json(real), parse_json(shown)
    except ValueError:
        return text
    try:
        value = parse_json(text)
    except ValueError as error:
        raise InvalidArgument(f"The corrected message is not JSON: {error}.") from error
    meant = unmasked(value, hidden, original)
    return json.dumps(meant, ensure_ascii=False, separators=(",", ":"))  # in the order of the text


def unmasked(edited: Json, shown: Json, real: Json, path: str = "") -> Json:
    """Return the edited value, with the real value for each masked one that was left as it was.

    Raises InvalidArgument if MASK is where no masked value was, or in an item of a list that was
    changed or moved: which real value it stands for would be a guess.
    """
    if edited == shown:
        return real
    if isinstance(edited, dict) and isinstance(shown, dict) and isinstance(real, dict):
        return {
            name: unmasked(value, shown[name], real[name], _inner(path, name))
            if name in shown and name in real
            else _without_mask(value, _inner(path, name))
            for name, value in edited.items()
        }
    if isinstance(edited, list) and isinstance(shown, list) and isinstance(real, list):
        same_length = len(edited) == len(shown)
        return [
            real[place]
            if same_length and value == shown[place]
            else _without_mask(value, f"{path}[{place}]")
            for place, value in enumerate(edited)
        ]
    return _without_mask(edited, path)


def _inner(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _without_mask(value: Json, path: str) -> Json:
    if value == MASK:
        raise InvalidArgument(
            f"The field {path} is masked, and its value is not known here. Write the value, or "
            "leave what is around it as it was."
        )
    if isinstance(value, dict):
        return {name: _without_mask(inner, _inner(path, name)) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_mask(inner, f"{path}[{n}]") for n, inner in enumerate(value)]
    return value


def masked_changes(diff: Sequence[DiffLine], before: str, after: str) -> bool:
    """Whether the message changes although nothing that is shown does: a masked value changes."""
    return not diff and before != after
