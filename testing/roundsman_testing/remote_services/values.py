"""The types that the modules of the remote services share: JSON values and answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Body: TypeAlias = dict[str, Json]
Kind: TypeAlias = Literal["perform", "undo", "probe"]


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: int
    body: Json = None
    """The JSON body; None means no body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers beyond Content-Length, Content-Type and Connection."""


def refused(status: int, error: str, message: str = "", **details: Json) -> Answer:
    """Return an error answer with the type of the error and, if given, a sentence for people."""
    body: Body = {"error": error}
    if message:
        body["message"] = message
    return Answer(status, {**body, **details})
