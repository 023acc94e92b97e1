"""Dry runs and bulk runs as text."""

from collections.abc import Sequence

from rich.table import Table

from roundsman.command_line import command_line
from roundsman.model.bulk_run import (
    BulkRecord,
    OrderGroup,
    OrderNote,
    OrderResult,
    Run,
    RunState,
)
from roundsman.model.events import COMMAND_KINDS
from roundsman.model.instants import second
from roundsman_console.acts.bulk.dry_run import Tried
from roundsman_console.acts.bulk.view import resume_command
from roundsman_console.acts.bulk.words import order_of_going, search_words
from roundsman_console.acts.changes import input_lines, plan_lines
from roundsman_console.base.counted import counted
from roundsman_console.base.hints import hint, option_words
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.terminal import results, say

_WORDS = {
    OrderResult.COMPLETED: "Completed",
    OrderResult.UNDONE: "Undone",
    OrderResult.CANCELLED: "Cancelled",
    OrderResult.TAKEN: "Done",
}


def print_tried(run: Run, tried: Tried, go_ahead: str) -> None:
    """Print a dry run for people; `go_ahead` is the command line of the real run."""
    of = "" if tried.looked_at == tried.selected else f", the first {tried.looked_at} checked"
    kind = COMMAND_KINDS[type(run.event)]
    say(f"{kind} of {counted(tried.selected, 'order')}{of}. Nothing was sent.")
    if tried.examined:
        say(f"{search_words(tried)}.")
    table = _table()
    table.add_row("eligible", str(tried.eligible), plain(_some(tried.samples, tried.eligible)))
    for kind_refused in tried.refused:
        _add(table, "refused", kind_refused)
    for kind_held in tried.held:
        _add(table, "would wait", kind_held)
    for kind_lost in tried.lost_signals:
        _add(table, "loses signals", kind_lost)
    results().print(table)
    for one in tried.plans or ():
        say(*plan_lines(one, f"{counted(one.orders, 'order')}: the plan"))
    for order, changes in tried.inputs or ():
        say(*input_lines(changes, f"{order}: the input"))
    if not tried.eligible:
        return
    if tried.held and not run.terms.anyway:
        say("Orders that would wait are not sent without --anyway.")
    say(order_of_going(run.terms, tried.eligible))
    say(f"The run stops if more than {100 * run.terms.stop_at:g}% fail again. To run it:")
    say(f"  {hint(go_ahead)}")


def print_run(record: BulkRecord, is_open: bool, notes: Sequence[OrderNote] | None = None) -> None:
    """Print a run for people. `is_open` says whether the stack still works on it.

    `notes` are all orders that failed again or were refused; None to print only groups of them.
    """
    run, progress = record.run, record.progress
    kind = COMMAND_KINDS[type(run.event)]
    why = f" ({record.why})" if record.why else ""
    if record.state is RunState.RUNNING:
        saved = f"progress of {second(record.saved_at)}" if record.version else "not begun yet"
        why = f" ({saved})"
    say(f"Bulk run {run.id} is {record.state.value}{why}.")
    line = f"{kind} of {counted(run.selected, 'order')}, by {run.by} ({run.starter}): {run.reason}"
    say(line)
    say(*(f"{one[:1].upper()}{one[1:]}" for one in record.requests))
    table = _table()
    table.add_row("sent", str(progress.sent), "")
    for verdict, words in _WORDS.items():
        if progress.count(verdict):
            table.add_row(words, str(progress.count(verdict)), "")
    for failed in progress.failed:
        label = failed.key if failed.key.startswith("f-") else ""
        which = f"{_some(failed.samples, failed.orders)}: {failed.reason}"
        table.add_row("failed again", str(failed.orders), plain(f"{label} {which}".strip()))
    for refused in progress.refused:
        _add(table, "refused", refused)
    on_their_way = [one.order for one in progress.on_their_way]
    if on_their_way:
        table.add_row(
            "in flight", str(len(on_their_way)), plain(_some(on_their_way[:3], len(on_their_way)))
        )
    if record.left:
        table.add_row("not reached", str(record.left), "")
    results().print(table)
    if notes is not None:
        results().print(_note_table(notes))
    if is_open and record.state is RunState.RUNNING:
        watch = command_line("bulk watch", run.id)
        say(hint(f"The stack carries it out. Watch it with: {watch}"))
    resume = resume_command(record)
    if resume:
        say(hint(f"Resume it with: {resume}"))


def _note_table(notes: Sequence[OrderNote]) -> Table:
    table = _table()
    for one in notes:
        table.add_row(
            plain(one.order), "failed again" if one.failed else "refused", plain(one.reason)
        )
    return table


def progress_words(record: BulkRecord) -> str:
    """Return the progress of a run in one line."""
    progress = record.progress
    failed = progress.count(OrderResult.FAILED)
    return (
        f"{record.run.id}: {progress.reached} of {record.run.selected} reached, "
        f"{progress.sent} sent, {progress.results - failed} succeeded, {failed} failed again, "
        f"{progress.refusals} refused, {len(progress.on_their_way)} in flight"
    )


def _table() -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _add(table: Table, what: str, kind: OrderGroup) -> None:
    which = f"{_some(kind.samples, kind.orders)}: {option_words(kind.reason)}"
    table.add_row(what, str(kind.orders), plain(which))


def _some(samples: Sequence[str], orders: int) -> str:
    return ", ".join(samples) + (" ..." if orders > len(samples) else "")
