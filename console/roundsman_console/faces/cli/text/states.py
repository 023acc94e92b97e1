"""The colours of states and of what happened, the same in every table."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from roundsman.model.instants import second
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.facts.order.effects import erased_words, left_out_words
from roundsman_console.facts.order.timeline import Happening, later_words

STATE_STYLES = {
    TaskState.COMPLETED: "green",
    TaskState.ARCHIVED: "red",
    TaskState.ACTIVE: "cyan",
    TaskState.RETRY: "yellow",
    TaskState.UNDOING: "yellow",
    TaskState.UNDONE: "magenta",
    TaskState.CANCELLED: "magenta",
}
STEP_STYLES = {
    ProcessState.PROCESSED: "green",
    ProcessState.ERROR: "red",
    ProcessState.PROCESSING: "cyan",
    ProcessState.UNDOING: "yellow",
    ProcessState.UNDONE: "magenta",
    ProcessState.UNDO_ERROR: "red",
}
KIND_STYLES = {"failed": "red", "undo failed": "red", "refused": "red", "finished": "green"}


def task_line(task: Task) -> Text:
    """Return the line about a task: its id, its workflow, its state, how many items it has left
    out, and whether it is erased."""
    line = plain(f"{task.task_id}  {task.workflow}  ")
    line.append_text(plain(task.state, STATE_STYLES.get(task.state, "")))
    if left_out := left_out_words(task):
        line.append_text(plain(f", {left_out}", "yellow"))
    return line.append_text(plain(f"  {words}")) if (words := erased_words(task)) else line


def happenings_table(happened: Iterable[Happening], *, later: bool = False) -> Table:
    """Return a table with a row for each entry, in their order.

    With `later`, a column has the time since the entry before. The columns of who sent a command
    are left out if there is none.
    """
    rows = list(happened)
    people, senders = any(one.by for one in rows), any(one.sender for one in rows)
    table = Table(box=None, pad_edge=False)
    for heading in ("At", *(("Later",) if later else ()), "What"):
        table.add_column(heading, no_wrap=True)
    who = [*(["By"] if people else []), *(["Sender"] if senders else [])]
    for heading in (*who, "Why"):
        table.add_column(heading, overflow="fold")
    for place, one in enumerate(rows):
        after = [later_words(one.at - rows[place - 1].at if place else None)] if later else []
        by = [*([one.by or ""] if people else []), *([one.sender or ""] if senders else [])]
        what = plain(one.what, KIND_STYLES.get(one.what, "bold" if one.by else ""))
        table.add_row(
            plain(second(one.at)), *map(plain, after), what, *map(plain, by), plain(one.why)
        )
    return table
