"""`roundsman hold` and `roundsman release` with --workflow or --all: orders wait, and go on."""

import json
from collections.abc import Callable

import typer
from rich.console import Console

from roundsman.model.holds import ALL_ORDERS, EVERY_WORKFLOW
from roundsman.model.instants import SECOND, format_duration
from roundsman_console.agent.order_hold_text import held_lines, released_lines, watched_lines
from roundsman_console.agent.order_holds import (
    OrdersRelease,
    Watched,
    find_order_hold,
    hold_orders,
    release_orders,
    wake_released,
    watch_released,
)
from roundsman_console.agent.verbs import HoldVerb, ReleaseVerb
from roundsman_console.agent.view import order_hold_sentence
from roundsman_console.agent.wake_waiting import Woken
from roundsman_console.agent.woken_text import woken_lines
from roundsman_console.cli.confirm import confirm
from roundsman_console.cli_errors import complain
from roundsman_console.errors import Interrupted
from roundsman_console.stack.stack import DeployedStack
from roundsman_console.terminal import say

FAILED = 1
"""The exit code of a release that was taken back."""


def hold_orders_now(
    stack: DeployedStack,
    verb: HoldVerb,
    workflow: str,
    by: str,
    reason: str,
    *,
    as_json: bool,
    yes: bool,
) -> None:
    """Ask, hold the orders, and print what follows."""
    before = find_order_hold(stack, workflow)
    lasts = format_duration(verb.seconds * SECOND)
    what = "everything" if workflow == EVERY_WORKFLOW else f"the orders of {workflow}"
    held = "" if before is None else f"{order_hold_sentence(before)} "
    confirm(f"{held}Hold {what} for {lasts}?", yes=yes)
    result = hold_orders(stack, workflow, verb.seconds, undos=verb.undos, by=by, reason=reason)
    warn_not_alerted(result.not_alerted)
    if as_json:
        print(json.dumps(result.document()))
    else:
        say(*held_lines(result, lasts))


def release_orders_now(
    stack: DeployedStack, verb: ReleaseVerb, workflow: str, by: str, reason: str, *, as_json: bool
) -> None:
    """Release a share of the orders, wake and watch them, and print what came of it.

    Exits with FAILED if the orders were held again.
    """
    share = ALL_ORDERS if verb.share is None else verb.share
    release = release_orders(stack, workflow, share, by=by, reason=reason)
    warn_not_alerted(release.not_alerted)
    if not as_json:
        say(*released_lines(release))
    woken, lost = waking(lambda progress: wake_released(stack, release, progress), quiet=as_json)
    if not as_json:
        say(*woken_lines(woken, release.first_wake))
    if lost is not None:
        complain(f"Not all waiting tasks were woken: {lost}.")
    watched = None
    if verb.watches_for:
        watched = _watch(stack, verb, release, woken, quiet=as_json)
        if not as_json:
            say(*watched_lines(release, watched, verb))
    if as_json:
        print(json.dumps(release.document(woken, watched)))
    if watched is not None and watched.failed > verb.stops_at * watched.orders:
        raise typer.Exit(FAILED)


def waking(
    wake: Callable[[Callable[[Woken], None]], tuple[Woken, str | None]], *, quiet: bool
) -> tuple[Woken, str | None]:
    """Wake tasks, showing the progress, until Ctrl-C at the latest.

    Returns the progress, and why not all were woken; None if they were.
    """
    with Console(stderr=True, quiet=quiet).status("Finding the tasks that wait") as status:
        try:
            return wake(
                lambda so_far: status.update(
                    f"{so_far.looked} open tasks examined, {so_far.woken} woken"
                )
            )
        except Interrupted as interrupted:
            found = interrupted.result
            return found if isinstance(found, Woken) else Woken(), "interrupted"


def warn_not_alerted(not_alerted: str | None) -> None:
    """Print a warning if the other operators were not alerted; the hold or release is done."""
    if not_alerted is not None:
        complain(f"The other operators were not alerted: {not_alerted}.")


def _watch(
    stack: DeployedStack, verb: ReleaseVerb, release: OrdersRelease, woken: Woken, *, quiet: bool
) -> Watched:
    seen = Watched(len(woken.first))

    def note(watched: Watched) -> None:
        nonlocal seen
        seen = watched
        status.update(f"{watched.failed} of {watched.orders} woken orders have failed")

    with Console(stderr=True, quiet=quiet).status("Watching the woken orders") as status:
        try:
            return watch_released(
                stack,
                release,
                woken,
                seconds=verb.watches_for,
                stop_at=verb.stops_at,
                progress=note,
            )
        except KeyboardInterrupt:
            complain("The orders are watched no longer; they stay released.")
            return seen
