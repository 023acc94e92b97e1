"""What a verb does with what was typed: one order as ever, many as a bulk run.

Many are first shown: what would be done to how many. With --go it is done, and recorded as it goes.
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

INTERRUPTED = 130  # as a shell tells it of what Ctrl-C ended


@dataclass(frozen=True, slots=True)
class Operation:
    """What a verb asks. `question` is put before what cannot be taken back, `question_of_many`
    with the number of orders.
    """

    event: Callable[[CommandSource], OperatorEvent]
    steps: tuple[str, ...] = ()
    question: Callable[[Task], str] | None = None
    question_of_many: Callable[[str], str] | None = None
    again: bool = False


def execute(deed: Operation, orders: Sequence[str], act: ParsedOptions) -> None:
    """Do it to one order, or show or do it to many; ends the process with the outcome's code."""
    if len(orders) == 1 and act.selection is None:
        carry_out(CommandSpec(orders[0], deed.event, deed.steps, deed.question), act.manner)
        return
    with sentences():
        _check(orders, act, again=deed.again)
        # What no message can carry is told before anything is stored.
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
    """That the first of them would not only wait. Raises ConsoleError."""
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
    """Carry the run on and tell what became of it; ends the process with the outcome's code."""
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
    """The run as it is, for people or for scripts."""
    if as_json:
        print(json.dumps(run_document(record, now())))
    else:
        print_run(record, now())


def code_of(record: StoredRun) -> int:
    """The exit code of a run that has ended; what went wrong is said on standard error too."""
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
