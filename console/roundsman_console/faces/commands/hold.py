"""`roundsman hold` and `roundsman release`: put an agent or orders on hold, and end the hold."""

import json
from dataclasses import replace

import typer
from rich.console import Console

from roundsman.model.holds import OPERATOR
from roundsman.model.instants import SECOND, format_duration, second
from roundsman_console.acts.actor import read_name, read_reason
from roundsman_console.acts.hold.agents import AgentHold, AgentRelease, hold_agent, release_agent
from roundsman_console.acts.hold.orders import (
    OrdersHold,
    OrdersRelease,
    find_order_hold,
    hold_orders,
    release_orders,
)
from roundsman_console.acts.hold.sentences import (
    held_lines,
    released_lines,
    watched_lines,
    woken_lines,
)
from roundsman_console.acts.hold.verbs import HoldVerb, ReleaseVerb
from roundsman_console.acts.hold.wake import Woken, wake_released
from roundsman_console.acts.hold.watch import Watched, watch_released
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import FAILED, Interrupted
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.errors import complain, sentences
from roundsman_console.faces.cli.options import AsJson, By, Yes
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.terminal import say
from roundsman_console.faces.cli.verb_options import command_of
from roundsman_console.facts.agent.reading import AgentNow, find_agent
from roundsman_console.facts.hold.view import order_hold_sentence, orders_of


@command_of(HoldVerb)
def hold_command(
    verb: HoldVerb,
    reason: str,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    with sentences():
        who, why = read_name(by), read_reason(reason)
        found, lasts = announced_stack(stack), format_duration(verb.seconds * SECOND)
        result: AgentHold | OrdersHold
        if verb.orders_of is None:
            agent = find_agent(found, verb.agent or "")
            confirm(f"{_is_held(agent)}Hold {agent.name} for {lasts}?", yes=yes)
            result = hold_agent(found, agent, verb.seconds, by=who, reason=why)
        else:
            before = find_order_hold(found, verb.orders_of)
            held = "" if before is None else f"{order_hold_sentence(before)} "
            confirm(f"{held}Hold {orders_of(verb.orders_of)} for {lasts}?", yes=yes)
            result = hold_orders(
                found, verb.orders_of, verb.seconds, undos=verb.undos, by=who, reason=why
            )
        _warn_not_alerted(result.not_alerted)
        if as_json:
            print(json.dumps(result.document()))
        else:
            say(*held_lines(result, lasts))


@command_of(ReleaseVerb)
def release_command(
    verb: ReleaseVerb,
    reason: str,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    with sentences():
        who, why = read_name(by), read_reason(reason) if reason else ""
        found = announced_stack(stack)
        if verb.orders_of is None:
            agent = release_agent(found, verb.agent or "", by=who, reason=why)
            woken = _wake(found, agent, quiet=as_json)
            if as_json:
                print(json.dumps(agent.document(woken)))
            return
        orders = release_orders(found, verb.orders_of, verb.goes_on, by=who, reason=why)
        woken = _wake(found, orders, quiet=as_json)
        watched = _watch(found, verb, orders, woken, quiet=as_json) if verb.watches_for else None
        if as_json:
            seen = None if watched is None else watched.document()
            print(json.dumps(orders.document(woken, seen)))
        if watched is not None and watched.too_many_failed:
            raise typer.Exit(FAILED)


def _is_held(agent: AgentNow) -> str:
    """Return a sentence about the operator's hold that a new one replaces; empty if there is none.

    It begins the confirmation question.
    """
    held = agent.hold(OPERATOR)
    if held is None:
        return ""
    return f"{agent.name} is held by {held.by} until {second(held.until)}: {held.reason}. "


def _warn_not_alerted(not_alerted: str | None) -> None:
    """Print a warning if the other operators were not alerted; the hold or release is done."""
    if not_alerted is not None:
        complain(f"The other operators were not alerted: {not_alerted}.")


def _wake(stack: DeployedStack, release: AgentRelease | OrdersRelease, *, quiet: bool) -> Woken:
    """Say what was released, and wake the first tasks that waited for it."""
    _warn_not_alerted(release.not_alerted)
    if not quiet:
        say(*released_lines(release))
    lost: str | None
    try:
        woken, lost = wake_released(stack, release)
    except Interrupted:
        woken, lost = Woken(more=True), "interrupted"
    if not quiet:
        say(*woken_lines(woken, release.first_wake))
    if lost is not None:
        complain(f"The first waiting tasks were not all woken at once: {lost}.")
    return woken


def _watch(
    stack: DeployedStack, verb: ReleaseVerb, release: OrdersRelease, woken: Woken, *, quiet: bool
) -> Watched:
    """Watch the orders that were woken, and say what became of them."""
    watched = Watched(0, verb.stops_at)

    def note(so_far: Watched) -> None:
        nonlocal watched
        watched = so_far
        status.update(f"{so_far.failed} of {so_far.orders} woken orders have failed")

    with Console(stderr=True, quiet=quiet).status("Watching the woken orders") as status:
        try:
            watched = watch_released(
                stack,
                release,
                woken,
                seconds=verb.watches_for,
                stop_at=verb.stops_at,
                progress=note,
            )
        except KeyboardInterrupt:
            complain("The orders are watched no longer; they stay released.")
            watched = replace(watched, not_held="interrupted")
    if not quiet:
        say(*watched_lines(release, watched, format_duration(verb.watches_for * SECOND)))
    return watched
