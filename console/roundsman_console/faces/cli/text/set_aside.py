"""Formats messages that were set aside for the terminal."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from rich.console import Console
from rich.table import Table

from roundsman.command_line import command_line
from roundsman.model.instants import format_duration, iso
from roundsman_console.acts.set_aside.again import Assessed, Resent
from roundsman_console.acts.set_aside.edits import laid_out
from roundsman_console.aws.queues import Counts
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.hints import hint
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.facts.set_aside.assess import JudgedMessage, first_problem, order_of
from roundsman_console.facts.set_aside.messages import SetAside

SHORT_ID = 8  # characters of a message id; enough to distinguish a thousand messages


def size_words(size: int) -> str:
    """Format a number of bytes: `512 B`, `12 KB`."""
    return f"{size} B" if size < 1024 else f"{size / 1024:.0f} KB"


def hidden_words(found: Counts) -> str | None:
    """Return a sentence about the messages that are not visible; None if all are visible."""
    if not found.in_flight:
        return None
    are = "1 message is" if found.in_flight == 1 else f"{found.in_flight} messages are"
    return f"{are} hidden by another reader; visible again within a minute."


def working(what: str, *, quiet: bool) -> AbstractContextManager[object]:
    """Show a spinner with the text `what` on standard error, if that is a terminal."""
    return Console(stderr=True, quiet=quiet).status(what)


def message_table(
    stack: DeployedStack, messages: Sequence[SetAside], at: int, *, dead: bool
) -> Table:
    """Return a table of dead letters or of rejected messages at `at` (epoch ms).

    A message without an order id has what tells it from others in the column of the order.
    """
    table = Table(box=None, pad_edge=False)
    for heading in ("ID", "Age", "Received" if dead else "Size"):
        table.add_column(heading, no_wrap=True)
    for heading in ("Order", "Why" if dead else "First problem"):
        table.add_column(heading, overflow="fold")
    for one in messages:
        age = format_duration(max(0, at - one.sent_at))
        third = f"{one.receives} times" if dead else size_words(one.size)
        why = f"{first_problem(one.problems)}{_sent_back(one, ' (', ')')}"
        cells = (one.message_id[:SHORT_ID], age, third, one.about(stack), why)
        table.add_row(*map(plain, cells))
    return table


def _sent_back(one: SetAside, before: str, after: str = "") -> str:
    return f"{before}already sent back {one.sent_back} times{after}" if one.sent_back else ""


def rejected_lines(one: SetAside, body: str) -> list[str]:
    """Return a rejected message as lines; `body` is its body as it is shown."""
    return [
        f"{one.message_id}  {one.order or 'of an unknown order'}",
        f"{one.came_from}, rejected {iso(one.sent_at)}",
        *(f"- {problem}" for problem in one.problems),
        "",
        *laid_out(body).splitlines(),
    ]


def dead_lines(one: SetAside, judged: JudgedMessage, stack: str, body: str) -> list[str]:
    """Return a dead letter as lines; `body` is its body as it is shown."""
    return [
        f"{one.message_id}  {judged.what}",
        f"sent to {one.queue} {iso(one.sent_at)}, received {one.receives} times",
        f"Reason: {one.reason}",
        *((f"  {line}" for line in one.attached.error_at) if one.attached else ()),
        *((f"Already sent back {one.sent_back} times.",) if one.sent_back else ()),
        f"If sent back now: {judged.verdict.words}, {judged.why}.",
        f"Log: {one.log_query(stack)}",
        "",
        *laid_out(body).splitlines(),
    ]


def candidate_line(one: Assessed) -> str:
    """Return a dead letter that was assessed as a line."""
    which, judged = one.message.message_id[:SHORT_ID], one.judged
    again = _sent_back(one.message, "; ")
    return f"{which}  {judged.what}: {judged.verdict.words}, {judged.why}{again}"


def resent_lines(result: Resent) -> list[str]:
    """Return the result for one rejected message as lines."""
    which = result.message.message_id[:SHORT_ID]
    if not result.sent:
        return [
            f"{which} would be rejected again, so it was not sent:",
            *(f"- {problem}" for problem in result.judged.problems),
        ]
    order = order_of(result.body)
    follow = hint(f" See: {command_line('show', order)}") if order else ""
    return [f"Sent {which} to {result.source.name} ({result.judged.why}).{follow}"]
