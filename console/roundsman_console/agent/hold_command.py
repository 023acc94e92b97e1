"""`roundsman hold` and `roundsman release`: put an agent on hold, and end the hold.

A hold is a row that schedulers and agents read, not a command to a task. It takes effect when they
next read it, and ends by itself at its end time.
"""

import json

from rich.console import Console

from roundsman.command_line import command_line
from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.instants import SECOND, format_duration, second
from roundsman_console.agent import verbs as agents
from roundsman_console.agent.holds import (
    HoldRelease,
    hold_agent,
    release_agent,
    wake_after,
)
from roundsman_console.agent.reading import AgentNow, find_agent
from roundsman_console.agent.view import circuit_sentence
from roundsman_console.agent.woken_text import woken_lines
from roundsman_console.cli.confirm import confirm
from roundsman_console.cli.options import AsJson, By, Yes
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import announced_stack
from roundsman_console.cli_errors import complain, sentences
from roundsman_console.errors import Interrupted
from roundsman_console.hints import hint
from roundsman_console.terminal import say
from roundsman_console.verbs.actor import read_name, read_reason
from roundsman_console.verbs.commands import command_of


@command_of(agents.HoldVerb)
def hold_command(
    verb: agents.HoldVerb,
    reason: str,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    with sentences():
        who, why = read_name(by), read_reason(reason)
        found = announced_stack(stack)
        held = find_agent(found, verb.agent)
        lasts = format_duration(verb.seconds * SECOND)
        confirm(f"{_is_held(held)}Hold {held.name} for {lasts}?", yes=yes)
        result = hold_agent(found, held, verb.seconds, by=who, reason=why)
        _warn(result.not_alerted)
        if as_json:
            print(json.dumps(result.document()))
        else:
            say(*_held_lines(result.hold, held, lasts))


@command_of(agents.ReleaseVerb)
def release_command(
    verb: agents.ReleaseVerb,
    reason: str,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    with sentences():
        who, why = read_name(by), read_reason(reason) if reason else ""
        found = announced_stack(stack)
        release = release_agent(found, verb.agent, by=who, reason=why)
        _warn(release.not_alerted)
        if not as_json:
            say(*_released_lines(release))
        first = release.first_wake
        with Console(stderr=True, quiet=as_json).status("Finding the tasks that wait") as status:
            try:
                woken, lost = wake_after(
                    found,
                    release,
                    first,
                    lambda so_far: status.update(
                        f"{so_far.looked} open tasks examined, {so_far.woken} woken"
                    ),
                )
            except Interrupted as interrupted:
                woken, lost = interrupted.result, "interrupted"
        if as_json:
            print(json.dumps(release.document(woken)))
        else:
            say(*woken_lines(woken, first))
        if lost is not None:
            complain(f"Not all waiting tasks were woken: {lost}.")


def _warn(not_alerted: str | None) -> None:
    """Print a warning if the other operators were not alerted; the hold or release is done."""
    if not_alerted is not None:
        complain(f"The other operators were not alerted: {not_alerted}.")


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
    found = [f"{hold.agent} is held by {hold.by} {until}: {hold.reason}."]
    replaced, circuit = before.hold(OPERATOR), before.hold(BREAKER)
    if replaced:
        change = "lasts longer" if hold.until > replaced.until else "ends sooner"
        found.append(
            f"It replaces the hold by {replaced.by} until {second(replaced.until)} "
            f"({replaced.reason}) and {change}."
        )
    found += [
        "The agent begins nothing new; calls under way at its service may finish.",
        (
            "A step that waits for it counts no attempt, and the task's complete-by moves by the "
            "time waited."
        ),
        "The hold ends by itself at that time, or sooner with: "
        + hint(command_line("release", hold.agent)),
    ]
    return found + ([circuit_sentence(circuit)] if circuit else [])


def _released_lines(release: HoldRelease) -> list[str]:
    who = f"{release.by}: {release.reason}" if release.reason else release.by
    circuit = release.agent.hold(BREAKER)
    return [
        f"{release.agent.name} is released by {who}.",
        *([circuit_sentence(circuit)] if circuit else []),
    ]
