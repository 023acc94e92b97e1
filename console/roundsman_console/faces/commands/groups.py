"""`roundsman groups`: lists the failure groups, and shows one with the commands to run next."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.table import Table

from roundsman.model.failure import AWAITS_RESULT, NO_STEP, RETRIED, UNDO_FAILED, UNDONE
from roundsman.model.holds import hold_words
from roundsman.model.instants import format_duration, second
from roundsman.model.task import Task
from roundsman_console.aws.group_notes import GroupNote
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import NOT_FOUND, USAGE, ConsoleError
from roundsman_console.base.hints import hint, hinted_json
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.faces.cli.verb_commands import add_commands
from roundsman_console.facts.agent.reading import find_agents
from roundsman_console.facts.group.course import read_group_course
from roundsman_console.facts.group.documents import (
    EndedGroupDocument,
    GroupListDocument,
    group_details,
    group_document,
    retried_document,
)
from roundsman_console.facts.group.effects import order_effects
from roundsman_console.facts.group.next_commands import commands_of
from roundsman_console.facts.group.reading import (
    OVER_WITH_ORDERS,
    GroupNow,
    find_group,
    list_groups,
)
from roundsman_console.facts.group.retried import RetriedNow, Retries, read_retries
from roundsman_console.facts.order.step_text import error_words, span
from roundsman_console.facts.orders.open_orders import read_open_orders
from roundsman_console.facts.orders.selection import read_selection

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

groups_app = typer.Typer(
    name="groups",
    help="List failure groups, the tasks that failed alike, or show one.",
    invoke_without_command=True,
)
_HOW = {
    UNDONE: "undone",
    UNDO_FAILED: "undo failed",
    RETRIED: "retried",
    AWAITS_RESULT: "waits for a result",
}
_STYLES = {"critical": "red", "error": "red", "warning": "yellow"}


@groups_app.callback()
def groups_callback(
    context: typer.Context, stack: StackOption = None, as_json: AsJson = False
) -> None:
    """List failure groups, the tasks that failed alike, or show one.

    Example: roundsman groups
    """
    if context.invoked_subcommand is None:
        groups_ls_command(stack, as_json)
    elif stack is not None or as_json:
        with sentences():
            word = context.invoked_subcommand
            raise ConsoleError(
                f"Give options after the subcommand: roundsman groups {word} ...", USAGE
            )


@groups_app.command("ls")
def groups_ls_command(stack: StackOption = None, as_json: AsJson = False) -> None:
    """List the open failure groups, those that need a person first, and what is retried now.

    Example: roundsman groups ls
    """
    with sentences():
        found = find_stack(stack)
        groups = list_groups(found, find_agents(found), now())
        retries = read_retries(found, read_open_orders(found), now())
        if as_json:
            documents = [*map(group_document, groups)]
            retried = [*map(retried_document, retries.causes)]
            print(hinted_json(GroupListDocument(groups=documents, retried=retried)))
            return
        print_list(groups)
        print_retries(retries)


@groups_app.command("show")
def groups_show_command(
    group: Annotated[str, typer.Argument(help="The group: f-1a2b3c4d.")],
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a failure group: its cause, its orders, what to do, and the notes on it.

    Example: roundsman groups show f-1a2b3c4d
    """
    with sentences():
        read_selection({"group": group})  # raises ConsoleError if this is not a group id
        found = find_stack(stack)
        at = now()
        shown = find_group(found, group, find_agents(found), at)
        notes = found.group_notes.of(group)
        if shown is None and notes:
            if as_json:
                print(hinted_json(EndedGroupDocument(id=group, standing="over", notes=notes)))
                return
            say(f"{group} is over: no order is in it now.")
            print_notes(notes)
            return
        if shown is None:
            raise ConsoleError(
                f"{found.name} has no failure group {group}, or the group has no orders left. "
                "See: roundsman groups",
                NOT_FOUND,
            )
        if as_json:
            print(hinted_json(group_details(shown, read_group_course(found, shown, at), notes)))
            return
        print_group(shown)
        print_notes(notes)


add_commands(groups_app)


def print_list(groups: Sequence[GroupNow]) -> None:
    """Print the groups as a table."""
    console = results()
    console.print(_table(groups) if groups else "No failure groups.")
    if groups:
        console.print(hint("Show one with: roundsman groups show GROUP"), soft_wrap=True)


def print_retries(retries: Retries) -> None:
    """Print what is retried now as a table, below the groups; nothing if no order is."""
    if not retries.causes:
        return
    console = results()
    console.print("\nRetried now:")
    console.print(_table_of_retries(retries.causes))
    if retries.others:
        console.print(f"and {counted(retries.others, 'further cause')}")
    if not retries.whole:
        console.print(f"Of the {retries.read:,} open orders that are due first.")


def print_group(group: GroupNow) -> None:
    """Print one group, and the commands to run next."""
    console = results()
    for line, style in _lines(group):
        console.print(plain(line, style))
    for command in commands_of(group):
        console.print(hint(f"  {command}"), markup=False, soft_wrap=True)


def print_notes(notes: Sequence[GroupNote]) -> None:
    """Print the notes on a group, the newest first; nothing without one."""
    if notes:
        say("", "Notes:")
    for note in notes:
        say(f"{second(note.at)} {note.by}: {' '.join(note.text.split())}")


def _lines(group: GroupNow) -> Iterator[tuple[str, str]]:
    where = group.workflow if group.step == NO_STEP else f"{group.workflow}  {group.step}"
    yield f"{group.id}  {where}  {group.standing}", _STYLES[group.severity]
    yield f"{_HOW.get(group.how, 'failed')}: {error_words(group.error_type, group.message)}", ""
    if group.count.count:
        one = (group.count.count, group.count.more) == (1, False)
        yield f"{group.count} order{'' if one else 's'}", "bold"
    else:
        yield "no orders are left in it", ""
    if group.count.count and group.standing == "over":
        yield OVER_WITH_ORDERS, ""
    if group.first_at is not None and group.last_at is not None:
        yield f"failed from {second(group.first_at)} to {second(group.last_at)}", ""
    if group.complete_by is not None and group.how != UNDONE:
        yield f"complete by {second(group.complete_by)}, the earliest of them", ""
    if group.row is not None and group.row.alerted_at is not None:
        alerted = f"alerted at {second(group.row.alerted_at)}"
        yield f"{alerted}; order count then: at least {group.row.alerted_count}", ""
    if group.row is not None and group.row.overflow:
        yield "it collects the failures beyond the maximum number of separate groups", "yellow"
    yield from _agent_lines(group)
    for task in group.samples:
        yield "", ""
        yield f"{task.task_id}  {task.state}  {_ended(task)}", ""
        for what, names in order_effects(task).items():
            yield f"  {what}: {span(names)}", ""
    yield "", ""


def _agent_lines(group: GroupNow) -> Iterator[tuple[str, str]]:
    agent = group.agent
    if agent is None:
        return
    if not agent.holds:
        yield f"{agent.name} accepts work", ""
    for hold in agent.holds:
        yield f"{agent.name} {hold_words(hold)}, until {second(hold.until)}", "yellow"


def _ended(task: Task) -> str:
    return "" if task.ended_at is None else f"failed at {second(task.ended_at)}"


def _table(groups: Sequence[GroupNow]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("Group", "Orders", "Last"):
        table.add_column(heading, no_wrap=True, justify="right" if heading == "Orders" else "left")
    for heading in ("Where", "Cause"):
        table.add_column(heading, overflow="fold")
    at = now()
    for group in groups:
        last = "" if group.last_at is None else f"{format_duration(max(0, at - group.last_at))} ago"
        where = group.workflow if group.step == NO_STEP else f"{group.workflow} {group.step}"
        how = f"{_HOW[group.how]}: " if group.how in _HOW else ""
        calm = "" if group.standing == "open" else f" ({group.standing})"
        table.add_row(
            plain(group.id, _STYLES[group.severity]),
            plain(f"{'>' if group.count.more else ''}{group.count.count:,}"),
            plain(last),
            plain(where),
            plain(f"{how}{error_words(group.error_type, group.message)}{calm}"),
        )
    return table


def _table_of_retries(causes: Sequence[RetriedNow]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("Orders", "New", "Since", "Next"):
        right = heading in ("Orders", "New")
        table.add_column(heading, no_wrap=True, justify="right" if right else "left")
    for heading in ("Where", "Cause", "Sample"):
        table.add_column(heading, overflow="fold")
    at = now()
    for one in causes:
        cause = one.cause
        ahead = None if one.next_at is None else format_duration(max(0, one.next_at - at))
        table.add_row(
            plain(f"{'>' if one.count.more else ''}{one.count.count:,}"),
            plain(f"{one.new:,}"),
            plain("" if one.since is None else f"{format_duration(max(0, at - one.since))} ago"),
            plain("under way" if ahead is None else f"in {ahead}"),
            plain(f"{cause.workflow} {cause.step}{' (undo)' if cause.undo else ''}"),
            plain(error_words(cause.error_type, cause.message)),
            plain(one.sample.task_id),
        )
    return table
