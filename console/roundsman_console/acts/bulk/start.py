"""Starting a bulk run, and asking the stack to pause, resume or stop it.

The supervisor carries the run out. So this process may end as soon as a function here returns.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import boto3

from roundsman.aws.clock import now
from roundsman.aws.dynamodb.bulk_runs import DynamoBulkRuns
from roundsman.aws.errors import aws_errors
from roundsman.errors import UnreadableRecord
from roundsman.model.bulk_run import (
    BulkRecord,
    RequestAction,
    Run,
    RunRequest,
    RunState,
    Terms,
)
from roundsman.model.events import CommandSource, OperatorEvent
from roundsman.wire.limits import wire_text
from roundsman_console.acts.bulk.dry_run import Progress, must_pin, planned_orders
from roundsman_console.acts.order.sent import check_sender
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import pause
from roundsman_console.base.constraints import RUN_ID
from roundsman_console.base.errors import InspectorError, NotFound
from roundsman_console.base.sanitize import inert
from roundsman_console.facts.course.marks import group_of

BETWEEN_READS = 2.0  # seconds; the supervisor stores progress every 10 s or more often

TRIES = 5  # several people ask for changes of one run within the same moment at most by accident

POSSIBLE = {
    RequestAction.PAUSE: (RunState.RUNNING,),
    RequestAction.STOP: (RunState.RUNNING, RunState.PAUSED),
    RequestAction.RESUME: (RunState.PAUSED, RunState.STOPPED),
}
"""The states in which a request does something."""
GOES = (RunState.RUNNING, RunState.PAUSED)
"""The states of a run beside which no other one over its failure group is started."""
DONE = {
    RequestAction.PAUSE: "paused",
    RequestAction.RESUME: "resumed",
    RequestAction.STOP: "stopped",
}
"""What a run is once the request is carried out."""


def new_run(
    event: Callable[[CommandSource], OperatorEvent],
    by: str,
    reason: str,
    selection: str,
    terms: Terms,
    at: int,
) -> Run:
    """Return a run that is planned at `at` (epoch ms), with a new id and without orders.

    `by` and `reason` are escaped before anything is stored, because SQS refuses some characters.
    """
    run_id, by, reason = f"b-{secrets.token_hex(4)}", wire_text(by), wire_text(reason)
    return Run(
        id=run_id,
        event=event(CommandSource(run_id, by, reason)),
        by=by,
        starter="",
        reason=reason,
        selection=selection,
        started_at=at,
        selected=0,
        terms=terms,
    )


def bulk_runs_of(stack: DeployedStack) -> DynamoBulkRuns:
    """Return the store of the stack's bulk runs."""
    return DynamoBulkRuns(
        boto3.client("dynamodb"), control_table=stack.output("ControlTableName"), clock=now
    )


def own_principal() -> str:
    """Return the caller as AWS authenticates it, in the form of the `SenderId` of SQS.

    It is a part of the keys that the caller may write; IAM calls it `aws:userid`.
    """
    with aws_errors("asking AWS who the caller is"):
        return boto3.client("sts").get_caller_identity()["UserId"]


def start_run(stack: DeployedStack, run: Run, orders: Sequence[str], progress: Progress) -> Run:
    """Store a run over these orders; the supervisor begins it within a minute. Returns the run.

    `progress` is called with how far the checks are that only the application can make, in words.
    Raises what `check_alone` raises.
    """
    check_alone(stack, run)
    run = replace(run, starter=own_principal(), selected=len(orders))
    run = replace(run, pins_versions=run.pins_versions or must_pin(stack, run))
    bulk_runs_of(stack).begin(run, planned_orders(stack, run, orders, progress))
    return run


def check_alone(stack: DeployedStack, run: Run) -> None:
    """Raise InspectorError if another run lets the orders of the same failure group go on now.

    Of two that are started at one moment, both may go on: an order takes the first command, and
    refuses the second.
    """
    group, runs = group_of(run), bulk_runs_of(stack)
    listed = [] if group is None else [one for one in runs.listed() if one.is_open]
    for one in listed:
        with suppress(UnreadableRecord):
            record = runs.load(one.run_id, one.starter)
            if record is not None and record.state in GOES and group_of(record.run) == group:
                raise InspectorError(
                    f"{one.run_id} of {record.run.by} is {record.state.value} for the orders of "
                    f"{group}: {record.progress.reached:,} of {record.run.selected:,} are reached. "
                    "Nothing was started. Wait for its end, or stop it."
                )


def find_run(stack: DeployedStack, run_id: str) -> tuple[BulkRecord, bool]:
    """Return the run with this id, and whether the stack still works on it. Raises NotFound."""
    if not RUN_ID.fullmatch(run_id):
        raise NotFound(
            f"{inert(run_id[:50])!r} is not a bulk run id: b- and eight of 0-9 and a-f. List "
            "the runs with: roundsman bulk ls",
        )
    return _found(bulk_runs_of(stack), run_id)


def _found(runs: DynamoBulkRuns, run_id: str) -> tuple[BulkRecord, bool]:
    found = runs.find(run_id)
    if found is None:
        raise NotFound(
            f"There is no bulk run {run_id}: it was removed after 90 days, or an earlier version "
            "of roundsman started it."
        )
    return found


def watch_run(
    stack: DeployedStack, run_id: str, progress: Callable[[BulkRecord], None]
) -> tuple[BulkRecord, bool]:
    """Read the run every BETWEEN_READS seconds until the stack no longer works on it.

    `progress` is called with each record. A run that is paused or stopped ends the watch when its
    orders in flight have ended, and no request waits. Returns what `find_run` returns, and raises
    what it raises.
    """
    runs = bulk_runs_of(stack)
    record, is_open = find_run(stack, run_id)
    progress(record)
    while is_open:
        pause(BETWEEN_READS)
        record, is_open = _found(runs, run_id)
        progress(record)
    return record, is_open


def ask(
    stack: DeployedStack,
    run_id: str,
    action: RequestAction,
    *,
    by: str,
    reason: str,
    anyway: bool = False,
) -> str:
    """Ask the stack to pause, resume or stop a run, and return what will happen, in words.

    `anyway` is for RESUME: also send to orders that would wait for an agent on hold. Raises
    NotFound, and InspectorError if the run is in another state, or if another person has asked for
    something that is not carried out yet: it would be lost. A stop goes before anything else, also
    before what others ask for at the same moment.
    """
    check_sender(by, reason)
    me, runs = own_principal(), bulk_runs_of(stack)
    request = RunRequest(action, wire_text(by), me, wire_text(reason), now(), anyway)
    for _ in range(TRIES):
        # The list is read before the record, so that a request in the list which the record does
        # not know is one that is not carried out.
        last = next((one for one in runs.listed() if one.run_id == run_id), None)
        record, _ = find_run(stack, run_id)
        if record.state not in POSSIBLE[action]:
            raise InspectorError(f"{run_id} cannot be {DONE[action]}: it is {record.state.value}.")
        seen = 0 if last is None else last.asked_at
        waits = last is not None and last.asked_by != me and seen > record.asked_at
        if last is not None and waits and action is not RequestAction.STOP:
            raise InspectorError(
                f"{run_id} cannot be {DONE[action]} yet: {last.asked_by} has just asked for a "
                "change that the stack has not carried out. Look at the run again in a minute."
            )
        if runs.ask(run_id, request, seen=seen):
            return f"Requested: {run_id} is {DONE[action]} within a minute."
    raise InspectorError(
        f"{run_id} cannot be {DONE[action]}: others ask for changes of it at the same moment. "
        "Ask again."
    )
