"""Running an operator command: on one order directly, on several orders as a bulk run.

Without --go, a bulk run is only a dry run. With --go, it is executed and its progress is stored.
"""

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import typer
from rich.console import Console

from roundsman.aws.clock import now
from roundsman.model.events import COMMAND_KINDS, CommandSource, OperatorEvent
from roundsman.model.task import Task
from roundsman.wire.limits import wire_text
from roundsman_console.arguments import read_name, read_reason
from roundsman_console.bulk.assess import Eligible, held_for, hold_sentence
from roundsman_console.bulk.dry_run import AT_ONCE, check_bounded, choose, judge_all, try_out
from roundsman_console.bulk.report import (
    print_run,
    print_tried,
    progress_words,
    resume_command,
    run_document,
    tried_document,
)
from roundsman_console.bulk.run import Run, RunState
from roundsman_console.bulk.runner import BulkRunner, RunClock, holder, interruptible
from roundsman_console.bulk.store import HELD_FOR, DynamoBulks, StoredRun, bulks_of
from roundsman_console.cli._options import ParsedOptions
from roundsman_console.cli_errors import (
    FAILED,
    UNCONFIRMED,
    USAGE,
    ConsoleError,
    complain,
    sentences,
)
from roundsman_console.confirm import confirm
from roundsman_console.operate.commands import CommandSpec, carry_out
from roundsman_console.read.selection import Selection
from roundsman_console.read.stack import DeployedStack, find_stack

INTERRUPTED = 130  # the exit code that a shell reports after Ctrl-C (128 + SIGINT)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator command, independent of the orders it applies to."""

    event: Callable[[CommandSource], OperatorEvent]
    steps: tuple[str, ...] = ()
    """The step names that were typed; checked against the plan if there is one order."""
    question: Callable[[Task], str] | None = None
    """The confirmation question for one order; None if no confirmation is needed."""
    question_of_many: Callable[[str], str] | None = None
    """The same for a bulk run; its argument is the number of orders, for example `12 orders`."""
    again: bool = False
    """Whether undone or cancelled tasks begin again (`resubmit --again`)."""


def execute(deed: Operation, orders: Sequence[str], act: ParsedOptions) -> None:
    """Run the command on one order, or run it or try it out on several orders.

    Raises typer.Exit with the exit code, unless that is 0.
    """
    if len(orders) == 1 and act.selection is None:
        carry_out(CommandSpec(orders[0], deed.event, deed.steps, deed.question), act.manner)
        return
    with sentences():
        _check(orders, act, again=deed.again)
        # Checked and escaped before anything is stored: SQS refuses some characters.
        reason = wire_text(read_reason(act.manner.reason))
        by = wire_text(read_name(act.manner.by))
        stack = find_stack(act.manner.stack)
        run_id = f"b-{secrets.token_hex(4)}"
        run = Run(
            id=run_id,
            event=deed.event(CommandSource(run_id, by, reason)),
            by=by,
            reason=reason,
            selection=act.selected,
            started_at=now(),
            selected=0,
            terms=act.terms,
        )
        quiet = act.manner.as_json
        with Console(stderr=True, quiet=quiet).status("Looking for the orders") as status:
            chosen = choose(stack, act.selection or Selection(), orders, status.update)
            run = replace(run, selected=len(chosen))
            if not act.go:
                tried = try_out(stack, run, chosen, status.update)
            else:
                _check_holds(stack, run, chosen)
        if not act.go:
            go_ahead = f"{act.typed} --go"
            if act.manner.as_json:
                print(json.dumps(tried_document(run, tried, go_ahead)))
            else:
                print_tried(run, tried, go_ahead)
            return
        if deed.question_of_many is not None:
            many = "1 order" if len(chosen) == 1 else f"{len(chosen)} orders"
            confirm(deed.question_of_many(many), yes=act.manner.yes)
        bulks = bulks_of(stack)
        clock = RunClock()
        me = replace(holder(by), until=clock() + HELD_FOR)
        carry_on(stack, bulks, bulks.begin(run, chosen, me), clock, as_json=act.manner.as_json)


def _check(orders: Sequence[str], act: ParsedOptions, *, again: bool) -> None:
    if act.selection is None and not orders:
        raise ConsoleError("Name an order, or say which by --group or --state.", USAGE)
    if act.selection is not None and orders:
        raise ConsoleError(
            f"Either {orders[0]} is meant or what the filter finds: name orders, or give a filter.",
            USAGE,
        )
    if act.manner.no_wait:
        raise ConsoleError("--no-wait is for one order; of many, the results are awaited.", USAGE)
    if act.selection is not None:
        check_bounded(act.selection, again=again)


def _check_holds(stack: DeployedStack, run: Run, chosen: Sequence[str]) -> None:
    """Raise ConsoleError if one of the first AT_ONCE orders would wait for an agent on hold.

    With --anyway, the orders are not checked.
    """
    if run.terms.anyway:
        return
    holds = stack.holds.holds()
    for _, found in judge_all(stack, run, chosen[:AT_ONCE]) if holds else ():
        hold = held_for(found, holds) if isinstance(found, Eligible) else None
        if hold is not None:
            raise ConsoleError(
                f"{hold_sentence(hold)}: the orders would only wait for it. Nothing was sent; "
                "--anyway sends them all the same."
            )


def carry_on(
    stack: DeployedStack,
    bulks: DynamoBulks,
    record: StoredRun,
    clock: Callable[[], int],
    *,
    as_json: bool,
) -> None:
    """Continue the bulk run until it ends and print its outcome.

    Raises typer.Exit with the exit code, unless that is 0.
    """
    with (
        Console(stderr=True, quiet=as_json).status(progress_words(record)) as status,
        interruptible() as interrupted,
    ):
        runner = BulkRunner(
            stack,
            bulks,
            record,
            clock,
            interrupted,
            lambda told: status.update(progress_words(told)),
        )
        try:
            ended = runner.run()
        except BaseException:
            complain(
                f"{record.run.id} is not finished. Look with: roundsman bulk show {record.run.id}"
            )
            raise
    tell(ended, as_json=as_json)
    code = code_of(ended)
    if code:
        raise typer.Exit(code)


def tell(record: StoredRun, *, as_json: bool) -> None:
    """Print the run, as one JSON object if `as_json` is true."""
    if as_json:
        print(json.dumps(run_document(record, now())))
    else:
        print_run(record, now())


def code_of(record: StoredRun) -> int:
    """Return the exit code for a run. If it is not 0, print the reason on standard error."""
    kind = COMMAND_KINDS[type(record.run.event)]
    match record.state:
        case RunState.FINISHED if record.progress.on_their_way:
            waiting = len(record.progress.on_their_way)
            complain(f"{waiting} of the orders are still under way.")
            return UNCONFIRMED
        case RunState.FINISHED | RunState.RUNNING:
            return 0
        case RunState.INTERRUPTED:
            complain(f"{kind} was interrupted. Carry it on with: {resume_command(record, now())}")
            return INTERRUPTED
        case RunState.STOPPED:
            complain(f"{kind} was stopped: {record.why}.")
            return FAILED
