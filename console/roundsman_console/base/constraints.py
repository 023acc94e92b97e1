"""Types of values with constraints that Python's type system cannot express.

The constraints are for the JSON schemas; at run time only the ids are checked.
"""

import re
from dataclasses import dataclass
from typing import Annotated, TypeAlias


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword of JSON Schema with its value, for example `Keyword("minimum", 0)`."""

    name: str
    value: int | float | str | tuple[str, ...]


Instant: TypeAlias = Annotated[
    str,
    Keyword("format", "date-time"),
    Keyword("pattern", r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"),
    Keyword("description", "An instant in UTC, ISO 8601, to the millisecond."),
]
"""What `roundsman.model.instants.iso` returns."""

Date: TypeAlias = Annotated[str, Keyword("format", "date")]
"""A day: `2026-12-01`."""

Count: TypeAlias = Annotated[int, Keyword("minimum", 0)]
Ordinal: TypeAlias = Annotated[int, Keyword("minimum", 1)]
Duration: TypeAlias = Annotated[float, Keyword("minimum", 0)]

GROUP_ID, RUN_ID = re.compile("f-[0-9a-f]{8}"), re.compile("b-[0-9a-f]{8}")
"""What `fullmatch`es the id of a failure group, and of a bulk run."""

GroupId: TypeAlias = Annotated[str, Keyword("pattern", f"^{GROUP_ID.pattern}$")]
"""The id of a failure group."""

RunId: TypeAlias = Annotated[str, Keyword("pattern", f"^{RUN_ID.pattern}$")]
"""The id of a bulk run."""

Samples: TypeAlias = Annotated[
    list[str], Keyword("maxItems", 3), Keyword("description", "The ids of the first orders.")
]
