"""`roundsman hold` and `roundsman release`: put an agent on hold, and end the hold.

A hold is a row that schedulers and agents read, not a command to a task. It takes effect when they
next read it, and ends by itself at its end time.
"""

import json
from dataclasses import dataclass, replace
from typing import Annotated

import typer
from rich.console import Console

from roundsman.aws.clock import now
from roundsman.engine.agent_holds import RECHECK_INTERVAL
from roundsman.errors import RoundsmanError
from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.instants import SECOND, clock_time, format_duration
from roundsman.model.json import Json
from roundsman.wire.limits import wire_text
from roundsman_console.arguments import read_duration, read_name, read_reason
from roundsman_console.cli.operate import AsJson, By, Yes
from roundsman_console.cli_errors import ConsoleError, complain, sentences
from roundsman_console.confirm import confirm
from roundsman_console.operate.hold_alerts import tell_held, tell_released
from roundsman_console.operate.wake_waiting import A_SECOND, HOLDS_ARE_KNOWN_AFTER, Woken, wake
from roundsman_console.read.agents import AgentNow, find_agent
from roundsman_console.read.stack import DeployedStack, StackOption, find_stack
from roundsman_console.sanitize import inert
from roundsman_console.views.agents import hold_document
from roundsman_console.views.task_view import second

SHORTEST_HOLD = 10  # seconds; a shorter hold could end before all schedulers have read it
LONGEST_HOLD = 7 * 24 * 3600

Agent = Annotated[str, typer.Argument(help="The agent's name, as roundsman agents lists it.")]


@dataclass(frozen=True, slots=True)
class Asking:
    """Who puts the agent on hold or releases it, and why."""

    by: str
    reason: str


def hold_command(
    agent: Agent,
    length: Annotated[str, typer.Option("--for", help="How long: 90s, 30m, 2h, 1d; at most 7d.")],
    reason: Annotated[str, typer.Option(help="Why; it is shown wherever a step waits.")],
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    """Let an agent take no work for a while: its steps wait, and no attempt is counted.

    Example: roundsman hold payment --for 30m --reason "acquirer maintenance"
    """
    with sentences():
        seconds = read_duration(length, least=SHORTEST_HOLD, most=LONGEST_HOLD)
        asking = Asking(wire_text(read_name(by)), wire_text(read_reason(reason)))
        found = find_stack(stack)
        held = find_agent(found, agent)
        lasts = format_duration(seconds * SECOND)
        confirm(f"{_is_held(held)}Let {held.name} take no work for {lasts}?", yes=yes)
        at = now()
        hold = Hold(held.name, OPERATOR, at, at + seconds * SECOND, asking.reason, asking.by)
        found.holds.hold(hold)
        tell_held(found, hold)
        if as_json:
            print(json.dumps(_held_document(hold, held)))
        else:
            _say(_held_lines(hold, held, lasts))


def release_command(
    agent: Agent,
    reason: Annotated[str, typer.Option(help="Why; the other operators are told.")] = "",
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Let an agent that is held take work again, and wake what waits for it.

    Example: roundsman release payment --reason "the acquirer is back"
    """
    with sentences():
        asking = Asking(wire_text(read_name(by)), wire_text(read_reason(reason)) if reason else "")
        found = find_stack(stack)
        held = find_agent(found, agent)
        # An unreadable hold never ends by itself, so this also ends one of a circuit breaker.
        kinds = [OPERATOR, *(hold.kind for hold in held.holds if hold.unreadable)]
        released = [found.holds.release(held.name, kind) for kind in kinds]
        if not any(released):
            circuit = held.hold(BREAKER)
            also = f" {_circuit(circuit)}" if circuit else ""
            raise ConsoleError(f"{held.name} is not held by an operator.{also}")
        held = _without_unreadable_circuit(held)
        tell_released(found, held.name, asking.by, asking.reason, now())
        if not as_json:
            _say(_released_lines(held, asking))
        # If the circuit is open too, no step can start before the circuit allows a test call.
        circuit = held.hold(BREAKER)
        first = max(now() + HOLDS_ARE_KNOWN_AFTER, circuit.until if circuit else 0)
        woken, lost = _wake(found, held.name, first, quiet=as_json)
        if as_json:
            print(json.dumps(_released_document(held, asking, woken)))
        else:
            _say(_woken_lines(woken, first))
        if lost is not None:
            complain(f"Not all that waits is woken: {lost or 'interrupted'}.")


def _without_unreadable_circuit(agent: AgentNow) -> AgentNow:
    """Return the agent without its unreadable circuit-breaker hold, which was released too."""
    kept = (hold for hold in agent.holds if not (hold.kind == BREAKER and hold.unreadable))
    return replace(agent, holds=tuple(kept))


def _is_held(agent: AgentNow) -> str:
    """Return a sentence about the operator's hold that a new one replaces; empty if there is none.

    It begins the confirmation question.
    """
    held = agent.hold(OPERATOR)
    if held is None:
        return ""
    return f"{agent.name} is held by {held.by} until {second(held.until)}: {held.reason}. "


def _held_lines(hold: Hold, before: AgentNow, lasts: str) -> list[str]:
    until = f"until {second(hold.until)} ({lasts})"
    found = [f"Done: {hold.agent} is held by {hold.by} {until}: {hold.reason}."]
    replaced, circuit = before.hold(OPERATOR), before.hold(BREAKER)
    if replaced:
        change = "lasts longer" if hold.until > replaced.until else "ends sooner"
        found.append(
            f"That replaces the hold by {replaced.by} until {second(replaced.until)} "
            f"({replaced.reason}) and {change}."
        )
    found += [
        "Nothing new begins there; what its service is at already is let finish.",
        "What waits for it counts no attempt, and its task's complete-by moves with the time.",
        f"It ends then by itself, or sooner with: roundsman release {hold.agent}",
    ]
    return found + ([_circuit(circuit)] if circuit else [])


def _circuit(circuit: Hold) -> str:
    return (
        f"The circuit of {circuit.agent} is open, until {second(circuit.until)} at least "
        f"({circuit.reason}); only a call that succeeds closes it."
    )


def _released_lines(before: AgentNow, asking: Asking) -> list[str]:
    said = f"{asking.by}: {asking.reason}" if asking.reason else asking.by
    circuit = before.hold(BREAKER)
    return [
        f"Done: {before.name} is released by {said}.",
        *([_circuit(circuit)] if circuit else []),
    ]


def _wake(stack: DeployedStack, agent: str, first: int, *, quiet: bool) -> tuple[Woken, str | None]:
    """Wake the tasks that wait for the agent, the first at `first` (epoch ms).

    Returns the progress, and the error that stopped it: None if there was none, empty after
    Ctrl-C. The release stays in force in any case.
    """
    reached = Woken()

    def tell(woken: Woken) -> None:
        nonlocal reached
        reached = woken
        status.update(f"{woken.looked} open tasks looked at, {woken.woken} woken")

    with Console(stderr=True, quiet=quiet).status("Looking for what waits") as status:
        try:
            return wake(stack, agent, first, tell), None
        except (RoundsmanError, KeyboardInterrupt) as error:
            return reached, str(error)


def _woken_lines(woken: Woken, first: int) -> list[str]:
    by_itself = f"goes on by itself within {format_duration(RECHECK_INTERVAL)}."
    found = []
    if woken.woken:
        tasks = "1 task that waits" if woken.woken == 1 else f"{woken.woken} tasks that wait"
        found.append(f"{tasks}: woken from {clock_time(first)} on, {A_SECOND} a second.")
    elif woken.whole and not woken.unread:
        found.append("No task waits for it.")
    if woken.unread:
        tasks = "1 open task" if woken.unread == 1 else f"{woken.unread} open tasks"
        found.append(f"{tasks} could not be read; what waits {by_itself}")
    if not woken.whole:
        found.append(f"What else waits {by_itself}")
    return found


def _held_document(hold: Hold, before: AgentNow) -> dict[str, Json]:
    return {
        "agent": hold.agent,
        "command": "hold",
        "outcome": "done",
        "hold": hold_document(hold),
        "replaced": hold_document(before.hold(OPERATOR)),
        "circuit": hold_document(before.hold(BREAKER)),
    }


def _released_document(before: AgentNow, asking: Asking, woken: Woken) -> dict[str, Json]:
    return {
        "agent": before.name,
        "command": "release",
        "outcome": "done",
        "by": asking.by,
        "reason": asking.reason or None,
        "hold": hold_document(before.hold(OPERATOR)),
        "circuit": hold_document(before.hold(BREAKER)),
        "looked": woken.looked,
        "woken": woken.woken,
        "unread": woken.unread,
        "whole": woken.whole,
    }


def _say(lines: list[str]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(inert(line), markup=False)
