"""What came of a verb: a frozen dataclass, of which JSON, lines and tables are made.

Each field is declared once, with its type. `Annotated[int, Shown("Accepted", EPOCH_MS)]` also says
what people call it and in which unit it is. This module makes JSON of it; `faces.cli.text.result`
makes lines and tables, `faces.web.result_tables` tables of a page, and `tools.schemas` the schema.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum, StrEnum
from functools import cache, reduce
from operator import or_
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from roundsman.model.instants import SECOND, format_duration, iso, second
from roundsman_console.base.constraints import Count, Duration, Instant

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class CommandOutcome(StrEnum):
    """How a command ended. The values are part of the JSON output."""

    DONE = "done"
    REFUSED = "refused"
    SENT = "sent"
    UNCONFIRMED = "unconfirmed"
    DRY_RUN = "dryRun"


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a field: the type of its value in JSON, that value, and the value in words."""

    in_json: object
    to_json: Callable[..., object]
    to_words: Callable[..., str]


def rounded(digits: int) -> Unit:
    """Return the unit of a number that JSON has to so many digits after the point."""
    return Unit(float, lambda number: round(number, digits), "{:g}".format)


EPOCH_MS = Unit(Instant, iso, second)
"""An instant, in ms since 1970 UTC."""
MS = Unit(Duration, lambda ms: ms / SECOND, format_duration)
"""A duration in ms; seconds in JSON."""
BYTES = Unit(Count, int, lambda number: f"{number:,} bytes")
COUNT = Unit(Count, int, lambda number: f"{number:,}")
USD = Unit(float, lambda usd: round(usd, 4), lambda usd: f"{usd:,.2f} USD")
"""An amount in USD, to a hundredth of a cent in JSON."""


@dataclass(frozen=True, slots=True)
class Shown:
    """How a field of a result is shown."""

    label: str = ""
    """What people call it; empty for its name, with spaces."""
    unit: Unit | None = None
    """None for a value that needs no unit."""
    name: str = ""
    """Its name; in JSON, empty for the name of the field: `runId` for `run_id`."""
    hint: object = None
    """The type of its value in JSON."""
    hidden: bool = False
    """Whether it is not shown at all."""
    absent: bool = False
    """Whether JSON lacks it if it is None."""
    missing: str = ""
    """What people read in place of None: `not known`."""

    def to_json(self, value: object) -> object:
        """Return the value as JSON has it."""
        return json_of(value if self.unit is None or value is None else self.unit.to_json(value))

    def to_words(self, value: object) -> str:
        """Return the value for people; `missing` for None."""
        if value is None:
            return self.missing
        if self.unit is not None:
            return self.unit.to_words(value)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, Enum):
            return str(value.value)
        if isinstance(value, Sequence | Set) and not isinstance(value, str):
            return ", ".join(map(str, value))
        return str(value)


HIDDEN = Shown(hidden=True)
"""For a field of facts that is not part of what is shown of them."""

EpochMs: TypeAlias = Annotated[int, Shown(unit=EPOCH_MS)]
EpochMsOrNone: TypeAlias = Annotated[int | None, Shown(unit=EPOCH_MS)]


class Noun(StrEnum):
    """What a verb is about, or is looked at next."""

    STACK = "stack"
    ORDERS = "orders"
    RUNS = "bulk runs"
    AGENTS = "agents"
    GROUPS = "failure groups"
    REJECTED = "rejected messages"
    DEAD_LETTERS = "dead letters"
    WORKFLOWS = "workflows"
    SCHEDULES = "schedules"


@dataclass(frozen=True, slots=True)
class WayBack:
    """The verb that takes back what was done, with its arguments."""

    title: str
    name: str
    form: Mapping[str, str]
    version: str
    """The version of its preview, as it is now."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a verb."""

    def words(self) -> Sequence[str]:
        """Return the result in sentences; empty if its fields are shown instead."""
        return ()

    def lines(self) -> Sequence[str]:
        """Return the sentences for a terminal, which may name the command to type next."""
        return self.words()

    def rows(self) -> "Sequence[DataclassInstance]":
        """Return what else is shown at a terminal, as a table; empty for nothing."""
        return ()

    def warnings(self) -> Sequence[str]:
        """Return what went wrong beside it, in sentences; empty if nothing did."""
        return ()

    def error(self) -> Exception | None:
        """Return what ended it early; None if it was done as a whole."""
        return None

    def ended(self) -> CommandOutcome:
        """Return how the verb ended."""
        return CommandOutcome.DONE

    def way_back(self) -> WayBack | None:
        """Return the verb that takes it back; None if no verb does."""
        return None

    def look_next(self) -> Noun | None:
        """Return what is to be looked at next; None for what the verb is about."""
        return None

    def document(self) -> Mapping[str, Any]:
        """Return the result as the JSON object that --json prints."""
        return document_of(self)

    def leads_to(self) -> str:
        """Return the id of the order to look at next; empty for what the verb is about."""
        return ""


@cache
def shown_fields(kind: "type[DataclassInstance]") -> Mapping[str, Shown]:
    """Return how the fields of a result are shown, by their names.

    A field of a base that the class declares again is in the place where the class declares it.
    """
    hints = get_type_hints(kind, include_extras=True)
    names = [one.name for one in fields(kind)]
    own = [name for name in kind.__annotations__ if name in names]
    inherited = [name for name in names if name not in own]
    shown = {name: _shown(name, hints[name]) for name in (*inherited, *own)}
    return {name: one for name, one in shown.items() if not one.hidden}


def document_of(value: "DataclassInstance") -> dict[str, Any]:
    """Return a result as the JSON object that --json prints."""
    found: dict[str, Any] = {}
    for name, one in shown_fields(type(value)).items():
        each = getattr(value, name)
        if each is not None or not one.absent:
            found[one.name] = one.to_json(each)
    return found


R = TypeVar("R", bound="DataclassInstance")


def filled_from(source: object, kind: type[R], **own: object) -> R:
    """Return a result: `own`, and in its other fields what `source` has under the same names.

    Raises AttributeError if `source` has no such attribute.
    """
    make: Callable[..., R] = kind
    others = {one.name for one in fields(kind)} - {*own}
    return make(**own, **{name: getattr(source, name) for name in others})


def _shown(name: str, hint: object) -> Shown:
    declared = [one for one in get_args(hint)[1:] if isinstance(one, Shown)]
    said = declared[0] if get_origin(hint) is Annotated and declared else Shown()
    first, *more = name.split("_")
    bare: Any = get_args(hint)[0] if declared else hint
    optional = type(None) in get_args(bare) and not said.absent
    in_json: Any = hint if said.unit is None else said.unit.in_json
    if said.absent and said.unit is None:
        in_json = reduce(or_, [one for one in get_args(bare) if one is not type(None)] or [bare])
    return Shown(
        said.label or name.replace("_", " ").capitalize(),
        said.unit,
        said.name or "".join([first, *(word.capitalize() for word in more)]),
        in_json | None if said.unit is not None and optional else in_json,
        said.hidden,
        said.absent,
        said.missing,
    )


def json_of(value: object) -> object:
    """Return a value as JSON has it: each dataclass in it becomes an object."""
    if is_dataclass(value) and not isinstance(value, type):
        return document_of(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {json_of(key): json_of(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [json_of(one) for one in value]
    return value


def rows_of(value: object) -> "Sequence[DataclassInstance]":
    """Return a list of results, which is shown as a table; empty for another value."""
    if not isinstance(value, list | tuple):
        return ()
    return [one for one in value if is_dataclass(one) and not isinstance(one, type)]
