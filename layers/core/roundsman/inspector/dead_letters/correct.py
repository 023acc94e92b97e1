"""Corrects the text of a message: replaces all of it, or sets and removes fields.

The syntax of a path is that of the problems of a rejected message: `lines[0].quantity`.
"""

import re
from collections.abc import Sequence

from roundsman.inspector.errors import InvalidArgument, UncorrectableMessage
from roundsman.model.json import Json, canonical_json, parse_json

_PATH = re.compile(r"[^.\[\]=]+(?:\[\d{1,6}\])*(?:\.[^.\[\]=]+(?:\[\d{1,6}\])*)*")
_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")

Key = str | int


def corrected(body: str, *, whole: str | None, sets: Sequence[str], removes: Sequence[str]) -> str:
    """Return the body with the corrections; without any, the body unchanged.

    `whole` is a new body that replaces it. `sets` are `path=value`; `removes` are paths. Raises
    UncorrectableMessage if fields are to be changed and the body is not a JSON object, and
    InvalidArgument if `whole` is combined with the others, if a path is invalid, or if the message
    has no field that it names.
    """
    if whole is not None and (sets or removes):
        raise InvalidArgument("Replace the whole message, or change its fields, not both.")
    if whole is not None:
        return whole
    if not sets and not removes:
        return body
    value = _object(body)
    for correction in sets:
        path, given, text = correction.partition("=")
        if not given:
            raise InvalidArgument(f"The correction {path!r} has no value. Write it as path=value.")
        _set(value, _keys(path), _value(text), path)
    for path in removes:
        _remove(value, _keys(path), path)
    return canonical_json(value)


def _object(body: str) -> Json:
    try:
        value = parse_json(body)
    except ValueError as error:
        raise UncorrectableMessage(
            f"The message is not JSON, so its fields cannot be changed: {error}."
        ) from error
    if not isinstance(value, dict):
        raise UncorrectableMessage("The message is not a JSON object, so it has no fields.")
    return value


def _value(text: str) -> Json:
    """Parse JSON; text that is not JSON is the value itself, so that it needs no quotes."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def _keys(path: str) -> list[Key]:
    if not _PATH.fullmatch(path):
        raise InvalidArgument(f"{path!r} is not a path. Write a path as in lines[0].quantity.")
    return [name or int(place) for name, place in _PART.findall(path)]


def _set(value: Json, keys: Sequence[Key], new: Json, path: str) -> None:
    *way, last = keys
    match _inner(value, way, path, make=True), last:
        case dict(inner), str():
            inner[last] = new
        case list(inner), int() if last <= len(inner):
            inner[last : last + 1] = [new]
        case _:
            raise _no_way(path)


def _remove(value: Json, keys: Sequence[Key], path: str) -> None:
    *way, last = keys
    match _inner(value, way, path, make=False), last:
        case dict(inner), str() if last in inner:
            del inner[last]
        case list(inner), int() if last < len(inner):
            del inner[last]
        case _:
            raise _no_way(path)


def _inner(value: Json, way: Sequence[Key], path: str, *, make: bool) -> Json:
    for key in way:
        if isinstance(value, dict) and isinstance(key, str) and (key in value or make):
            value = value.setdefault(key, {})
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            raise _no_way(path)
    return value


def _no_way(path: str) -> InvalidArgument:
    return InvalidArgument(f"The message has no field {path}.")
