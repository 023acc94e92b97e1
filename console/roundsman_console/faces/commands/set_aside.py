"""`roundsman dlq` and `roundsman rejected`: messages that were set aside.

They are listed, shown, corrected, sent again and deleted.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, TypeAlias

import typer

from roundsman_console.acts.set_aside.again import (
    SendOptions,
    SendResult,
    resend_document,
    send_all,
    send_corrected,
)
from roundsman_console.acts.set_aside.verbs import RedriveVerb
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import FAILED, USAGE, ConsoleError, Interrupted
from roundsman_console.base.hints import hint
from roundsman_console.base.result import document_of
from roundsman_console.base.typed_inputs import read_body
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.errors import complain, sentences
from roundsman_console.faces.cli.options import AsJson, Yes
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack, find_stack
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.faces.cli.text.set_aside import (
    candidate_line,
    dead_lines,
    hidden_words,
    message_table,
    rejected_lines,
    resent_lines,
    working,
)
from roundsman_console.faces.cli.verb_commands import add_commands
from roundsman_console.faces.cli.verb_options import command_of
from roundsman_console.facts.application import application_events
from roundsman_console.facts.set_aside.assess import judge
from roundsman_console.facts.set_aside.documents import MessageListDocument
from roundsman_console.facts.set_aside.masked import masked_body
from roundsman_console.facts.set_aside.messages import (
    SetAside,
    SetAsideQueue,
    dead_queues,
    held,
    list_document,
    look_at,
    rejected_queue,
)
from roundsman_console.facts.set_aside.peek import MOST
from roundsman_console.facts.set_aside.queues import find_source, named_source

dlq_app = typer.Typer(
    name="dlq",
    help="Dead letters, messages that failed every delivery: list, read, send back.",
    no_args_is_help=True,
)
rejected_app = typer.Typer(
    name="rejected",
    help="Rejected messages, which can never be handled: list, read, correct, send again.",
    no_args_is_help=True,
)

Reveal: TypeAlias = Annotated[
    bool, typer.Option("--reveal", help="Show masked values of the body too.")
]


# Listed


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
        _list(dead_queues(find_stack(stack, application_events()), queue), limit, as_json=as_json)


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
        places = [rejected_queue(find_stack(stack, application_events()))]
        _list(places, limit, as_json=as_json)


def _list(places: Sequence[SetAsideQueue], limit: int, *, as_json: bool) -> None:
    looked = look_at(places, limit)
    if as_json:
        print(json.dumps(document_of(list_document(looked))))
        return
    if not any(one.place.source or one.messages for one in looked):
        say(f"No {places[0].nouns}.")
    for one in looked:
        source, many = one.place.source, len(one.messages)
        hidden = hidden_words(one.held)
        if source is not None:
            dead = f"more than {many}" if one.more else many
            say(f"{source.name} (read by the {source.function} function): {dead} dead", hidden)
        if one.messages:
            results().print(
                message_table(one.place.stack, one.messages, now(), dead=source is not None)
            )
        if source is None:
            say(hidden)
        if one.more:
            say("There are more: raise --limit.")
        if source is None and one.messages:
            say(hint("Show one with: roundsman rejected show ID"))


# Shown


@dlq_app.command("show")
def dlq_show_command(
    what: Annotated[str, typer.Argument(help="A message id, the beginning of one, or a queue.")],
    limit: Annotated[
        int, typer.Option(min=1, max=MOST, help="With a queue: maximum number of messages to show.")
    ] = 10,
    reveal: Reveal = False,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a dead letter, or those of a queue: reason, effect if sent back, log query and body.

    Example: roundsman dlq show 5fea7756
    """
    with sentences():
        found = find_stack(stack, application_events())
        more, shown = False, list[SetAside]()
        if named_source(found, what):
            [looked] = look_at(dead_queues(found, what), limit)
            shown, more = [*looked.messages], looked.more
        else:
            with held(dead_queues(found), what) as (_, one):
                shown = [one]
        judged = [
            (one, judge(found, one.source, one.body, now()), _body(found, one, reveal))
            for one in shown
            if one.source is not None
        ]
        if as_json:
            messages = [
                one.whole_document(effect, found.name, body) for one, effect, body in judged
            ]
            print(json.dumps(document_of(MessageListDocument(messages=messages, more=more))))
            return
        for one, effect, body in judged:
            say(*dead_lines(one, effect, found.name, body))
        if not shown:
            say("No dead letters.")
        if more:
            say("There are more: raise --limit.")


def _body(stack: DeployedStack, one: SetAside, reveal: bool) -> str:
    return one.body if reveal else masked_body(stack, one.body)


@rejected_app.command("show")
def rejected_show_command(
    message: Annotated[str, typer.Argument(help="The message id, or the beginning of it.")],
    reveal: Reveal = False,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Show one rejected message: every problem with its path, and the body.

    Example: roundsman rejected show 5fea7756
    """
    with sentences():
        found = find_stack(stack, application_events())
        with held([rejected_queue(found)], message) as (_, one):
            body = _body(found, one, reveal)
        if as_json:
            print(json.dumps(document_of(one.document(body=body))))
            return
        say(*rejected_lines(one, body))


# Sent again


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
        wanted = SendOptions(limit, verb.only, rate, verb.anyway)

        def agreed(result: SendResult) -> bool:
            if not as_json:
                say(*map(candidate_line, result.assessed))
                if not result.assessed:
                    say(f"No dead letters of {source.name}.")
            return yes or len(result.assessed) <= 1

        result = _send_all(SetAsideQueue(found, source), wanted, agreed, quiet=as_json)
        if as_json:
            print(json.dumps(document_of(result.redrive_document(source.name))))
        elif result.dry:
            say(f"Nothing was sent. To send {len(result.going)} of them, add --yes.")
        elif result.assessed:
            every = len(result.going) == len(result.assessed)
            stays = "" if every else " Add --anyway to send those that would fail again too."
            say(f"{len(result.sent)} sent back to {source.name}, {result.left} left.{stays}")
        _end(result, limit, as_json=as_json)
        if result.assessed and not result.going:
            raise typer.Exit(FAILED)


def _send_all(
    place: SetAsideQueue, wanted: SendOptions, agreed: Callable[[SendResult], bool], *, quiet: bool
) -> SendResult:
    try:
        return send_all(place, wanted, agreed, working=partial(working, quiet=quiet))
    except Interrupted as interrupted:
        result: SendResult = interrupted.result
        return result


def _end(result: SendResult, limit: int, *, as_json: bool) -> None:
    """Say that there are more. Raises what ended the sending early."""
    if result.more and not as_json:
        say(f"More than {limit} exist; raise --limit, or repeat the command.")
    if result.error is not None:
        raise result.error


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
        place = rejected_queue(found)
        if message is None:
            agreed = partial(_confirmed, yes=yes)
            several = _send_all(place, SendOptions(limit), agreed, quiet=as_json)
            if as_json:
                print(json.dumps(document_of(several.resend_document())))
            else:
                stays = "" if several.error else ": they would be rejected again"
                say(f"{len(several.sent)} sent, {several.left} left{stays}.")
            _end(several, limit, as_json=as_json)
            return
        with held([place], message) as (look, one):
            fixed = partial(send_corrected, sets=sets or (), removes=removes or ())
            result = fixed(found, look, one, whole=whole, anyway=anyway)
        if as_json:
            print(json.dumps(document_of(resend_document([result], int(not result.sent)))))
        if not result.sent:
            complain("\n".join(resent_lines(result)))
            raise typer.Exit(FAILED)
        if not as_json:
            say(*resent_lines(result))


def _confirmed(result: SendResult, *, yes: bool) -> bool:
    going = len(result.going)
    if going:
        stay = f"{len(result.assessed) - going} rejected again"
        many = counted(going, "message")
        question = f"{many} would be accepted now, {stay}. Send those that would be accepted?"
        confirm(question, yes=yes)
    return True


# Deleted

add_commands(dlq_app)
add_commands(rejected_app)
