"""The values that the remote services pass around: JSON, and an answer to one request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Body: TypeAlias = dict[str, Json]
Kind: TypeAlias = Literal["perform", "undo", "probe"]


@dataclass(frozen=True)
class Answer:
    """A status, a JSON body (None: no body at all), and headers beyond the usual ones."""

    status: int
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)


def refused(status: int, error: str, message: str = "", **details: Json) -> Answer:
    """Return the answer that names an error by its type, with a sentence where one helps."""
    body: Body = {"error": error}
    if message:
        body["message"] = message
    return Answer(status, {**body, **details})
