"""`roundsman rejected`: lists, shows, corrects, resends and deletes rejected messages."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from roundsman.command_line import command_line
from roundsman.model.instants import iso
from roundsman_console.acts.set_aside.edits import laid_out
from roundsman_console.acts.set_aside.resend import (
    ResendResult,
    Resent,
    resend,
    resend_all,
    resent_document,
)
from roundsman_console.acts.set_aside.verbs import DropRejectedVerb
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import FAILED, USAGE, ConsoleError, Interrupted
from roundsman_console.base.hints import hint
from roundsman_console.base.typed_inputs import read_body
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.errors import complain, sentences
from roundsman_console.faces.cli.options import AsJson, Dropped, Yes
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack, find_stack
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.faces.cli.text.set_aside import (
    SHORT_ID,
    age,
    hidden_words,
    message_table,
    size_words,
    working,
)
from roundsman_console.faces.cli.verb_options import command_of
from roundsman_console.facts.application import application_events
from roundsman_console.facts.set_aside.assess import first_problem, order_of
from roundsman_console.facts.set_aside.documents import RejectionDocument
from roundsman_console.facts.set_aside.masked import masked_body
from roundsman_console.facts.set_aside.peek import MOST, WHILE_ASKED
from roundsman_console.facts.set_aside.rejections import (
    RejectedLetter,
    RejectedMessages,
    find_rejection,
    list_rejected,
    look_at_rejected,
)

MessageId = Annotated[str, typer.Argument(help="The message id, or the beginning of it.")]

rejected_app = typer.Typer(
    help="Rejected messages, which can never be handled: list, read, correct, send again.",
    no_args_is_help=True,
)


@rejected_app.command("ls")
def rejected_ls_command(
    limit: Annotated[
        int, typer.Option(min=1, max=MOST, help="Maximum number of messages to show.")
    ] = 50,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """List the rejected messages, oldest first, each with its first problem.

    While the command reads, for some seconds, the listed messages are hidden from others.

    Example: roundsman rejected ls
    """
    with sentences():
        found = find_stack(stack, application_events())
        rejected = list_rejected(found, limit)
        if as_json:
            print(json.dumps(rejected.document()))
            return
        _show_list(rejected)


@rejected_app.command("show")
def rejected_show_command(
    message: MessageId,
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show masked values of the body too.")
    ] = False,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Show one rejected message: every problem with its path, and the body.

    Example: roundsman rejected show 5fea7756
    """
    with sentences():
        found = find_stack(stack, application_events())
        with look_at_rejected(found) as look:
            rejection = find_rejection(look, message)
        body = rejection.body if reveal else masked_body(found, rejection.body)
        if as_json:
            print(json.dumps({**_whole_document(rejection), "body": body}))
            return
        say(*_lines(rejection, body))


@rejected_app.command("resend")
def rejected_resend_command(
    message: Annotated[
        str | None, typer.Argument(help="The message id, or the beginning of it.")
    ] = None,
    body: Annotated[
        str | None, typer.Option(help="The new body: @file, @- for stdin, or the text itself.")
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="path=value: a path as in the problems; JSON or plain text."),
    ] = None,
    removes: Annotated[
        list[str] | None, typer.Option("--remove", help="The path of a field to remove.")
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Send it even if it would be rejected again.")
    ] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Send, unchanged, all messages that would be accepted now."),
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=MOST, help="With --all: maximum number of messages to read.")
    ] = 100,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    """Send a rejected message, corrected, to its queue again, and delete the rejected one.

    The code that handles the message checks it first. A message that would be rejected again is
    not sent, and every problem is printed. --all first shows what it would send.

    Example: roundsman rejected resend 5fea7756 --set currency=EUR
    """
    corrects = bool(sets or removes or body is not None)
    with sentences():
        if everything == (message is not None):
            raise ConsoleError("Give either a message id or --all.", USAGE)
        if everything and (corrects or anyway):
            raise ConsoleError(
                "--all sends messages unchanged. To correct one, give its id.", USAGE
            )
        if body is not None and (sets or removes):
            raise ConsoleError("Give either --body, or --set and --remove.", USAGE)
        whole = read_body(body)
        found = announced_stack(stack, application_events())
        if message is None:
            _resend_all(found, limit, yes=yes, as_json=as_json)
            return
        with look_at_rejected(found) as look:
            rejection = find_rejection(look, message)
            result = resend(
                found, look, rejection, whole=whole, sets=sets, removes=removes, anyway=anyway
            )
        if as_json:
            print(json.dumps(resent_document([result], int(not result.sent))))
        if not result.sent:
            complain("\n".join(_resent_lines(result)))
            raise typer.Exit(FAILED)
        if not as_json:
            say(*_resent_lines(result))


def _resend_all(stack: DeployedStack, limit: int, *, yes: bool, as_json: bool) -> None:
    try:
        agreed = partial(_confirmed, yes=yes)
        result = resend_all(stack, limit, agreed, working=partial(working, quiet=as_json))
    except Interrupted as interrupted:
        result = interrupted.result
    if as_json:
        print(json.dumps(result.document()))
    else:
        stays = "" if result.error else ": they would be rejected again"
        say(f"{len(result.sent)} sent, {result.left} left{stays}.")
        if result.more:
            say(f"More than {limit} exist; raise --limit, or repeat the command.")
    if result.error is not None:
        raise result.error


def _confirmed(result: ResendResult, *, yes: bool) -> bool:
    going = len(result.going)
    if going:
        stay = f"{len(result.assessed) - going} rejected again"
        many = counted(going, "message")
        question = f"{many} would be accepted now, {stay}. Send those that would be accepted?"
        confirm(question, yes=yes)
    return True


def _resent_lines(result: Resent) -> list[str]:
    """Return the result as lines of text for people."""
    which = result.rejection.message_id[:SHORT_ID]
    if not result.sent:
        return [
            f"{which} would be rejected again, so it was not sent:",
            *(f"- {problem}" for problem in result.judged.problems),
        ]
    order = order_of(result.body)
    follow = hint(f" See: {command_line('show', order)}") if order else ""
    return [f"Sent {which} to {result.source.name} ({result.judged.why}).{follow}"]


@rejected_app.command("drop")
@command_of(DropRejectedVerb)
def rejected_drop_command(
    verb: DropRejectedVerb,
    stack: StackOption = None,
    as_json: Dropped = False,
    yes: Yes = False,
) -> None:
    with sentences():
        found = announced_stack(stack, application_events())
        with look_at_rejected(found, WHILE_ASKED) as look:
            rejection = find_rejection(look, verb.message)
            which, order = rejection.message_id, order_of(rejection.body)
            about = f" of {order}" if order else ""
            confirm(f"Delete the message {which}{about} for good?", yes=yes)
            look.delete(rejection.letter)
        if as_json:
            print(json.dumps(_whole_document(rejection)))
            return
        say(f"Deleted {which}.")


def _whole_document(one: RejectedLetter) -> RejectionDocument:
    return {**one.document(), "body": one.body}


def _show_list(found: RejectedMessages) -> None:
    listed, at = found.listed, now()
    if listed:
        results().print(message_table("Size", "First problem", (_row(one, at) for one in listed)))
    else:
        say("No rejected messages.")
    say(hidden_words(found.held))
    if found.more:
        say(f"More than {len(listed)} exist; raise --limit.")
    if listed:
        say(hint("Show one with: roundsman rejected show ID"))


def _row(one: RejectedLetter, at: int) -> Sequence[str]:
    order, why = order_of(one.body) or "?", first_problem(one.problems)
    return one.message_id, age(one.letter.sent_at, at), size_words(one.size), order, why


def _lines(one: RejectedLetter, body: str) -> list[str]:
    return [
        f"{one.message_id}  {order_of(one.body) or 'of an unknown order'}",
        f"sent to {one.queue or 'no queue of the stack'}, rejected {iso(one.letter.sent_at)}",
        *(f"- {problem}" for problem in one.problems),
        "",
        *laid_out(body).splitlines(),
    ]
