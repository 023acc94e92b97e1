"""The filters of the pages and of bulk runs, as fields of a form."""

import shlex
from collections.abc import Mapping, Sequence

from roundsman_console.acts.bulk.limits import LONGEST_SELECTION
from roundsman_console.base.errors import ConsoleError, InvalidArgument
from roundsman_console.facts.orders.filters import FILTERS, filters_for
from roundsman_console.facts.orders.selection import Selection, read_selection

LONGEST = 1_000
"""The number of characters that a filter of a form may have."""
TOGETHER = "together"
"""Stands for all filters, where each of them is right by itself."""


def asked_of(given: Mapping[str, str], *, command: bool = False) -> dict[str, str]:
    """Return the filters of a form, each without the spaces around it.

    `command` says whether they are in the form of a command, beside its arguments. Raises
    InvalidArgument for a filter that is too long to be shown again.
    """
    asked = typed_filters(given, command=command)
    for name, text in asked.items():
        if len(text) > LONGEST:
            raise InvalidArgument(_too_long(name, text))
    return asked


def typed_filters(given: Mapping[str, str], *, command: bool = False) -> dict[str, str]:
    """Return the filters of a form as `asked_of` does, however long they are."""
    return {
        name: given.get(one.name_for(command=command), "").strip()
        for name, one in filters_for(command=command).items()
    }


def wrong_filters(asked: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with each filter of a form, by their names; empty if nothing is.

    What is wrong with several of them together is under TOGETHER.
    """
    wrong = {}
    for name, text in asked.items():
        if len(text) > LONGEST:
            wrong[name] = _too_long(name, text)
        elif why := _wrong({name: text}):
            wrong[name] = why
    return wrong or ({TOGETHER: why} if (why := _wrong(asked)) else {})


def _wrong(asked: Mapping[str, str]) -> str:
    try:
        selection_of(asked)
    except (ConsoleError, InvalidArgument) as error:
        return str(error)
    return ""


def _too_long(name: str, text: str) -> str:
    return (
        f"The filter {FILTERS[name].label} has {len(text):,} characters, and may have {LONGEST:,}."
    )


def for_command(asked: Mapping[str, str]) -> dict[str, str]:
    """Return the filters that are used, by their names in the form of a command."""
    return {
        one.name_for(command=True): text
        for name, one in filters_for(command=True).items()
        if (text := asked.get(name))
    }


def selection_of(asked: Mapping[str, str]) -> Selection:
    """Return the filter of a form. Raises ConsoleError or InvalidArgument for a wrong one."""
    return read_selection({name: text or None for name, text in asked.items()})


def option_text(asked: Mapping[str, str]) -> str:
    """Return the filters as the options of a command, for the record of a bulk run."""
    used = ((one, asked.get(name)) for name, one in filters_for(command=True).items())
    words = [word for one, text in used if text for word in one.typed(text, command=True)]
    return shlex.join(words)[:LONGEST_SELECTION]


def choices_with(
    seen: Mapping[str, Sequence[str]], asked: Mapping[str, str]
) -> Mapping[str, Sequence[str]]:
    """Return the values to choose from, by the filters that have some.

    `seen` are the names that were seen in the stack. A name that is asked for is offered too.
    """
    return {
        **{name: [*one.one_of] for name, one in FILTERS.items() if one.one_of},
        **{name: sorted({*found, *({asked[name]} - {""})}) for name, found in seen.items()},
    }
