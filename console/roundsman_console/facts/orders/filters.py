"""Reads a filter as a person types it, on the command line or in a form."""

from collections.abc import Sequence

from roundsman.model.instants import SECOND, format_duration
from roundsman.model.priority import Priority
from roundsman.model.states import TaskState
from roundsman.model.task import TASK_ID
from roundsman_console.base.constraints import GROUP_ID
from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.base.sanitize import inert
from roundsman_console.base.typed_inputs import read_duration
from roundsman_console.facts.orders.selection import TAGS, Selection

LONGEST_AGE = 3_660 * 86_400  # seconds; ten years, the longest time that a task is kept
LONGEST_WORD = 200  # characters

_FAILED = (TaskState.ARCHIVED, TaskState.UNDONE)


def read_selection(
    *,
    state: TaskState | None = None,
    workflow: str | None = None,
    step: str | None = None,
    error: str | None = None,
    agent: str | None = None,
    older: str | None = None,
    newer: str | None = None,
    group: str | None = None,
    tag: Sequence[str] | None = None,
    left_out: bool = False,
    starts: str | None = None,
) -> Selection:
    """Return the filter that these options describe.

    Raises ConsoleError if an option is invalid or if no task can match.
    """
    selection = Selection(
        state=state,
        workflow=_word("--workflow", workflow),
        step=_word("--step", step),
        error=_word("--error", error),
        agent=_word("--agent", agent),
        older=_age(older),
        newer=_age(newer),
        group=_group(group),
        tags=_tags(tag or ()),
        left_out=left_out,
        starts=_starts(starts),
    )
    _check(selection)
    return selection


def _check(selection: Selection) -> None:
    older, newer, state = selection.older, selection.newer, selection.state
    if older is not None and newer is not None and newer <= older:
        raise ConsoleError(
            f"No order is older than {format_duration(older)} and newer than "
            f"{format_duration(newer)}: for a range of ages, --newer must be the greater.",
            USAGE,
        )
    if selection.group is not None and state is not None and state not in _FAILED:
        raise ConsoleError(
            f"No {state} task is in a failure group; its tasks are Archived or Undone.", USAGE
        )
    if state is TaskState.SCHEDULED and (selection.step or selection.error or selection.agent):
        raise ConsoleError("A Scheduled task is at no step, and has no error yet.", USAGE)


def _word(option: str, text: str | None) -> str | None:
    if text is None:
        return None
    word = text.strip()
    if not word or len(word) > LONGEST_WORD:
        raise ConsoleError(f"{option} requires a name of 1 to {LONGEST_WORD} characters.", USAGE)
    return word


def _age(text: str | None) -> int | None:
    return None if text is None else read_duration(text, most=LONGEST_AGE) * SECOND


def _group(text: str | None) -> str | None:
    if text is not None and not GROUP_ID.fullmatch(text):
        raise ConsoleError(
            f"{inert(text[:50])!r} is not a failure group id: f- and eight of 0-9 and a-f. "
            "List them with: roundsman groups",
            USAGE,
        )
    return text


def _starts(text: str | None) -> str | None:
    if text is not None and not TASK_ID.fullmatch(text):
        raise ConsoleError(
            f"No order id starts with {inert(text[:50])!r}: an id is 1 to 128 of A-Z, a-z, 0-9 and "
            ". _ ~ -",
            USAGE,
        )
    return text


def _tags(texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not value:
            raise ConsoleError(
                f"--tag {inert(text[:50])!r} requires a name and a value: tenant=shop-1.", USAGE
            )
        if name not in TAGS:
            raise ConsoleError(
                f"Unknown tag {inert(name[:50])!r}. The tags of an order are {', '.join(TAGS)}.",
                USAGE,
            )
        if found.setdefault(name, value) != value:
            raise ConsoleError(f"An order has only one {name}.", USAGE)
    priority = found.get("priority")
    if priority is not None and priority not in tuple(Priority):
        raise ConsoleError(
            f"Unknown priority {inert(priority[:50])!r}. It must be {' or '.join(Priority)}.",
            USAGE,
        )
    return found


AT_STEP = "at_step"
"""The name of the filter `step` in the form of a command, which may have a field of that name."""
