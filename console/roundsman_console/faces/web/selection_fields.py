"""The filters of the pages and of bulk runs: the options of `roundsman ls`, as fields of a form."""

import shlex
from collections.abc import Mapping

from roundsman.model.states import TaskState
from roundsman_console.acts.bulk.limits import LONGEST_SELECTION
from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.facts.orders.filters import AT_STEP, read_selection
from roundsman_console.facts.orders.selection import TAGS, Selection

LEFT_OUT = "left_out"
"""The name of the field that is ticked for orders that have left out an item."""
MORE_FIELDS = ("older", "newer", "group", "starts", *TAGS, LEFT_OUT)
"""The filters that are folded away until they are used."""
FIELDS = ("state", "workflow", "step", "error", "agent", *MORE_FIELDS)
"""The filters, by the names of the form's fields."""


def asked_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return the filters of a form, each without the spaces around it."""
    return {name: given.get(name, "").strip() for name in FIELDS}


def asked_of_command(given: Mapping[str, str]) -> dict[str, str]:
    """Return the filters in the form of a command, in which the filter `step` is AT_STEP."""
    return asked_of({**given, "step": given.get(AT_STEP, "")})


def for_command(asked: Mapping[str, str]) -> dict[str, str]:
    """Return the filters that are used, by their names in the form of a command."""
    return {AT_STEP if name == "step" else name: text for name, text in asked.items() if text}


def selection_of(asked: Mapping[str, str]) -> Selection:
    """Return the filter of a form. Raises ConsoleError if a field is invalid."""
    text = {name: asked.get(name) or None for name in FIELDS}
    return read_selection(
        state=_state(text["state"]),
        workflow=text["workflow"],
        step=text["step"],
        error=text["error"],
        agent=text["agent"],
        older=text["older"],
        newer=text["newer"],
        group=text["group"],
        tag=[f"{name}={text[name]}" for name in TAGS if text[name]],
        left_out=bool(text[LEFT_OUT]),
        starts=text["starts"],
    )


def option_text(asked: Mapping[str, str]) -> str:
    """Return the filters as the options of a command, for the record of a bulk run."""
    words: list[str] = []
    for name in FIELDS:
        text = asked.get(name)
        if text and name == LEFT_OUT:
            words.append("--left-out")
        elif text:
            tag = name in TAGS
            option = "--tag" if tag else "--at-step" if name == "step" else f"--{name}"
            words += [option, f"{name}={text}" if tag else text]
    return shlex.join(words)[:LONGEST_SELECTION]


def _state(text: str | None) -> TaskState | None:
    if text is None:
        return None
    for state in TaskState:
        if state.lower() == text.lower():
            return state
    raise ConsoleError(f"There is no such state. It must be one of {', '.join(TaskState)}.", USAGE)
