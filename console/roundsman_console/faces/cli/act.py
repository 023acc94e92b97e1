"""Running an operator command: on one order directly, on several orders as a bulk run.

Without --go, a bulk run is only a dry run. With --go, it is executed and its progress is stored.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import typer
from rich.console import Console

from roundsman.command_line import REASON, command_line
from roundsman.model.bulk_run import BulkRecord, OrderNote, RunState
from roundsman.model.corrections import typed_change
from roundsman.model.events import COMMAND_KINDS, CommandSource, OperatorEvent
from roundsman.model.instants import iso, second
from roundsman.model.masked_values import MASK, MaskedPaths
from roundsman.model.situations import AwaitsCallback
from roundsman.model.task import Task
from roundsman_console.acts.actor import read_name, read_reason
from roundsman_console.acts.bulk.completed import selects_completed
from roundsman_console.acts.bulk.dry_run import check_bounded, check_holds, choose_for, try_out
from roundsman_console.acts.bulk.start import find_run, new_run, start_run, watch_run
from roundsman_console.acts.bulk.view import resume_command, run_document, tried_document
from roundsman_console.acts.changes import input_lines, plan_lines
from roundsman_console.acts.order.corrections import corrects, known_workflows
from roundsman_console.acts.order.send import send_command
from roundsman_console.acts.order.sent import CommandResult
from roundsman_console.acts.order.verbs import OrderVerb, ResubmitVerb
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import (
    FAILED,
    INTERRUPTED,
    UNCONFIRMED,
    USAGE,
    ConsoleError,
    Interrupted,
    UnboundedSelection,
)
from roundsman_console.base.hints import hinted_json, option_words
from roundsman_console.base.result import CommandOutcome
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.ending import print_sent
from roundsman_console.faces.cli.errors import complain, sentences
from roundsman_console.faces.cli.options import ParsedOptions, TypedCommand
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.terminal import say
from roundsman_console.faces.cli.text.bulk import print_run, print_tried, progress_words
from roundsman_console.facts.application import application_events
from roundsman_console.facts.order.step_text import span
from roundsman_console.facts.orders.selection import Selection


def execute(verb: OrderVerb, orders: Sequence[str], act: ParsedOptions, *, dry_run: bool) -> None:
    """Run the command on one order, or run it or try it out on several orders.

    Raises typer.Exit with the exit code, unless that is 0.
    """
    if len(orders) == 1 and act.selection is None:
        _carry_out(verb, orders[0], act, dry_run=dry_run)
        return
    with sentences():
        if dry_run and act.go:
            raise ConsoleError("Give --dry-run or --go, not both.", USAGE)
        _check(orders, act, verb)
        reason, by = read_reason(act.manner.reason), read_name(act.manner.by)
        run = new_run(verb.event, by, reason, act.selected, act.terms, now())
        as_of = _ages_at(act, run.started_at)
        stack = stack_for(act.manner.stack, run.event)
        quiet = act.manner.as_json
        with Console(stderr=True, quiet=quiet).status("Finding the orders") as status:
            run, chosen = choose_for(
                stack,
                run,
                act.selection or Selection(),
                orders,
                status.update,
                newest_plan_asked=verb.newest_plan,
                as_of=as_of,
            )
            if not act.go:
                tried = try_out(stack, run, chosen, status.update)
            else:
                check_holds(stack, run, chosen.orders)
        if not act.go:
            seen = () if as_of is None or act.as_of is not None else ("--as-of", iso(as_of))
            go_ahead = without_masked(act.typed, stack).carried_out(*seen, "--go")
            if act.manner.as_json:
                print(hinted_json(tried_document(run, tried, go_ahead)))
            else:
                print_tried(run, tried, go_ahead)
            return
        question = verb.question_of_many(counted(len(chosen.orders), "order"))
        if question is not None:
            confirm(question, yes=act.manner.yes)
        with Console(stderr=True, quiet=quiet).status("Storing the run") as status:
            run = start_run(stack, run, chosen.orders, status.update)
        if act.manner.no_wait:
            print_stored(*find_run(stack, run.id), as_json=act.manner.as_json)
            return
        follow(stack, run.id, as_json=act.manner.as_json)


def stack_for(name: str | None, event: OperatorEvent | None = None) -> DeployedStack:
    """Return the stack, with the application's workflows if the command corrects inputs.

    Raises InspectorError if these are not known.
    """
    if event is None or not corrects(event):
        return announced_stack(name)
    stack = announced_stack(name, application_events())
    known_workflows(stack)
    return stack


def _carry_out(verb: OrderVerb, order: str, act: ParsedOptions, *, dry_run: bool) -> None:
    """Send the command for one order, wait for its outcome and print it."""
    manner = act.manner
    with sentences():
        reason, by = read_reason(manner.reason), read_name(manner.by)
        corrected = verb.input is not None or corrects(verb.event(CommandSource("", by)))
        stack = announced_stack(manner.stack, application_events() if corrected else None)
        try:
            result = send_command(
                stack,
                order,
                verb,
                by=by,
                reason=reason,
                wait=0 if manner.no_wait else manner.wait,
                confirm=lambda question: confirm(question, yes=manner.yes),
                show=None if manner.as_json else _print_changes,
                dry_run=dry_run,
            )
        except Interrupted as interrupted:
            result = interrupted.result
        sentence = _in_options(result, without_masked(act.typed, stack))
        print_result(replace(result, sentence=sentence), as_json=manner.as_json)


def _print_changes(result: CommandResult) -> None:
    if result.input:
        say(*input_lines(result.input))
    if result.plan is not None:
        say(*plan_lines(result.plan))


def without_masked(typed: TypedCommand, stack: DeployedStack) -> TypedCommand:
    """Return the command line with MASK for the values that it sets in masked fields."""
    known = stack.events.workflows.values() if stack.events else ()
    paths = MaskedPaths.of(path for workflow in known for path in workflow.masked_paths())
    words = list(typed.options)
    for place, (option, given) in enumerate(itertools.pairwise(words)):
        if option != "--set":
            continue
        change = typed_change(given)
        if change.typed and paths.masked(change.value, change.path) != change.value:
            words[place + 1] = given.removesuffix(change.typed) + MASK
    return replace(typed, options=tuple(words))


def _in_options(result: CommandResult, typed: TypedCommand) -> str:
    """Return the result in words, with the options and the whole command that are missing."""
    sentence, missing = option_words(result.sentence), result.missing
    if missing is None or not (missing.used or missing.not_done):
        return sentence
    options = [word for step in missing.not_done for word in ("--not-done", step)]
    if missing.used and "--used" not in typed.options:
        options.insert(0, "--used")
    if not options:
        return sentence
    names = span(list(missing.not_done))
    sure = f" if the service shows that {names} did not happen" if names else ""
    return f"{sentence}\nNext{sure}: {typed.with_options(*options)}"


def print_result(result: CommandResult, *, as_json: bool) -> None:
    """Print the result of a command. Raises typer.Exit with its exit code, unless that is 0."""
    document = result.document()
    if result.outcome is not CommandOutcome.DONE:
        print_sent(result, document, [result.sentence], as_json=as_json)
        return
    state = f"is {result.task.state}." if result.task else "has ended, or cannot be read now."
    if result.task is not None and not result.task.ended:
        state += f" Follow it with: {command_line('show', result.order)}"
    lines = [f"Done: {result.sentence}", f"{result.order} {state}"]
    lines += _what_ending_waits_for(result.task)
    print_sent(result, document, lines, as_json=as_json)


def _what_ending_waits_for(task: Task | None) -> Iterator[str]:
    """The steps whose callback a task that is ending still waits for, and what ends the wait."""
    if task is None or task.ended or task.ending is None:
        return
    for name, record in task.steps.items():
        if isinstance(record.situation, AwaitsCallback):
            until = second(record.situation.until)
            ends = command_line("resolve", task.task_id, name, options=("--did-not", *REASON))
            yield (
                f"{name} waits for its callback until {until}, and its undo begins after that. "
                f"If nobody outside will perform it: {ends}"
            )


def _ages_at(act: ParsedOptions, at: int) -> int | None:
    """Return the instant of the ages in a filter for completed orders; None for other orders.

    The run is over the orders of its dry run, although they are older by then. Raises ConsoleError
    if it is to begin without one, or for an instant that is later than `at` (epoch ms).
    """
    if not selects_completed(act.selection):
        if act.as_of is not None:
            raise ConsoleError("--as-of is for completed orders: --state Completed.", USAGE)
        return None
    if act.as_of is None:
        if act.go:
            raise ConsoleError(
                "Completed orders are undone after a dry run only: leave out --go, and run the "
                "command that is printed then.",
                USAGE,
            )
        return at
    if act.as_of > at:
        raise ConsoleError(f"--as-of is in the future: {iso(act.as_of)}.", USAGE)
    return act.as_of


def _check(orders: Sequence[str], act: ParsedOptions, verb: OrderVerb) -> None:
    if act.selection is None and not orders:
        raise ConsoleError("Give an order id, or a filter: --group or --state.", USAGE)
    if act.selection is not None and orders:
        raise ConsoleError(
            "Give order ids or a filter, not both.",
            USAGE,
        )
    if act.selection is not None:
        try:
            check_bounded(act.selection, verb.states)
        except UnboundedSelection as error:
            if selects_completed(act.selection):
                raise
            again = isinstance(verb, ResubmitVerb) and verb.again
            hint = "--state Undone" if again else "--state Archived"
            raise ConsoleError(
                f"To select many orders, give --group or --state: {hint}.", USAGE
            ) from error


def follow(stack: DeployedStack, run_id: str, *, as_json: bool) -> None:
    """Show the progress of a run until the stack no longer works on it, and print its outcome.

    Raises typer.Exit with the exit code, unless that is 0. Ctrl-C ends the watch, not the run.
    """
    try:
        with Console(stderr=True, quiet=as_json).status(f"{run_id} is started") as status:
            record, is_open = watch_run(
                stack, run_id, lambda stored: status.update(progress_words(stored))
            )
    except KeyboardInterrupt:
        watch = command_line("bulk watch", run_id)
        stop = command_line("bulk stop", run_id, options=REASON)
        complain(f"The stack carries on {run_id}. Watch it with: {watch}\nStop it with: {stop}")
        raise typer.Exit(INTERRUPTED) from None
    print_stored(record, is_open, as_json=as_json)
    code = code_of(record)
    if code:
        raise typer.Exit(code)


def print_stored(
    record: BulkRecord,
    is_open: bool,
    *,
    as_json: bool,
    notes: Sequence[OrderNote] | None = None,
) -> None:
    """Print the run, as one JSON object if `as_json` is true."""
    if as_json:
        print(hinted_json(run_document(record, is_open, notes)))
    else:
        print_run(record, is_open, notes)


def code_of(record: BulkRecord) -> int:
    """Return the exit code for a run. If it is not 0, print the reason on standard error."""
    kind = COMMAND_KINDS[type(record.run.event)]
    match record.state:
        case RunState.FINISHED if record.progress.on_their_way:
            waiting = len(record.progress.on_their_way)
            complain(f"{waiting} of the orders are still in flight.")
            return UNCONFIRMED
        case RunState.FINISHED | RunState.RUNNING:
            return 0
        case RunState.PAUSED:
            complain(f"{kind} is paused. Resume it with: {resume_command(record)}")
            return UNCONFIRMED
        case RunState.STOPPED:
            anyway = " To send nevertheless, resume it with --anyway." if record.on_hold else ""
            complain(f"{kind} was stopped: {record.why}.{anyway}")
            return FAILED
