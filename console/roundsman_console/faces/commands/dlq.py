"""`roundsman dlq`: lists, shows, redrives and deletes dead letters."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from roundsman.model.instants import iso
from roundsman_console.acts.set_aside.edits import laid_out
from roundsman_console.acts.set_aside.redrive import Redrive, RedriveResult, redrive
from roundsman_console.acts.set_aside.verbs import DropDeadLetterVerb, RedriveVerb
from roundsman_console.base.clock import now
from roundsman_console.base.errors import FAILED, Interrupted
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson, Dropped, Yes
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack, find_stack
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.faces.cli.text.set_aside import (
    SHORT_ID,
    age,
    hidden_words,
    message_table,
    working,
)
from roundsman_console.faces.cli.verb_options import command_of
from roundsman_console.facts.application import application_events
from roundsman_console.facts.set_aside.assess import JudgedMessage, judge, order_of
from roundsman_console.facts.set_aside.documents import (
    DeadLetterDetailsDocument,
    DeadLetterListDocument,
    DroppedDeadLetterDocument,
)
from roundsman_console.facts.set_aside.listing import (
    Dead,
    DeadQueue,
    delete_dead_letter,
    find_dead_letter,
    look_at,
)
from roundsman_console.facts.set_aside.masked import masked_body
from roundsman_console.facts.set_aside.peek import MOST
from roundsman_console.facts.set_aside.queues import find_source, named_source

dlq_app = typer.Typer(
    help="Dead letters, messages that failed every delivery: list, read, send back.",
    no_args_is_help=True,
)


@dlq_app.command("ls")
def dlq_ls_command(
    queue: Annotated[
        str | None, typer.Argument(help="Only the dead letters of this queue.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number of messages.")] = 50,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """List the dead letters by queue, oldest first, each with its reason.

    While the command reads, for some seconds, the listed messages are hidden from others.

    Example: roundsman dlq ls
    """
    with sentences():
        found = find_stack(stack, application_events())
        looked = look_at(found, queue, limit)
        if as_json:
            listed: DeadLetterListDocument = {
                "queues": [one.document() for one in looked],
                "messages": [dead.document() for one in looked for dead in one.dead],
                "more": any(one.more for one in looked),
            }
            print(json.dumps(listed))
            return
        if not looked:
            say("No dead letters.")
        for one in looked:
            _show(one, now())


@dlq_app.command("show")
def dlq_show_command(
    what: Annotated[str, typer.Argument(help="A message id, the beginning of one, or a queue.")],
    limit: Annotated[
        int, typer.Option(min=1, max=MOST, help="With a queue: maximum number of messages to show.")
    ] = 10,
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show masked values of the body too.")
    ] = False,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a dead letter, or those of a queue: reason, effect if sent back, log query and body.

    Example: roundsman dlq show 5fea7756
    """
    with sentences():
        found = find_stack(stack, application_events())
        if named_source(found, what):
            [looked] = look_at(found, what, limit)
            shown, more = looked.dead, looked.more
        else:
            shown, more = [find_dead_letter(found, what)], False
        judged = [(dead, judge(found, dead.source, dead.letter.body, now())) for dead in shown]
        bodies = [
            dead.letter.body if reveal else masked_body(found, dead.letter.body) for dead in shown
        ]
        if as_json:
            messages = [
                dead.whole_document(effect, found.name, body)
                for (dead, effect), body in zip(judged, bodies, strict=True)
            ]
            print(json.dumps(DeadLetterDetailsDocument(messages=messages, more=more)))
            return
        for (dead, effect), body in zip(judged, bodies, strict=True):
            say(*_lines(dead, effect, found.name, body))
        if not shown:
            say("No dead letters.")
        if more:
            say("There are more: raise --limit.")


def _lines(dead: Dead, judged: JudgedMessage, stack: str, body: str) -> list[str]:
    before = f"Already sent back {dead.sent_back} times."
    return [
        f"{dead.message_id}  {judged.what}",
        f"sent to {dead.source.name} {iso(dead.sent_at)}, received {dead.receives} times",
        f"Reason: {dead.reason}",
        *((f"  {line}" for line in dead.attached.error_at) if dead.attached else ()),
        *((before,) if dead.sent_back else ()),
        f"If sent back now: {judged.verdict.words}, {judged.why}.",
        f"Log: {dead.log_query(stack)}",
        "",
        *laid_out(body).splitlines(),
    ]


@dlq_app.command("redrive")
@command_of(RedriveVerb)
def dlq_redrive_command(
    verb: RedriveVerb,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number of messages.")] = 100,
    rate: Annotated[float, typer.Option(min=0.5, max=100, help="Messages per second.")] = 10.0,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Send them. Without it, more than one are only listed."),
    ] = False,
) -> None:
    with sentences():
        found = announced_stack(stack, application_events())
        source = find_source(found, verb.queue)
        wanted = Redrive(source, verb.only, limit, rate, verb.anyway)

        def agreed(result: RedriveResult) -> bool:
            if not as_json:
                _show_candidates(result)
            return yes or len(result.candidates) <= 1

        try:
            result = redrive(found, wanted, agreed, working=partial(working, quiet=as_json))
        except Interrupted as interrupted:
            result = interrupted.result
        if as_json:
            print(json.dumps(result.document()))
        else:
            _print_redriven(result)
        if result.error is not None:
            raise result.error
        if result.candidates and not result.going:
            raise typer.Exit(FAILED)


@dlq_app.command("drop")
@command_of(DropDeadLetterVerb)
def dlq_drop_command(
    verb: DropDeadLetterVerb,
    stack: StackOption = None,
    as_json: Dropped = False,
    yes: Yes = False,
) -> None:
    with sentences():
        found = announced_stack(stack, application_events())
        dead = find_dead_letter(found, verb.message)
        which, order = dead.message_id, order_of(dead.letter.body)
        confirm(
            f"Delete the dead letter {which} of {order or 'an unknown order'} for good?", yes=yes
        )
        delete_dead_letter(found, dead)
        if as_json:
            dropped: DroppedDeadLetterDocument = {**dead.document(), "body": dead.letter.body}
            print(json.dumps(dropped))
            return
        say(f"Deleted {which}.")


def _show(found: DeadQueue, at: int) -> None:
    many = len(found.dead)
    say(
        f"{found.source.name} (read by the {found.source.function} function): "
        f"{many if not found.more else f'more than {many}'} dead",
        hidden_words(found.held),
    )
    if found.dead:
        rows = (_row(one, at) for one in found.dead)
        results().print(message_table("Received", "Why", rows))
    if found.more:
        say("There are more: raise --limit.")


def _row(one: Dead, at: int) -> Sequence[str]:
    back = f" (already sent back {one.sent_back} times)" if one.sent_back else ""
    order, why = order_of(one.letter.body) or "?", f"{one.reason}{back}"
    return one.message_id, age(one.sent_at, at), f"{one.receives} times", order, why


def _show_candidates(result: RedriveResult) -> None:
    if not result.candidates:
        say(f"No dead letters of {result.wanted.source.name}.")
    for one in result.candidates:
        which = one.dead.message_id[:SHORT_ID]
        again = f"; already sent back {one.dead.sent_back} times" if one.dead.sent_back else ""
        words = one.judged.verdict.words
        say(f"{which}  {one.judged.what}: {words}, {one.judged.why}{again}")


def _print_redriven(result: RedriveResult) -> None:
    source, limit = result.wanted.source, result.wanted.limit
    going, sent, all_ = len(result.going), len(result.sent), len(result.candidates)
    if result.dry:
        say(f"Nothing was sent. To send {going} of them, add --yes.")
    elif result.candidates:
        stays = " Add --anyway to send those that would fail again too." if going < all_ else ""
        say(f"{sent} sent back to {source.name}, {all_ - sent} left.{stays}")
    if result.more:
        say(f"More than {limit} exist; raise --limit, or repeat the command.")
