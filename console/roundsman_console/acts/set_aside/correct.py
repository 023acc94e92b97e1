"""Corrects the text of a message: replaces all of it, or sets and removes fields.

The syntax of a path is that of the problems of a rejected message: `lines[0].quantity`.
"""

from collections.abc import Sequence

from roundsman.definition.expressions import ANYTHING
from roundsman.model import corrections
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.submission.corrections import as_meant
from roundsman.submission.events import EventReader
from roundsman_console.base.errors import InvalidArgument, UncorrectableMessage


def corrected(
    body: str,
    *,
    whole: str | None,
    sets: Sequence[str],
    removes: Sequence[str],
    events: EventReader | None = None,
) -> str:
    """Return the body with the corrections; without any, the body unchanged.

    `whole` is a new body that replaces it. `sets` are `path=value`; `removes` are paths. `events`
    reads the events of the application: a number that is typed for a text is text, as `as_meant`
    says; None: the message has no type. Raises UncorrectableMessage if fields are to be changed and
    the body is not a JSON object, and InvalidArgument if `whole` is combined with the others, if a
    path is invalid, or if the message has no field that it names.
    """
    if whole is not None and (sets or removes):
        raise InvalidArgument("Replace the whole message, or change its fields, not both.")
    if whole is not None:
        return whole
    if not sets and not removes:
        return body
    value = _object(body)
    try:
        changes = (
            *map(corrections.typed_change, sets),
            *corrections.changes_of({}, removes),
        )
        wanted = corrections.corrected(value, [changes])
        shape = ANYTHING if events is None else events.shape(wanted)
        return canonical_json(corrections.corrected(value, [as_meant(changes, value, shape)]))
    except ValueError as problem:
        raise InvalidArgument(f"The message cannot be corrected: {problem}.") from problem


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
