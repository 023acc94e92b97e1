"""The filters of orders: each is declared once, in FILTERS.

The options of the command line, the fields of the form and of the address of the Orders page, the
text that a bulk run keeps, and the words of a selection are made of it.
`roundsman_console.facts.orders.selection` decides which tasks match.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from functools import partial

from roundsman.model.instants import SECOND, format_duration
from roundsman.model.priority import Priority
from roundsman.model.states import TaskState
from roundsman.model.task import TASK_ID
from roundsman_console.base.constraints import GROUP_ID
from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.base.sanitize import inert
from roundsman_console.base.typed_inputs import read_duration

LONGEST_AGE = 3_660 * 86_400  # seconds; ten years, the longest time that a task is kept
LONGEST_WORD = 200  # characters
TAG = "--tag"
"""The option of the command line that stands for all filters that are tags."""


def _word(option: str, text: str) -> str:
    word = text.strip()
    if not word or len(word) > LONGEST_WORD:
        raise ConsoleError(f"{option} requires a name of 1 to {LONGEST_WORD} characters.", USAGE)
    return word


def _state(_option: str, text: str) -> TaskState:
    for state in TaskState:
        if state.lower() == text.lower():
            return state
    raise ConsoleError(f"There is no such state. It must be one of {', '.join(TaskState)}.", USAGE)


def _age(_option: str, text: str) -> int:
    return read_duration(text, most=LONGEST_AGE) * SECOND


def _group(_option: str, text: str) -> str:
    if not GROUP_ID.fullmatch(text):
        raise ConsoleError(
            f"{inert(text[:50])!r} is not a failure group id: f- and eight of 0-9 and a-f. "
            "List them with: roundsman groups",
            USAGE,
        )
    return text


def _starts(_option: str, text: str) -> str:
    if not TASK_ID.fullmatch(text):
        raise ConsoleError(
            f"No order id starts with {inert(text[:50])!r}: an id is 1 to 128 of A-Z, a-z, 0-9 and "
            ". _ ~ -",
            USAGE,
        )
    return text


def _priority(_option: str, text: str) -> str:
    if text not in tuple(Priority):
        raise ConsoleError(
            f"Unknown priority {inert(text[:50])!r}. It must be {' or '.join(Priority)}.", USAGE
        )
    return text


def _where(_option: str, text: str) -> "FieldValue":
    path, is_given, value = text.partition("=")
    path = path.strip().removeprefix("input.")
    if not is_given or not path or not value or len(path) > LONGEST_WORD:
        raise ConsoleError(
            "A search by a field requires the field and its whole value: customerId=c-42. The "
            "fields are those that the workflow names in search.",
            USAGE,
        )
    return FieldValue(path, value)


def _field(where: object) -> str:
    return where.path if isinstance(where, FieldValue) else ""


def _tag(_option: str, text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A field of an order's input, and its value, as a person typed them."""

    path: str
    """Without `input.` at its beginning."""
    value: str = field(repr=False)
    """It may be masked, so it is in no text and in no record."""


def _duration(age: object) -> str:
    return format_duration(age) if isinstance(age, int) else ""


@dataclass(frozen=True, slots=True)
class Filter:
    """How a filter is typed, and how a form asks for it."""

    name: str
    """The name of the field of a form and of an address."""
    label: str
    """The label of the field of a form."""
    help: str = ""
    """The help of the option of the command line."""
    _: KW_ONLY
    of: str = ""
    """The field of `Selection`; empty for the same name, or for a tag."""
    metavar: str | None = "NAME"
    read: Callable[[str, str], object] = _word
    """Returns the value of a text. Gets the option, for the sentence of the ConsoleError."""
    words: str = "{}"
    """What is said of a selection, with the value in the place of the braces."""
    show: Callable[[object], str] = str
    """Returns the value as it stands in `words`."""
    one_of: type[StrEnum] | None = None
    """The only values; None if there are others."""
    example: str = ""
    is_tag: bool = False
    """Whether it is a property of an order event's `processing`, which TAG asks for."""
    is_check: bool = False
    """Whether it has no value: it is given or not."""
    folded: bool = True
    """Whether the field is folded away until it is used."""
    in_index: bool = False
    """Whether the index of due tasks has what it asks for, so that no record is read for it."""
    of_lists: bool = False
    """Whether it is a filter of lists only, and not of a command for many orders."""
    name_in_commands: str = ""
    """Its name beside the arguments of a command, one of which may have its own name."""

    def name_for(self, *, command: bool) -> str:
        """Return its name as a field or an option; `command`: beside the arguments of a command."""
        return self.name_in_commands if command and self.name_in_commands else self.name

    def option(self, *, command: bool = False) -> str:
        """Return the option of the command line."""
        return TAG if self.is_tag else f"--{self.name_for(command=command).replace('_', '-')}"

    def typed(self, text: str, *, command: bool = False) -> Sequence[str]:
        """Return the words of the command line that ask for this value."""
        if self.is_check:
            return [self.option(command=command)]
        return [self.option(command=command), f"{self.name}={text}" if self.is_tag else text]


_first = partial(Filter, folded=False)
_age_of = partial(Filter, metavar="TIME", read=_age, show=_duration, in_index=True)
_tag_of = partial(Filter, read=_tag, is_tag=True)
_ROWS = (
    _first(
        "state",
        "State",
        "Only tasks in this state.",
        metavar=None,
        read=_state,
        one_of=TaskState,
        in_index=True,
    ),
    _first("workflow", "Workflow", "Only tasks of this workflow.", words="of {}", in_index=True),
    _first(
        "step",
        "Step",
        "Only tasks at this step, or that failed at it.",
        words="at {}",
        name_in_commands="at_step",
    ),
    _first("error", "Error type", "Only tasks with this error type: CardDeclined.", metavar="TYPE"),
    _first(
        "agent",
        "Agent",
        "Only tasks at a step of this agent, or that failed at one.",
        words="agent {}",
    ),
    _age_of(
        "older",
        "Older than",
        "Only tasks submitted longer ago than this: 90s, 2h, 1d.",
        words="older than {}",
        example="2h",
    ),
    _age_of(
        "newer",
        "Newer than",
        "Only tasks submitted more recently than this: 90s, 2h, 1d.",
        words="newer than {}",
        example="1d",
    ),
    Filter(
        "where",
        "Field and value",
        "Only orders with this value of a field that their workflow names in search: "
        "customerId=c-42.",
        metavar="FIELD=VALUE",
        read=_where,
        words="found by {}",
        show=_field,
        example="customerId=c-42",
        of_lists=True,
    ),
    Filter(
        "group",
        "Failure group",
        "Only tasks of this failure group: f-1a2b3c4d.",
        metavar="GROUP",
        read=_group,
        words="in {}",
        example="f-...",
    ),
    _tag_of("tenant", "Tenant", words="tenant {}", example="shop-1"),
    _tag_of("correlationId", "Correlation id", words="correlationId {}", example="web-7"),
    _tag_of(
        "priority",
        "Priority",
        words="priority {}",
        example="urgent",
        read=_priority,
        one_of=Priority,
        in_index=True,
    ),
    Filter(
        "starts",
        "Id starts with",
        "Only orders whose id starts with this.",
        metavar="TEXT",
        read=_starts,
        words="whose id starts with {}",
        example="ord-",
        in_index=True,
    ),
    Filter(
        "left_out",
        "With items left out",
        "Only orders that have left out an item that failed.",
        words="with items left out",
        is_check=True,
    ),
)
FILTERS: dict[str, Filter] = {one.name: one for one in _ROWS}
"""The filters by their names, in the order in which they are offered."""

TAGS = tuple(name for name, one in FILTERS.items() if one.is_tag)
"""The filters that are properties of an order event's `processing`."""


def filters_for(*, command: bool) -> dict[str, Filter]:
    """Return the filters of a list, or those that also select the orders of a command for many."""
    return {name: one for name, one in FILTERS.items() if not (command and one.of_lists)}


def tag_help() -> str:
    """Return the help of TAG."""
    *most, last = (f"{one.name}={one.example}" for one in FILTERS.values() if one.is_tag)
    return f"Only orders with this value: {', '.join(most)} or {last}. May be repeated."


def read_tags(texts: Iterable[str]) -> dict[str, str]:
    """Return the texts of the filters that are typed as `tenant=shop-1`, by their names.

    Raises ConsoleError for one that is invalid or unknown, and for two values of one.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not value:
            raise ConsoleError(
                f"{TAG} {inert(text[:50])!r} requires a name and a value: tenant=shop-1.", USAGE
            )
        if name not in TAGS:
            raise ConsoleError(
                f"Unknown tag {inert(name[:50])!r}. The tags of an order are {', '.join(TAGS)}.",
                USAGE,
            )
        if found.setdefault(name, value) != value:
            raise ConsoleError(f"An order has only one {name}.", USAGE)
    return found
