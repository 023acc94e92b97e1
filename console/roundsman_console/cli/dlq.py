"""`roundsman dlq`: lists, shows, redrives and deletes dead letters."""

import json
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from roundsman.aws.clock import now
from roundsman.model.instants import iso
from roundsman.model.json import Json
from roundsman_console.cli.operate import AsJson, Yes
from roundsman_console.cli_errors import NOT_FOUND, USAGE, ConsoleError, sentences
from roundsman_console.confirm import confirm
from roundsman_console.dead_letters.assess import Judged, judge, order_of
from roundsman_console.dead_letters.format import (
    SHORT_ID,
    age,
    hidden_words,
    pretty,
    problem_documents,
    say,
)
from roundsman_console.dead_letters.listing import Dead, dead_letters
from roundsman_console.dead_letters.peek import MOST, QueuePeek
from roundsman_console.dead_letters.queues import (
    Counts,
    Source,
    counts,
    find_source,
    named_source,
    sources,
)
from roundsman_console.dead_letters.redrive import Redrive, redrive
from roundsman_console.read.stack import DeployedStack, StackOption, find_stack
from roundsman_console.sanitize import inert, plain

dlq_app = typer.Typer(
    help="Dead letters, which failed each delivery: list, read, send back.",
    no_args_is_help=True,
)
MessageId = Annotated[str, typer.Argument(help="The message's id, or how it begins.")]


@dataclass(frozen=True, slots=True)
class Found:
    """The messages that were read from one dead-letter queue."""

    source: Source
    held: Counts
    dead: list[Dead]
    more: bool
    """Whether the limit left messages unread."""

    def document(self) -> dict[str, Json]:
        """Return the queue as a JSON object for --json."""
        oldest = min((one.sent_at for one in self.dead), default=None)
        return {
            "queue": self.source.name,
            "deadLetterQueue": self.source.dead_url.rpartition("/")[2],
            "function": self.source.function,
            "about": self.held.all,
            "hidden": self.held.hidden,
            "oldestSentAt": iso(oldest) if oldest is not None else None,
        }


@dlq_app.command("ls")
def dlq_ls_command(
    queue: Annotated[str | None, typer.Argument(help="Only of this queue.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="How many at most.")] = 50,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters by the queue they come from, oldest first, each with its reason.

    Others cannot see what is listed while it is being read, for some seconds.

    Example: roundsman dlq ls
    """
    with sentences():
        found = find_stack(stack)
        looked = _look(found, queue, limit)
        if as_json:
            print(
                json.dumps(
                    {
                        "queues": [one.document() for one in looked],
                        "messages": [dead.document() for one in looked for dead in one.dead],
                        "more": any(one.more for one in looked),
                    }
                )
            )
            return
        if not looked:
            say("No dead letters.")
        for one in looked:
            _show(one, now())


@dlq_app.command("show")
def dlq_show_command(
    what: Annotated[str, typer.Argument(help="A message's id, or how it begins; or a queue.")],
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Of a queue: at most.")] = 10,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a dead letter, or those of a queue: why, what would come of it now, its log, its text.

    Example: roundsman dlq show 5fea7756
    """
    with sentences():
        found = find_stack(stack)
        if named_source(found, what):
            [looked] = _look(found, what, limit)
            shown, more = looked.dead, looked.more
        else:
            shown, more = [_find(found, what)], False
        judged = [(dead, judge(found, dead.source, dead.letter.body, now())) for dead in shown]
        if as_json:
            messages: list[Json] = [_whole(dead, said, found.name) for dead, said in judged]
            print(json.dumps({"messages": messages, "more": more}))
            return
        for dead, said in judged:
            say(*_lines(dead, said, found.name))
        if not shown:
            say("No dead letters.")
        if more:
            say("There are more: raise --limit.")


def _whole(dead: Dead, judged: Judged, stack: str) -> dict[str, Json]:
    return {
        **dead.document(),
        "errorAt": list(dead.said.error_at) if dead.said else [],
        "what": judged.what,
        "verdict": judged.verdict.value,
        "why": judged.why,
        "problems": problem_documents(judged.problems),
        "log": dead.log_query(stack),
        "body": dead.letter.body,
    }


def _lines(dead: Dead, judged: Judged, stack: str) -> list[str]:
    before = f"Sent back {dead.sent_back} times before."
    return [
        f"{dead.letter.message_id}  {judged.what}",
        f"sent to {dead.source.name} {iso(dead.sent_at)}, received {dead.receives} times",
        f"Why: {dead.reason}",
        *((f"  {line}" for line in dead.said.error_at) if dead.said else ()),
        *((before,) if dead.sent_back else ()),
        f"If it were sent back now: {judged.verdict.words}, {judged.why}.",
        f"The log: {dead.log_query(stack)}",
        "",
        *pretty(dead.letter.body),
    ]


@dlq_app.command("redrive")
def dlq_redrive_command(
    queue: Annotated[str, typer.Argument(help="The queue that they come from.")],
    only: Annotated[
        str | None, typer.Option("--only", help="One message: its id, or how it begins.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="How many at most.")] = 100,
    rate: Annotated[float, typer.Option(min=0.5, max=100, help="Messages a second.")] = 10.0,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also those that would fail again.")
    ] = False,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    """Send dead letters back to their queue. More than one are only told without --yes.

    Each is judged first: whether it still acts, is passed over, or would fail again; those
    that would fail again stay.

    Example: roundsman dlq redrive SchedulerQueue --limit 20 --yes
    """
    with sentences():
        found = find_stack(stack)
        source = find_source(found, queue)
        wanted = Redrive(source, only, limit, rate, anyway, dry=not yes)
        redrive(found, wanted, as_json=as_json)


@dlq_app.command("drop")
def dlq_drop_command(
    message: MessageId, stack: StackOption = None, as_json: AsJson = False, yes: Yes = False
) -> None:
    """Delete one dead letter for good; with --json, what it was is printed.

    Example: roundsman dlq drop 5fea7756 --yes
    """
    with sentences():
        found = find_stack(stack)
        dead = _find(found, message)
        which, order = dead.letter.message_id, order_of(dead.letter.body)
        confirm(f"Delete the dead letter {which} of {order or 'no order'} for good?", yes=yes)
        _delete(found, dead)
        if as_json:
            print(json.dumps({**dead.document(), "body": dead.letter.body}))
            return
        say(f"Done: {which} is deleted.")


def _look(stack: DeployedStack, queue: str | None, limit: int) -> list[Found]:
    """Read at most `limit` dead letters in total, of one queue or of all queues (None).

    If `queue` is None, queues that SQS counts as empty are skipped. Raises ConsoleError if there
    is no such queue.
    """
    asked = [find_source(stack, queue)] if queue else sources(stack)
    found: list[Found] = []
    for source in asked:
        held = counts(stack.sqs, source.dead_url)
        if not held.all and queue is None:
            continue
        left = limit - sum(len(one.dead) for one in found)
        with QueuePeek(stack.sqs, source.dead_url) as look:
            letters = list(look.letters(left + 1)) if left > 0 else []
        dead = dead_letters(source, letters[: max(0, left)])
        found.append(Found(source, held, dead, len(letters) > left or left <= 0))
    return found


def _find(stack: DeployedStack, asked: str) -> Dead:
    """Return the dead letter whose id begins with `asked`, from any queue.

    Raises ConsoleError if none or several match.
    """
    everything = [dead for one in _look(stack, None, MOST) for dead in one.dead]
    found = [dead for dead in everything if asked and dead.letter.message_id.startswith(asked)]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(dead.letter.message_id for dead in found[:5])
        raise ConsoleError(f"{inert(asked)} is the beginning of {len(found)} ids: {ids}.", USAGE)
    raise ConsoleError(
        f"There is no dead letter {inert(asked[:80])!r} in {stack.name} (or somebody else is "
        "looking at it: it is back within a minute).",
        NOT_FOUND,
    )


def _delete(stack: DeployedStack, dead: Dead) -> None:
    """Delete the dead letter and its copies. Raises ConsoleError if one is hidden now."""
    ids = {dead.letter.message_id, *(copy.message_id for copy in dead.copies)}
    with QueuePeek(stack.sqs, dead.source.dead_url) as look:
        for letter in look.letters(MOST):
            if letter.message_id in ids:
                look.delete(letter)
                ids.remove(letter.message_id)
            if not ids:
                return
    raise ConsoleError(
        f"{dead.letter.message_id} is hidden now, since somebody else looks at it: it was not "
        "deleted. Try again in a minute."
    )


def _show(found: Found, at: int) -> None:
    many = len(found.dead)
    say(
        f"{found.source.name}: {many if not found.more else f'more than {many}'} dead, read by "
        f"the {found.source.function} function",
        hidden_words(found.held),
    )
    if found.dead:
        Console(highlight=False).print(_table(found.dead, at))
    if found.more:
        say("There are more: raise --limit.")


def _table(dead: list[Dead], at: int) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("ID", "Age", "Received", "Order"):
        table.add_column(heading, no_wrap=True, max_width=24)
    table.add_column("Why", overflow="fold")
    for one in dead:
        back = f" (sent back {one.sent_back} times before)" if one.sent_back else ""
        table.add_row(
            plain(one.letter.message_id[:SHORT_ID]),
            plain(age(one.sent_at, at)),
            plain(f"{one.receives} times"),
            plain(order_of(one.letter.body) or "?"),
            plain(f"{one.reason}{back}"),
        )
    return table
